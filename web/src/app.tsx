// The page: text and diagram, values, results and plots.

import { signal, useComputed } from "@preact/signals";
import { useRef } from "preact/hooks";

import { Diagram } from "./diagram/diagram";
import { Editor } from "./editor/editor";
import { LessonText } from "./lesson/lesson";
import { lesson } from "./lesson/state";
import { examples, FIRST } from "./model/examples";
import { isLesson, openDocument, openFiles } from "./model/open";
import { addressOf, copyLink, saveOffline, saveToml } from "./model/save";
import { checked, fileName, notice, pin, pinned, refusal, result, run, status, stopRun, text, unpin } from "./model/state";
import { Inspector } from "./panels/inspector";
import { Packets } from "./panels/packets";
import { Headline, Results, Table } from "./panels/results";
import { Seeds } from "./panels/seeds";
import { Server } from "./panels/server";
import { Sweep } from "./panels/sweep";
import { hasServer, NO_FILE } from "./model/server";
import { Plots, PlotsOf } from "./plots/plots";

function open(name: string): void {
  const example = examples.find((one) => one.name === name);
  if (example) {
    openDocument(example.file, example.text);
  }
}

const GROUPS = [...new Set(examples.map((example) => example.group))];

function Header() {
  const is = status.value;
  const share = is.kind === "running" ? is.share : 0;
  const shown = (lesson.value?.name ?? fileName.value).replace(/\.(toml|md)$/, "");
  return (
    <header>
      <h1>
        bentpipe <span>workbench</span>
      </h1>
      <label>
        Scenario{" "}
        <select id="scenarios" value={shown} onChange={(event) => open(event.currentTarget.value)}>
          {!examples.some((one) => one.name === shown) && <option value={shown}>{lesson.value?.name ?? fileName.value}</option>}
          {GROUPS.map((group) => (
            <optgroup key={group} label={group}>
              {examples
                .filter((example) => example.group === group)
                .map((example) => (
                  <option key={example.name} value={example.name}>
                    {example.title}
                  </option>
                ))}
            </optgroup>
          ))}
        </select>
      </label>
      <button type="button" class="primary" disabled={refusal.value !== null} onClick={() => void run()}>
        Run
      </button>
      <button type="button" disabled={is.kind !== "running"} onClick={stopRun}>
        Stop
      </button>
      <progress max="1" value={share} aria-label="Progress of the run" class={is.kind === "running" ? "" : "idle"} />
      {pinned.value === null ? (
        <button type="button" disabled={result.value === null} onClick={pin} title="Keep this run, to compare others with it">
          Pin
        </button>
      ) : (
        <button type="button" onClick={unpin}>
          Unpin
        </button>
      )}
      <span class="save">
        <OpenButton />
        <button type="button" onClick={() => void copyLink()}>Share link</button>
        <button type="button" onClick={saveToml}>TOML</button>
        <button type="button" onClick={() => void saveOffline()} title="This page with the simulator, as one file">
          Offline page
        </button>
      </span>
    </header>
  );
}

/** Opens files of the user's: a scenario, a lesson, trace files. */
function OpenButton({ label = "Open" }: { label?: string }) {
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" title="A scenario (.toml), a lesson (.md) or trace files; or drop them on the page" onClick={() => input.current?.click()}>
        {label}
      </button>
      <input
        ref={input}
        type="file"
        multiple
        hidden
        aria-label={label}
        onChange={(event) => {
          const chosen = event.currentTarget;
          void openFiles([...(chosen.files ?? [])]).finally(() => {
            chosen.value = "";
          });
        }}
      />
    </>
  );
}

function Messages() {
  const wrong = refusal.value;
  const is = status.value;
  const stale = useComputed(() => result.value !== null && result.value.text !== text.value && refusal.value === null && status.value.kind !== "running");
  return (
    <div class="messages" role="status">
      {wrong && (
        <p class="error">
          {wrong.text} {wrong.message.includes(NO_FILE) && <OpenButton label="Choose the file" />}
        </p>
      )}
      {!wrong && is.kind === "failed" && <p class="error">{is.message}</p>}
      {!wrong && is.kind === "stopped" && <p>Stopped.</p>}
      {stale.value && <p>The results are of an earlier text: press Run.</p>}
      {notice.value && (
        <p>
          {notice.value}{" "}
          <button type="button" onClick={() => (notice.value = null)}>
            Close
          </button>
        </p>
      )}
    </div>
  );
}

/** Sets what stands between backticks as code. */
function withCode(sentence: string) {
  return sentence.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}

function About() {
  if (lesson.value !== null) {
    return null;
  }
  const example = examples.find((one) => one.file === fileName.value);
  const about = example?.about || checked.value?.network?.description || "";
  return (
    <div class="about">
      {fileName.value === `${FIRST}.toml` && (
        <p>
          To begin:{" "}
          {examples
            .filter((one) => isLesson(one.file))
            .map((one) => (
              <button key={one.name} type="button" onClick={() => open(one.name)}>
                {one.title}
              </button>
            ))}
        </p>
      )}
      {about !== "" && <p>{withCode(about)}</p>}
      {example?.question && <p class="question">Question: {withCode(example.question)}</p>}
    </div>
  );
}

/** Whether the scenario file is shown in place of the lesson's text. */
const showsFile = signal(false);

function Left() {
  if (lesson.value === null) {
    return <Editor />;
  }
  const tab = (isFile: boolean, label: string) => (
    <button type="button" aria-pressed={showsFile.value === isFile} class={showsFile.value === isFile ? "selected" : ""} onClick={() => (showsFile.value = isFile)}>
      {label}
    </button>
  );
  return (
    <>
      <div class="tabs" role="group" aria-label="Beside the network">
        {tab(false, "Lesson")}
        {tab(true, "Scenario file")}
      </div>
      {showsFile.value ? <Editor /> : <LessonText />}
    </>
  );
}

export function App() {
  return (
    <>
      <Header />
      <Messages />
      <main>
        <div class={lesson.value === null ? "left" : "left has-lesson"}>
          <Left />
        </div>
        <div class="right">
          <About />
          <Diagram />
          <Inspector />
          <Results />
          <Plots />
          <Packets />
          <Seeds />
          <Sweep />
          {hasServer && <Server />}
        </div>
      </main>
    </>
  );
}

/** The page within another one: a scenario's sliders and results, without its text. */
export function Embedded() {
  const openWhole = async (event: MouseEvent) => {
    const link = event.currentTarget as HTMLAnchorElement;
    event.preventDefault();
    window.open(await addressOf(), link.target);
  };
  return (
    <main class="embedded">
      <h1>{checked.value?.name ?? "Scenario"}</h1>
      <Messages />
      <Diagram />
      <p class="headline">
        <Headline />
      </p>
      <PlotsOf panels={["goodput"]} />
      <Inspector />
      <Table of="flows" />
      <p>
        <a href={location.pathname} target="_blank" rel="noopener" onClick={(event) => void openWhole(event)}>
          Open in the workbench
        </a>
      </p>
    </main>
  );
}
