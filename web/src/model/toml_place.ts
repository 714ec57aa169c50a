// Where in a TOML text a position is: the table, the key, and whether a value is being written.

export interface Place {
  /** Path of the table that the position is in. */
  table: string[];
  /** The key that is being written or has been, if any. */
  key: string[];
  /** Whether the position is behind the `=` of the key. */
  inValue: boolean;
  /** Whether the position is in a table header. */
  inHeader: boolean;
  /** The text from the start of the word to the position. */
  word: string;
}

/** Splits a dotted key. */
export function splitKey(text: string): string[] {
  const parts = text.match(/"[^"]*"|'[^']*'|[A-Za-z0-9_-]+/g) ?? [];
  return parts.map((part) => part.replace(/^["']|["']$/g, ""));
}

const HEADER = /^\s*\[\[?\s*([^\]]*?)\s*(\]|$)/;

/** Returns the place of a position in a text. It reads the table header above, and the line. */
export function placeAt(text: string, position: number): Place {
  const start = text.lastIndexOf("\n", position - 1) + 1;
  const line = text.slice(start, position);
  const header = HEADER.exec(line);
  if (header && !line.includes("]")) {
    const parts = (header[1] ?? "").split(".");
    const word = parts.at(-1)?.trim() ?? "";
    return { table: splitKey(parts.slice(0, -1).join(".")), key: [], inValue: false, inHeader: true, word };
  }
  const above = text.slice(0, start).split("\n");
  let table: string[] = [];
  for (let index = above.length - 1; index >= 0; index -= 1) {
    const found = HEADER.exec(above[index] ?? "");
    if (found && found[2] === "]") {
      table = splitKey(found[1] ?? "");
      break;
    }
  }
  return withinLine(line, table);
}

/** Follows inline tables from the start of a line to its end. */
function withinLine(line: string, table: string[]): Place {
  const stack: string[][] = [];
  let current = table;
  let key: string[] = [];
  let inValue = false;
  let word = "";
  let quote = "";
  for (const letter of line) {
    if (quote !== "") {
      if (letter === quote) {
        quote = "";
        word = "";
      } else {
        word += letter;
      }
    } else if (letter === '"' || letter === "'") {
      quote = letter;
      word = "";
    } else if (letter === "#") {
      return { table: current, key: [], inValue: false, inHeader: false, word: "" };
    } else if (letter === "=") {
      key = splitKey(word);
      inValue = true;
      word = "";
    } else if (letter === "{") {
      stack.push(current);
      current = [...current, ...key];
      [key, inValue, word] = [[], false, ""];
    } else if (letter === "}") {
      current = stack.pop() ?? current;
      [key, inValue, word] = [[], false, ""];
    } else if (letter === "," && stack.length > 0) {
      [key, inValue, word] = [[], false, ""];
    } else if (/\s/.test(letter)) {
      word = inValue ? "" : word;
    } else {
      word += letter;
    }
  }
  return { table: current, key, inValue, inHeader: false, word };
}

/** Returns the path of the key at a position: of the word there, if it is a key or a table's name. */
export function keyAt(text: string, position: number): string[] | null {
  const start = text.lastIndexOf("\n", position - 1) + 1;
  const newline = text.indexOf("\n", position);
  const line = text.slice(start, newline < 0 ? text.length : newline);
  const at = position - start;
  let from = at;
  let to = at;
  const isWord = (index: number) => /[A-Za-z0-9_-]/.test(line[index] ?? "");
  while (from > 0 && isWord(from - 1)) {
    from -= 1;
  }
  while (to < line.length && isWord(to)) {
    to += 1;
  }
  if (from === to) {
    return null;
  }
  const word = line.slice(from, to);
  const place = placeAt(text, start + from);
  if (place.inHeader) {
    return [...place.table, word];
  }
  if (place.inValue) {
    return null;
  }
  const before = splitKey(place.word);
  const isKey = /^[\s\w."'-]*=/.test(line.slice(to));
  return isKey ? [...place.table, ...before, word] : null;
}
