#!/usr/bin/env python3
"""Print a page of scenarios: the gallery, or the tour, which is a lesson.

`make references` writes docs/gallery.md and docs/tour.md with it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
GALLERY = """\
# Gallery
Twelve small networks to experiment with. Each one shows one effect, and asks a question that its
values answer. To try one, open it in [the workbench](workbench.md), or run its file:
`bentpipe run examples/gallery/hystart.toml`.
"""
TOUR = """
In [the workbench](workbench.md), the tour is a lesson: the text has sliders, and shows the results
of each change. This page has its text and its networks.
"""
BINDING = re.compile(r"\{\{[^{}]*\}\}")


def entry(path: Path) -> str:
    """Return the section of a scenario: the sentences and question of its head, and its text."""
    lines = path.read_text("utf-8").splitlines()
    end = next(index for index, line in enumerate(lines) if not line.startswith("#"))
    head = " ".join(line.removeprefix("#").strip() for line in lines[:end])
    about, _, question = head.partition("Question:")
    text = "\n".join(lines[end:]).strip()
    words = path.stem.split("-")
    number = f"{words.pop(0)}. " if words[0].isdigit() else ""
    title = number + " ".join(words).capitalize()
    asked = f"\n\n**Question:** {question.strip()}" if question else ""
    return f"\n## {title}\n{about.strip()}{asked}\n\n```toml\n{text}\n```\n"


def lesson(path: Path) -> str:
    """Return the text of a lesson without what it binds: paragraphs that show values."""
    title, _, text = path.read_text("utf-8").partition("\n")
    paragraphs = [part for part in text.split("\n\n") if not BINDING.search(part)]
    return f"{title}\n{TOUR}\n" + "\n\n".join(paragraphs).strip() + "\n"


def main() -> None:
    """Print the page that the command line names."""
    page = sys.argv[1]
    if page == "tour":
        sys.stdout.write(lesson(EXAMPLES / "lessons" / "tour.md"))
        return
    paths = sorted((EXAMPLES / page).glob("*.toml"))
    sys.stdout.write(GALLERY + "".join(entry(path) for path in paths))


if __name__ == "__main__":
    main()
