// Functions that need a server: prediction, advice, emulation on this machine, the papers'
// figures.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";

import { show } from "../model/quantity";
import { colourOf } from "../plots/colours";
import { isLesson } from "../model/open";
import { figures, job, type LiveReport, save, savedName, savedText, type Command } from "../model/server";
import { edit, messageOf, notice, refusal, result, text } from "../model/state";

interface Outcome {
  command: Command;
  text: string;
  data: Record<string, unknown>;
}

interface Remedy {
  name: string;
  why: string;
  who: string[];
  /** Settings, as `--set` takes them. */
  set: string[];
  goodput_bps: number | null;
  /** The goodput with the remedy over that without. */
  gain: number | null;
}

const busy = signal<Command | null>(null);
const failure = signal<string>("");
const outcome = signal<Outcome | null>(null);
const names = signal<string[]>([]);
const shownFigure = signal<string | null>(null);
/** Reports of the emulation in progress, or of the last one. */
const reports = signal<readonly LiveReport[]>([]);
let stop: AbortController | null = null;

const TITLES: Record<Command, string> = {
  predict: "Predict",
  advise: "Advise",
  emulate: "Emulate on this machine",
  compare: "Predict, simulate and emulate",
};

async function start(command: Command): Promise<void> {
  stop?.abort();
  const mine = new AbortController();
  stop = mine;
  busy.value = command;
  failure.value = "";
  const scenario = text.value;
  try {
    reports.value = [];
    const data = await job(command, scenario, mine.signal, (report) => (reports.value = [...reports.value, report]));
    outcome.value = { command, text: scenario, data };
  } catch (error) {
    failure.value = mine.signal.aborted ? "Stopped." : messageOf(error);
  } finally {
    if (stop === mine) {
      busy.value = null;
    }
  }
}

interface Predicted {
  name: string;
  limits_bps: Record<string, number>;
  estimates_bps: Record<string, number>;
  /** Name of the lowest limit or estimate. */
  lowest: string | null;
  models: { name: string; applies: boolean; throughput_bps: number | null }[];
}

interface Row {
  name: string;
  cells: string[];
}

function lowestOf(flow: Predicted): string {
  const all = { ...flow.limits_bps, ...flow.estimates_bps };
  return flow.lowest === null ? "–" : `${show.rate(all[flow.lowest])} (${flow.lowest})`;
}

function modelsOf(flow: Predicted): string {
  const applying = flow.models.filter((model) => model.applies);
  return applying.map((model) => `${model.name} ${show.rate(model.throughput_bps)}`).join(", ") || "–";
}

/** A table of flows, with the simulated goodput in the last column. */
function Beside({ heads, rows }: { heads: string[]; rows: Row[] }) {
  const simulated = new Map(result.value?.summary.flows.map((flow) => [flow.name, flow]));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="Goodput beside that of the run">
      <table>
        <caption>Goodput beside that of the run</caption>
        <thead>
          <tr>
            {["Flow", ...heads, "Simulated"].map((head) => (
              <th key={head} scope="col">
                {head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, 100).map((row) => (
            <tr key={row.name}>
              <th scope="row">{row.name}</th>
              {row.cells.map((cell, index) => (
                <td key={index}>{cell}</td>
              ))}
              <td>{show.rate(simulated.get(row.name)?.goodput_bps)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Prediction({ data }: { data: Record<string, unknown> }) {
  const flows = (data["flows"] ?? []) as Predicted[];
  const rows = flows.map((flow) => ({ name: flow.name, cells: [lowestOf(flow), modelsOf(flow)] }));
  return <Beside heads={["Lowest limit", "Models that apply"]} rows={rows} />;
}

function Emulation({ data }: { data: Record<string, unknown> }) {
  const flows = (data["flows"] ?? []) as { name: string; goodput_bps: number }[];
  return <Beside heads={["Emulated"]} rows={flows.map((flow) => ({ name: flow.name, cells: [show.rate(flow.goodput_bps)] }))} />;
}

/** Returns the settings of a remedy as keys and values in TOML. */
function settingsOf(remedy: Remedy): [string[], string][] {
  return remedy.set.map((setting) => {
    const equals = setting.indexOf("=");
    return [setting.slice(0, equals).split("."), tomlOf(setting.slice(equals + 1))];
  });
}

/** As `--set` does: a value that is not TOML is a string. */
function tomlOf(value: string): string {
  const isToml = /^(true|false|[+-]?[\d.]+(e[+-]?\d+)?|".*"|\[.*\]|\{.*\})$/s.test(value.trim());
  return isToml ? value : JSON.stringify(value);
}

async function apply(remedy: Remedy): Promise<void> {
  for (const [key, value] of settingsOf(remedy)) {
    await edit(key, value);
  }
}

function Remedies({ data }: { data: Record<string, unknown> }) {
  const remedies = (data["remedies"] ?? []) as Remedy[];
  return (
    <ol class="remedies">
      {remedies.map((remedy, index) => (
        <li key={index}>
          <b>{remedy.name}</b>: {show.rate(remedy.goodput_bps)}
          {remedy.gain !== null && ` (${remedy.gain.toFixed(2)} times as much)`}. {remedy.why}; changed by: {remedy.who.join(", ")}.{" "}
          <button type="button" onClick={() => void apply(remedy)}>
            Apply
          </button>
        </li>
      ))}
      {remedies.length === 0 && <li>No remedy helps.</li>}
    </ol>
  );
}

/** Most flows whose goodput is drawn while an emulation runs. */
const MOST_LIVE = 6;
const LIVE = { width: 560, height: 150 };

/** The goodput of an emulation over time, while it runs. */
function Live() {
  const all = reports.value;
  const last = all.at(-1);
  if (last === undefined) {
    return null;
  }
  const names = Object.keys(last.delivered_bytes).slice(0, MOST_LIVE);
  const curves = names.map((name) =>
    all.slice(1).map((report, index): [number, number] => {
      const before = all[index] ?? report;
      const seconds = Math.max(report.elapsed_s - before.elapsed_s, 1e-3);
      return [report.elapsed_s, (8 * ((report.delivered_bytes[name] ?? 0) - (before.delivered_bytes[name] ?? 0))) / seconds];
    }),
  );
  const greatest = Math.max(1, ...curves.flat().map(([, rate]) => rate));
  const point = ([time, rate]: [number, number]) =>
    `${((time / Math.max(last.elapsed_s, 1)) * LIVE.width).toFixed(1)},${(LIVE.height - 2 - (rate / greatest) * (LIVE.height - 8)).toFixed(1)}`;
  return (
    <figure class="live">
      <figcaption>
        Emulated goodput after {show.time(last.elapsed_s)}; the top is {show.rate(greatest)}
      </figcaption>
      <svg viewBox={`0 0 ${LIVE.width} ${LIVE.height}`} role="img" aria-label="Emulated goodput over time">
        <line x1="0" x2={LIVE.width} y1={LIVE.height - 1} y2={LIVE.height - 1} stroke="currentColor" stroke-width="0.5" />
        {curves.map((curve, index) => (
          <polyline key={names[index]} points={curve.map(point).join(" ")} fill="none" stroke={colourOf(index)} stroke-width="1.5" />
        ))}
      </svg>
      <ul class="limits">
        {names.map((name, index) => (
          <li key={name}>
            <i style={{ background: colourOf(index) }} /> {name}: {show.rate(curves[index]?.at(-1)?.[1])}, {show.size(last.delivered_bytes[name])}
          </li>
        ))}
      </ul>
    </figure>
  );
}

function FileRow() {
  // A lesson is written in the author's editor; the page follows it.
  if (savedName.value === null || isLesson(savedName.value)) {
    return null;
  }
  const isSaved = savedText.value === text.value;
  const onSave = () => {
    save().catch((error: unknown) => {
      notice.value = messageOf(error);
    });
  };
  return (
    <button type="button" disabled={isSaved} onClick={onSave}>
      {isSaved ? `${savedName.value} is saved` : `Save ${savedName.value}`}
    </button>
  );
}

export function Server() {
  useEffect(() => {
    figures().then(
      (all) => (names.value = all),
      () => undefined,
    );
  }, []);
  const done = outcome.value;
  return (
    <section class="server" aria-label="On this machine">
      <h2>On this machine</h2>
      <div class="toolbar">
        <FileRow />
        {(Object.keys(TITLES) as Command[]).map((command) => (
          <button key={command} type="button" disabled={busy.value !== null || refusal.value !== null} onClick={() => void start(command)}>
            {TITLES[command]}
          </button>
        ))}
        {busy.value !== null && (
          <>
            <span role="status">{TITLES[busy.value]} ...</span>
            <button type="button" onClick={() => stop?.abort()}>
              Cancel
            </button>
          </>
        )}
      </div>
      {(busy.value === "emulate" || (busy.value === null && done?.command === "emulate")) && <Live />}
      {failure.value && <p class="error" role="status">{failure.value}</p>}
      {done && done.text !== text.value && <p class="faint">These results are of an earlier text.</p>}
      {done?.command === "advise" && <Remedies data={done.data} />}
      {done?.command === "predict" && <Prediction data={done.data} />}
      {done?.command === "emulate" && <Emulation data={done.data} />}
      {done?.command === "compare" && (
        <pre class="scroll" tabIndex={0}>{JSON.stringify(done.data["difference"], null, 2)}</pre>
      )}
      {names.value.length > 0 && (
        <details>
          <summary>The papers' figures</summary>
          <label>
            Figure{" "}
            <select value={shownFigure.value ?? ""} onChange={(event) => (shownFigure.value = event.currentTarget.value || null)}>
              <option value="">choose</option>
              {names.value.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
          </label>
          {shownFigure.value && <img class="figure" src={`api/figures/${shownFigure.value}`} alt={shownFigure.value} />}
        </details>
      )}
    </section>
  );
}
