// The results of a run in tables, those of the pinned run beside them.

import type { FlowSummary, LinkSummary, Summary } from "../engine/protocol";
import { show } from "../model/quantity";
import { pinned, result } from "../model/state";

interface Column<Row> {
  title: string;
  value(row: Row): string;
}

/** The limit that held longest. */
export function longestLimit(flow: FlowSummary): string {
  const [name, seconds] = Object.entries(flow.limited_s).reduce((one, other) => (other[1] > one[1] ? other : one), ["", 0]);
  return seconds > 0 ? `${name.replaceAll("_", " ")} (${show.time(seconds)})` : "–";
}

function pageTime(flow: FlowSummary): string {
  const loaded = (flow.pages ?? []).map((page) => page.load_s).filter((seconds) => seconds !== null);
  const sorted = loaded.toSorted((one, other) => one - other);
  const middle = sorted[Math.floor(sorted.length / 2)];
  return middle === undefined ? "" : `${show.time(middle)} (${sorted.length} pages)`;
}

const FLOWS: Column<FlowSummary>[] = [
  { title: "Flow", value: (flow) => flow.name },
  { title: "Goodput", value: (flow) => show.rate(flow.goodput_bps) },
  { title: "Limited by", value: longestLimit },
  { title: "Delivered", value: (flow) => show.size(flow.bytes_delivered) },
  { title: "Time", value: (flow) => (flow.finish_s === null ? flow.outcome : show.time(flow.finish_s - flow.start_s)) },
  { title: "Round trip, mean / p95", value: (flow) => `${show.ms(flow.rtt_ms.mean)} / ${show.ms(flow.rtt_ms.p95)}` },
  { title: "Retransmitted", value: (flow) => `${show.count(flow.segments_retransmitted)} of ${show.count(flow.segments_sent)}` },
  { title: "Timeouts", value: (flow) => show.count(flow.timeouts) },
  {
    title: "Users",
    value: (flow) =>
      flow.pages ? pageTime(flow) : flow.responses ? `${show.ms(flow.responses.time_ms.p50)} a response (median)` : "",
  },
];

const LINKS: Column<LinkSummary>[] = [
  { title: "Link", value: (link) => link.name },
  { title: "Use", value: (link) => show.percent(link.utilization) },
  { title: "Delivered", value: (link) => show.count(link.packets_delivered) },
  { title: "Lost", value: (link) => show.count(link.packets_lost) },
  { title: "Dropped", value: (link) => show.count(link.packets_dropped) },
  { title: "Longest queue", value: (link) => `${show.count(link.queue_max_packets)} packets, ${show.size(link.queue_max_bytes)}` },
];

const MOST_ROWS = 200;

function Rows<Row extends { name: string }>({ caption, columns, rows, others }: { caption: string; columns: Column<Row>[]; rows: Row[]; others: Row[] | null }) {
  const other = new Map(others?.map((row) => [row.name, row]));
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={caption}>
      <table>
        <caption>
          {caption}
          {rows.length > MOST_ROWS && `: the first ${MOST_ROWS} of ${rows.length}`}
        </caption>
        <thead>
          <tr>
            {columns.map(({ title }) => (
              <th key={title} scope="col">{title}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, MOST_ROWS).map((row) => {
            const before = other.get(row.name);
            return (
              <tr key={row.name}>
                {columns.map((column, index) => {
                  const value = column.value(row);
                  const was = before && index > 0 ? column.value(before) : value;
                  const cell = (
                    <>
                      {value}
                      {was !== value && <small class="was"> pinned: {was}</small>}
                    </>
                  );
                  return index === 0 ? <th key={column.title} scope="row">{cell}</th> : <td key={column.title}>{cell}</td>;
                })}
              </tr>
            );
          })}
        </tbody>
      </table>
    </div>
  );
}

function headline(summary: Summary): string {
  const all = summary.flows.reduce((sum, flow) => sum + flow.goodput_bps, 0);
  return `${show.rate(all)} over ${summary.flows.length} ${summary.flows.length === 1 ? "flow" : "flows"} in ${show.time(summary.ended_s)}`;
}

/** The summary of the pinned run, if it is not the one shown. */
function pinnedSummary(): Summary | null {
  return pinned.value === result.value ? null : (pinned.value?.summary ?? null);
}

/** The table of a run's flows or links. */
export function Table({ of }: { of: "flows" | "links" }) {
  const summary = result.value?.summary;
  const other = pinnedSummary();
  if (!summary) {
    return null;
  }
  return of === "flows" ? (
    <Rows caption="Flows" columns={FLOWS} rows={summary.flows} others={other?.flows ?? null} />
  ) : (
    <Rows caption="Links" columns={LINKS} rows={summary.links} others={other?.links ?? null} />
  );
}

/** All flows in one line. */
export function Headline() {
  const run = result.value;
  const other = pinnedSummary();
  return run === null ? null : (
    <>
      {headline(run.summary)}
      {other && <span class="was"> (pinned: {headline(other)})</span>}
      <span class="faint"> · {show.count(run.summary.packet_hops)} packet-hops in {show.time(run.wallS)}</span>
    </>
  );
}

export function Results() {
  if (result.value === null) {
    return null;
  }
  return (
    <section class="results" aria-label="Results">
      <p class="headline" aria-live="polite">
        <Headline />
      </p>
      <Table of="flows" />
      <Table of="links" />
    </section>
  );
}
