// Samples of curves as the columns that a plot draws.

import uPlot from "uplot";

import type { Samples } from "../engine/protocol";

/** Converts reduced samples to a curve: where a column has several values, both extremes. */
export function curveOf(samples: Samples, factor: number): [number[], number[]] {
  const times: number[] = [];
  const values: number[] = [];
  const { times: at, low, high } = samples;
  for (let index = 0; index < at.length; index += 1) {
    const time = at[index] ?? 0;
    const [least, most] = [(low[index] ?? 0) * factor, (high[index] ?? 0) * factor];
    times.push(time);
    values.push(least);
    if (most !== least) {
      // Half way to the next column, so that times increase.
      const next = at[index + 1] ?? time;
      if (next > time) {
        times.push(time + (next - time) / 2);
        values.push(most);
      } else {
        values[values.length - 1] = most;
      }
    }
  }
  return [times, values];
}

/** Joins curves with times of their own into one table. */
export function joined(curves: [number[], number[]][]): uPlot.AlignedData {
  if (curves.length === 0) {
    return [[]];
  }
  return uPlot.join(curves as unknown as uPlot.AlignedData[]);
}

export function greatestOf(all: readonly Samples[]): number {
  let greatest = 0;
  for (const { high } of all) {
    for (const value of high) {
      greatest = Math.max(greatest, Math.abs(value));
    }
  }
  return greatest;
}
