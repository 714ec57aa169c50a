// Saving and sharing: links, pictures, tables, and the page itself.

import type { PlotData } from "../plots/plot";
import { lesson } from "../lesson/state";
import { colourOf } from "../plots/colours";
import { fileName, notice, range, result, text } from "./state";

function download(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

function stem(): string {
  return fileName.value.replace(/\.toml$/, "") || "scenario";
}

export function saveToml(): void {
  download(`${stem()}.toml`, new Blob([text.value], { type: "application/toml" }));
}

/** Saves all plots below each other. */
export async function savePng(): Promise<void> {
  const figures = [...document.querySelectorAll<HTMLElement>(".plot")];
  const canvases = figures.flatMap((figure) => figure.querySelector("canvas") ?? []);
  const first = canvases[0];
  if (first === undefined) {
    return;
  }
  const heading = 28 * devicePixelRatio;
  const page = document.createElement("canvas");
  page.width = Math.max(...canvases.map((canvas) => canvas.width));
  page.height = canvases.reduce((sum, canvas) => sum + canvas.height + heading, 0);
  const context = page.getContext("2d");
  if (context === null) {
    return;
  }
  const style = getComputedStyle(document.documentElement);
  context.fillStyle = style.getPropertyValue("--page");
  context.fillRect(0, 0, page.width, page.height);
  context.fillStyle = style.getPropertyValue("--text");
  context.font = `${14 * devicePixelRatio}px system-ui, sans-serif`;
  let top = 0;
  canvases.forEach((canvas, index) => {
    const title = figures[index]?.querySelector("figcaption")?.textContent ?? "";
    context.fillText(title, 12, top + 0.7 * heading);
    context.drawImage(canvas, 0, top + heading);
    top += canvas.height + heading;
  });
  const blob = await new Promise<Blob | null>((resolve) => page.toBlob(resolve));
  if (blob) {
    download(`${stem()}.png`, blob);
  }
}

const escaped = (part: string) =>
  part.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");

const WIDTH = 760;
const HEIGHT = 220;
const EDGE = { left: 76, right: 14, top: 30, bottom: 30 };

/** Saves all plots as one vector graphic. */
export function saveSvg(plots: readonly PlotData[], shown: [number, number]): void {
  const [from, until] = shown;
  const inner = { width: WIDTH - EDGE.left - EDGE.right, height: HEIGHT - EDGE.top - EDGE.bottom };
  const parts = plots.map((plot, place) => {
    const [times, ...columns] = plot.data as (number | null)[][];
    const greatest = Math.max(...columns.flat().map((value) => value ?? 0), 0) || 1;
    const x = (time: number) => EDGE.left + ((time - from) / (until - from)) * inner.width;
    const y = (value: number) => EDGE.top + (1 - value / greatest) * inner.height;
    const curves = columns.map((column, index) => {
      const points: string[] = [];
      column.forEach((value, at) => {
        const time = times?.[at];
        if (value !== null && value !== undefined && typeof time === "number" && time >= from && time <= until) {
          points.push(`${x(time).toFixed(1)},${y(value).toFixed(1)}`);
        }
      });
      const colour = colourOf(plot.colours[index] ?? index);
      if (plot.points[index]) {
        return points.map((point) => `<circle cx="${point.split(",")[0]}" cy="${point.split(",")[1]}" r="2" fill="${colour}"/>`).join("");
      }
      const dash = plot.pinned[index] ? ' stroke-dasharray="6 4"' : "";
      return `<polyline points="${points.join(" ")}" fill="none" stroke="${colour}" stroke-width="1.5"${dash}/>`;
    });
    const labels = plot.labels.map((label, index) => {
      const colour = colourOf(plot.colours[index] ?? index);
      return `<tspan fill="${colour}" dx="${index === 0 ? 0 : 10}">${escaped(label)}</tspan>`;
    });
    const ticks = [0, 0.5, 1].map((share) => {
      const value = Number((share * greatest).toPrecision(3));
      return `<text x="${EDGE.left - 6}" y="${y(share * greatest) + 4}" text-anchor="end">${value}</text><line x1="${EDGE.left}" x2="${WIDTH - EDGE.right}" y1="${y(share * greatest)}" y2="${y(share * greatest)}" stroke="#ddd"/>`;
    });
    const instants = [0, 0.25, 0.5, 0.75, 1].map((share) => {
      const time = from + share * (until - from);
      return `<text x="${x(time)}" y="${HEIGHT - 10}" text-anchor="middle">${Number(time.toPrecision(4))} s</text>`;
    });
    return `<g transform="translate(0 ${place * HEIGHT})"><text x="8" y="18" font-weight="bold">${escaped(plot.panel.title)} (${escaped(plot.unit)})</text><text x="${WIDTH - EDGE.right}" y="18" text-anchor="end">${labels.join("")}</text>${ticks.join("")}${instants.join("")}${curves.join("")}</g>`;
  });
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT * plots.length}" font-family="system-ui, sans-serif" font-size="12" style="background: white">${parts.join("")}</svg>`;
  download(`${stem()}.svg`, new Blob([svg], { type: "image/svg+xml" }));
}

/** Most columns that are asked for: twice as many samples are exact. */
const EXACT = 1 << 14;

/** Saves the samples of every series in the range shown: series, time, value. */
export async function saveCsv(): Promise<void> {
  const run = result.value;
  if (run === null) {
    return;
  }
  const lines = ["series,unit,time_s,value"];
  for (const [index, { name, unit }] of run.series.entries()) {
    const [samples] = await run.client.series({ run: run.run, indices: [index], range_s: range.peek(), columns: EXACT });
    samples?.times.forEach((time, at) => lines.push(`${name},${unit},${time},${samples.high[at] ?? ""}`));
  }
  download(`${stem()}.csv`, new Blob([`${lines.join("\n")}\n`], { type: "text/csv" }));
}

async function through(bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream): Promise<Uint8Array<ArrayBuffer>> {
  const piped = new Blob([bytes]).stream().pipeThrough(stream as ReadableWritablePair<Uint8Array<ArrayBuffer>, BufferSource>);
  return new Uint8Array(await new Response(piped).arrayBuffer());
}

const SCENARIO = "#s=";
const LESSON = "#l=";
/** Longest text that a link may expand to. */
const LONGEST = 1 << 20;

/** Returns a scenario or a lesson as the fragment of a link: compressed, in the URL alphabet of base64. */
export async function toFragment(content: string, prefix: string): Promise<string> {
  const packed = await through(new TextEncoder().encode(content), new CompressionStream("deflate-raw"));
  const letters = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  return prefix + btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** A scenario or a lesson, by the end of its name. */
export interface Document {
  name: string;
  text: string;
}

/** Returns what the page shows: the lesson, or the scenario. */
export function present(): Document {
  return lesson.value === null ? { name: fileName.value, text: text.value } : { name: lesson.value.name, text: lesson.value.text };
}

export async function fromFragment(fragment: string): Promise<Document | null> {
  const prefix = [SCENARIO, LESSON].find((one) => fragment.startsWith(one));
  if (prefix === undefined) {
    return null;
  }
  try {
    const letters = atob(fragment.slice(prefix.length).replaceAll("-", "+").replaceAll("_", "/"));
    const packed = Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
    const reader = stream.getReader();
    const parts: Uint8Array<ArrayBuffer>[] = [];
    let length = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) {
        break;
      }
      length += value.length;
      if (length > LONGEST) {
        await reader.cancel();
        notice.value = "The link has more than 1 MiB of text: it is no scenario and no lesson.";
        return null;
      }
      parts.push(value);
    }
    return { name: prefix === LESSON ? "shared.md" : "shared.toml", text: await new Blob(parts).text() };
  } catch {
    notice.value = "The link is damaged: its text cannot be read.";
    return null;
  }
}

/** Returns the address of the page with what it shows. */
export async function addressOf(): Promise<string> {
  const url = new URL(location.href);
  const shown = present();
  url.search = "";
  url.hash = await toFragment(shown.text, lesson.value === null ? SCENARIO : LESSON);
  return url.href;
}

export async function copyLink(): Promise<void> {
  const url = await addressOf();
  history.replaceState(null, "", url);
  try {
    await navigator.clipboard.writeText(url);
    notice.value = "The link is copied.";
  } catch {
    notice.value = "The link is in the address bar.";
  }
}

/** Saves this page, with the simulator and the scenario or lesson, as one file that needs no server. */
export async function saveOffline(): Promise<void> {
  const offline = document.getElementById("engine-wasm") !== null;
  const source = offline ? document.documentElement.outerHTML : await (await fetch("offline.html")).text();
  const page = new DOMParser().parseFromString(source, "text/html");
  const root = page.getElementById("app");
  if (root) {
    root.innerHTML = "";
  }
  page.getElementById("scenario")?.remove();
  for (const style of page.querySelectorAll("style:not([data-page])")) {
    style.remove();
  }
  const scenario = page.createElement("script");
  scenario.id = "scenario";
  scenario.type = "application/json";
  // "<" would end the element.
  scenario.textContent = JSON.stringify(present()).replaceAll("<", "\\u003c");
  page.body.prepend(scenario);
  download(`${stem()}.html`, new Blob([`<!doctype html>\n${page.documentElement.outerHTML}`], { type: "text/html" }));
}
