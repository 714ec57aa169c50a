// Quantities with units, as scenario files write them.

export interface Quantity {
  number: number;
  unit: string;
}

/** Units by kind, the smallest first: name and worth in the kind's base unit. */
export const UNITS = {
  rate: [["bit/s", 1], ["kbit/s", 1e3], ["Mbit/s", 1e6], ["Gbit/s", 1e9]],
  time: [["us", 1e-6], ["ms", 1e-3], ["s", 1], ["min", 60]],
  size: [["B", 1], ["kB", 1e3], ["MB", 1e6], ["GB", 1e9]],
} as const satisfies Record<string, readonly (readonly [string, number])[]>;

export type Kind = keyof typeof UNITS;

const SHAPE = /^\s*([+-]?[\d.]+(?:e[+-]?\d+)?)\s*([A-Za-zµ/%]+)\s*$/;

export function parseQuantity(text: string): Quantity | null {
  const found = SHAPE.exec(text);
  const number = Number(found?.[1]);
  return found?.[2] !== undefined && Number.isFinite(number) ? { number, unit: found[2] } : null;
}

/** Returns the worth of a quantity, or of a number, in its base unit; NaN if it is neither. */
export function worthOf(text: string): number {
  const read = parseQuantity(text);
  const units: readonly (readonly [string, number])[] = Object.values(UNITS).flat();
  return read === null ? Number(text) : read.number * (units.find(([name]) => name === read.unit)?.[1] ?? Number.NaN);
}

/** Writes a value in its base unit with at most three digits and the unit that keeps it short. */
export function formatQuantity(value: number, kind: Kind): string {
  const units: readonly (readonly [string, number])[] = UNITS[kind];
  const fitting = units.filter(([, worth]) => Math.abs(value) >= worth);
  const [unit, worth] = fitting.at(-1) ?? units[0] ?? ["", 1];
  // Numbers such as 1000 ms are not written: rounding may reach the next unit.
  const rounded = Number((value / worth).toPrecision(3));
  const next = units[units.findIndex(([name]) => name === unit) + 1];
  if (next && rounded * worth >= next[1]) {
    return `${Number((value / next[1]).toPrecision(3))} ${next[0]}`;
  }
  return `${rounded} ${unit}`;
}

/** Values of results for a reader. */
export const show = {
  rate: (bps: number | null | undefined) => (bps == null ? "–" : formatQuantity(bps, "rate")),
  time: (seconds: number | null | undefined) =>
    seconds == null ? "–" : seconds === 0 || (seconds >= 1 && seconds < 600) ? `${Number(seconds.toPrecision(3))} s` : formatQuantity(seconds, "time"),
  ms: (ms: number | null | undefined) => (ms == null ? "–" : formatQuantity(ms / 1e3, "time")),
  size: (bytes: number | null | undefined) => (bytes == null ? "–" : formatQuantity(bytes, "size")),
  percent: (share: number | null | undefined) =>
    share == null ? "–" : `${(100 * share).toFixed(share < 0.1 ? 2 : 1)} %`,
  count: (n: number | null | undefined) => (n == null ? "–" : n.toLocaleString("en")),
};
