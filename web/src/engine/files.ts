// Trace files that scenarios refer to. A page has no file system: the user gives them, and every
// worker gets a copy.

/** Longest trace file, as on the command line. */
const LONGEST = 64 << 20;

const provided = new Map<string, Uint8Array<ArrayBuffer>>();
/** Workers that are told of each file. */
const receivers = new Set<(name: string, content: Uint8Array<ArrayBuffer>) => Promise<unknown>>();

export function isTooLong(length: number): boolean {
  return length > LONGEST;
}

/** Provides a file, in place of one with the same name. */
export async function provideFile(name: string, content: Uint8Array<ArrayBuffer>): Promise<void> {
  provided.set(name, content);
  await Promise.all([...receivers].map((receive) => receive(name, content)));
}

export function providedFiles(): ReadonlyMap<string, Uint8Array<ArrayBuffer>> {
  return provided;
}

/** Calls `receive` for each later file. Returns a function that ends it. */
export function onFile(receive: (name: string, content: Uint8Array<ArrayBuffer>) => Promise<unknown>): () => void {
  receivers.add(receive);
  return () => receivers.delete(receive);
}
