"""Checks of the built documentation site: every link leads somewhere, nothing is loaded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# The attributes of elements that a browser loads with the page.
LOADED = {("img", "src"), ("script", "src"), ("link", "href"), ("iframe", "src")}


class _Page(HTMLParser):
    """The anchors of a page, and its links with their lines."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[tuple[int, str, bool]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in {"id", "name"} and value:
                self.anchors.add(value)
            if name in {"href", "src"} and value:
                self.links.append((self.getpos()[0], value, (tag, name) in LOADED))


def problems(site: Path) -> Iterator[str]:
    """Yield a line for each link that leads nowhere, and for each file that a page loads by net."""
    pages: dict[Path, _Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path] = page = _Page()
        page.feed(path.read_text("utf-8"))
    seen: dict[Path, set[str]] = defaultdict(set)
    for path, page in pages.items():
        for line, link, is_loaded in page.links:
            if link in seen[path]:
                continue
            seen[path].add(link)
            problem = _problem(path, link, is_loaded, pages)
            if problem:
                yield f"{path.relative_to(site)}:{line}: {link}: {problem}"


def _problem(path: Path, link: str, is_loaded: bool, pages: dict[Path, _Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        if is_loaded and parts.scheme != "data":
            return "is loaded from elsewhere"
        return "" if parts.scheme in {"https", "http", "mailto", "data"} else "unknown scheme"
    # A browser resolves the links of 404.html and of toc.html as those of the top folder.
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return "no such file"
    # The workbench has scenarios in its links.
    if target.parent.name == "workbench":
        return ""
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "no such anchor"
    return ""
