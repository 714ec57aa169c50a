// All plots of a run, on one axis of time.

import { computed, signal, useSignal, useSignalEffect } from "@preact/signals";
import type { Ref } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { pinned, range, result, wholeRange, zoom } from "../model/state";
import { saveCsv, savePng, saveSvg } from "../model/save";
import { colourOfLimit, LIMITS } from "./colours";
import { limitsOf, ownersOf, panelsOf } from "./panels";
import { load, Plot, type PlotData } from "./plot";

/** Flows and link directions that are hidden. */
const hidden = signal<ReadonlySet<string>>(new Set());
/** The flow of the plots that show one. */
const chosenFlow = signal<string | null>(null);

/** Most flows and directions that are shown at first. */
const MOST_SHOWN = 6;

const owners = computed(() => ownersOf(result.value?.series ?? []));
const all = computed(() => [...owners.value.flows, ...owners.value.directions]);
const shown = computed(() => {
  const { flows, directions } = owners.value;
  const first = [...flows.slice(0, MOST_SHOWN), ...directions.slice(0, MOST_SHOWN)];
  return new Set(first.filter((name) => !hidden.value.has(name)));
});
const flow = computed(() => {
  const { flows } = owners.value;
  return chosenFlow.value !== null && flows.includes(chosenFlow.value) ? chosenFlow.value : (flows[0] ?? null);
});

/** Returns an element's width, and a reference to give it. */
function useWidth(): [Ref<HTMLElement>, number] {
  const host = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    if (host.current === null) {
      return undefined;
    }
    const observer = new ResizeObserver(([entry]) => setWidth(Math.floor(entry?.contentRect.width ?? 0)));
    observer.observe(host.current);
    return () => observer.disconnect();
  }, []);
  return [host, width];
}

/** Returns the panels of the present run at a width in pixels: all, or those that are named. */
function usePlots(width: number, named: readonly string[] | null): PlotData[] {
  const [plots, setPlots] = useState<PlotData[]>([]);
  const wanted = useRef(0);
  const size = useSignal(width);
  size.value = width;
  useSignalEffect(() => {
    const run = result.value;
    const other = pinned.value;
    const [from, until] = range.value;
    const [names, one] = [shown.value, flow.value];
    if (run === null || size.value < 50) {
      return;
    }
    wanted.current += 1;
    const mine = wanted.current;
    const limits = limitsOf(run.series, one);
    const columns = Math.max(50, size.value - 80);
    const panels = panelsOf(run.series, names, one).filter(({ id }) => named === null || named.includes(id));
    const loads = panels.map((panel) =>
      load(panel, run, other, [from, until], columns, panel.id === "window" || panel.id === "sequence" ? limits : null),
    );
    Promise.all(loads).then(
      (loaded) => {
        if (mine === wanted.current) {
          setPlots(loaded);
        }
      },
      // The run was closed in between; a later one is drawn.
      () => undefined,
    );
  });
  return plots;
}

/** The panels that are named, below each other. */
export function PlotsOf({ panels }: { panels: readonly string[] }) {
  const [host, width] = useWidth();
  const plots = usePlots(width, panels);
  return (
    <div ref={host as Ref<HTMLDivElement>}>
      {plots.map((plotted) => (
        <Plot key={plotted.panel.id} plotted={plotted} width={width} />
      ))}
    </div>
  );
}

export function Plots() {
  const [host, width] = useWidth();
  const plots = usePlots(width, null);
  const isZoomed = zoom.value !== null;
  const columns = width > 760 ? 2 : 1;
  const each = Math.floor((width - (columns - 1) * 12) / columns);
  return (
    <section class="plots" aria-label="Plots" ref={host}>
      {plots.length > 0 && (
        <div class="toolbar">
          <label>
            Window and sequence of{" "}
            <select value={flow.value ?? ""} onChange={(event) => (chosenFlow.value = event.currentTarget.value)}>
              {owners.value.flows.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          <button type="button" disabled={!isZoomed} onClick={() => (zoom.value = null)}>
            Whole run
          </button>
          <span class="faint">Drag across a plot to zoom in.</span>
          <ZoomKeys />
          <button type="button" onClick={() => void savePng()}>PNG</button>
          <button type="button" onClick={() => saveSvg(plots, range.peek())}>SVG</button>
          <button type="button" onClick={() => void saveCsv()}>CSV</button>
        </div>
      )}
      {all.value.length > 1 && plots.length > 0 && (
        <details class="choices">
          <summary>Flows and links shown</summary>
          {all.value.slice(0, 40).map((name) => (
            <label key={name}>
              <input
                type="checkbox"
                checked={shown.value.has(name)}
                onChange={() => {
                  const next = new Set(hidden.value);
                  if (!next.delete(name)) {
                    next.add(name);
                  }
                  hidden.value = next;
                }}
              />
              {name}
            </label>
          ))}
        </details>
      )}
      <div class="grid" style={{ gridTemplateColumns: `repeat(${columns}, minmax(0, 1fr))` }}>
        {plots.map((plotted) => (
          <Plot key={plotted.panel.id} plotted={plotted} width={each} />
        ))}
      </div>
      {plots.some((plotted) => plotted.limits !== null) && (
        <ul class="limits" aria-label="Colours of the bands: what limits the sender">
          {LIMITS.map((label, code) => (
            <li key={label}>
              <i style={{ background: code === 0 ? "transparent" : colourOfLimit(code) }} /> {label}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** Zoom for the keyboard. */
function ZoomKeys() {
  const scaleBy = (factor: number, shift: number) => {
    const [from, until] = range.peek();
    const [first, last] = wholeRange.peek();
    const middle = (from + until) / 2 + shift * (until - from);
    const half = (factor * (until - from)) / 2;
    const next: [number, number] = [Math.max(first, middle - half), Math.min(last, middle + half)];
    zoom.value = next[0] <= first && next[1] >= last ? null : next;
  };
  return (
    <span class="keys">
      <button type="button" aria-label="Zoom in" onClick={() => scaleBy(0.5, 0)}>+</button>
      <button type="button" aria-label="Zoom out" onClick={() => scaleBy(2, 0)}>−</button>
      <button type="button" aria-label="Earlier" onClick={() => scaleBy(1, -0.5)}>←</button>
      <button type="button" aria-label="Later" onClick={() => scaleBy(1, 0.5)}>→</button>
    </span>
  );
}
