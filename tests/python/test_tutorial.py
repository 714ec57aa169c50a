"""The tutorial shows what the commands print."""

from __future__ import annotations

import sys
from pathlib import Path

from .conftest import load_script

ROOT = Path(__file__).parents[2]


refresher = load_script(ROOT / "tools" / "refresh_tutorial.py")


def test_tutorial_output_equals_the_commands() -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    assert text.count("$ bentpipe") >= 5
    bentpipe = Path(sys.executable).parent / "bentpipe"
    again = refresher.refreshed(text, bentpipe=str(bentpipe))
    assert refresher.without_wall_times(again) == refresher.without_wall_times(text), (
        "refresh it: tools/refresh_tutorial.py docs/tutorial.md"
    )
