#!/usr/bin/env python3
"""Write the page of the gallery: each scenario of examples/gallery with what its head says.

`make references` writes it to docs/gallery.md.
"""

from __future__ import annotations

import sys
from pathlib import Path

GALLERY = Path(__file__).resolve().parent.parent / "examples" / "gallery"
HEAD = """\
# Gallery
Twelve small networks to experiment with. Each one shows one effect, and asks a question that its
values answer. To try one, open it in [the workbench](workbench.md), or run its file:
`bentpipe run examples/gallery/hystart.toml`.
"""


def entry(path: Path) -> str:
    """Return the section of a scenario: the sentences and question of its head, and its text."""
    lines = path.read_text("utf-8").splitlines()
    end = next(index for index, line in enumerate(lines) if not line.startswith("#"))
    head = " ".join(line.removeprefix("#").strip() for line in lines[:end])
    about, _, question = head.partition("Question:")
    text = "\n".join(lines[end:]).strip()
    title = path.stem.replace("-", " ").capitalize()
    asked = f"**Question:** {question.strip()}"
    return f"\n## {title}\n{about.strip()}\n\n{asked}\n\n```toml\n{text}\n```\n"


def main() -> None:
    """Print the page."""
    sys.stdout.write(HEAD + "".join(entry(path) for path in sorted(GALLERY.glob("*.toml"))))


if __name__ == "__main__":
    main()
