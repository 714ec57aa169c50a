// The packets at an instant: a second run with a log, which has the same results.

import { signal } from "@preact/signals";

import { EngineClient } from "../engine/client";
import type { PacketPage } from "../engine/protocol";
import { cursor, fileName, messageOf, range, result } from "../model/state";

const MOST = 200;

interface Log {
  client: EngineClient;
  run: number;
  text: string;
}

const page = signal<PacketPage | null>(null);
const message = signal<string>("");
let log: Log | null = null;

async function logOf(text: string): Promise<Log> {
  if (log !== null && log.text === text) {
    return log;
  }
  log?.client.close();
  log = null;
  const client = new EngineClient();
  const onProgress = (share: number) => {
    message.value = `Logging packets: ${Math.round(100 * share)} %`;
  };
  const finished = await client.run({ text, name: fileName.value }, { series: false, packets: true, onProgress });
  log = { client, run: finished.run, text };
  return log;
}

async function showAt(from: number): Promise<void> {
  const text = result.value?.text;
  if (text === undefined) {
    return;
  }
  try {
    const { client, run } = await logOf(text);
    const reply = await client.ask({ do: "packets", run, from_s: from, most: MOST });
    page.value = reply as unknown as PacketPage;
    message.value = "";
  } catch (error) {
    message.value = messageOf(error);
  }
}

export function Packets() {
  if (result.value === null) {
    return null;
  }
  const shown = page.value;
  const from = cursor.value ?? range.value[0];
  const last = shown?.rows.at(-1);
  return (
    <details class="packets">
      <summary>Packets at an instant</summary>
      <div class="toolbar">
        <button type="button" onClick={() => void showAt(from)}>Show packets from {from.toFixed(3)} s on</button>
        {last && <button type="button" onClick={() => void showAt(last.time_s)}>Later packets</button>}
        <span class="faint">{message.value || "The instant is that of the cursor in the plots."}</span>
      </div>
      {shown && (
        <div class="scroll" tabIndex={0} role="region" aria-label="Packets">
          <table>
            <caption>
              {shown.rows.length === 0
                ? `No packet is logged from then on; ${shown.packets} before`
                : `Packets ${shown.before + 1} to ${shown.before + shown.rows.length} of ${shown.packets}`}
              {shown.omitted > 0 && ` (the log is full: ${shown.omitted} later ones are missing)`}
            </caption>
            <thead>
              <tr>
                {["Time", "At", "Event", "Link", "From", "To", "Bytes", "Packet"].map((title) => (
                  <th key={title} scope="col">{title}</th>
                ))}
              </tr>
            </thead>
            <tbody>
              {shown.rows.map((row, index) => (
                <tr key={index}>
                  <td>{row.time_s.toFixed(6)} s</td>
                  <td>{row.node}</td>
                  <td>{row.event}</td>
                  <td>{row.link}</td>
                  <td>{row.from}</td>
                  <td>{row.to}</td>
                  <td>{row.bytes}</td>
                  <td><code>{row.text}</code></td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </details>
  );
}
