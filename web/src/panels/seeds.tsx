// Median and range of the goodput over several seeds.

import { signal } from "@preact/signals";

import { EngineClient, WORKERS } from "../engine/client";
import { show } from "../model/quantity";
import { checked, fileName, messageOf, refusal, result, text } from "../model/state";

const SEEDS = 20;

interface Spread {
  flow: string;
  median: number;
  low: number;
  high: number;
}

const spreads = signal<Spread[]>([]);
const progress = signal<string>("");
let stop: AbortController | null = null;

function quantile(sorted: number[], share: number): number {
  const at = share * (sorted.length - 1);
  const [below, above] = [sorted[Math.floor(at)] ?? 0, sorted[Math.ceil(at)] ?? 0];
  return below + (above - below) * (at - Math.floor(at));
}

async function runSeeds(): Promise<void> {
  stop?.abort();
  const mine = new AbortController();
  stop = mine;
  const first = checked.value?.seed ?? 1;
  const source = { text: text.value, name: fileName.value };
  const waiting = Array.from({ length: SEEDS }, (_, index) => first + index);
  const goodputs = new Map<string, number[]>();
  let done = 0;
  const work = async () => {
    const client = new EngineClient();
    try {
      for (let seed = waiting.shift(); seed !== undefined && !mine.signal.aborted; seed = waiting.shift()) {
        const { run, summary } = await client.run(source, { seed, series: false, signal: mine.signal });
        for (const flow of summary.flows) {
          goodputs.set(flow.name, [...(goodputs.get(flow.name) ?? []), flow.goodput_bps]);
        }
        client.ask({ do: "close", run }).catch(() => undefined);
        done += 1;
        progress.value = `${done} of ${SEEDS} seeds`;
      }
    } finally {
      client.close();
    }
  };
  try {
    await Promise.all(Array.from({ length: WORKERS }, work));
  } catch (error) {
    progress.value = messageOf(error);
    return;
  }
  spreads.value = [...goodputs].slice(0, 50).map(([flow, values]) => {
    const sorted = values.toSorted((one, other) => one - other);
    return { flow, median: quantile(sorted, 0.5), low: sorted[0] ?? 0, high: sorted.at(-1) ?? 0 };
  });
}

export function Seeds() {
  if (result.value === null) {
    return null;
  }
  const running = stop !== null && progress.value !== "" && !progress.value.startsWith(String(SEEDS));
  return (
    <details class="seeds">
      <summary>Median and range over {SEEDS} seeds</summary>
      <div class="toolbar">
        <button type="button" disabled={refusal.value !== null} onClick={() => void runSeeds()}>Run {SEEDS} seeds</button>
        {running && <button type="button" onClick={() => stop?.abort()}>Stop</button>}
        <span class="faint" role="status">{progress.value}</span>
      </div>
      {spreads.value.length > 0 && (
        <table>
          <caption>Goodput of each flow</caption>
          <thead>
            <tr>
              <th scope="col">Flow</th>
              <th scope="col">Median</th>
              <th scope="col">Lowest</th>
              <th scope="col">Highest</th>
            </tr>
          </thead>
          <tbody>
            {spreads.value.map((spread) => (
              <tr key={spread.flow}>
                <th scope="row">{spread.flow}</th>
                <td>{show.rate(spread.median)}</td>
                <td>{show.rate(spread.low)}</td>
                <td>{show.rate(spread.high)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </details>
  );
}
