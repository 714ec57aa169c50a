// Builds the page into dist/: index.html with its script, style and simulator, and offline.html,
// the same as one file.

import { createHash } from "node:crypto";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { gzipSync } from "node:zlib";

import preact from "@preact/preset-vite";
import { defineConfig, type Plugin } from "vite";

const ROOT = resolve(import.meta.dirname, "..");
const MODULE = process.env["BENTPIPE_WASM"] ?? resolve(ROOT, "target/web/engine.wasm");

/** Reads the comment at the head of a gallery file: sentences, and the question behind "Question:". */
function remarks(text: string): { about: string; question: string } {
  const lines = text.split("\n");
  const end = lines.findIndex((line) => !line.startsWith("#"));
  const head = lines.slice(0, end).map((line) => line.replace(/^# ?/, ""));
  const [about = "", question = ""] = head.join(" ").split("Question:");
  return { about: about.trim(), question: question.trim() };
}

function folder(path: string, group: string, end: ".toml" | ".md"): object[] {
  return readdirSync(resolve(ROOT, path))
    .filter((file) => file.endsWith(end))
    .sort()
    .map((file) => {
      const text = readFileSync(resolve(ROOT, path, file), "utf8");
      const name = file.slice(0, -end.length);
      const title = /^# (.*)/.exec(end === ".md" ? text : "")?.[1] ?? name.replaceAll("-", " ");
      return { name, file, group, title, text, ...(path === "examples/gallery" ? remarks(text) : { about: "", question: "" }) };
    });
}

/** The lessons, and the scenarios of the gallery and of the command line, as a module. */
function scenarios(): Plugin {
  const id = "virtual:scenarios";
  return {
    name: "scenarios",
    resolveId: (source) => (source === id ? `\0${id}` : null),
    load: (loaded) =>
      loaded === `\0${id}`
        ? `export default ${JSON.stringify([...folder("examples/lessons", "Lessons", ".md"), ...folder("examples/gallery", "Gallery", ".toml"), ...folder("python/bentpipe/templates", "To begin with", ".toml"), ...folder("scenarios", "Ready-made", ".toml")])}`
        : null,
  };
}

function hash(text: string): string {
  return `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
}

/** Adds the simulator, the content security policy, and the offline page. */
function pages(): Plugin {
  const out = resolve(import.meta.dirname, "dist");
  const policy = (scripts: string) =>
    `default-src 'none'; script-src ${scripts} 'wasm-unsafe-eval'; worker-src blob:; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'`;
  const meta = (content: string) => `<meta http-equiv="Content-Security-Policy" content="${content}" />`;
  return {
    name: "pages",
    apply: "build",
    closeBundle: () => {
      const html = readFileSync(resolve(out, "index.html"), "utf8");
      const module = readFileSync(MODULE);
      const script = readFileSync(resolve(out, "app.js"), "utf8").replaceAll("</script", "<\\/script");
      const style = readFileSync(resolve(out, "app.css"), "utf8");
      const withPolicy = (page: string, scripts: string) => page.replace('<meta charset="utf-8" />', `<meta charset="utf-8" />\n    ${meta(policy(scripts))}`);
      writeFileSync(resolve(out, "engine.wasm"), module);
      // The simulator is loaded while the script is.
      const preload = '<link rel="preload" href="engine.wasm" as="fetch" crossorigin />';
      const online = html.replace(/\s*<script type="module"/, (script) => `\n    ${preload}${script}`);
      writeFileSync(resolve(out, "index.html"), withPolicy(online, "'self'"));
      const offline = html
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace("</head>", () => `<style data-page>${style}</style>\n  </head>`)
        .replace(
          "</body>",
          () =>
            `<script type="application/gzip" id="engine-wasm">${gzipSync(module, { level: 9 }).toString("base64")}</script>\n<script type="module">${script}</script>\n  </body>`,
        );
      writeFileSync(resolve(out, "offline.html"), withPolicy(offline, hash(script)));
    },
  };
}

export default defineConfig({
  base: "./",
  plugins: [preact(), scenarios(), pages()],
  build: {
    target: "es2023",
    assetsInlineLimit: 0,
    modulePreload: false,
    rollupOptions: {
      output: { entryFileNames: "app.js", assetFileNames: "app[extname]", codeSplitting: false },
    },
  },
  worker: { format: "iife" },
});
