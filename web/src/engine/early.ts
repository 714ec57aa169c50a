// The first two workers. They start before the rest of the page's script is evaluated, so that the
// simulator is compiled meanwhile.

import { EngineClient } from "./client";

const waiting = [new EngineClient(), new EngineClient()];

/** Returns a worker: one of the first two, or a new one. */
export function nextClient(): EngineClient {
  return waiting.shift() ?? new EngineClient();
}
