// The text of a lesson, with what it binds. Markdown becomes elements one by one: HTML in it is
// shown as text, and nothing of it is evaluated.

import type { Token, Tokens } from "marked";
import type { ComponentChildren } from "preact";

import { Diagram } from "../diagram/diagram";
import { result, text } from "../model/state";
import { ChoiceRow, SliderRow } from "../panels/inspector";
import { Table } from "../panels/results";
import { tomlOf, written } from "../panels/values";
import { PlotsOf } from "../plots/plots";
import { scenarioOf, type BindingToken } from "./parse";
import { controls, first, goTo, lesson, load, problems, scenario, step, stepIndex } from "./state";
import { resultAt } from "./values";

export function LessonText() {
  const open = lesson.value;
  const shown = step.value;
  if (open === null || shown === null) {
    return null;
  }
  const at = stepIndex.value;
  return (
    <article class="lesson" aria-label={`Lesson: ${open.title}`}>
      {problems.value.length > 0 && (
        <ul class="problems" role="status">
          {problems.value.slice(0, 20).map(({ line, message }) => (
            <li key={`${line}${message}`} class="error">
              {open.name}:{line}: {message}
            </li>
          ))}
        </ul>
      )}
      <div key={at}>{shown.blocks.map((block, index) => blockOf(block, index))}</div>
      {open.steps.length > 1 && (
        <nav class="toolbar" aria-label="Steps of the lesson">
          <button type="button" disabled={at === 0} onClick={() => goTo(at - 1)}>
            Back
          </button>
          <select aria-label="Step" value={at} onChange={(event) => goTo(Number(event.currentTarget.value))}>
            {open.steps.map(({ title }, index) => (
              <option key={index} value={index}>
                {title}
              </option>
            ))}
          </select>
          <button type="button" class={at < open.steps.length - 1 ? "primary" : ""} disabled={at === open.steps.length - 1} onClick={() => goTo(at + 1)}>
            Next
          </button>
        </nav>
      )}
    </article>
  );
}

function inlinesOf(tokens: Token[] | undefined): ComponentChildren {
  return (tokens ?? []).map((token, index) => inlineOf(token, index));
}

/** Returns the address of a link that may be followed, or null. */
function safeAddress(href: string): string | null {
  return /^https?:\/\//i.test(href) ? href : null;
}

function inlineOf(token: Token, index: number): ComponentChildren {
  const some = token as Tokens.Generic;
  switch (token.type) {
    case "strong":
      return <strong key={index}>{inlinesOf(some.tokens)}</strong>;
    case "em":
      return <em key={index}>{inlinesOf(some.tokens)}</em>;
    case "del":
      return <del key={index}>{inlinesOf(some.tokens)}</del>;
    case "codespan":
      return <code key={index}>{some["text"]}</code>;
    case "br":
      return <br key={index} />;
    case "link": {
      const to = safeAddress(String(some["href"]));
      return to === null ? (
        <span key={index}>{inlinesOf(some.tokens)}</span>
      ) : (
        <a key={index} href={to} target="_blank" rel="noopener noreferrer">
          {inlinesOf(some.tokens)}
        </a>
      );
    }
    case "image":
      // A page asks no other host.
      return <em key={index}>{some["text"]}</em>;
    case "binding":
      return <Bound key={index} token={token as BindingToken} />;
    case "text":
      return some.tokens ? <span key={index}>{inlinesOf(some.tokens)}</span> : some["text"];
    case "escape":
      return some["text"];
    default:
      return token.raw;
  }
}

function blockOf(token: Token, index: number): ComponentChildren {
  const some = token as Tokens.Generic;
  switch (token.type) {
    case "space":
    case "def":
      return null;
    case "heading": {
      const { depth } = token as Tokens.Heading;
      const children = inlinesOf(some.tokens);
      return depth <= 2 ? <h2 key={index}>{children}</h2> : <h3 key={index}>{children}</h3>;
    }
    case "paragraph":
      // A paragraph has no blocks within it, and plots, sliders and tables are blocks.
      return <div key={index} class="paragraph">{inlinesOf(some.tokens)}</div>;
    case "blockquote":
      return <blockquote key={index}>{(some.tokens ?? []).map(blockOf)}</blockquote>;
    case "list": {
      const { ordered, start, items } = token as Tokens.List;
      const children = items.map((item, place) => <li key={place}>{item.tokens.map(blockOf)}</li>);
      return ordered ? (
        <ol key={index} start={Number(start) || 1}>
          {children}
        </ol>
      ) : (
        <ul key={index}>{children}</ul>
      );
    }
    case "table": {
      const { header, rows } = token as Tokens.Table;
      return (
        <div key={index} class="scroll" tabIndex={0} role="region" aria-label="Table of the lesson">
          <table>
            <thead>
              <tr>{header.map((cell, place) => <th key={place} scope="col">{inlinesOf(cell.tokens)}</th>)}</tr>
            </thead>
            <tbody>
              {rows.map((row, place) => (
                <tr key={place}>{row.map((cell, column) => <td key={column}>{inlinesOf(cell.tokens)}</td>)}</tr>
              ))}
            </tbody>
          </table>
        </div>
      );
    }
    case "code": {
      const own = scenarioOf(token);
      return own === null ? <pre key={index} class="scroll" tabIndex={0}>{some["text"]}</pre> : <LoadButton key={index} content={`${own}\n`} />;
    }
    case "hr":
      return <hr key={index} />;
    case "text":
      return <span key={index}>{some.tokens ? inlinesOf(some.tokens) : some["text"]}</span>;
    default:
      return <p key={index}>{token.raw}</p>;
  }
}

/** In place of a scenario's text, which is in the editor: a button that puts it there again. */
function LoadButton({ content }: { content: string }) {
  const all = step.value?.scenarios ?? [];
  const own = all.find((one) => one.text === content);
  if (own === undefined) {
    return null;
  }
  const isOpen = scenario.value === own;
  const isChanged = text.value !== own.text;
  if (all.length === 1 && isOpen) {
    return (
      <p>
        <button type="button" disabled={!isChanged} onClick={() => load(own)}>
          Start again
        </button>
      </p>
    );
  }
  return (
    <p>
      <button type="button" aria-pressed={isOpen} class={isOpen ? "selected" : ""} onClick={() => load(own)}>
        {own.name}
      </button>
    </p>
  );
}

function Bound({ token }: { token: BindingToken }) {
  const { binding } = token;
  switch (binding?.kind) {
    case "value":
      return <Value of={binding.of} path={binding.path} />;
    case "slider": {
      const control = controls.value.get(binding.key.join("."));
      return control?.shape === "slider" ? <SliderRow control={{ ...control, ...binding.range }} scope={`lesson-${token.line}`} /> : <Missing />;
    }
    case "choice": {
      const control = controls.value.get(binding.key.join("."));
      return control?.shape === "choice" ? <ChoiceRow control={control} scope={`lesson-${token.line}`} /> : <Missing />;
    }
    case "plot":
      return <PlotsOf panels={binding.panels} />;
    case "diagram":
      return <Diagram />;
    case "table":
      return <Table of={binding.rows} />;
    default:
      return <code class="error">{token.raw}</code>;
  }
}

function Missing() {
  return <span class="faint">–</span>;
}

function Value({ of, path }: { of: "result" | "first" | "scenario"; path: string[] }) {
  if (of === "scenario") {
    const control = controls.value.get(path.join("."));
    const shown = control === undefined ? "–" : control.shape === "slider" ? written(tomlOf(control, control.value)) : control.value;
    return <output>{shown}</output>;
  }
  const summary = of === "first" ? first.value : result.value?.summary;
  return <output>{(summary && resultAt(summary, path)) ?? "–"}</output>;
}
