// Starts the page: with the scenario or lesson of the link, of the file, or the first example.

import "./engine/early";

import "uplot/dist/uPlot.min.css";
import "./style.css";

import { effect } from "@preact/signals";
import { render } from "preact";

import { App, Embedded } from "./app";
import type { Link } from "./engine/protocol";
import { examples, FIRST } from "./model/examples";
import { acceptDrops, openDocument } from "./model/open";
import { fromFragment, type Document } from "./model/save";
import { hasServer, openFile, provideTraces } from "./model/server";
import { checked, loadSchema, messageOf, notice, select, watchText } from "./model/state";

/** Whether the page is a part of another one. */
const isEmbedded = new URLSearchParams(location.search).get("view") === "embed";

/** Tells the page around this one its height, and selects a link, so that there are sliders. */
function reportHeight(): void {
  const observer = new ResizeObserver(() => {
    parent.postMessage({ bentpipeHeight: document.body.scrollHeight + 4 }, "*");
  });
  observer.observe(document.body);
  const dispose = effect(() => {
    const link = slowestLink(checked.value?.network?.links ?? []);
    if (link !== null) {
      select({ kind: "link", name: link });
      queueMicrotask(() => dispose());
    }
  });
}

function slowestLink(links: readonly Link[]): string | null {
  const rate = (link: Link) => Math.min(link.forward?.rate_bps ?? Infinity, link.return?.rate_bps ?? Infinity);
  return links.toSorted((one, other) => rate(one) - rate(other))[0]?.name ?? null;
}

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
  const hasFile = hasServer && location.hash === "";
  if (!hasFile) {
    watchText();
  }
  const root = document.getElementById("app");
  if (root) {
    render(isEmbedded ? <Embedded /> : <App />, root);
  }
  if (isEmbedded) {
    reportHeight();
  }
  if (hasFile) {
    await openFile();
    watchText();
  }
  if (hasServer) {
    provideTraces();
  }
  acceptDrops();
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
