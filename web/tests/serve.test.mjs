// The page with `bentpipe serve`: files on disk, commands, and what others may try.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { tmpdir } from "node:os";

import { launch } from "./serve.mjs";

const ROOT = join(import.meta.dirname, "..", "..");
const BENTPIPE = process.env.BENTPIPE ?? join(ROOT, ".venv/bin/bentpipe");
const PATIENCE = { timeout: 60_000 };
const SHIP = readFileSync(join(ROOT, "examples/lessons/ship.md"), "utf8").split("```toml\n")[1].split("```")[0];

let browser;
before(async () => {
  browser = await launch();
});
after(() => browser.close());

/** Starts the server for a file. Returns its address with the token, the file and the process. */
async function serve(t, name, content, more = {}) {
  const folder = mkdtempSync(join(tmpdir(), "bentpipe-serve-"));
  const file = join(folder, name);
  writeFileSync(file, content);
  for (const [other, text] of Object.entries(more)) {
    writeFileSync(join(folder, other), text);
  }
  const child = spawn(BENTPIPE, ["serve", file], { cwd: folder, stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => {
    child.kill("SIGINT");
    rmSync(folder, { recursive: true });
  });
  const address = await new Promise((resolve, reject) => {
    let output = "";
    child.stdout.on("data", (part) => {
      output += part;
      const found = /workbench: (\S+)\n/.exec(output);
      if (found) {
        resolve(found[1]);
      }
    });
    child.on("exit", (status) => reject(new Error(`bentpipe serve ended with status ${status}`)));
  });
  return { address, file, child };
}

async function open(t, address, url = address) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
  t.after(() => context.close());
  const page = await context.newPage();
  await page.goto(url);
  return page;
}

const finished = (page) => page.locator(".headline").waitFor(PATIENCE);

test("a lesson on disk opens, and the page follows it", async (t) => {
  const lesson = readFileSync(join(ROOT, "examples/lessons/ship.md"), "utf8");
  const { address, file } = await serve(t, "mine.md", lesson);
  const page = await open(t, address);
  await page.locator(".lesson h2", { hasText: "1. The cause" }).waitFor(PATIENCE);
  await page.getByRole("button", { name: "Next" }).click();
  writeFileSync(file, lesson.replace("## 2. Rain", "## 2. A cloud").replace("{{ plot goodput window }}", "{{ plot nothing }}"));
  await page.locator(".lesson h2", { hasText: "2. A cloud" }).waitFor(PATIENCE);
  await page.locator(".problems li", { hasText: /^mine\.md:\d+: unknown: \{\{ plot nothing \}\}/ }).waitFor(PATIENCE);
});

test("trace files beside the scenario are read", async (t) => {
  const scenario = SHIP.replace('forward = { rate = "4 Mbit/s", ', 'forward = { traces = [{ file = "rate.csv" }], ');
  const { address } = await serve(t, "ship.toml", scenario, { "rate.csv": "time (s), rate (Mbit/s)\n0, 0.5\n" });
  const page = await open(t, address);
  await finished(page);
  assert.match(await page.locator(".headline").innerText(), /^4\d\d kbit\/s/);
});

test("a remedy is applied and saved", async (t) => {
  const { address, file } = await serve(t, "ship.toml", SHIP);
  const page = await open(t, address);
  await finished(page);
  await page.getByRole("button", { name: "Advise" }).click();
  await page.getByRole("button", { name: "Apply" }).first().click({ timeout: 120_000 });
  await page.getByRole("button", { name: "Save ship.toml" }).click(PATIENCE);
  await page.getByRole("button", { name: "ship.toml is saved" }).waitFor(PATIENCE);
  const saved = readFileSync(file, "utf8");
  assert.notEqual(saved, SHIP);
  assert.match(saved, /# the setting of the ship's computers/);
});

test("an emulation draws the goodput while it runs", async (t) => {
  const { address } = await serve(t, "ship.toml", SHIP.replace("20 MB", "500 kB"));
  const page = await open(t, address);
  await finished(page);
  await page.getByRole("button", { name: "Emulate on this machine" }).click();
  const refused = page.locator(".server .error");
  const drawn = page.locator(".server .live polyline").first();
  await drawn.or(refused).first().waitFor(PATIENCE);
  if ((await refused.count()) > 0) {
    const reason = await refused.innerText();
    assert.match(reason, /nothing can be emulated here/);
    assert.notEqual(process.env.BENTPIPE_WITNESSES, "required", reason);
    t.skip(reason);
    return;
  }
  await page.getByRole("button", { name: "Cancel" }).waitFor(PATIENCE);
  await page.waitForFunction(() => document.querySelector(".server .live polyline").getAttribute("points").split(" ").length > 4, null, PATIENCE);
  await page.locator(".server table", { hasText: "Emulated" }).waitFor(PATIENCE);
  assert.match(await page.locator(".server tbody tr").innerText(), /kbit\/s/);
  assert.match(await page.locator(".server .live").innerText(), /500 kB/);
});

test("the page goes on when the server is killed during a run", async (t) => {
  const endless = SHIP.replace('duration = "10 min"', 'duration = "70 h"').replace(', size = "20 MB"', "");
  const { address, child } = await serve(t, "ship.toml", endless);
  const page = await open(t, address);
  await page.waitForFunction(() => document.querySelector("progress").value > 0, null, PATIENCE);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByRole("button", { name: "Advise" }).click();
  await page.getByRole("button", { name: "Cancel" }).waitFor(PATIENCE);
  child.removeAllListeners("exit");
  child.kill("SIGKILL");
  await page.locator(".messages", { hasText: "The server has ended." }).waitFor(PATIENCE);
  await page.locator(".server .error").waitFor(PATIENCE);
  await page.locator("#scenarios").selectOption("hystart");
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await finished(page);
});

test("a wrong token opens nothing", async (t) => {
  const { address } = await serve(t, "ship.toml", SHIP);
  const page = await open(t, address, address.replace(/token=.*/, "token=wrong"));
  assert.equal((await page.locator("body").innerText()).trim(), "wrong token");
  const response = await page.goto(new URL("/", address).href);
  assert.equal(response.status(), 403);
});

test("a page of another port can neither read nor write", async (t) => {
  const { address, file } = await serve(t, "ship.toml", SHIP);
  // The cookie of the page is sent along: ports are of one site.
  const page = await open(t, address);
  await finished(page);
  const foreign = createServer((_, response) => response.writeHead(200, { "content-type": "text/html" }).end("<p>foreign</p>"));
  await new Promise((resolve) => foreign.listen(0, "127.0.0.1", resolve));
  t.after(() => foreign.close());
  const other = await page.context().newPage();
  await other.goto(`http://127.0.0.1:${foreign.address().port}/`);
  const attempts = await other.evaluate(async (base) => {
    const results = [];
    const body = JSON.stringify({ text: "changed" });
    for (const [path, init] of [
      ["api/file", { method: "PUT", body, credentials: "include" }],
      ["api/jobs", { method: "POST", body, mode: "no-cors", credentials: "include" }],
      ["api/file", { credentials: "include" }],
    ]) {
      results.push(await fetch(base + path, init).then((response) => response.type, (error) => error.name));
    }
    const form = document.createElement("form");
    form.method = "post";
    form.action = `${base}api/jobs`;
    form.enctype = "text/plain";
    document.body.append(form);
    form.submit();
    return results;
  }, new URL("/", address).href);
  assert.deepEqual(attempts, ["TypeError", "opaque", "TypeError"]);
  await other.getByText("not from this page").waitFor(PATIENCE);
  assert.equal(readFileSync(file, "utf8"), SHIP);
});
