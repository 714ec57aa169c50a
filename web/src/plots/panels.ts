// The plots: which series each has.

import type { SeriesInfo } from "../engine/protocol";

export interface Curve {
  index: number;
  name: string;
  /** Label within the panel: the element, and the quantity if the panel has several. */
  label: string;
  points: boolean;
}

export interface Panel {
  id: string;
  title: string;
  unit: string;
  curves: Curve[];
  /** Whether the values are averages over time, such as rates. */
  averages: boolean;
}

interface Recipe {
  id: string;
  title: string;
  unit: string;
  quantities: string[];
  points?: string[];
}

const RECIPES: Recipe[] = [
  { id: "goodput", title: "Goodput", unit: "bit/s", quantities: ["goodput"] },
  { id: "window", title: "Congestion window", unit: "B", quantities: ["congestion_window", "slow_start_threshold", "in_flight"] },
  { id: "rtt", title: "Smoothed round-trip time", unit: "s", quantities: ["smoothed_rtt"] },
  { id: "queue", title: "Queues (greatest length)", unit: "packets", quantities: ["queue_max"] },
  { id: "sequence", title: "Time and sequence", unit: "B", quantities: ["sent", "acknowledged", "retransmitted"], points: ["retransmitted"] },
  { id: "losses", title: "Packets dropped and lost", unit: "packets", quantities: ["dropped", "lost"] },
  { id: "utilization", title: "Use of links", unit: "1", quantities: ["utilization"] },
];

/** Quantities whose panel would be too full with all of them: they are shown for one flow. */
const OF_ONE_FLOW = new Set(["window", "sequence"]);

function split(name: string): [string, string] {
  const dot = name.lastIndexOf(".");
  return [name.slice(0, dot), name.slice(dot + 1)];
}

/** Returns the flows and link directions that have series. */
export function ownersOf(series: readonly SeriesInfo[]): { flows: string[]; directions: string[] } {
  const flows = new Set<string>();
  const directions = new Set<string>();
  for (const { name } of series) {
    const [owner, quantity] = split(name);
    if (quantity === "goodput" || quantity === "congestion_window") {
      flows.add(owner);
    } else if (/\.(forward|return)$/.test(owner)) {
      directions.add(owner);
    }
  }
  return { flows: [...flows], directions: [...directions] };
}

/** Returns the panels for the flows and link directions to show. */
export function panelsOf(series: readonly SeriesInfo[], shown: ReadonlySet<string>, flow: string | null): Panel[] {
  const panels: Panel[] = [];
  for (const recipe of RECIPES) {
    const curves: Curve[] = [];
    series.forEach(({ name, samples }, index) => {
      const [owner, quantity] = split(name);
      if (samples === 0 || !recipe.quantities.includes(quantity)) {
        return;
      }
      if (OF_ONE_FLOW.has(recipe.id) ? owner !== flow : !shown.has(owner)) {
        return;
      }
      const plain = quantity.replaceAll("_", " ");
      const label = recipe.quantities.length === 1 ? owner : OF_ONE_FLOW.has(recipe.id) ? plain : `${owner} ${plain}`;
      curves.push({ index, name, label, points: recipe.points?.includes(quantity) ?? false });
    });
    if (curves.length > 0) {
      const title = OF_ONE_FLOW.has(recipe.id) && flow !== null ? `${recipe.title}: ${flow}` : recipe.title;
      const averages = recipe.id === "goodput" || recipe.id === "utilization";
      panels.push({ id: recipe.id, title, unit: recipe.unit, curves: curves.slice(0, 16), averages });
    }
  }
  return panels;
}

/** Returns the index of the series of what limits a flow. */
export function limitsOf(series: readonly SeriesInfo[], flow: string | null): number | null {
  const index = series.findIndex(({ name }) => name === `${flow}.limited_by`);
  return index < 0 ? null : index;
}

const PREFIXES = ["", "k", "M", "G", "T"];

/** Returns the factor and unit in which a panel's values are short. */
export function scaleFor(unit: string, greatest: number): { factor: number; unit: string } {
  if (unit === "s") {
    return greatest < 1 ? { factor: 1e3, unit: "ms" } : { factor: 1, unit: "s" };
  }
  if (unit === "1") {
    return { factor: 100, unit: "%" };
  }
  if (unit !== "bit/s" && unit !== "B") {
    return { factor: 1, unit };
  }
  const step = Math.min(Math.max(Math.floor(Math.log10(Math.max(greatest, 1)) / 3), 0), PREFIXES.length - 1);
  return { factor: 10 ** (-3 * step), unit: `${PREFIXES[step] ?? ""}${unit}` };
}
