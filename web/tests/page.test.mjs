// The page in a browser: what a user does, and what may go wrong.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";

import { MANY_FLOWS, MANY_PACKETS, openScenario, redraw } from "./large_runs.mjs";
import { DIST, launch, serve } from "./serve.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE = { timeout: 60_000 };

let server;
let browser;
before(async () => {
  server = await serve();
  browser = await launch();
});
after(async () => {
  await browser.close();
  server.close();
});

/** Opens the page. When the test ends, it must have had no error and asked no other host. */
async function open(t, { fragment = "", url = server.url, width = 1280, colorScheme = "light" } = {}) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, acceptDownloads: true });
  const page = await context.newPage();
  const wrong = [];
  page.on("console", (message) => message.type() === "error" && wrong.push(message.text()));
  page.on("pageerror", (error) => wrong.push(String(error)));
  page.on("request", (request) => {
    const to = request.url();
    if (!to.startsWith(url.split("#")[0]) && !/^(blob|data):/.test(to) && !to.startsWith(server.url)) {
      wrong.push(`request to ${to}`);
    }
  });
  t.after(async () => {
    await context.close();
    assert.deepEqual(wrong, []);
  });
  await page.goto(url + fragment);
  return page;
}

const finished = (page) => page.locator(".headline").waitFor(PATIENCE);
const plotted = (page) => page.locator(".plot canvas").first().waitFor(PATIENCE);
const headline = (page) => page.locator(".headline").innerText();
const textOf = (page) => page.evaluate(() => document.querySelector(".cm-content").cmTile?.view?.state.doc.toString() ?? document.querySelector(".cm-content").cmView?.view?.state.doc.toString());

/** Replaces the text of the editor. */
async function write(page, text) {
  await page.locator(".cm-content").click();
  await page.keyboard.press("Control+a");
  await page.evaluate((inserted) => {
    const data = new DataTransfer();
    data.setData("text/plain", inserted);
    document.querySelector(".cm-content").dispatchEvent(new ClipboardEvent("paste", { clipboardData: data, bubbles: true, cancelable: true }));
  }, text);
}

test("the page opens with results and plots", async (t) => {
  const page = await open(t);
  await plotted(page);
  await finished(page);
  assert.match(await headline(page), /Mbit\/s over 1 flow/);
  for (const panel of ["goodput", "window", "rtt", "queue", "sequence"]) {
    assert.equal(await page.locator(`.plot[data-panel=${panel}]`).count(), 1, panel);
  }
  assert.ok((await page.locator(".diagram .node").count()) >= 4);
});

test("an error is marked at its line, and its correction runs", async (t) => {
  const page = await open(t, { fragment: "#e=loss-and-bbr" });
  await finished(page);
  const text = await textOf(page);
  await write(page, text.replace('delay = "280 ms"', "delay = 280"));
  await page.locator(".messages .error").waitFor(PATIENCE);
  const line = text.split("\n").findIndex((one) => one.startsWith('delay = "280 ms"')) + 1;
  assert.match(await page.locator(".messages .error").innerText(), new RegExp(`^loss-and-bbr.toml:${line}: links.satellite.delay`));
  await page.locator(".cm-lint-marker-error").waitFor(PATIENCE);
  await write(page, text.replace('delay = "280 ms"', 'delay = "10 ms"'));
  await page.waitForFunction(() => document.querySelector(".messages .error") === null);
  assert.equal(await page.locator(".cm-lint-marker-error").count(), 0);
});

test("a slider changes the value in the text, keeps comments, and runs", async (t) => {
  const page = await open(t);
  await finished(page);
  const before = await headline(page);
  await page.locator(".diagram .link", { hasText: "satellite" }).click();
  const slider = page.getByRole("slider", { name: "Rate, forward" });
  await slider.fill("150");
  await page.waitForFunction((old) => document.querySelector(".headline").innerText !== old, before, PATIENCE);
  const text = await textOf(page);
  assert.match(text, /forward = \{ rate = "[\d.]+ [kM]bit\/s", delay = "270 ms"/);
  assert.match(text, /# the directions differ: forward is from the first node to the second/);
  assert.ok(!text.includes('rate = "25 Mbit/s"'));
});

test("a pinned run is compared on the same axes", async (t) => {
  const page = await open(t, { fragment: "#e=hystart" });
  await finished(page);
  await page.getByRole("button", { name: "Pin", exact: true }).click();
  await write(page, (await textOf(page)).replace("hystart++", "standard"));
  await page.locator(".plot .u-legend", { hasText: "(pinned)" }).first().waitFor(PATIENCE);
  assert.match(await page.locator(".results").innerText(), /pinned: /);
  await page.getByRole("button", { name: "Unpin" }).click();
  await page.waitForFunction(() => !document.querySelector(".results").innerText.includes("pinned: "));
});

test("a drag zooms all plots, and a button shows the whole run again", async (t) => {
  const page = await open(t, { fragment: "#e=hystart" });
  await plotted(page);
  const box = await page.locator(".plot .u-over").first().boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.5, box.y + 40, { steps: 5 });
  await page.mouse.up();
  const whole = page.getByRole("button", { name: "Whole run" });
  await page.waitForFunction(() => [...document.querySelectorAll("button")].some((one) => one.innerText === "Whole run" && !one.disabled));
  await whole.click();
  await page.waitForFunction(() => [...document.querySelectorAll("button")].some((one) => one.innerText === "Whole run" && one.disabled));
});

test("a shared link brings the same text", async (t) => {
  const page = await open(t, { fragment: "#e=rain-fade" });
  await finished(page);
  const text = `${await textOf(page)}\n# ünïcode\n`;
  await write(page, text);
  await page.getByRole("button", { name: "Share link" }).click();
  await page.waitForFunction(() => location.hash.startsWith("#s="));
  const other = await open(t, { fragment: new URL(page.url()).hash });
  await finished(other);
  assert.equal(await textOf(other), text);
});

test("the offline page runs from disk with the scenario", async (t) => {
  const page = await open(t, { fragment: "#e=hystart" });
  await finished(page);
  const text = (await textOf(page)).replace("30 MB", "3 MB");
  await write(page, text);
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: "Offline page" }).click(),
  ]);
  const path = join(tmpdir(), `bentpipe-offline-${process.pid}.html`);
  await download.saveAs(path);
  const offline = await open(t, { url: `file://${path}` });
  await finished(offline);
  assert.equal(await textOf(offline), text);
  assert.match(await headline(offline), /over 1 flow/);
});

test("pictures and tables can be saved", async (t) => {
  const page = await open(t, { fragment: "#e=hystart" });
  await plotted(page);
  for (const [name, start] of [["PNG", "\x89PNG"], ["SVG", "<svg"], ["CSV", "series,unit,time_s,value"], ["TOML", "# "]]) {
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name, exact: true }).click()]);
    const content = readFileSync(await download.path(), "latin1");
    assert.ok(content.startsWith(start), name);
    assert.ok(content.length > 500, name);
  }
});

test("the keyboard is enough", async (t) => {
  const page = await open(t);
  await finished(page);
  const link = page.locator(".diagram .link", { hasText: "satellite" });
  await link.focus();
  await page.keyboard.press("Enter");
  const slider = page.getByRole("slider", { name: "Delay, forward" });
  await slider.waitFor(PATIENCE);
  const before = await textOf(page);
  await slider.focus();
  await page.keyboard.press("ArrowLeft");
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction((old) => document.querySelector(".inspector output") !== null && old !== "", before);
  await page.waitForTimeout(500);
  assert.notEqual(await textOf(page), before);
  // Every control is reached by Tab.
  const reached = new Set();
  await page.locator("#scenarios").focus();
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement.className || document.activeElement.id || document.activeElement.innerText));
    if (await page.evaluate(() => document.activeElement.classList.contains("cm-content"))) {
      // Tab moves on from the editor, too.
      await page.keyboard.press("Escape");
    }
  }
  assert.ok(reached.size > 15, [...reached].join(", "));
});

for (const colorScheme of ["light", "dark"]) {
  for (const width of [1280, 360]) {
    test(`no accessibility violation: ${colorScheme}, ${width} px`, async (t) => {
      const page = await open(t, { width, colorScheme });
      await plotted(page);
      await page.locator(".diagram .link", { hasText: "satellite" }).click();
      // The policy of the page admits no script of others: the test evaluates it.
      await page.evaluate(axe);
      const { violations } = await page.evaluate(() => globalThis.axe.run());
      const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`);
      assert.deepEqual(found, []);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
      assert.ok(overflow <= 0, `the page is ${overflow} px wider than the window`);
    });
  }
}

for (const [fragment, width] of [["#e=ship", 1280], ["#e=tour", 360], ["?view=embed#e=hystart", 360]]) {
  test(`no accessibility violation: ${fragment}, ${width} px`, async (t) => {
    const page = await open(t, { fragment, width, colorScheme: width === 360 ? "dark" : "light" });
    await plotted(page);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => globalThis.axe.run());
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html.slice(0, 120)).join(" | ")}`), []);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(overflow <= 0, `the page is ${overflow} px wider than the window`);
  });
}

test("packets at an instant, and the range over seeds", async (t) => {
  const page = await open(t, { fragment: "#e=loss-and-bbr" });
  await finished(page);
  await page.getByText("Packets at an instant").click();
  await page.getByRole("button", { name: /Show packets from/ }).click();
  await page.locator(".packets tbody tr").first().waitFor(PATIENCE);
  assert.match(await page.locator(".packets tbody tr").first().innerText(), /Flags \[S\]/);
  await page.getByText("Median and range over 20 seeds").click();
  await page.getByRole("button", { name: "Run 20 seeds" }).click();
  await page.locator(".seeds tbody tr").first().waitFor({ timeout: 120_000 });
  assert.match(await page.locator(".seeds tbody tr").first().innerText(), /download/);
});

test("a long run shows progress and can be stopped", async (t) => {
  const page = await open(t, { fragment: "#e=loss-and-bbr" });
  await finished(page);
  const text = (await textOf(page)).replace('duration = "60 s"', 'duration = "60000 s"').replace("0.001", "0");
  await write(page, text);
  await page.waitForFunction(() => document.querySelector("progress").value > 0.0001, null, PATIENCE);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".messages", { hasText: "Stopped." }).waitFor(PATIENCE);
  await write(page, (await textOf(page)).replace("60000 s", "5 s"));
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForFunction(() => document.querySelector(".headline").innerText.includes("in 5 s"), null, PATIENCE);
});

test("hostile texts leave the page working", async (t) => {
  const page = await open(t, { fragment: "#e=loss-and-bbr" });
  await finished(page);
  const text = await textOf(page);
  const lines = "# a comment\n".repeat(100_000);
  await write(page, lines);
  await page.locator(".messages .error").waitFor(PATIENCE);
  await write(page, text.replace("[hosts.client]", "[hosts.client]\ncount = 60000"));
  await page.waitForFunction(() => /too many|drawn|60,?000|too large|at most/.test(document.body.innerText), null, PATIENCE);
  await write(page, "[".repeat(5_000));
  await page.locator(".messages .error").waitFor(PATIENCE);
  await write(page, text);
  await page.waitForFunction(() => document.querySelector(".messages .error") === null, null, PATIENCE);
});

test("a run that needs too much memory is reported, and the next one works", async (t) => {
  const page = await open(t, { fragment: "#e=loss-and-bbr" });
  await finished(page);
  const text = await textOf(page);
  const greedy = text
    .replace('rate = "20 Mbit/s"', 'rate = "10 Gbit/s"')
    .replace("0.001", "0")
    .replace('delay = "280 ms"', 'delay = "9000 ms"')
    .replace('congestion_control = "cubic"', 'initial_window = "20000 segments"\nsend_buffer = "60 GB"')
    .replace("[hosts.client]", '[hosts.client.tcp]\nreceive_buffer = "1 GiB"\n[hosts.other]')
    .replace('duration = "60 s"', 'duration = "600 s"');
  await write(page, greedy);
  await page.waitForFunction(() => document.querySelector(".messages").innerText.length > 5 || document.querySelector("progress").value > 0.2, null, { timeout: 120_000 });
  await page.getByRole("button", { name: "Stop" }).click({ timeout: 5_000 }).catch(() => undefined);
  await write(page, text);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForFunction(() => /3\.\d+ Mbit\/s/.test(document.querySelector(".headline")?.innerText ?? ""), null, PATIENCE);
});

for (const fragment of ["#s=%00%00", "#s=AAAA", "#e=../../etc/passwd", "#s="]) {
  test(`a damaged link opens the page: ${fragment}`, async (t) => {
    const page = await open(t, { fragment });
    await finished(page);
  });
}

const bundled = (name) => readFileSync(join(import.meta.dirname, "..", "..", "examples", "lessons", name), "utf8");

/** Gives files to the page, as "Open" does. */
const give = (page, ...files) =>
  page.locator("header input[type=file]").setInputFiles(files.map(([name, content]) => ({ name, mimeType: "text/plain", buffer: Buffer.from(content) })));

for (const name of ["ship", "tour"]) {
  test(`every step of the lesson ${name} has its values`, async (t) => {
    const page = await open(t, { fragment: `#e=${name}` });
    const steps = await page.getByLabel("Step", { exact: true }).locator("option").count();
    assert.ok(steps >= 3);
    for (let step = 0; step < steps; step += 1) {
      await page.getByLabel("Step", { exact: true }).selectOption(String(step));
      await page.waitForFunction(() => [...document.querySelectorAll(".lesson output")].every((one) => !one.innerText.includes("–")), null, PATIENCE);
      assert.equal(await page.locator(".lesson .error").count(), 0, await page.locator(".lesson").innerText());
    }
  });
}

test("a lesson's slider changes the values in its text", async (t) => {
  const page = await open(t, { fragment: "#e=ship" });
  const takes = page.locator(".lesson strong output").first();
  await page.waitForFunction(() => document.querySelector(".lesson strong output")?.innerText === "170 s", null, PATIENCE);
  await page.locator(".lesson").getByRole("slider", { name: "Receive buffer" }).fill("300");
  await page.waitForFunction(() => /^4\d(\.\d)? s$/.test(document.querySelector(".lesson strong output").innerText), null, PATIENCE);
  await page.getByRole("button", { name: "Start again" }).click();
  await page.waitForFunction(() => document.querySelector(".lesson strong output").innerText === "170 s", null, PATIENCE);
  assert.equal(await takes.innerText(), "170 s");
  await page.getByRole("button", { name: "Next" }).click();
  await page.locator(".lesson h2", { hasText: "Rain" }).waitFor(PATIENCE);
  await page.getByRole("button", { name: "Scenario file" }).click();
  assert.match(await textOf(page), /^name = "ship-in-rain"/);
});

test("the lesson of the documentation works", async (t) => {
  const guide = readFileSync(join(import.meta.dirname, "..", "..", "docs", "workbench.md"), "utf8");
  const text = guide.split("````markdown\n")[1].split("````")[0];
  const page = await open(t);
  await finished(page);
  await give(page, ["mine.md", text]);
  await page.locator(".lesson output", { hasText: "kbit/s" }).first().waitFor(PATIENCE);
  assert.equal(await page.locator(".lesson .error").count(), 0);
  assert.equal(await page.locator(".lesson .plot").count(), 1);
});

test("a lesson with errors names their lines", async (t) => {
  const page = await open(t);
  await finished(page);
  const text = [
    "# Wrong", //
    "",
    "{{ nonsense }}",
    "",
    "- {{ slider links.satellite.rat }} and",
    "  {{ result.flows.nobody.goodput }}",
    "",
    "{{ slider links.satellite.delay from 5 to x }}",
    "",
    "```toml",
    bundled("tour.md").split("```toml\n")[1].split("```")[0].trim(),
    "```",
    "",
    "## Refused",
    "",
    "```toml",
    'name = "refused"',
    'duration = "1 s"',
    "hosts = 3",
    "```",
    "{{ unclosed",
  ].join("\n");
  await give(page, ["wrong.md", text]);
  await page.locator(".problems li", { hasText: "has no result" }).waitFor(PATIENCE);
  const lines = (await page.locator(".problems li").allInnerTexts()).map((line) => line.slice(0, 60));
  const total = text.split("\n");
  const at = (part) => total.findIndex((line) => line.includes(part)) + 1;
  for (const part of ["nonsense", "satellite.rat ", "flows.nobody", "to x", "hosts = 3", "{{ unclosed"]) {
    assert.ok(lines.some((line) => line.startsWith(`wrong.md:${at(part)}: `)), `${part} ${at(part)}: ${lines.join("; ")}`);
  }
  assert.equal(lines.length, 6, lines.join("; "));
});

test("nothing of a hostile lesson is run or loaded", async (t) => {
  const page = await open(t);
  await finished(page);
  const text = [
    "# Hostile <img src=x onerror=alert(1)>",
    "<script>alert(1)</script>",
    "",
    "[a](javascript:alert(1)) [b](http://example.com/) ![c](http://example.com/c.png) <iframe src=//example.com></iframe>",
    "",
    "{{ result.__proto__.constructor }} {{ result.constructor }}",
    "",
    "```toml",
    bundled("tour.md").split("```toml\n")[1].split("```")[0].trim(),
    "```",
  ].join("\n");
  page.on("dialog", () => assert.fail("a dialog"));
  await give(page, ["hostile.md", text]);
  await page.locator(".lesson h2", { hasText: "Hostile" }).waitFor(PATIENCE);
  const found = await page.evaluate(() => [...document.querySelectorAll(".lesson img, .lesson script, .lesson iframe")].length);
  assert.equal(found, 0);
  assert.deepEqual(await page.locator(".lesson a").evaluateAll((all) => all.map((one) => one.getAttribute("href"))), ["http://example.com/"]);
});

test("a long lesson opens, and one that is too long is refused", async (t) => {
  const page = await open(t);
  await finished(page);
  await give(page, ["long.md", "x".repeat((1 << 20) + 1)]);
  await page.locator(".messages", { hasText: "long.md: longer than 1 MiB" }).waitFor(PATIENCE);
  await give(page, ["deep.md", `${"> ".repeat(5_000)}deep\n${"{{".repeat(50_000)}\n${"*".repeat(100_000)}`]);
  await page.locator(".problems", { hasText: "deep.md:1: nested too deeply" }).waitFor(PATIENCE);
  await page.locator("#scenarios").selectOption("hystart");
  await page.waitForFunction(() => document.querySelector(".headline")?.innerText.includes("over 1 flow"), null, PATIENCE);
});

test("a lesson is shared by link and as an offline page", async (t) => {
  const page = await open(t, { fragment: "#e=tour" });
  await finished(page);
  await page.getByRole("button", { name: "Share link" }).click();
  await page.waitForFunction(() => location.hash.startsWith("#l="));
  const other = await open(t, { fragment: new URL(page.url()).hash });
  await other.locator(".lesson h2", { hasText: "1. Window" }).waitFor(PATIENCE);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Offline page" }).click()]);
  const path = join(tmpdir(), `bentpipe-lesson-${process.pid}.html`);
  await download.saveAs(path);
  const offline = await open(t, { url: `file://${path}` });
  await offline.locator(".lesson h2", { hasText: "1. Window" }).waitFor(PATIENCE);
  await finished(offline);
});

test("a dropped lesson opens", async (t) => {
  const page = await open(t);
  await finished(page);
  await page.evaluate((content) => {
    const data = new DataTransfer();
    data.items.add(new File([content], "dropped.md"));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  }, bundled("ship.md"));
  await page.locator(".lesson h2", { hasText: "Why is the ship slow?" }).waitFor(PATIENCE);
});

test("a trace file is asked for by name, and used once it is given", async (t) => {
  const page = await open(t, { fragment: "#e=hystart" });
  await finished(page);
  const text = (await textOf(page)).replace('forward = { rate = "20 Mbit/s", ', 'forward = { traces = [{ file = "traces/rate.csv" }], ');
  await write(page, text);
  await page.locator(".messages .error", { hasText: "traces/rate.csv: no such file: choose it, or drop it on the page" }).waitFor(PATIENCE);
  await give(page, ["rate.csv", "time (s), rate (Mbit/s)\n0, x\n"]);
  await page.locator(".messages .error", { hasText: "traces/rate.csv:2: " }).waitFor(PATIENCE);
  await give(page, ["rate.csv", "time (s), rate (Mbit/s)\n0, 2\n"]);
  await page.waitForFunction(() => /^1\.\d+ Mbit\/s/.test(document.querySelector(".headline")?.innerText ?? ""), null, PATIENCE);
  // Runs over seeds have workers of their own.
  await page.getByText("Median and range over 20 seeds").click();
  await page.getByRole("button", { name: "Run 20 seeds" }).click();
  await page.locator(".seeds tbody tr", { hasText: "1." }).first().waitFor({ timeout: 120_000 });
});

test("a page of the documentation runs a scenario in place", async (t) => {
  const whole = await open(t, { fragment: "#e=hystart" });
  await finished(whole);
  await whole.getByRole("button", { name: "Share link" }).click();
  await whole.waitForFunction(() => location.hash.startsWith("#s="));
  const script = readFileSync(join(import.meta.dirname, "..", "..", "docs", "workbench.js"), "utf8");
  const context = await browser.newContext({ viewport: { width: 900, height: 900 } });
  t.after(() => context.close());
  await context.route(`${server.url}docs/page.html`, (route) =>
    route.fulfill({
      contentType: "text/html",
      body: `<main><p><a href="../workbench/index.html${new URL(whole.url()).hash}">Open in the workbench</a></p></main><script>${script}</script>`,
    }),
  );
  await context.route(`${server.url}workbench/**`, (route) => route.fulfill({ path: join(DIST, new URL(route.request().url()).pathname.replace("/workbench/", "")) }));
  const page = await context.newPage();
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.goto(`${server.url}docs/page.html`);
  const button = page.getByRole("button", { name: "Run" });
  assert.equal(asked.length, 1, "nothing is loaded before the click");
  await button.click();
  const frame = page.frameLocator("iframe");
  await frame.locator(".plot canvas").first().waitFor(PATIENCE);
  const before = await frame.locator(".headline").innerText();
  await frame.getByRole("slider", { name: "Rate, forward" }).fill("150");
  await frame.locator(".headline", { hasNotText: before.split(" over")[0] }).waitFor(PATIENCE);
  assert.ok((await page.locator("iframe").boundingBox()).height > 650, "the frame has the height of its content");
  const [opened] = await Promise.all([context.waitForEvent("page"), frame.getByRole("link", { name: "Open in the workbench" }).click()]);
  await finished(opened);
  assert.ok(!(await textOf(opened)).includes('rate = "20 Mbit/s"'), "the slider's value is kept");
  await page.getByRole("button", { name: "Close" }).click();
  assert.equal(await page.locator("iframe").count(), 0);
});

test("a thousand flows and a million packets leave the page usable", async (t) => {
  const page = await open(t);
  await finished(page);
  for (const [name, text, flows] of [["flows", MANY_FLOWS, /over 1000 flows/], ["packets", MANY_PACKETS, /over 1 flow/]]) {
    await openScenario(page, name, text);
    assert.match(await headline(page), flows);
    const before = await page.locator(".plot canvas").first().evaluate((canvas) => canvas.toDataURL());
    await redraw(page);
    assert.notEqual(await page.locator(".plot canvas").first().evaluate((canvas) => canvas.toDataURL()), before);
    assert.ok((await page.locator("tbody tr").count()) < 1_000, "tables show a part of long lists");
  }
});

test("a worker that ends is replaced", async (t) => {
  const page = await open(t, { fragment: "#e=hystart" });
  await finished(page);
  // The browser ends a worker as it does for lack of memory: without an answer.
  await page.evaluate(() => {
    const terminate = Worker.prototype.terminate;
    const post = Worker.prototype.postMessage;
    Worker.prototype.postMessage = function (...message) {
      if (message[0]?.kind === "run") {
        Worker.prototype.postMessage = post;
        terminate.call(this);
        this.onerror(new ErrorEvent("error", { message: "the worker has ended" }));
        return;
      }
      post.apply(this, message);
    };
  });
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await page.locator(".messages .error", { hasText: "the worker has ended" }).waitFor(PATIENCE);
  await page.getByRole("button", { name: "Run", exact: true }).click();
  await finished(page);
  assert.match(await headline(page), /over 1 flow/);
});

test("two tabs do not disturb each other", async (t) => {
  const [one, other] = [await open(t, { fragment: "#e=hystart" }), await open(t, { fragment: "#e=rain-fade" })];
  await Promise.all([finished(one), finished(other)]);
  assert.notEqual(await headline(one), await headline(other));
});
