"""The pages of the documentation site, as mdBook reads them.

* docs/ and the pages of the repository's top folder that docs/SUMMARY.md names become pages.
* Notebooks become pages, with their outputs.
* Other files that a page links to are copied to `source/`, as text, so that every link works from
  disk.
* A scenario in a page has a link that opens it in the workbench, if the workbench is built;
  workbench.js adds a button that runs it in place.
* Pages of a folder follow its README in the navigation, unless SUMMARY.md names them.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DOCS = PurePosixPath("docs")
SUMMARY = DOCS / "SUMMARY.md"
GLOSSARY = DOCS / "glossary.md"
# Settings of mdBook. They are no pages.
SETTINGS = ("book.toml", "site.css", "workbench.js")

FENCE = re.compile(r"^(`{3,}|~{3,})")
CODE = re.compile(r"(`+)(?:.|\n)*?\1")
LINK = re.compile(r"(?<=\]\()([^()\s]+)(?=\))")
ENTRY = re.compile(r"^(?P<indent> *)- \[(?P<title>.*)\]\((?P<target>[^)]+)\)$")
# A table whose last column has no head describes what the others name.
DEFINITIONS = re.compile(r"^\|[^\n]*\|\s*\|\n\|[-:| ]+\|\n(?:\|.*\n)+", re.MULTILINE)
TERM = re.compile(r"^\| (?P<term>[^|]+) \| (?P<meaning>[^|]+) \|$", re.MULTILINE)
BRACE = re.compile(r"^(#+ .*)\}$", re.MULTILINE)
# The workbench: its built page, and its place in the site.
WORKBENCH = ROOT / "web" / "dist"
WORKBENCH_PLACE = PurePosixPath("workbench")
# The page of a lesson that comes with the workbench.
TOUR = PurePosixPath("tour.md")
SCENARIO = re.compile(r"^```toml\n(?P<text>(?:(?!```).*\n)*?)```\n", re.MULTILINE)
IMAGES = {"image/svg+xml": "svg", "image/png": "png"}


class PageError(ValueError):
    """A page is missing in the navigation, or a link leads nowhere."""


def assemble(out: Path) -> None:
    """Write mdBook's folder: its settings, and the pages in `pages/`."""
    shutil.rmtree(out, ignore_errors=True)
    pages = out / "pages"
    pages.mkdir(parents=True)
    for name in SETTINGS:
        shutil.copy(ROOT / DOCS / name, out / name)
    places = page_places()
    copied: set[PurePosixPath] = set()
    for source, place in places.items():
        path = pages / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix not in {".md", ".ipynb"}:
            shutil.copy(ROOT / source, path)
            continue
        text = (ROOT / source).read_text("utf-8")
        if source == SUMMARY:
            text = with_folders(text)
        elif source.suffix == ".ipynb":
            text = notebook_page(json.loads(text), path)
        text = with_site_links(text, source, places, copied)
        if source == GLOSSARY:
            text = with_terms(text)
        if has_workbench():
            text = with_workbench(text, place)
        path.write_text(with_braces(with_definitions(text)), "utf-8")
    if has_workbench():
        shutil.copytree(WORKBENCH, pages / WORKBENCH_PLACE)
    for source in copied:
        path = pages / source_place(source)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / source, path)


def has_workbench() -> bool:
    """Whether the workbench is built: make web."""
    return (WORKBENCH / "index.html").is_file()


def with_workbench(text: str, place: PurePosixPath) -> str:
    """Return a page with a link to the workbench below each scenario."""

    def linked(match: re.Match[str]) -> str:
        scenario = match["text"]
        keys = re.findall(r"^(\w+) *=", scenario.partition("\n[")[0], re.MULTILINE)
        if not {"name", "duration"} <= set(keys):
            return match[0]
        page = os.path.relpath(WORKBENCH_PLACE / "index.html", place.parent)
        return f"{match[0]}\n[Open in the workbench]({page}{fragment(scenario)})\n"

    text = SCENARIO.sub(linked, text)
    if place == TOUR:
        page = os.path.relpath(WORKBENCH_PLACE / "index.html", place.parent)
        title, _, rest = text.partition("\n")
        return f"{title}\n\n[Take the tour in the workbench]({page}#e=tour)\n{rest}"
    return text


def fragment(scenario: str) -> str:
    """Return a scenario as the workbench's links have it: web/src/model/save.ts."""
    packer = zlib.compressobj(9, wbits=-zlib.MAX_WBITS)
    packed = packer.compress(scenario.encode()) + packer.flush()
    return "#s=" + base64.urlsafe_b64encode(packed).decode().rstrip("=")


def page_places() -> dict[PurePosixPath, PurePosixPath]:
    """Return the place in the site of each file in docs/ and of each page that SUMMARY.md names.

    Raises
    ------
    PageError
        SUMMARY.md does not lead to a page.
    """
    files = [
        PurePosixPath(path.relative_to(ROOT))
        for path in sorted((ROOT / DOCS).rglob("*"))
        if path.is_file() and path.name not in SETTINGS
    ]
    places = {path: path.relative_to(DOCS) for path in files}
    for path in files:
        if path.suffix == ".ipynb":
            places[path] = places[path].with_suffix(".md")
        elif path.name == "README.md":
            places[path] = places[path].with_name("index.md")
    summary = (ROOT / SUMMARY).read_text("utf-8")
    named = {normal(DOCS / target) for target in LINK.findall(with_folders(summary))}
    for path in named - places.keys():
        places[path] = PurePosixPath("project") / path.name.lower()
    pages = {path for path in files if path.suffix in {".md", ".ipynb"}}
    lost = sorted(str(path) for path in pages - named - {SUMMARY})
    if lost:
        raise PageError(f"{SUMMARY} lacks {', '.join(lost)}")
    return places


def with_folders(summary: str) -> str:
    """Return the navigation with the pages of each folder below the entry of its README."""
    named = set(LINK.findall(summary))
    lines = []
    for line in summary.splitlines():
        lines.append(line)
        entry = ENTRY.match(line)
        if entry is None or PurePosixPath(entry["target"]).name != "README.md":
            continue
        folder = (ROOT / DOCS / entry["target"]).parent
        for path in sorted(folder.glob("*.md")):
            target = path.relative_to(ROOT / DOCS).as_posix()
            if target not in named:
                title = path.read_text("utf-8").partition("\n")[0].removeprefix("# ")
                lines.append(f"{entry['indent']}  - [{title}]({target})")
    return "\n".join(lines) + "\n"


def with_site_links(
    text: str,
    source: PurePosixPath,
    places: dict[PurePosixPath, PurePosixPath],
    copied: set[PurePosixPath],
) -> str:
    """Return a page with links to the site's places; adds linked files of other kinds to `copied`.

    Raises
    ------
    PageError
        A link leads to no file of the repository.
    """

    def replace(match: re.Match[str]) -> str:
        target, hash_, anchor = match[0].partition("#")
        if not target or "://" in target or target.startswith("mailto:"):
            return match[0]
        path = normal(source.parent / target)
        if (ROOT / path).is_dir():
            path /= "README.md"
        if path not in places and not (ROOT / path).is_file():
            raise PageError(f"{source}: no such file: {target}")
        if path not in places:
            copied.add(path)
        place = places.get(path, source_place(path))
        from_folder = places[source].parent
        return f"{os.path.relpath(place, from_folder)}{hash_}{anchor}"

    return "".join(
        part if is_code else LINK.sub(replace, part) for is_code, part in code_and_text(text)
    )


def with_definitions(text: str) -> str:
    """Return a page in which lists of keys, fields and options have a class of their own."""
    return DEFINITIONS.sub(r'<div class="definitions">\n\n\g<0>\n</div>\n', text)


def with_terms(text: str) -> str:
    """Return the glossary with a section for each term, so that a search finds it by its name."""
    introduction, _, rows = text.partition("| term | meaning |\n|---|---|\n")
    return introduction + TERM.sub(r"### \g<term>\n\n\g<meaning>\n", rows)


def with_braces(text: str) -> str:
    """Return a page whose headings keep a closing brace: mdBook takes braces for attributes."""
    return BRACE.sub(r"\1&#125;", text)


def code_and_text(text: str) -> Iterator[tuple[bool, str]]:
    """Yield a page's parts in order, and whether each is code."""
    fence = None
    for line in text.splitlines(keepends=True):
        mark = FENCE.match(line.lstrip())
        if fence is not None or mark is not None:
            if fence is None:
                fence = mark[0] if mark else None
            elif line.strip() == fence:
                fence = None
            yield True, line
            continue
        start = 0
        for code in CODE.finditer(line):
            # The text of a link may be code: then the link continues behind it.
            yield False, line[start : code.start()]
            yield True, code[0]
            start = code.end()
        yield False, line[start:]


def source_place(path: PurePosixPath) -> PurePosixPath:
    """Return the place of a file that is no page: a text file, which browsers show."""
    if path.suffix in {".txt", ".svg", ".json"}:
        return PurePosixPath("source") / path
    # mdBook takes the `.md` in a name for a page.
    name = path.name.removesuffix(".md")
    return PurePosixPath("source") / path.with_name(f"{name}.txt")


def normal(path: PurePosixPath) -> PurePosixPath:
    """Return the path without `..`."""
    return PurePosixPath(os.path.normpath(path))


def notebook_page(notebook: dict[str, Any], path: Path) -> str:
    """Return a notebook in Markdown; writes its images beside the page."""
    parts = []
    images = 0
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] != "code":
            parts.append(text)
            continue
        parts.append(f"```python\n{text}\n```")
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", "")})
            kind = next((each for each in IMAGES if each in data), None)
            if kind is not None:
                images += 1
                image = path.with_name(f"{path.stem}-{images}.{IMAGES[kind]}")
                content = "".join(data[kind])
                svg = kind == "image/svg+xml"
                image.write_bytes(content.encode() if svg else base64.b64decode(content))
                parts.append(f'<img src="{image.name}" alt="output of the cell above">')
            elif "text/html" in data:
                # A blank line would end the block of HTML.
                html = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))
                parts.append(f'<div class="output">\n{html.strip()}\n</div>')
            else:
                parts.append(f"```\n{''.join(data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
