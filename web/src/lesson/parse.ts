// A lesson: Markdown in which {{ ... }} binds values of a scenario and of its run.
//
// A heading of level 2 begins a step. A TOML block that is a scenario is the step's network; a step
// without one goes on with the network of the step before.

import { Marked, type Token, type Tokens } from "marked";

import { worthOf } from "../model/quantity";

/** A value, control or picture that a text refers to. */
export type Binding =
  | { kind: "value"; of: "result" | "first" | "scenario"; path: string[] }
  | { kind: "slider"; key: string[]; range: { low: number; high: number } | null }
  | { kind: "choice"; key: string[] }
  | { kind: "plot"; panels: string[] }
  | { kind: "diagram" }
  | { kind: "table"; rows: "flows" | "links" };

export interface BindingToken extends Tokens.Generic {
  type: "binding";
  raw: string;
  line: number;
  /** Null if the text between the braces is no binding. */
  binding: Binding | null;
}

export interface LessonScenario {
  name: string;
  text: string;
  /** Line of the lesson on which the scenario's first line is. */
  line: number;
}

export interface Step {
  title: string;
  blocks: Token[];
  scenarios: LessonScenario[];
  bindings: BindingToken[];
}

export interface Problem {
  line: number;
  message: string;
}

export interface Lesson {
  title: string;
  steps: Step[];
  problems: Problem[];
}

export const PANELS = ["goodput", "window", "rtt", "queue", "sequence", "losses", "utilization"] as const;
export const EXPECTED = "result.KEY, first.KEY, scenario.KEY, slider KEY, slider KEY from LOW to HIGH, choice KEY, plot NAME, diagram, table flows or table links";

const markdown = new Marked({
  extensions: [
    {
      name: "binding",
      level: "inline",
      start: (text: string) => text.indexOf("{{"),
      tokenizer: (text: string) => {
        const found = /^\{\{([^{}]*)\}\}/.exec(text);
        return found ? { type: "binding", raw: found[0], line: 0, binding: readBinding(found[1] ?? "") } : undefined;
      },
    },
  ],
});

function readBinding(text: string): Binding | null {
  const [word = "", ...rest] = text.trim().split(/\s+/);
  const value = /^(result|first|scenario)\.([\w.-]+)$/.exec(word);
  if (value && rest.length === 0) {
    return { kind: "value", of: value[1] as "result", path: (value[2] ?? "").split(".") };
  }
  const key = rest[0]?.split(".") ?? [];
  const isKey = key.length > 0 && key.every((part) => /^[\w-]+$/.test(part));
  switch (word) {
    case "slider": {
      if (!isKey || rest.length === 1) {
        return isKey ? { kind: "slider", key, range: null } : null;
      }
      const given = /^slider\s+\S+\s+from\s+(.+)\s+to\s+(.+)$/.exec(text.trim());
      const [low, high] = [worthOf(given?.[1] ?? "x"), worthOf(given?.[2] ?? "x")];
      return low > 0 && high > low ? { kind: "slider", key, range: { low, high } } : null;
    }
    case "choice":
      return isKey && rest.length === 1 ? { kind: "choice", key } : null;
    case "plot": {
      const known: readonly string[] = PANELS;
      return rest.length > 0 && rest.every((name) => known.includes(name)) ? { kind: "plot", panels: rest } : null;
    }
    case "diagram":
      return rest.length === 0 ? { kind: "diagram" } : null;
    case "table":
      return rest.length === 1 && (rest[0] === "flows" || rest[0] === "links") ? { kind: "table", rows: rest[0] } : null;
    default:
      return null;
  }
}

/** Whether a TOML block is a scenario, not an excerpt: it has a name and a duration. */
function isScenario(text: string): boolean {
  const top = text.split(/^\s*\[/m)[0] ?? "";
  return /^name\s*=/m.test(top) && /^duration\s*=/m.test(top);
}

/** Returns the scenario that a block is, if it is one. */
export function scenarioOf(block: Token): string | null {
  const { lang, text } = block as Tokens.Code;
  return block.type === "code" && lang === "toml" && isScenario(text) ? text : null;
}

function newlines(text: string): number {
  return text.split("\n").length - 1;
}

/** Returns the tokens within a token, in the order of the text. */
function within(token: Token): Token[] {
  const some = token as Partial<Tokens.Generic> & Partial<Tokens.Table> & Partial<Tokens.List>;
  if (token.type === "list") {
    return (some.items ?? []) as unknown as Token[];
  }
  if (token.type === "table") {
    return [...(some.header ?? []), ...(some.rows ?? []).flat()].flatMap((cell) => cell.tokens);
  }
  return (some.tokens as Token[] | undefined) ?? [];
}

/** Deepest nesting of lists, quotes and marks. */
const DEEPEST = 50;

/** Sets the lines of the bindings in a block, and returns them. */
function bindingsOf(block: Token, line: number): BindingToken[] {
  const found: BindingToken[] = [];
  let at = 0;
  const visit = (token: Token, depth: number) => {
    if (depth > DEEPEST) {
      throw new RangeError("nested too deeply");
    }
    if (token.type === "binding") {
      const bound = token as BindingToken;
      const place = block.raw.indexOf(bound.raw, at);
      bound.line = line + newlines(block.raw.slice(0, Math.max(place, 0)));
      at = Math.max(place, at) + bound.raw.length;
      found.push(bound);
    } else {
      within(token).forEach((inner) => visit(inner, depth + 1));
    }
  };
  visit(block, 0);
  return found;
}

/** Returns the text of a heading without marks. */
function plain(token: Tokens.Heading): string {
  return token.text.replace(/[*_`]/g, "");
}

/** Reads a lesson. Errors are among its problems: the other parts are shown all the same. */
export function readLesson(text: string, name: string): Lesson {
  try {
    return readBlocks(markdown.lexer(text), name);
  } catch (error) {
    // The parser is recursive: deep nesting exhausts the stack.
    const message = error instanceof RangeError ? "nested too deeply" : String(error);
    return { title: name, steps: [{ title: name, blocks: [], scenarios: [], bindings: [] }], problems: [{ line: 1, message }] };
  }
}

function readBlocks(blocks: Token[], name: string): Lesson {
  const problems: Problem[] = [];
  const empty = (title: string): Step => ({ title, blocks: [], scenarios: [], bindings: [] });
  let title = name.replace(/\.md$/, "");
  let step = empty(title);
  const steps = [step];
  /** Whether the first step has its heading. */
  let isNamed = false;
  let line = 1;
  for (const block of blocks) {
    if (block.type === "heading" && block["depth"] === 1 && !isNamed) {
      title = plain(block as Tokens.Heading);
      step.title = title;
    }
    if (block.type === "heading" && block["depth"] === 2) {
      // An introduction without a network of its own belongs to the first step.
      if (isNamed || step.scenarios.length > 0) {
        step = empty("");
        steps.push(step);
      }
      step.title = plain(block as Tokens.Heading);
      isNamed = true;
    }
    const scenario = scenarioOf(block);
    if (scenario !== null) {
      const named = /^name\s*=\s*["']([^"']*)["']/m.exec(scenario)?.[1];
      step.scenarios.push({ name: named ?? `scenario ${step.scenarios.length + 1}`, text: `${scenario}\n`, line: line + 1 });
    }
    for (const bound of bindingsOf(block, line)) {
      step.bindings.push(bound);
      if (bound.binding === null) {
        problems.push({ line: bound.line, message: `unknown: ${bound.raw}; expected ${EXPECTED}` });
      }
    }
    const open = block.type === "code" ? -1 : block.raw.search(/\{\{(?![^{}]*\}\})/);
    if (open >= 0 && block.type !== "html") {
      problems.push({ line: line + newlines(block.raw.slice(0, open)), message: "{{ without }}" });
    }
    step.blocks.push(block);
    line += newlines(block.raw);
  }
  if (steps.every((one) => one.scenarios.length === 0)) {
    problems.push({ line: 1, message: "no scenario: expected a block of TOML with a name and a duration" });
  }
  return { title, steps, problems };
}
