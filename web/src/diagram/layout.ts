// Places nodes and links of a network on a plane: nodes in columns, by their distance from the
// sender of the first flow.

import type { Link, Network } from "../engine/protocol";

export interface Box {
  /** Name of the node, or of one node of a group. */
  name: string;
  label: string;
  kind: string;
  count: number;
  x: number;
  y: number;
}

export interface Line {
  /** Name of the link, or of one link of a group. */
  name: string;
  label: string;
  detail: string[];
  count: number;
  from: Box;
  to: Box;
}

export interface Drawing {
  boxes: Box[];
  lines: Line[];
  width: number;
  height: number;
}

export const BOX = { width: 108, height: 44 };
const COLUMN = 290;
const ROW = 92;
const MARGIN = 12;

/** Name of the group of a node: `crew` for `crew-3` if there are others. */
function groupsOf(names: string[]): Map<string, string> {
  const counts = new Map<string, number>();
  const stem = (name: string) => name.replace(/-\d+$/, "");
  for (const name of names) {
    counts.set(stem(name), (counts.get(stem(name)) ?? 0) + 1);
  }
  const groups = new Map<string, string>();
  for (const name of names) {
    const isMember = name !== stem(name) && (counts.get(stem(name)) ?? 0) > 3;
    groups.set(name, isMember ? stem(name) : name);
  }
  return groups;
}

export function layOut(network: Network, describe: (link: Link) => string[]): Drawing {
  const groups = groupsOf(network.nodes.map((node) => node.name));
  const groupOf = (name: string) => groups.get(name) ?? name;
  const boxes = new Map<string, Box>();
  for (const node of network.nodes) {
    const group = groupOf(node.name);
    const there = boxes.get(group);
    if (there) {
      there.count += 1;
    } else {
      boxes.set(group, { name: node.name, label: group, kind: node.kind, count: 1, x: 0, y: 0 });
    }
  }
  const joined = new Map<string, { link: Link; count: number; ends: [string, string] }>();
  const neighbours = new Map<string, Set<string>>();
  for (const link of network.links) {
    const ends: [string, string] = [groupOf(link.between[0]), groupOf(link.between[1])];
    const stem = link.name.replace(/-\d+$/, "");
    const key = `${ends.join("\n")}\n${stem}`;
    const there = joined.get(key);
    if (there) {
      there.count += 1;
    } else {
      joined.set(key, { link, count: 1, ends });
    }
    for (const [one, other] of [ends, [ends[1], ends[0]] as const]) {
      neighbours.set(one, (neighbours.get(one) ?? new Set()).add(other));
    }
  }
  const columns = columnsOf([...boxes.keys()], neighbours, groupOf(network.flows[0]?.from ?? ""));
  const rows: string[][] = [];
  for (const [name, column] of columns) {
    (rows[column] ??= []).push(name);
  }
  sortRows(rows, neighbours);
  const tallest = Math.max(1, ...rows.map((row) => row?.length ?? 0));
  rows.forEach((row, column) => {
    const top = ((tallest - row.length) * ROW) / 2;
    row.forEach((name, index) => {
      const box = boxes.get(name);
      if (box) {
        box.x = MARGIN + BOX.width / 2 + column * COLUMN;
        box.y = MARGIN + BOX.height / 2 + 18 + top + index * ROW;
      }
    });
  });
  const lines: Line[] = [];
  for (const { link, count, ends } of joined.values()) {
    const from = boxes.get(ends[0]);
    const to = boxes.get(ends[1]);
    if (from && to) {
      const label = count > 1 ? `${link.name.replace(/-\d+$/, "")} ×${count}` : link.name;
      lines.push({ name: link.name, label, detail: describe(link), count, from, to });
    }
  }
  return {
    boxes: [...boxes.values()],
    lines,
    width: 2 * MARGIN + BOX.width + (rows.length - 1) * COLUMN,
    height: 2 * MARGIN + BOX.height + 36 + (tallest - 1) * ROW,
  };
}

/** Returns the column of each node: its distance in links from the first. */
function columnsOf(
  names: string[],
  neighbours: Map<string, Set<string>>,
  first: string,
): Map<string, number> {
  const columns = new Map<string, number>();
  for (const root of [first, ...names]) {
    if (columns.has(root) || !names.includes(root)) {
      continue;
    }
    columns.set(root, 0);
    const queue = [root];
    for (const name of queue) {
      for (const next of neighbours.get(name) ?? []) {
        if (!columns.has(next)) {
          columns.set(next, (columns.get(name) ?? 0) + 1);
          queue.push(next);
        }
      }
    }
  }
  return columns;
}

/** Orders each column by the mean row of the neighbours in the column before. */
function sortRows(rows: string[][], neighbours: Map<string, Set<string>>): void {
  for (let column = 1; column < rows.length; column += 1) {
    const before = rows[column - 1] ?? [];
    const mean = (name: string) => {
      const places = [...(neighbours.get(name) ?? [])].map((other) => before.indexOf(other)).filter((at) => at >= 0);
      return places.length > 0 ? places.reduce((sum, at) => sum + at, 0) / places.length : before.length;
    };
    rows[column]?.sort((one, other) => mean(one) - mean(other));
  }
}
