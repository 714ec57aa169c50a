// The values that a lesson's text shows.

import { show } from "../model/quantity";
import { longestLimit } from "../panels/results";
import type { FlowSummary, Summary } from "../engine/protocol";

/** Units that a key may end with, and how a value in them is written. */
const UNITS: [string, (value: number) => string][] = [
  ["_bps", show.rate],
  ["_ms", show.ms],
  ["_s", show.time],
  ["_bytes", show.size],
];

/** Returns what a path begins with: how many keys of it, the name of the value, and the value. */
function member(of: unknown, path: readonly string[]): { keys: number; name: string; value: unknown } | null {
  const key = path[0] ?? "";
  if (Array.isArray(of)) {
    // A name may have dots: "satellite.forward".
    for (let keys = path.length; keys > 0; keys -= 1) {
      const name = path.slice(0, keys).join(".");
      const value: unknown = of.find((one: { name?: unknown } | null) => one?.name === name);
      if (value !== undefined) {
        return { keys, name, value };
      }
    }
    const value: unknown = /^\d+$/.test(key) ? of[Number(key)] : undefined;
    return value === undefined ? null : { keys: 1, name: key, value };
  }
  if (typeof of !== "object" || of === null) {
    return null;
  }
  // A key may be written without its unit.
  const name = [key, ...UNITS.map(([unit]) => key + unit)].find((one) => Object.hasOwn(of, one));
  return name === undefined ? null : { keys: 1, name, value: (of as Record<string, unknown>)[name] };
}

function written(key: string, value: unknown): string | null {
  if (value === null) {
    return "–";
  }
  if (typeof value === "string") {
    return value.replaceAll("_", " ");
  }
  if (typeof value !== "number") {
    return null;
  }
  if (key === "utilization") {
    return show.percent(value);
  }
  const unit = UNITS.find(([end]) => key.endsWith(end));
  return unit ? unit[1](value) : show.count(Number(value.toPrecision(4)));
}

/** Returns the value at a path of a summary for a reader, or null if there is none. */
export function resultAt(summary: Summary, path: readonly string[]): string | null {
  let [group, last, value]: [string, string, unknown] = ["", "", summary];
  for (let at = 0; at < path.length; ) {
    // The limit that held longest is derived from the seconds of each limit.
    if (path[at] === "limited_by" && at === path.length - 1 && path[0] === "flows" && at > 1) {
      return longestLimit(value as FlowSummary);
    }
    const found = member(value, path.slice(at));
    if (found === null) {
      return null;
    }
    at += found.keys;
    [group, last, value] = [last, found.name, found.value];
  }
  // The unit of several values, such as `rtt_ms.mean`, is in the name of their table.
  const hasUnit = (name: string) => UNITS.some(([end]) => name.endsWith(end));
  return written(!hasUnit(last) && hasUnit(group) ? group : last, value);
}
