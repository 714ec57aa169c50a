// Starts the page: with the scenario or lesson of the link, of the file, or the first example.

import "uplot/dist/uPlot.min.css";
import "./style.css";

import { render } from "preact";

import { App } from "./app";
import { examples, FIRST } from "./model/examples";
import { acceptDrops, openDocument } from "./model/open";
import { fromFragment, type Document } from "./model/save";
import { hasServer, openFile, provideTraces } from "./model/server";
import { loadSchema, messageOf, notice, watchText } from "./model/state";

async function first(): Promise<Document> {
  const shared = await fromFragment(location.hash);
  if (shared !== null) {
    return shared;
  }
  const wanted = /^#e=([\w-]+)$/.exec(location.hash)?.[1];
  const embedded = document.getElementById("scenario")?.textContent;
  if (wanted === undefined && embedded) {
    return JSON.parse(embedded) as Document;
  }
  const example = examples.find((one) => one.name === (wanted ?? FIRST)) ?? examples.find((one) => one.name === FIRST);
  return { name: example?.file ?? "scenario.toml", text: example?.text ?? "" };
}

async function start(): Promise<void> {
  const opened = await first();
  openDocument(opened.name, opened.text);
  const root = document.getElementById("app");
  if (root) {
    render(<App />, root);
  }
  if (hasServer && location.hash === "") {
    await openFile();
  }
  if (hasServer) {
    provideTraces();
  }
  acceptDrops();
  watchText();
  await loadSchema();
}

start().catch((error: unknown) => {
  notice.value = messageOf(error);
});

addEventListener("hashchange", () => {
  first().then(
    ({ name, text }) => openDocument(name, text),
    () => undefined,
  );
});
