// Opens documents: scenarios, lessons, and files that the user chooses or drops.

import { batch } from "@preact/signals";

import { isTooLong, provideFile } from "../engine/files";
import { closeLesson, openLesson } from "../lesson/state";
import { changed, fileName, messageOf, notice, selection, text, zoom } from "./state";

/** Longest scenario or lesson. */
const LONGEST = 1 << 20;

export function isLesson(name: string): boolean {
  return name.endsWith(".md");
}

/** Opens a scenario, or a lesson if the name ends with ".md". */
export function openDocument(name: string, content: string): void {
  if (isLesson(name)) {
    openLesson(name, content);
    return;
  }
  batch(() => {
    closeLesson();
    fileName.value = name;
    selection.value = null;
    zoom.value = null;
    text.value = content;
  });
}

/** Opens files that the user has chosen or dropped: a scenario, a lesson, or trace files. */
export async function openFiles(files: Iterable<File>): Promise<void> {
  const given: string[] = [];
  try {
    for (const file of files) {
      if (/\.(toml|md)$/.test(file.name)) {
        if (file.size > LONGEST) {
          throw new Error(`${file.name}: longer than 1 MiB: not a scenario or lesson`);
        }
        openDocument(file.name, await file.text());
      } else if (isTooLong(file.size)) {
        throw new Error(`${file.name}: longer than 64 MiB: not a trace file`);
      } else {
        await provideFile(file.name, new Uint8Array(await file.arrayBuffer()));
        given.push(file.name);
      }
    }
    if (given.length > 0) {
      notice.value = `Trace files for scenarios: ${given.join(", ")}.`;
      await changed();
    }
  } catch (error) {
    notice.value = messageOf(error);
  }
}

/** Opens files that are dropped anywhere on the page. */
export function acceptDrops(): void {
  document.addEventListener("dragover", (event) => {
    if (event.dataTransfer?.types.includes("Files")) {
      event.preventDefault();
    }
  });
  document.addEventListener("drop", (event) => {
    const files = event.dataTransfer?.files;
    if (files && files.length > 0) {
      event.preventDefault();
      void openFiles(files);
    }
  });
}
