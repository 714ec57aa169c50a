// The text of the scenario: an editor with completion, help and error marks.

import { autocompletion, closeBrackets, completionKeymap, type CompletionContext, type CompletionResult } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { bracketMatching, HighlightStyle, StreamLanguage, syntaxHighlighting } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { lintGutter, setDiagnostics } from "@codemirror/lint";
import { highlightSelectionMatches, searchKeymap } from "@codemirror/search";
import { EditorState } from "@codemirror/state";
import { drawSelection, EditorView, highlightActiveLine, hoverTooltip, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useSignalEffect } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { keyLines, refusal, schema, text, wantedLine } from "../model/state";
import { keyAt, placeAt } from "../model/toml_place";

const highlighting = HighlightStyle.define([
  { tag: tags.comment, color: "var(--faint)" },
  { tag: tags.string, color: "var(--string)" },
  { tag: tags.number, color: "var(--number)" },
  { tag: [tags.bool, tags.atom], color: "var(--number)" },
  { tag: [tags.propertyName, tags.keyword], color: "var(--key)" },
]);

/** Completes keys, table names and words. */
function complete(context: CompletionContext): CompletionResult | null {
  const known = schema.value;
  if (known === null) {
    return null;
  }
  const place = placeAt(context.state.doc.toString(), context.pos);
  const word = context.matchBefore(/[\w-]*/);
  const from = word?.from ?? context.pos;
  if (place.inHeader) {
    const names = namesIn(place.table);
    const keys = known.keys(place.table);
    const options = [
      ...keys.map(({ key, description }) => ({ label: key, type: "namespace", info: description })),
      ...names.map((label) => ({ label, type: "variable" })),
    ];
    return { from, options };
  }
  if (place.inValue) {
    const path = [...place.table, ...place.key];
    const quoted = /["'][\w-]*$/.test(context.state.sliceDoc(Math.max(0, context.pos - 60), context.pos));
    const options = known.words(path).map(({ word: label, description }) => {
      const plain = label === "true" || label === "false" || quoted;
      return { label, apply: plain ? label : `"${label}"`, type: "enum", info: description };
    });
    const examples = known.examples(path).map((label) => ({ label, type: "text", detail: "example" }));
    const nodes = namesOfNodes(path).map((label) => ({ label, apply: quoted ? label : `"${label}"`, type: "variable" }));
    const all = [...options, ...(quoted ? [] : examples), ...nodes];
    return all.length > 0 && (context.explicit || from < context.pos || quoted) ? { from, options: all } : null;
  }
  if (from === context.pos && !context.explicit) {
    return null;
  }
  const options = known.keys(place.table).map(({ key, description, required }) => ({
    label: key,
    type: "property",
    info: description,
    detail: required ? "required" : "",
    apply: `${key} = `,
  }));
  return { from, options };
}

/** Names that the file has in a table of names. */
function namesIn(table: readonly string[]): string[] {
  const depth = table.length;
  const names = keyLines.value
    .map(([keys]) => keys)
    .filter((keys) => keys.length > depth && table.every((key, index) => keys[index] === key))
    .map((keys) => String(keys[depth]));
  return depth === 0 ? [] : [...new Set(names)];
}

function namesOfNodes(path: readonly string[]): string[] {
  const last = path.at(-1) ?? "";
  const wanted = ["from", "to", "between", "facing"].includes(last);
  if (!wanted) {
    return [];
  }
  return last === "facing" ? namesIn(["links"]) : [...namesIn(["hosts"]), ...namesIn(["gateways"])];
}

const help = hoverTooltip((view, position) => {
  const path = keyAt(view.state.doc.toString(), position);
  const known = schema.value;
  const description = path === null || known === null ? "" : known.description(path);
  if (path === null || known === null || description === "") {
    return null;
  }
  const examples = known.examples(path);
  return {
    pos: position,
    create: () => {
      const dom = document.createElement("div");
      dom.className = "hover-help";
      const title = document.createElement("strong");
      title.textContent = path.join(".");
      const body = document.createElement("p");
      body.textContent = description;
      dom.append(title, body);
      if (examples.length > 0) {
        const example = document.createElement("code");
        example.textContent = examples.join("  ");
        dom.append(example);
      }
      return { dom };
    },
  };
});

export function Editor() {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | null>(null);

  useEffect(() => {
    const parent = host.current;
    if (parent === null) {
      return undefined;
    }
    const created = new EditorView({
      parent,
      state: EditorState.create({
        doc: text.peek(),
        extensions: [
          lineNumbers(),
          history(),
          drawSelection(),
          highlightActiveLine(),
          bracketMatching(),
          closeBrackets(),
          highlightSelectionMatches(),
          StreamLanguage.define(toml),
          syntaxHighlighting(highlighting),
          autocompletion({ override: [complete], activateOnTyping: true }),
          lintGutter(),
          help,
          keymap.of([...completionKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap]),
          EditorView.contentAttributes.of({ "aria-label": "Scenario file" }),
          EditorView.updateListener.of((update) => {
            if (update.docChanged) {
              text.value = update.state.doc.toString();
            }
          }),
        ],
      }),
    });
    // A long line is scrolled by the keyboard, too.
    created.scrollDOM.tabIndex = 0;
    view.current = created;
    return () => created.destroy();
  }, []);

  // Text that something else has changed, such as a slider. Only what differs is replaced, so that
  // the cursor and the history stay.
  useSignalEffect(() => {
    const next = text.value;
    const editor = view.current;
    if (editor === null) {
      return;
    }
    const now = editor.state.doc.toString();
    if (now === next) {
      return;
    }
    let start = 0;
    while (start < now.length && start < next.length && now[start] === next[start]) {
      start += 1;
    }
    let end = 0;
    const most = Math.min(now.length, next.length) - start;
    while (end < most && now[now.length - 1 - end] === next[next.length - 1 - end]) {
      end += 1;
    }
    const insert = next.slice(start, next.length - end);
    editor.dispatch({ changes: { from: start, to: now.length - end, insert } });
  });

  useSignalEffect(() => {
    const wrong = refusal.value;
    const editor = view.current;
    if (editor === null) {
      return;
    }
    const document = editor.state.doc;
    if (wrong === null || wrong.line === null || wrong.line > document.lines) {
      editor.dispatch(setDiagnostics(editor.state, []));
      return;
    }
    const line = document.line(wrong.line);
    const column = Math.min((wrong.column ?? 1) - 1, Math.max(line.length - 1, 0));
    const message = wrong.key === "" ? wrong.message : `${wrong.key}: ${wrong.message}`;
    const from = line.from + column;
    editor.dispatch(
      setDiagnostics(editor.state, [{ from, to: Math.max(line.to, from), severity: "error", message }]),
    );
  });

  useSignalEffect(() => {
    const wanted = wantedLine.value;
    const editor = view.current;
    if (editor === null || wanted === null || wanted > editor.state.doc.lines) {
      return;
    }
    const line = editor.state.doc.line(wanted);
    editor.dispatch({
      selection: { anchor: line.from },
      effects: EditorView.scrollIntoView(line.from, { y: "start", yMargin: 24 }),
    });
    wantedLine.value = null;
  });

  return <div class="editor" ref={host} />;
}

