"""The tutorial shows what the commands print."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[2]


def _refresher() -> ModuleType:
    path = ROOT / "tools" / "refresh_tutorial.py"
    spec = importlib.util.spec_from_file_location("refresh_tutorial", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


refresher: Any = _refresher()


def test_every_output_is_what_the_command_prints() -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text()
    assert text.count("$ bentpipe") >= 5
    bentpipe = Path(sys.executable).parent / "bentpipe"
    again = refresher.refreshed(text, bentpipe=str(bentpipe))
    assert refresher.without_wall_times(again) == refresher.without_wall_times(text), (
        "refresh it: tools/refresh_tutorial.py docs/tutorial.md"
    )
