#!/usr/bin/env python3
"""Print a page of scenarios: the gallery, or the tour.

`make references` writes docs/gallery.md and docs/tour.md with it.
"""

from __future__ import annotations

import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
HEADS = {
    "gallery": """\
# Gallery
Twelve small networks to experiment with. Each one shows one effect, and asks a question that its
values answer. To try one, open it in [the workbench](workbench.md), or run its file:
`bentpipe run examples/gallery/hystart.toml`.
""",
    "tour": """\
# A tour in five steps
The causes that make TCP slow over a satellite, and what helps, one in each step. Open each scenario
in [the workbench](workbench.md) and move its sliders.
""",
}


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


def main() -> None:
    """Print the page that the command line names."""
    page = sys.argv[1]
    paths = sorted((EXAMPLES / page).glob("*.toml"))
    sys.stdout.write(HEADS[page] + "".join(entry(path) for path in paths))


if __name__ == "__main__":
    main()
