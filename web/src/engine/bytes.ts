// The bytes of the WebAssembly module: beside the page, or within it in the offline file.

const ELEMENT = "engine-wasm";
let loaded: Promise<ArrayBuffer> | null = null;

async function load(): Promise<ArrayBuffer> {
  const embedded = document.getElementById(ELEMENT)?.textContent;
  if (embedded) {
    const compressed = Uint8Array.from(atob(embedded.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([compressed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  }
  const response = await fetch("engine.wasm");
  if (!response.ok) {
    throw new Error(`engine.wasm: ${response.status} ${response.statusText}`);
  }
  return response.arrayBuffer();
}

/** Returns the module's bytes; they are loaded once. */
export function engineModule(): Promise<ArrayBuffer> {
  loaded ??= load();
  return loaded;
}
