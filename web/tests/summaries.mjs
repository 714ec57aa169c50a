// Runs scenarios in the WebAssembly module: reads {text, name} objects, one a line, and writes the
// summary of each, or its refusal, as a line.
//
//     node web/tests/summaries.mjs target/web/engine.wasm < scenarios.jsonl

import { readFileSync } from "node:fs";
import { createInterface } from "node:readline";

const bytes = readFileSync(process.argv[2]);
const module = await WebAssembly.compile(bytes);
const imports = WebAssembly.Module.imports(module);
if (imports.length > 0) {
  throw new Error(`the module has imports: ${JSON.stringify(imports)}`);
}

function instance() {
  const { exports } = new WebAssembly.Instance(module, {});
  return (request) => {
    const text = new TextEncoder().encode(JSON.stringify(request));
    // Reserving may grow the memory, which replaces its buffer.
    const at = exports.reserve(text.length);
    new Uint8Array(exports.memory.buffer, at, text.length).set(text);
    const length = exports.call();
    return JSON.parse(new TextDecoder().decode(new Uint8Array(exports.memory.buffer, exports.reply(), length)));
  };
}

for await (const line of createInterface({ input: process.stdin })) {
  const source = JSON.parse(line);
  const ask = instance();
  const began = performance.now();
  const started = ask({ do: "start", source });
  if (started.run === undefined) {
    console.log(JSON.stringify({ refusal: started.refusal?.text ?? started.error }));
    continue;
  }
  let step;
  do {
    step = ask({ do: "advance", run: started.run, events: 100_000 });
  } while (step.ended === false);
  const done = step.ended ? ask({ do: "finish", run: started.run }) : step;
  const seconds = (performance.now() - began) / 1e3;
  console.log(JSON.stringify({ summary: done.summary_json, error: done.error, seconds }));
}
