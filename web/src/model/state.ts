// The state of the workbench: the text, the network it describes, and its runs.

import { batch, computed, effect, signal, untracked } from "@preact/signals";

import { RunFailure, type EngineClient, type Finished } from "../engine/client";
import { nextClient } from "../engine/early";
import type { Checked, Refusal, Source } from "../engine/protocol";
import { Schema, type SchemaNode } from "./schema";

/** A line of the file for each path of keys. */
export type KeyLines = [(string | number)[], number][];

/** A finished run, and the text that it is of. */
export interface Result extends Finished {
  text: string;
  client: EngineClient;
}

export type Status =
  | { kind: "idle" }
  | { kind: "running"; share: number }
  | { kind: "stopped" }
  | { kind: "failed"; message: string };

/** An element of the network that is selected. */
export interface Selection {
  kind: "link" | "node" | "flow" | "scenario";
  name: string;
}

export const text = signal("");
export const fileName = signal("scenario.toml");
export const schema = signal<Schema | null>(null);
export const checked = signal<Checked | null>(null);
/** The text that `checked` describes. */
export const checkedText = signal("");
export const keyLines = signal<KeyLines>([]);
export const refusal = signal<Refusal | null>(null);
export const status = signal<Status>({ kind: "idle" });
export const result = signal<Result | null>(null);
export const pinned = signal<Result | null>(null);
export const selection = signal<Selection | null>(null);
/** A line for the editor to show. */
export const wantedLine = signal<number | null>(null);
/** Start and end of the plots in seconds; null for the whole run. */
export const zoom = signal<[number, number] | null>(null);
/** The instant under the cursor, in seconds. */
export const cursor = signal<number | null>(null);
export const notice = signal<string | null>(null);

export const wholeRange = computed<[number, number]>(() => {
  const last = (one: Result | null) => {
    if (one === null) {
      return 0;
    }
    return Math.min(one.summary.ended_s, one.summary.duration_s);
  };
  return [0, Math.max(last(result.value), last(pinned.value)) || 1];
});
export const range = computed(() => zoom.value ?? wholeRange.value);

/** A run that takes longer than this is started by a button, not by each change. */
const AUTOMATIC_S = 4;

let editing: EngineClient | null = null;
let running: EngineClient | null = null;

function editor(): EngineClient {
  if (editing === null) {
    editing = nextClient();
    editing.onBroken = () => {
      editing = null;
    };
  }
  return editing;
}

function runner(): EngineClient {
  if (running === null) {
    const client = nextClient();
    client.onBroken = (message) => {
      running = null;
      batch(() => {
        if (result.value?.client === client) {
          result.value = null;
        }
        if (pinned.value?.client === client) {
          pinned.value = null;
        }
        status.value = { kind: "failed", message };
      });
    };
    running = client;
  }
  return running;
}

export async function loadSchema(): Promise<void> {
  const reply = await editor().ask({ do: "schema" });
  schema.value = new Schema(reply["scenario"] as SchemaNode);
}

/** Returns why a scenario is invalid, or null. */
export async function refusalOf(source: Source): Promise<Refusal | null> {
  return ((await editor().ask({ do: "check", source }))["refusal"] as Refusal | undefined) ?? null;
}

let stop: AbortController | null = null;
let version = 0;

/** Checks the text, and runs it if a run is quick enough. */
export async function changed(): Promise<void> {
  version += 1;
  const mine = version;
  const now = text.value;
  const source = { text: now, name: fileName.value };
  // The first run does not wait for the check: it refuses what is wrong by itself.
  const isFirst = result.value === null && status.value.kind === "idle";
  const running = isFirst ? run() : null;
  const [reply, lines] = await Promise.all([
    editor().ask({ do: "check", source }),
    editor().ask({ do: "lines", text: now }),
  ]);
  if (mine !== version) {
    return;
  }
  batch(() => {
    keyLines.value = (lines["lines"] as KeyLines | null) ?? keyLines.value;
    refusal.value = (reply["refusal"] as Refusal | undefined) ?? null;
    if (refusal.value === null) {
      checked.value = reply as unknown as Checked;
      checkedText.value = now;
    }
  });
  await running;
  const last = result.value;
  if (running === null && refusal.value === null && (last === null || last.wallS < AUTOMATIC_S)) {
    await run();
  }
}

/** Runs the text, in place of a run in progress. */
export async function run(): Promise<void> {
  stop?.abort();
  const mine = new AbortController();
  stop = mine;
  const client = runner();
  const now = text.value;
  status.value = { kind: "running", share: 0 };
  try {
    const finished = await client.run(
      { text: now, name: fileName.value },
      {
        signal: mine.signal,
        onProgress: (share) => {
          if (stop === mine) {
            status.value = { kind: "running", share };
          }
        },
      },
    );
    const before = result.value;
    if (before !== null && before.run !== pinned.value?.run && before.client === client) {
      client.ask({ do: "close", run: before.run }).catch(() => undefined);
    }
    if (stop !== mine) {
      return;
    }
    batch(() => {
      result.value = { ...finished, text: now, client };
      status.value = { kind: "idle" };
    });
  } catch (error) {
    if (stop !== mine) {
      return;
    }
    const isStop = error instanceof RunFailure && error.stopped;
    const aborted = isStop || (error instanceof DOMException && error.name === "AbortError");
    status.value = aborted ? { kind: "stopped" } : { kind: "failed", message: messageOf(error) };
    if (error instanceof RunFailure && error.refusal !== null) {
      refusal.value = error.refusal;
    }
  }
}

export function stopRun(): void {
  stop?.abort();
  if (status.value.kind === "running") {
    status.value = { kind: "stopped" };
  }
  stop = null;
}

export function pin(): void {
  const before = pinned.value;
  pinned.value = result.value;
  if (before !== null && before.run !== result.value?.run) {
    void before.client.ask({ do: "close", run: before.run }).catch(() => undefined);
  }
}

export function unpin(): void {
  const before = pinned.value;
  pinned.value = null;
  if (before !== null && before.run !== result.value?.run) {
    void before.client.ask({ do: "close", run: before.run }).catch(() => undefined);
  }
}

/** Sets the value of a key in the text; the rest of the text stays as it is. */
export async function edit(key: string[], value: string | null): Promise<void> {
  const reply = await editor().ask({ do: "edit", text: text.value, key, value });
  if (typeof reply["text"] === "string") {
    text.value = reply["text"];
  } else {
    notice.value = String(reply["error"]);
  }
}

/** Returns the line of a path of keys, or of the table that it would be in. */
export function lineOf(path: readonly string[]): number | null {
  for (let length = path.length; length > 0; length -= 1) {
    const wanted = path.slice(0, length).join("\n");
    const found = keyLines.value.find(([keys]) => keys.join("\n") === wanted);
    if (found) {
      return found[1];
    }
  }
  return null;
}

export function hasKey(path: readonly string[]): boolean {
  const wanted = path.join("\n");
  return keyLines.value.some(([keys]) => keys.join("\n") === wanted);
}

/** Returns the table of a member of a group: `crew` for `crew-3`, if there is no table `crew-3`. */
export function tableOf(kind: "links" | "hosts" | "gateways" | "flows", name: string): string {
  const group = name.replace(/-\d+$/, "");
  return !hasKey([kind, name]) && hasKey([kind, group]) ? group : name;
}

export function select(next: Selection): void {
  selection.value = next;
  const path =
    next.kind === "link"
      ? ["links", tableOf("links", next.name)]
      : next.kind === "flow"
        ? ["flows", tableOf("flows", next.name)]
        : next.kind === "node"
          ? nodePath(next.name)
          : ["duration"];
  wantedLine.value = lineOf(path);
}

/** Returns the path of a node's table. */
export function nodePath(name: string): string[] {
  const host = tableOf("hosts", name);
  return hasKey(["hosts", host]) ? ["hosts", host] : ["gateways", tableOf("gateways", name)];
}

/** Returns the message of an error, in one line. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Calls `changed` at once, and some time after each change of the text. */
export function watchText(): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const check = () => {
    changed().catch((error: unknown) => {
      notice.value = messageOf(error);
    });
  };
  untracked(check);
  let isFirst = true;
  return effect(() => {
    void text.value;
    clearTimeout(timer);
    if (!isFirst) {
      timer = setTimeout(check, 60);
    }
    isFirst = false;
  });
}
