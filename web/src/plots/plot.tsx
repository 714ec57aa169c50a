// One plot: the curves of a panel, those of the pinned run dashed beside them.

import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

import type { Samples } from "../engine/protocol";
import { cursor, range, zoom, type Result } from "../model/state";
import { colourOf, colourOfLimit, variable } from "./colours";
import { curveOf, greatestOf, joined } from "./data";
import { scaleFor, type Panel } from "./panels";

const HEIGHT = 200;
/** Columns of averages: enough to see changes, few enough that bursts of acknowledgments don't hide them. */
const AVERAGES = 100;
const SYNC = uPlot.sync("time");

export interface PlotData {
  panel: Panel;
  unit: string;
  labels: string[];
  data: uPlot.AlignedData;
  points: boolean[];
  /** Whether each curve is of the pinned run. */
  pinned: boolean[];
  /** Index of each curve's colour. */
  colours: number[];
  /** Bands of what limits the sender. */
  limits: Samples | null;
}

/** Reads the curves of a panel from the run and the pinned run. */
export async function load(
  panel: Panel,
  run: Result,
  pinnedRun: Result | null,
  shown: [number, number],
  columns: number,
  limits: number | null,
): Promise<PlotData> {
  const indices = panel.curves.map((curve) => curve.index);
  const more = limits === null ? [] : [limits];
  const ask = (of: Result, wanted: number[]) => of.client.series({ run: of.run, indices: wanted, range_s: shown, columns: panel.averages ? AVERAGES : columns, averages: panel.averages });
  const own = await ask(run, [...indices, ...more]);
  const bands = limits === null ? null : (own.pop() ?? null);
  const other: { samples: Samples; curve: number }[] = [];
  if (pinnedRun !== null && pinnedRun !== run) {
    const found = panel.curves
      .map((curve, at) => ({ at, index: pinnedRun.series.findIndex((one) => one.name === curve.name) }))
      .filter(({ index }) => index >= 0);
    const samples = await ask(pinnedRun, found.map(({ index }) => index));
    found.forEach(({ at }, place) => {
      const one = samples[place];
      if (one) {
        other.push({ samples: one, curve: at });
      }
    });
  }
  const drawn = withoutZeros([
    ...own.map((samples, curve) => ({ samples, curve, isPinned: false })),
    ...other.map((one) => ({ ...one, isPinned: true })),
  ]);
  const scale = scaleFor(panel.unit, greatestOf(drawn.map(({ samples }) => samples)));
  const labelOf = (curve: number) => panel.curves[curve]?.label ?? "";
  return {
    panel,
    unit: scale.unit,
    labels: drawn.map(({ curve, isPinned }) => (isPinned ? `${labelOf(curve)} (pinned)` : labelOf(curve))),
    data: joined(drawn.map(({ samples }) => curveOf(samples, scale.factor))),
    points: drawn.map(({ curve }) => panel.curves[curve]?.points ?? false),
    pinned: drawn.map(({ isPinned }) => isPinned),
    colours: drawn.map(({ curve }) => curve),
    limits: bands,
  };
}

/** Leaves curves out that are zero throughout, unless all are. */
function withoutZeros<Drawn extends { samples: Samples }>(all: Drawn[]): Drawn[] {
  const some = all.filter(({ samples }) => greatestOf([samples]) > 0);
  return some.length > 0 ? some : all.slice(0, 1);
}

/** Draws bands behind the curves: what limits the sender when. */
function drawLimits(limits: Samples | null): (plot: uPlot) => void {
  return (plot) => {
    if (limits === null) {
      return;
    }
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.globalAlpha = 0.22;
    for (let index = 0; index < limits.times.length; index += 1) {
      const from = plot.valToPos(limits.times[index] ?? 0, "x", true);
      const next = limits.times[index + 1];
      const until = next === undefined ? bbox.left + bbox.width : plot.valToPos(next, "x", true);
      const left = Math.max(from, bbox.left);
      const right = Math.min(until, bbox.left + bbox.width);
      if (right > left) {
        ctx.fillStyle = colourOfLimit(limits.high[index] ?? 0);
        ctx.fillRect(left, bbox.top, right - left, bbox.height);
      }
    }
    ctx.restore();
  };
}

function optionsOf(plotted: PlotData, width: number): uPlot.Options {
  const axis = {
    stroke: variable("--text"),
    grid: { stroke: variable("--grid"), width: 1 },
    ticks: { stroke: variable("--grid"), width: 1 },
    font: "12px system-ui, sans-serif",
  };
  return {
    width,
    height: HEIGHT,
    cursor: { sync: { key: SYNC.key, setSeries: false }, drag: { x: true, y: false, setScale: false } },
    legend: { live: true },
    scales: { x: { time: false, range: () => range.peek() }, y: { range: (_plot, low, high) => [Math.min(0, low ?? 0), high === 0 || high === null ? 1 : high * 1.05] } },
    axes: [
      { ...axis, values: (_plot, splits) => splits.map((split) => `${Number(split.toPrecision(6))} s`) },
      { ...axis, size: 64, label: plotted.unit, labelSize: 18, labelFont: "12px system-ui, sans-serif" },
    ],
    series: [
      { label: "time", value: (_plot, value: number | null) => (value === null ? "–" : `${value.toFixed(3)} s`) },
      ...plotted.labels.map((label, index): uPlot.Series => {
        const colour = colourOf(plotted.colours[index] ?? index);
        const shown: uPlot.Series = {
          label,
          stroke: colour,
          width: 1.5,
          spanGaps: true,
          value: (_plot, value: number | null) => (value === null ? "–" : `${Number(value.toPrecision(4))} ${plotted.unit}`),
          points: { show: false },
        };
        if (plotted.pinned[index]) {
          shown.dash = [6, 4];
        }
        if (plotted.points[index]) {
          shown.paths = () => null;
          shown.points = { show: true, size: 5, stroke: colour, fill: colour };
        } else {
          const stepped = uPlot.paths.stepped?.({ align: 1 });
          if (stepped) {
            shown.paths = stepped;
          }
        }
        return shown;
      }),
    ],
    hooks: {
      drawClear: [drawLimits(plotted.limits)],
      setSelect: [
        (plot) => {
          if (plot.select.width > 4) {
            const from = plot.posToVal(plot.select.left, "x");
            const until = plot.posToVal(plot.select.left + plot.select.width, "x");
            zoom.value = [Math.max(0, from), until];
          }
          plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
        },
      ],
      setCursor: [
        (plot) => {
          const left = plot.cursor.left ?? -1;
          if (left >= 0) {
            cursor.value = plot.posToVal(left, "x");
          }
        },
      ],
    },
  };
}

export function Plot({ plotted, width }: { plotted: PlotData; width: number }) {
  const host = useRef<HTMLDivElement>(null);
  const drawn = useRef<uPlot | null>(null);
  const [dark, setDark] = useState(false);
  const shape = `${plotted.labels.join("\n")}${plotted.unit}${width}${dark}`;
  const bands = useRef<Samples | null>(null);

  useEffect(() => {
    const query = matchMedia("(prefers-color-scheme: dark)");
    const change = () => setDark(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, []);

  useEffect(() => {
    if (host.current === null) {
      return undefined;
    }
    const plot = new uPlot(optionsOf(plotted, width), plotted.data, host.current);
    drawn.current = plot;
    bands.current = plotted.limits;
    return () => {
      plot.destroy();
      drawn.current = null;
    };
  }, [shape]);

  useEffect(() => {
    const plot = drawn.current;
    if (plot !== null && bands.current !== plotted.limits) {
      bands.current = plotted.limits;
      plot.hooks.drawClear = [drawLimits(plotted.limits)];
    }
    plot?.setData(plotted.data);
  }, [plotted]);

  useSignalEffect(() => {
    const [min, max] = range.value;
    drawn.current?.setScale("x", { min, max });
  });

  const summary = `${plotted.panel.title} in ${plotted.unit} over time: ${plotted.labels.join(", ")}`;
  return (
    <figure class="plot" data-panel={plotted.panel.id}>
      <figcaption>{plotted.panel.title}</figcaption>
      <div ref={host} role="img" aria-label={summary} />
    </figure>
  );
}
