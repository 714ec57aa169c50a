// Workers, as promises.

import EngineWorker from "./worker?worker&inline";
import { engineModule } from "./bytes";
import { onFile, providedFiles } from "./files";
import type {
  Refusal,
  Samples,
  SeriesInfo,
  SeriesRequest,
  Source,
  Summary,
  WorkerReply,
  WorkerRequest,
} from "./protocol";

export interface Finished {
  /** Number of the run in its worker. */
  run: number;
  summary: Summary;
  series: SeriesInfo[];
  wallS: number;
}

/** Why a run has no result. */
export class RunFailure extends Error {
  constructor(
    message: string,
    readonly refusal: Refusal | null,
    readonly stopped: boolean,
  ) {
    super(message);
  }
}

/** Workers for runs that are independent of each other: one core is left to the page. */
export const WORKERS = Math.max(1, Math.min(4, (navigator.hardwareConcurrency || 2) - 1));

export interface RunOptions {
  seed?: number | null;
  series?: boolean;
  packets?: boolean;
  onProgress?: (share: number) => void;
  signal?: AbortSignal;
}

interface Pending {
  resolve(value: never): void;
  reject(error: Error): void;
  onProgress?: ((share: number) => void) | undefined;
}

/** One worker with one simulator. */
export class EngineClient {
  private readonly pending = new Map<number, Pending>();
  private readonly ready: Promise<void>;
  private readonly worker: Worker;
  private last = 0;
  private readonly forget: () => void;
  /** Called if the simulator has ended; every run that it held is lost. */
  onBroken: ((message: string) => void) | null = null;

  constructor() {
    this.worker = new EngineWorker();
    this.ready = new Promise((resolve, reject) => {
      this.worker.onmessage = (event: MessageEvent<WorkerReply>) => {
        if (event.data.kind === "ready") {
          resolve();
        } else if (event.data.kind === "broken") {
          reject(new Error(event.data.message));
          this.end(event.data.message);
        } else {
          this.receive(event.data);
        }
      };
      this.worker.onerror = (event) => {
        reject(new Error(event.message));
        this.end(event.message);
      };
      engineModule().then(
        (module) => this.worker.postMessage(module),
        (error: unknown) => reject(error instanceof Error ? error : new Error(String(error))),
      );
    });
    // The first request reports the error.
    this.ready.catch(() => undefined);
    for (const [name, content] of providedFiles()) {
      this.provide(name, content).catch(() => undefined);
    }
    this.forget = onFile((name, content) => this.provide(name, content));
  }

  async ask(request: object): Promise<Record<string, unknown>> {
    return this.send((id) => ({ kind: "ask", id, request }));
  }

  async series(request: SeriesRequest): Promise<Samples[]> {
    return this.send((id) => ({ kind: "series", id, request }));
  }

  private async provide(name: string, content: Uint8Array<ArrayBuffer>): Promise<void> {
    const reply = await this.send<Record<string, unknown>>((id) => ({ kind: "file", id, name, content }));
    if (typeof reply["error"] === "string") {
      throw new Error(`${name}: ${reply["error"]}`);
    }
  }

  async run(source: Source, options: RunOptions = {}): Promise<Finished> {
    const { seed = null, series = true, packets = false, onProgress, signal } = options;
    signal?.throwIfAborted();
    return this.send((id) => {
      signal?.addEventListener("abort", () => this.post({ kind: "stop", id }), { once: true });
      return { kind: "run", id, source, seed, series, packets };
    }, onProgress);
  }

  /** Ends the worker. */
  close(): void {
    this.end("closed");
  }

  private async send<T>(
    request: (id: number) => WorkerRequest,
    onProgress?: (share: number) => void,
  ): Promise<T> {
    await this.ready;
    this.last += 1;
    const id = this.last;
    return new Promise<T>((resolve, reject) => {
      this.pending.set(id, { resolve: resolve as (value: never) => void, reject, onProgress });
      this.post(request(id));
    });
  }

  private post(request: WorkerRequest): void {
    this.worker.postMessage(request);
  }

  private receive(reply: Exclude<WorkerReply, { kind: "ready" | "broken" }>): void {
    const pending = this.pending.get(reply.id);
    if (pending === undefined) {
      return;
    }
    if (reply.kind === "progress") {
      pending.onProgress?.(reply.share);
      return;
    }
    this.pending.delete(reply.id);
    switch (reply.kind) {
      case "answer":
        pending.resolve(reply.reply as never);
        break;
      case "samples":
        pending.resolve(reply.samples as never);
        break;
      case "ended": {
        const { run, summary, series, wallS } = reply;
        pending.resolve({ run, summary, series, wallS } as never);
        break;
      }
      case "failed":
        pending.reject(new RunFailure(reply.message, reply.refusal, reply.stopped));
        break;
    }
  }

  private end(message: string): void {
    this.worker.terminate();
    this.forget();
    for (const pending of this.pending.values()) {
      pending.reject(new RunFailure(message, null, false));
    }
    this.pending.clear();
    this.onBroken?.(message);
  }
}
