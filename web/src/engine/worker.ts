// A worker with one simulator. Runs advance in slices, so that messages are read in between.

import { Engine } from "./module";
import type { Refusal, SeriesInfo, Summary, WorkerReply, WorkerRequest } from "./protocol";

/** Length of a slice. */
const SLICE_MS = 30;
const FIRST_EVENTS = 20_000;

const stopped = new Set<number>();
let engine: Engine;

function send(reply: WorkerReply, transfer: Transferable[] = []): void {
  (self as unknown as { postMessage(message: unknown, transfer: Transferable[]): void }).postMessage(
    reply,
    transfer,
  );
}

function fail(id: number, reply: Record<string, unknown>): void {
  const refusal = (reply["refusal"] as Refusal | undefined) ?? null;
  const message = refusal?.text ?? String(reply["error"] ?? "no answer");
  send({ kind: "failed", id, message, refusal, stopped: false });
}

/** Lets messages be read. */
const channel = new MessageChannel();
let resume: (() => void) | null = null;
channel.port1.onmessage = () => resume?.();
function pause(): Promise<void> {
  return new Promise((resolve) => {
    resume = resolve;
    channel.port2.postMessage(null);
  });
}

async function run(request: Extract<WorkerRequest, { kind: "run" }>): Promise<void> {
  const { id, source, seed, series, packets } = request;
  const began = performance.now();
  const started = engine.ask({ do: "start", source, seed, series, packets });
  if (typeof started["run"] !== "number") {
    fail(id, started);
    return;
  }
  const number = started["run"];
  let events = FIRST_EVENTS;
  for (;;) {
    const from = performance.now();
    const step = engine.ask({ do: "advance", run: number, events });
    if (step["error"] !== undefined) {
      fail(id, step);
      return;
    }
    if (step["ended"] === true) {
      break;
    }
    const took = Math.max(performance.now() - from, 0.1);
    events = Math.max(1_000, Math.min(Math.round((events * SLICE_MS) / took), 5_000_000));
    send({ kind: "progress", id, share: step["share"] as number });
    await pause();
    if (stopped.delete(id)) {
      engine.ask({ do: "close", run: number });
      send({ kind: "failed", id, message: "stopped", refusal: null, stopped: true });
      return;
    }
  }
  const done = engine.ask({ do: "finish", run: number });
  if (done["error"] !== undefined) {
    fail(id, done);
    return;
  }
  send({
    kind: "ended",
    id,
    run: number,
    summary: JSON.parse(done["summary_json"] as string) as Summary,
    series: done["series"] as SeriesInfo[],
    wallS: (performance.now() - began) / 1e3,
  });
}

function handle(request: WorkerRequest): void {
  try {
    switch (request.kind) {
      case "ask":
        send({ kind: "answer", id: request.id, reply: engine.ask(request.request) });
        break;
      case "file":
        send({ kind: "answer", id: request.id, reply: engine.provide(request.name, request.content) });
        break;
      case "series": {
        const samples = engine.series(request.request);
        const buffers = samples.flatMap((one) => [one.times.buffer, one.low.buffer, one.high.buffer]);
        send({ kind: "samples", id: request.id, samples }, buffers);
        break;
      }
      case "run":
        run(request).catch(broken);
        break;
      case "stop":
        stopped.add(request.id);
        break;
    }
  } catch (error) {
    broken(error);
  }
}

/** Reports that the module has ended. Its memory is lost, so the page starts another worker. */
function broken(error: unknown): void {
  const lacksMemory = error instanceof WebAssembly.RuntimeError || error instanceof RangeError;
  const message = lacksMemory
    ? "the run needs more than the 1 GiB of memory that the page gives it"
    : String(error);
  send({ kind: "broken", message });
}

self.onmessage = async (event: MessageEvent<WebAssembly.Module | WorkerRequest>) => {
  if (event.data instanceof WebAssembly.Module) {
    try {
      engine = await Engine.load(event.data);
      send({ kind: "ready" });
    } catch (error) {
      broken(error);
    }
    return;
  }
  handle(event.data);
};
