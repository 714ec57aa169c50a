// `bentpipe serve`: what the page can ask for, where it is served by it.

import { effect, signal } from "@preact/signals";

import { isLesson, openDocument } from "./open";
import { changed, fileName, messageOf, notice, refusal, text } from "./state";
import { provideFile } from "../engine/files";

/** Whether `bentpipe serve` serves the page. */
export const hasServer = document.querySelector('meta[name="bentpipe-server"]') !== null;

/** Name of the file on disk, if the page edits one. */
export const savedName = signal<string | null>(null);
/** The text on disk. */
export const savedText = signal<string | null>(null);

async function ask(path: string, method: string, body?: object, abort?: AbortSignal): Promise<Record<string, unknown>> {
  const init: RequestInit = { method };
  if (body !== undefined) {
    init.body = JSON.stringify(body);
    init.headers = { "content-type": "application/json" };
  }
  if (abort !== undefined) {
    init.signal = abort;
  }
  const response = await fetch(path, init);
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  const reply = isJson ? ((await response.json()) as Record<string, unknown>) : { error: await response.text() };
  if (typeof reply["error"] === "string") {
    throw new Error(reply["error"]);
  }
  return reply;
}

export type Command = "predict" | "advise" | "emulate" | "compare";

/** Bytes that each flow has delivered, while an emulation runs. */
export interface LiveReport {
  elapsed_s: number;
  delivered_bytes: Record<string, number>;
}

/** Runs a command on the server. Throws its refusal, in one line. */
export async function job(command: Command, scenario: string, abort: AbortSignal, live: (report: LiveReport) => void): Promise<Record<string, unknown>> {
  const body = JSON.stringify({ command, text: scenario });
  const response = await fetch("api/jobs", { method: "POST", body, headers: { "content-type": "application/json" }, signal: abort });
  if (response.body === null) {
    throw new Error("no answer");
  }
  let rest = "";
  let last: Record<string, unknown> = {};
  const read = (line: string) => {
    last = JSON.parse(line) as Record<string, unknown>;
    if (last["live"] !== undefined) {
      live(last["live"] as LiveReport);
    }
  };
  const isJson = /^application\/(json|x-ndjson)/.test(response.headers.get("content-type") ?? "");
  if (!isJson) {
    throw new Error(await response.text());
  }
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    lines.filter((line) => line !== "").forEach(read);
  }
  if (rest !== "") {
    read(rest);
  }
  const refusal = last["refusal"] ?? last["error"];
  if (typeof refusal === "string" || last["result"] === undefined) {
    throw new Error(typeof refusal === "string" ? refusal : "the server has ended");
  }
  return last["result"] as Record<string, unknown>;
}

export async function save(): Promise<void> {
  const now = text.value;
  await ask("api/file", "PUT", { text: now });
  savedText.value = now;
}

export async function figures(): Promise<string[]> {
  return (await ask("api/figures", "GET"))["figures"] as string[];
}

/** Opens the file on disk, and follows its changes while the page has none of its own. */
export async function openFile(): Promise<boolean> {
  const reply = await ask("api/file", "GET");
  if (typeof reply["name"] !== "string") {
    return false;
  }
  const name = reply["name"];
  savedName.value = name;
  fileName.value = name;
  if (typeof reply["text"] === "string") {
    savedText.value = reply["text"];
    openDocument(name, reply["text"]);
  }
  const events = new EventSource("api/watch");
  events.onmessage = (event: MessageEvent<string>) => {
    const changed = (JSON.parse(event.data) as { text: string }).text;
    const isOwn = isLesson(name) || text.value === savedText.value;
    savedText.value = changed;
    if (isOwn) {
      openDocument(name, changed);
    } else if (changed !== text.value) {
      notice.value = "The file on disk has changed. Saving replaces it.";
    }
  };
  events.onerror = () => {
    notice.value = "The server has ended. The page goes on without it.";
    events.close();
  };
  return true;
}

/** How the simulator tells that a trace file is missing: crates/web/src/engine.rs. */
export const NO_FILE = ": no such file: choose it";

/** Provides the trace files beside the scenario on disk, once the scenario refers to them. */
export function provideTraces(): void {
  const asked = new Set<string>();
  effect(() => {
    const message = refusal.value?.message ?? "";
    const name = message.slice(0, Math.max(message.indexOf(NO_FILE), 0));
    if (name === "" || asked.has(name)) {
      return;
    }
    asked.add(name);
    fetch(`api/traces/${name.split("/").map(encodeURIComponent).join("/")}`)
      .then(async (response) => {
        if (response.ok) {
          await provideFile(name.split("/").at(-1) ?? name, new Uint8Array(await response.arrayBuffer()));
          await changed();
        }
      })
      .catch((error: unknown) => {
        notice.value = messageOf(error);
      });
  });
}
