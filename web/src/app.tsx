// The page: text and diagram, values, results and plots.

import { useComputed } from "@preact/signals";

import { Diagram } from "./diagram/diagram";
import { Editor } from "./editor/editor";
import { examples } from "./model/examples";
import { copyLink, saveOffline, saveToml } from "./model/save";
import { checked, fileName, notice, pin, pinned, refusal, result, run, status, stopRun, text, unpin, zoom } from "./model/state";
import { Inspector } from "./panels/inspector";
import { Packets } from "./panels/packets";
import { Results } from "./panels/results";
import { Seeds } from "./panels/seeds";
import { Server } from "./panels/server";
import { Sweep } from "./panels/sweep";
import { hasServer } from "./model/server";
import { Plots } from "./plots/plots";

function open(name: string): void {
  const example = examples.find((one) => one.name === name);
  if (example) {
    fileName.value = `${example.name}.toml`;
    zoom.value = null;
    text.value = example.text;
  }
}

const GROUPS = [...new Set(examples.map((example) => example.group))];

function Header() {
  const is = status.value;
  const share = is.kind === "running" ? is.share : 0;
  return (
    <header>
      <h1>
        bentpipe <span>workbench</span>
      </h1>
      <label>
        Scenario{" "}
        <select id="scenarios" value={fileName.value.replace(/\.toml$/, "")} onChange={(event) => open(event.currentTarget.value)}>
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
        <button type="button" onClick={() => void copyLink()}>Share link</button>
        <button type="button" onClick={saveToml}>TOML</button>
        <button type="button" onClick={() => void saveOffline()} title="This page with the simulator, as one file">
          Offline page
        </button>
      </span>
    </header>
  );
}

function Messages() {
  const wrong = refusal.value;
  const is = status.value;
  const stale = useComputed(() => result.value !== null && result.value.text !== text.value && refusal.value === null && status.value.kind !== "running");
  return (
    <div class="messages" role="status">
      {wrong && <p class="error">{wrong.text}</p>}
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
  const example = examples.find((one) => `${one.name}.toml` === fileName.value);
  const about = example?.about || checked.value?.network?.description || "";
  return about === "" ? null : (
    <div class="about">
      <p>{withCode(about)}</p>
      {example?.question && <p class="question">Question: {withCode(example.question)}</p>}
    </div>
  );
}

export function App() {
  return (
    <>
      <Header />
      <Messages />
      <main>
        <div class="left">
          <Editor />
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
