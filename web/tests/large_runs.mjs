// Benchmark of the page with large runs: 10^6 packets, and 1,000 flows. Prints times and memory.
//
// A run keeps some 2,000 samples of each series, so that its length does not matter for the plots.
//
//     node web/tests/large_runs.mjs
//
// The times depend on the machine; page.test.mjs checks that the page stays usable.

import { launch, serve } from "./serve.mjs";

/** A run of 10^6 packets, which are all in the log of packets. */
export const MANY_PACKETS = `name = "packets"
duration = "3000 s"
[hosts.server.tcp]
congestion_control = "reno"
[hosts.client]
[links.satellite]
between = ["server", "client"]
delay = "50 ms"
forward = { rate = "4 Mbit/s", queue = { limit = "100 packets" } }
return = { rate = "1 Mbit/s" }
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk" }
`;

/** A thousand flows over one link. */
export const MANY_FLOWS = `name = "flows"
duration = "20 s"
[hosts.server]
[hosts.user]
count = 1000
[gateways.hub]
kind = "router"
[links.backbone]
between = ["server", "hub"]
rate = "1 Gbit/s"
delay = "250 ms"
[links.access]
between = ["hub", "user"]
rate = "20 Mbit/s"
delay = "5 ms"
[flows.download]
from = "server"
to = "user"
app = { kind = "bulk", size = "200 kB" }
`;

/** Opens a scenario by its file. Waits for the run and its plots. */
export async function openScenario(page, name, text) {
  await page.locator("header input[type=file]").setInputFiles([{ name: `${name}.toml`, mimeType: "text/plain", buffer: Buffer.from(text) }]);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForFunction(() => document.querySelector("progress").classList.contains("idle") === false, null, { timeout: 20_000 }).catch(() => undefined);
  await page.waitForFunction(() => document.querySelector("progress").classList.contains("idle"), null, { timeout: 300_000 });
  await page.locator(".plot canvas").first().waitFor({ timeout: 60_000 });
}

/** Zooms in by a button. Returns the milliseconds until the next two frames are drawn. */
export async function redraw(page) {
  return page.evaluate(async () => {
    const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
    const canvas = document.querySelector(".plot canvas");
    const before = canvas.toDataURL();
    const began = performance.now();
    document.querySelector("button[aria-label='Zoom in']").click();
    while (document.querySelector(".plot canvas").toDataURL() === before && performance.now() - began < 30_000) {
      await frame();
    }
    await frame();
    return performance.now() - began;
  });
}

async function main() {
  const server = await serve();
  const browser = await launch();
  for (const [name, text] of [["packets", MANY_PACKETS], ["flows", MANY_FLOWS]]) {
    const page = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
    await page.goto(server.url);
    await page.locator(".headline").waitFor({ timeout: 60_000 });
    const began = performance.now();
    await openScenario(page, name, text);
    const opened = performance.now() - began;
    await page.getByText("Packets at an instant").click();
    const asked = performance.now();
    await page.getByRole("button", { name: /Show packets from/ }).click();
    await page.locator(".packets tbody tr").first().waitFor({ timeout: 120_000 });
    const listed = (performance.now() - asked) / 1e3;
    const times = [];
    for (let step = 0; step < 5; step += 1) {
      times.push(Math.round(await redraw(page)));
    }
    const heap = await page.evaluate(() => performance.memory.usedJSHeapSize / 1e6);
    const headline = await page.locator(".headline").innerText();
    console.log(`${name}: ${headline}; opened in ${(opened / 1e3).toFixed(1)} s; redrawn in ${times.join(", ")} ms; packets listed in ${listed.toFixed(1)} s; page ${heap.toFixed(0)} MB`);
    await page.context().close();
  }
  await browser.close();
  server.close();
}

if (process.argv[1] === import.meta.filename) {
  await main();
}
