// Starts the page: with the scenario of the link, of the file, or the first example.

import "uplot/dist/uPlot.min.css";
import "./style.css";

import { render } from "preact";

import { App } from "./app";
import { examples } from "./model/examples";
import { fromFragment } from "./model/save";
import { hasServer, openFile } from "./model/server";
import { fileName, loadSchema, messageOf, notice, text, watchText } from "./model/state";

const FIRST = "geo-consumer";

interface Embedded {
  name: string;
  text: string;
}

async function first(): Promise<Embedded> {
  const shared = await fromFragment(location.hash);
  if (shared !== null) {
    return { name: "shared.toml", text: shared };
  }
  const wanted = /^#e=([\w-]+)$/.exec(location.hash)?.[1];
  const embedded = document.getElementById("scenario")?.textContent;
  if (wanted === undefined && embedded) {
    return JSON.parse(embedded) as Embedded;
  }
  const example = examples.find((one) => one.name === (wanted ?? FIRST)) ?? examples[0];
  return { name: `${example?.name ?? "scenario"}.toml`, text: example?.text ?? "" };
}

async function start(): Promise<void> {
  const scenario = await first();
  fileName.value = scenario.name;
  text.value = scenario.text;
  const root = document.getElementById("app");
  if (root) {
    render(<App />, root);
  }
  if (hasServer && location.hash === "") {
    await openFile();
  }
  watchText();
  await loadSchema();
}

start().catch((error: unknown) => {
  notice.value = messageOf(error);
});

addEventListener("hashchange", () => {
  first().then(
    (scenario) => {
      fileName.value = scenario.name;
      text.value = scenario.text;
    },
    () => undefined,
  );
});
