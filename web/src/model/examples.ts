// The scenarios and lessons that come with the page: vite.config.ts collects them.

import bundled from "virtual:scenarios";

export interface Example {
  name: string;
  /** Name of the file: a scenario, or a lesson (.md). */
  file: string;
  group: string;
  title: string;
  /** Some sentences about the effect; empty for a scenario of the command line. */
  about: string;
  /** A question to answer by experiment. */
  question: string;
  text: string;
}

export const examples: readonly Example[] = bundled;

/** Name of the scenario that the page opens with. */
export const FIRST = "geo-consumer";
