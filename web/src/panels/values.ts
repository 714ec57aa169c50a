// Values of sliders and choices as the file writes them.

import { formatQuantity } from "../model/quantity";
import type { Control } from "./controls";

export type Slider = Extract<Control, { shape: "slider" }>;

/** Writes the value of a slider in TOML. */
export function tomlOf(control: Slider, value: number): string {
  switch (control.kind) {
    case "share":
      return String(Number(value.toPrecision(2)));
    case "count":
      return String(Math.round(value));
    case "packets":
      return JSON.stringify(`${Math.max(1, Math.round(Number(value.toPrecision(2))))} packets`);
    default:
      return JSON.stringify(formatQuantity(value, control.kind));
  }
}

/** Returns a TOML value as a reader sees it. */
export function written(value: string): string {
  return value.replaceAll('"', "");
}

/** Returns values of a control for a sweep: all words of a choice, or eight values of a slider around the present one. */
export function valuesOf(control: Control): string[] {
  if (control.shape === "choice") {
    return control.words.map((word) => JSON.stringify(word));
  }
  if (control.kind === "share") {
    return [0, 1e-5, 1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2].map((share) => tomlOf(control, share));
  }
  if (control.key.at(-1) === "seed") {
    return Array.from({ length: 8 }, (_, index) => String(control.value + index));
  }
  const factors = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16];
  return [...new Set(factors.map((factor) => tomlOf(control, control.value * factor)))];
}
