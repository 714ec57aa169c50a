// Colours of curves: Okabe and Ito (2008), distinguishable for the colour-blind, in two sets of
// brightness.

const LIGHT = ["#0072b2", "#d55e00", "#007d5c", "#b5478a", "#8a6d00", "#2d7fb8", "#444444"];
const DARK = ["#56b4e9", "#e69f00", "#2fc29a", "#e290c3", "#f0e442", "#7fc9f5", "#cccccc"];

/** Limits of a sender, in the order of the codes of the probe `limited_by`. */
export const LIMITS = [
  "nothing to send",
  "slow start",
  "congestion window",
  "receive window",
  "send buffer",
  "application",
  "pacing",
  "loss recovery",
] as const;

const LIMIT_LIGHT = ["#00000000", "#56b4e9", "#0072b2", "#e69f00", "#b5478a", "#c8c8c8", "#2fa37f", "#d55e00"];

export function isDark(): boolean {
  return matchMedia("(prefers-color-scheme: dark)").matches;
}

export function colourOf(index: number): string {
  const set = isDark() ? DARK : LIGHT;
  return set[index % set.length] ?? "#888888";
}

export function colourOfLimit(code: number): string {
  return LIMIT_LIGHT[code] ?? "#888888";
}

export function variable(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
