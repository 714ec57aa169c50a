// Which values of a selected element have sliders, and where they are in the file.

import type { Checked, Direction, Link } from "../engine/protocol";
import type { Kind } from "../model/quantity";
import type { Schema } from "../model/schema";
import { hasKey, nodePath, tableOf, type Selection } from "../model/state";

export type Control =
  | { shape: "slider"; label: string; key: string[]; kind: Kind | "share" | "packets" | "count"; value: number; low: number; high: number }
  | { shape: "choice"; label: string; key: string[]; value: string; words: string[] };

/** Returns the key that sets a value of a direction: of both, where the file sets both at once. */
function directionKey(link: string, way: "forward" | "return", key: string[]): { key: string[]; both: boolean } {
  const own = ["links", link, way, ...key];
  const shared = ["links", link, ...key];
  return hasKey(own) || !hasKey(shared) ? { key: own, both: false } : { key: shared, both: true };
}

function ofDirection(link: string, way: "forward" | "return", direction: Direction): Control[] {
  const controls: Control[] = [];
  const add = (label: string, key: string[], kind: "rate" | "time" | "share" | "size" | "packets", value: number, low: number, high: number) => {
    const found = directionKey(link, way, key);
    const ways = found.both ? "both ways" : way;
    controls.push({ shape: "slider", label: `${label}, ${ways}`, key: found.key, kind, value, low, high });
  };
  if (direction.rate_bps !== null) {
    add("Rate", ["rate"], "rate", direction.rate_bps, 1e3, 1e9);
  }
  if (direction.delay_s !== null) {
    add("Delay", ["delay"], "time", direction.delay_s, 1e-4, 2);
  }
  const { limit_packets: packets, limit_bytes: bytes } = direction.queue;
  if (packets !== null) {
    add("Queue limit", ["queue", "limit"], "packets", packets, 1, 10_000);
  } else if (bytes !== null) {
    add("Queue limit", ["queue", "limit"], "size", bytes, 1e3, 1e8);
  }
  add("Packet loss", ["errors", "packet_loss_rate"], "share", direction.errors.packet_loss_rate, 1e-6, 0.3);
  return controls;
}

function ofLink(link: Link): Control[] {
  const table = tableOf("links", link.name);
  const all = (["forward", "return"] as const).flatMap((way) => {
    const direction = link[way];
    return direction === null ? [] : ofDirection(table, way, direction);
  });
  const seen = new Set<string>();
  return all.filter((control) => {
    const id = control.key.join("\n");
    return !seen.has(id) && seen.add(id);
  });
}

/** Words that values may have. */
export interface Words {
  rules: string[];
  queues: string[];
  acks: string[];
}

/** Reads the words from the schema; without it, there are none. */
export function wordsOf(schema: Schema | null): Words {
  const words = (path: string[]) => schema?.words(path).map(({ word }) => word) ?? [];
  return {
    rules: words(["hosts", "x", "tcp", "congestion_control"]),
    queues: words(["links", "x", "queue", "kind"]),
    acks: words(["links", "x", "acks", "kind"]),
  };
}

/** Returns the controls of the selected element. */
export function controlsOf(selected: Selection, checked: Checked, words: Words): Control[] {
  const { rules, queues, acks } = words;
  const network = checked.network;
  if (selected.kind === "scenario") {
    return [
      { shape: "slider", label: "Duration", key: ["duration"], kind: "time", value: checked.duration_s, low: 1, high: 3600 },
      { shape: "slider", label: "Seed", key: ["seed"], kind: "count", value: checked.seed, low: 1, high: 1000 },
    ];
  }
  if (selected.kind === "link") {
    const link = network?.links.find((one) => one.name === selected.name);
    if (!link) {
      return [];
    }
    const table = tableOf("links", link.name);
    const choices = (["forward", "return"] as const).flatMap((way): Control[] => {
      const direction = link[way];
      if (direction === null) {
        return [];
      }
      const choice = (label: string, key: string[], value: string, all: string[]): Control[] => {
        const found = directionKey(table, way, key);
        const ways = found.both ? "both ways" : way;
        return all.includes(value) ? [{ shape: "choice", label: `${label}, ${ways}`, key: found.key, value, words: all }] : [];
      };
      return [
        ...choice("Queue", ["queue", "kind"], direction.queue.kind, queues),
        ...choice("ACK method", ["acks", "kind"], direction.acks.kind, acks),
      ];
    });
    const unique = choices.filter((one, index) => choices.findIndex((other) => other.key.join() === one.key.join()) === index);
    return [...ofLink(link), ...unique];
  }
  if (selected.kind === "node") {
    const node = network?.nodes.find((one) => one.name === selected.name);
    const path = nodePath(selected.name);
    const rule = node?.tcp?.congestion_control;
    const controls: Control[] = [];
    if (typeof rule === "string") {
      const words = rules.includes(rule) ? rules : [rule, ...rules];
      controls.push({ shape: "choice", label: "Window rule", key: [...path, "tcp", "congestion_control"], value: rule, words });
    }
    const tcp = (node?.tcp ?? {}) as Record<string, unknown>;
    for (const [label, key] of [["Receive buffer", "receive_buffer"], ["Send buffer", "send_buffer"]] as const) {
      const bytes = tcp[`${key}_bytes`];
      if (typeof bytes === "number") {
        controls.push({ shape: "slider", label, key: [...path, "tcp", key], kind: "size", value: bytes, low: 4e3, high: 1e8 });
      }
    }
    const members = network?.nodes.filter((one) => tableOf("hosts", one.name) === path[1]).length ?? 1;
    if (path[0] === "hosts" && hasKey([...path, "count"])) {
      controls.push({ shape: "slider", label: "Users", key: [...path, "count"], kind: "count", value: members, low: 1, high: 500 });
    }
    return controls;
  }
  const flow = network?.flows.find((one) => one.table === selected.name);
  const app = (flow?.app ?? {}) as Record<string, unknown>;
  const size = app["size_bytes"] ?? app["size"];
  const key = ["flows", selected.name, "app", "size"];
  if (typeof size === "number" && hasKey(key)) {
    return [{ shape: "slider", label: "Size", key, kind: "size", value: size, low: 1e3, high: 1e10 }];
  }
  return [];
}

/** Returns the controls of all elements of the network. */
export function allControls(checked: Checked, words: Words): Control[] {
  const { nodes = [], links = [], flows = [] } = checked.network ?? {};
  const elements: Selection[] = [
    { kind: "scenario", name: "" },
    ...links.map(({ name }): Selection => ({ kind: "link", name })),
    ...nodes.map(({ name }): Selection => ({ kind: "node", name })),
    ...flows.map(({ table }): Selection => ({ kind: "flow", name: table })),
  ];
  return elements.flatMap((element) => controlsOf(element, checked, words));
}
