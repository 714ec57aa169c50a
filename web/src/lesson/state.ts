// The lesson that is open, its step, and what is wrong with it.

import { batch, computed, effect, signal } from "@preact/signals";

import type { Summary } from "../engine/protocol";
import { allControls, wordsOf, type Control } from "../panels/controls";
import { checked, checkedText, fileName, messageOf, notice, refusalOf, result, schema, selection, text, unpin, zoom } from "../model/state";
import { readLesson, type Lesson, type LessonScenario, type Problem, type Step } from "./parse";
import { resultAt } from "./values";

export const lesson = signal<(Lesson & { name: string; text: string }) | null>(null);
export const stepIndex = signal(0);
/** The scenario of the step that is in the editor. */
export const scenario = signal<LessonScenario | null>(null);
/** Summary of the step's network as the lesson has it. */
export const first = signal<Summary | null>(null);
/** Refusals of the lesson's scenarios, with lines of the lesson. */
const refused = signal<Problem[]>([]);

export const step = computed<Step | null>(() => lesson.value?.steps[stepIndex.value] ?? null);

/** Controls of the network in the editor, by dotted key. */
export const controls = computed<ReadonlyMap<string, Control>>(() => {
  const network = checked.value;
  const all = network === null ? [] : allControls(network, wordsOf(schema.value));
  return new Map(all.map((control) => [control.key.join("."), control]));
});

/** Whether `controls` and the result are those of the step, not of the one before. */
const isCurrent = computed(() => checkedText.value === text.value && schema.value !== null);

/** Bindings of the step to values that its network or its run does not have. */
const unbound = computed<Problem[]>(() => {
  if (!isCurrent.value || step.value === null || result.value?.text !== text.value) {
    return [];
  }
  const { summary } = result.value;
  return step.value.bindings.flatMap(({ binding, line, raw }): Problem[] => {
    switch (binding?.kind) {
      case "value": {
        const isKnown = binding.of === "scenario" ? controls.value.has(binding.path.join(".")) : resultAt(summary, binding.path) !== null;
        const of = binding.of === "scenario" ? "scenario has no value" : "run has no result";
        return isKnown ? [] : [{ line, message: `the ${of} ${binding.path.join(".")}` }];
      }
      case "slider":
      case "choice": {
        const control = controls.value.get(binding.key.join("."));
        const wanted = binding.kind === "slider" ? "slider" : "choice";
        return control?.shape === wanted ? [] : [{ line, message: `${raw}: the network has no ${wanted} for this key` }];
      }
      default:
        return [];
    }
  });
});

export const problems = computed<Problem[]>(() =>
  [...(lesson.value?.problems ?? []), ...refused.value, ...unbound.value].toSorted((one, other) => one.line - other.line),
);

/** Puts a scenario of the step into the editor. */
export function load(next: LessonScenario): void {
  batch(() => {
    scenario.value = next;
    fileName.value = `${next.name}.toml`;
    text.value = next.text;
    selection.value = null;
    zoom.value = null;
  });
}

export function goTo(index: number): void {
  const open = lesson.value;
  if (open === null) {
    return;
  }
  const to = Math.max(0, Math.min(index, open.steps.length - 1));
  batch(() => {
    stepIndex.value = to;
    // A step without a scenario goes on with the network of the step before.
    const own = open.steps[to]?.scenarios[0];
    if (own) {
      first.value = null;
      unpin();
      load(own);
    }
  });
}

/** Opens a lesson. The same lesson in a new version stays at its step. */
export function openLesson(name: string, content: string): void {
  const isSame = lesson.value?.name === name;
  const read = readLesson(content, name);
  batch(() => {
    lesson.value = { ...read, name, text: content };
    refused.value = [];
    const at = isSame ? Math.min(stepIndex.value, read.steps.length - 1) : 0;
    const before = read.steps.slice(0, at + 1).findLastIndex(({ scenarios }) => scenarios.length > 0);
    goTo(Math.max(before, 0));
    stepIndex.value = at;
  });
  checkScenarios(read, content).catch((error: unknown) => {
    notice.value = messageOf(error);
  });
}

export function closeLesson(): void {
  lesson.value = null;
  scenario.value = null;
  refused.value = [];
}

async function checkScenarios(read: Lesson, content: string): Promise<void> {
  const found: Problem[] = [];
  for (const { name, text: source, line } of read.steps.flatMap(({ scenarios }) => scenarios)) {
    const wrong = await refusalOf({ text: source, name });
    if (wrong !== null) {
      const message = wrong.key === "" ? wrong.message : `${wrong.key}: ${wrong.message}`;
      found.push({ line: line + (wrong.line ?? 1) - 1, message });
    }
  }
  if (lesson.value?.text === content) {
    refused.value = found;
  }
}

// The first run of a step's network is kept, for the text to compare with.
effect(() => {
  const run = result.value;
  const own = step.value?.scenarios[0];
  if (run !== null && own !== undefined && run.text === own.text && first.peek() === null) {
    first.value = run.summary;
  }
});
