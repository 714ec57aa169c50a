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

/** Runs a command on the server. Throws its refusal, in one line. */
export async function job(command: Command, scenario: string, abort: AbortSignal): Promise<Record<string, unknown>> {
  const reply = await ask("api/jobs", "POST", { command, text: scenario }, abort);
  if (typeof reply["refusal"] === "string") {
    throw new Error(reply["refusal"]);
  }
  return reply["result"] as Record<string, unknown>;
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
