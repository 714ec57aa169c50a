// A diagram of nodes, links, gateways and flows.

import { useComputed } from "@preact/signals";

import type { Direction, Link } from "../engine/protocol";
import { show } from "../model/quantity";
import { checked, select, selection, type Selection } from "../model/state";
import { BOX, layOut, type Box, type Line } from "./layout";

function ofDirection(direction: Direction | null): string {
  return direction === null ? "none" : show.rate(direction.rate_bps);
}

/** Returns rates, delays and losses of a link, in lines. */
function describe(link: Link): string[] {
  const { forward, return: back } = link;
  const rates = [ofDirection(forward), ofDirection(back)];
  const delays = [show.time(forward?.delay_s), show.time(back?.delay_s)];
  const same = (pair: string[]) => (pair[0] === pair[1] ? pair[0] ?? "" : `${pair[0]} → / ${pair[1]} ←`);
  const lines = [same(rates), forward && back ? same(delays) : delays.filter((one) => one !== "–").join("")];
  const losses = [forward, back].map((one) => one?.errors.packet_loss_rate ?? 0);
  if (losses.some((rate) => rate > 0)) {
    lines.push(`loss ${same(losses.map((rate) => show.percent(rate)))}`);
  }
  return lines;
}

const SHAPES: Record<string, string> = { host: "host", router: "router" };

function isSelected(kind: Selection["kind"], name: string): boolean {
  return selection.value?.kind === kind && selection.value.name === name;
}

/** Properties of an element that can be selected by click or key. */
function selectable(kind: Selection["kind"], name: string, label: string) {
  return {
    role: "button" as const,
    // In SVG, names of attributes have a case.
    tabindex: 0,
    "aria-label": label,
    "aria-pressed": isSelected(kind, name),
    onClick: () => select({ kind, name }),
    onKeyDown: (event: KeyboardEvent) => {
      if (event.key === "Enter" || event.key === " ") {
        event.preventDefault();
        select({ kind, name });
      }
    },
  };
}

function titleOf(box: Box): string {
  return box.count > 1 ? `${box.label} ×${box.count}` : box.label;
}

function LinkLine({ line }: { line: Line }) {
  const { from, to } = line;
  const middle = { x: (from.x + to.x) / 2, y: (from.y + to.y) / 2 };
  // Room for the text: beside a vertical line, above and below a horizontal one.
  const vertical = from.x === to.x;
  const x = vertical ? middle.x + 8 : middle.x;
  const anchor = vertical ? "start" : "middle";
  return (
    <g
      class={`link ${isSelected("link", line.name) ? "selected" : ""}`}
      {...selectable("link", line.name, `${line.label} ${line.detail.join(" ")} (link)`)}
    >
      <line class="wide" x1={from.x} y1={from.y} x2={to.x} y2={to.y} />
      <line class="drawn" x1={from.x} y1={from.y} x2={to.x} y2={to.y} />
      <text class="name" x={x} y={middle.y - 7} text-anchor={anchor}>
        {line.label}{" "}
      </text>
      {line.detail.map((text, index) => (
        <text key={text} class="detail" x={x} y={middle.y + 15 + 13 * index} text-anchor={anchor}>
          {text}{" "}
        </text>
      ))}
    </g>
  );
}

export function Diagram() {
  const drawing = useComputed(() => {
    const network = checked.value?.network;
    return network ? layOut(network, describe) : null;
  });
  const counts = checked.value?.counts;
  if (counts === undefined) {
    return <p class="faint">The network appears here.</p>;
  }
  if (drawing.value === null) {
    return (
      <p>
        {show.count(counts.nodes)} nodes, {show.count(counts.links)} links, {show.count(counts.flows)} flows: too many
        to draw.
      </p>
    );
  }
  const { boxes, lines, width, height } = drawing.value;
  const flows = checked.value?.network?.flows ?? [];
  const tables = [...new Map(flows.map((flow) => [flow.table, flow])).values()].slice(0, 40);
  return (
    <div class="diagram">
      <div class="scroll" tabIndex={0} role="region" aria-label="Network diagram">
        <svg viewBox={`0 0 ${width} ${height}`} style={{ width: `${width}px`, maxWidth: "100%", minWidth: `${Math.min(width, 560)}px` }} role="group" aria-label="Network">
          {lines.map((line) => (
            <LinkLine key={`${line.name}${line.label}`} line={line} />
          ))}
          {boxes.map((box) => (
            <g
              key={box.label}
              class={`node ${SHAPES[box.kind] ?? "gateway"} ${isSelected("node", box.name) ? "selected" : ""}`}
              {...selectable("node", box.name, `${titleOf(box)} ${box.kind}`)}
            >
              {box.count > 1 && (
                <rect x={box.x - BOX.width / 2 + 5} y={box.y - BOX.height / 2 + 5} width={BOX.width} height={BOX.height} rx="6" />
              )}
              <rect x={box.x - BOX.width / 2} y={box.y - BOX.height / 2} width={BOX.width} height={BOX.height} rx="6" />
              <text class="name" x={box.x} y={box.y - 2} text-anchor="middle">
                {titleOf(box)}{" "}
              </text>
              <text class="detail" x={box.x} y={box.y + 13} text-anchor="middle">
                {box.kind}
              </text>
            </g>
          ))}
        </svg>
      </div>
      <ul class="flows" aria-label="Flows">
        {tables.map((flow) => (
          <li key={flow.table}>
            <button
              type="button"
              class={isSelected("flow", flow.table) ? "selected" : ""}
              onClick={() => select({ kind: "flow", name: flow.table })}
            >
              <b>{flow.table}</b> {flow.app.kind}: {flow.from} → {flow.to}
            </button>
          </li>
        ))}
        <li>
          <button
            type="button"
            class={selection.value?.kind === "scenario" ? "selected" : ""}
            onClick={() => select({ kind: "scenario", name: "" })}
          >
            {show.time(checked.value?.duration_s)}, seed {checked.value?.seed}
          </button>
        </li>
      </ul>
    </div>
  );
}
