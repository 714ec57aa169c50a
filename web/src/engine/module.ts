// The simulator: the WebAssembly module of crates/web.

import type { Samples, SeriesRequest } from "./protocol";

interface Exports {
  memory: WebAssembly.Memory;
  reserve(length: number): number;
  call(): number;
  file(name_length: number): number;
  reply(): number;
  values(): number;
  values_length(): number;
}

/** Numbers per sample: time, lowest and highest value. */
const NUMBERS = 3;

export class Engine {
  private constructor(private readonly exports: Exports) {}

  static async load(module: WebAssembly.Module): Promise<Engine> {
    const instance = await WebAssembly.instantiate(module, {});
    return new Engine(instance.exports as unknown as Exports);
  }

  /** Answers a request. Throws if the module has ended, for instance for lack of memory. */
  ask(request: object): Record<string, unknown> {
    return this.exchange([new TextEncoder().encode(JSON.stringify(request))], () => this.exports.call());
  }

  /** Provides the contents of a trace file. */
  provide(name: string, content: Uint8Array): Record<string, unknown> {
    const bytes = new TextEncoder().encode(name);
    return this.exchange([bytes, content], () => this.exports.file(bytes.length));
  }

  /** Writes a request to the module's memory and reads the reply, whose length `call` returns. */
  private exchange(parts: Uint8Array[], call: () => number): Record<string, unknown> {
    let at = this.exports.reserve(parts.reduce((sum, part) => sum + part.length, 0));
    if (at === 0) {
      return { error: "too long" };
    }
    for (const part of parts) {
      new Uint8Array(this.exports.memory.buffer, at, part.length).set(part);
      at += part.length;
    }
    const length = call();
    const reply = new Uint8Array(this.exports.memory.buffer, this.exports.reply(), length);
    return JSON.parse(new TextDecoder().decode(reply)) as Record<string, unknown>;
  }

  series(request: SeriesRequest): Samples[] {
    const reply = this.ask({ do: "series", ...request });
    if (typeof reply["error"] === "string") {
      throw new Error(reply["error"]);
    }
    const all = new Float64Array(
      this.exports.memory.buffer,
      this.exports.values(),
      this.exports.values_length(),
    );
    let at = 0;
    return (reply["lengths"] as number[]).map((length) => {
      const samples = {
        times: new Float64Array(length),
        low: new Float64Array(length),
        high: new Float64Array(length),
      };
      for (let index = 0; index < length; index += 1, at += NUMBERS) {
        samples.times[index] = all[at] ?? 0;
        samples.low[index] = all[at + 1] ?? 0;
        samples.high[index] = all[at + 2] ?? 0;
      }
      return samples;
    });
  }
}
