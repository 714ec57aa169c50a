// A sweep: one value of the selected element over its range, as small multiples that fill while
// cells finish.

import { signal } from "@preact/signals";

import { EngineClient, RunFailure, WORKERS } from "../engine/client";
import type { Samples, Summary } from "../engine/protocol";
import { show } from "../model/quantity";
import { checked, fileName, result, schema, selection, text } from "../model/state";
import { colourOf } from "../plots/colours";
import { controlsOf, wordsOf, type Control } from "./controls";
import { valuesOf, written } from "./values";

interface Cell {
  value: string;
  summary: Summary | null;
  goodput: Samples | null;
  message: string;
}

const cells = signal<Cell[]>([]);
const title = signal("");
const chosen = signal<number>(0);
let stop: AbortController | null = null;

const COLUMNS = 60;

async function simulate(client: EngineClient, setting: [string, string], signal: AbortSignal): Promise<Omit<Cell, "value">> {
  try {
    const source = { text: text.value, name: fileName.value, set: [setting] };
    const finished = await client.run(source, { signal });
    const index = finished.series.findIndex(({ name }) => name.endsWith(".goodput"));
    const until = finished.summary.ended_s;
    const [goodput] = index < 0 ? [] : await client.series({ run: finished.run, indices: [index], range_s: [0, until], columns: COLUMNS, averages: true });
    client.ask({ do: "close", run: finished.run }).catch(() => undefined);
    return { summary: finished.summary, goodput: goodput ?? null, message: "" };
  } catch (error) {
    const message = error instanceof RunFailure ? (error.refusal?.message ?? error.message) : String(error);
    return { summary: null, goodput: null, message };
  }
}

async function sweep(control: Control): Promise<void> {
  stop?.abort();
  const mine = new AbortController();
  stop = mine;
  const values = valuesOf(control);
  title.value = `${control.key.join(".")}`;
  cells.value = values.map((value) => ({ value: written(value), summary: null, goodput: null, message: "waiting" }));
  const waiting = values.map((value, place) => ({ value, place }));
  const work = async () => {
    const client = new EngineClient();
    try {
      for (let next = waiting.shift(); next !== undefined && !mine.signal.aborted; next = waiting.shift()) {
        const { place } = next;
        const done = await simulate(client, [control.key.join("."), next.value], mine.signal);
        if (!mine.signal.aborted) {
          cells.value = cells.value.map((cell, at) => (at === place ? { ...cell, ...done } : cell));
        }
      }
    } finally {
      client.close();
    }
  };
  await Promise.all(Array.from({ length: WORKERS }, work));
}

/** Draws goodput over time, small. */
function Small({ samples, greatest, until }: { samples: Samples; greatest: number; until: number }) {
  const points = Array.from(samples.times, (time, index) => {
    const x = (time / until) * 150;
    const y = 58 - ((samples.high[index] ?? 0) / greatest) * 54;
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  });
  return (
    <svg viewBox="0 0 150 60" width="150" height="60" aria-hidden="true">
      <polyline points={points.join(" ")} fill="none" stroke={colourOf(0)} stroke-width="1.5" />
      <line x1="0" x2="150" y1="59" y2="59" stroke="currentColor" stroke-width="0.5" />
    </svg>
  );
}

export function Sweep() {
  const network = checked.value;
  if (result.value === null || network === null) {
    return null;
  }
  const controls = controlsOf(selection.value ?? { kind: "scenario", name: "" }, network, wordsOf(schema.value));
  const control = controls[Math.min(chosen.value, controls.length - 1)];
  const all = cells.value;
  const greatest = Math.max(1, ...all.flatMap((cell) => [...(cell.goodput?.high ?? [])]));
  const until = Math.max(1, ...all.map((cell) => cell.summary?.ended_s ?? 0));
  return (
    <details class="sweep">
      <summary>Sweep of a value</summary>
      <div class="toolbar">
        <label>
          Value of the selected element{" "}
          <select value={chosen.value} onChange={(event) => (chosen.value = Number(event.currentTarget.value))}>
            {controls.map((one, index) => (
              <option key={one.key.join(".")} value={index}>
                {one.label}
              </option>
            ))}
          </select>
        </label>
        <button type="button" disabled={control === undefined} onClick={() => control && void sweep(control)}>
          Run sweep
        </button>
      </div>
      {all.length > 0 && (
        <>
          <p class="faint">Goodput of the first flow over time, for values of {title.value}; all on the same axes.</p>
          <ul class="cells">
            {all.map((cell) => (
              <li key={cell.value}>
                <b>{cell.value}</b>
                {cell.goodput ? <Small samples={cell.goodput} greatest={greatest} until={until} /> : <p class="faint">{cell.message}</p>}
                {cell.summary && show.rate(cell.summary.flows.reduce((sum, flow) => sum + flow.goodput_bps, 0))}
              </li>
            ))}
          </ul>
        </>
      )}
    </details>
  );
}
