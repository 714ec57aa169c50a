// The WebAssembly module: beside the page, or within it in the offline file.

const ELEMENT = "engine-wasm";
const FILE = "engine.wasm";
let compiled: Promise<WebAssembly.Module> | null = null;

async function compile(): Promise<WebAssembly.Module> {
  const embedded = document.getElementById(ELEMENT)?.textContent;
  if (embedded) {
    const packed = Uint8Array.from(atob(embedded.trim()), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return WebAssembly.compile(await new Response(stream).arrayBuffer());
  }
  try {
    // The response is compiled while it arrives, even if this thread is busy.
    return await WebAssembly.compileStreaming(fetch(FILE));
  } catch {
    // A server may not know the type of the file, which streaming needs.
    const response = await fetch(FILE);
    if (!response.ok) {
      throw new Error(`${FILE}: ${response.status} ${response.statusText}`);
    }
    return WebAssembly.compile(await response.arrayBuffer());
  }
}

/** Returns the module, which all workers share; it is compiled once. */
export function engineModule(): Promise<WebAssembly.Module> {
  compiled ??= compile();
  return compiled;
}
