"""Where a command's output goes."""

from __future__ import annotations

import json
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from bentpipe.errors import RequestError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

# A pipe has no width: tables are then as wide as they need to be, to a point.
_WIDTH_WITHOUT_TERMINAL = 200


@cache
def console() -> Console:
    """Return the console for tables on stdout."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _WIDTH_WITHOUT_TERMINAL, highlight=False)


def plain_table() -> Table:
    """Return a table without a frame."""
    from rich.table import Table

    return Table(box=None, show_header=False, padding=(0, 2, 0, 0))


def new_table(first: str, *others: str) -> Table:
    """Return a table with a heading; all columns but the first are numbers."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def print_json(value: object) -> None:
    """Print one JSON object; a string is JSON already."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    print(text.rstrip())


def made_folder(path: Path) -> Path:
    """Make a folder for output if there is none.

    Raises
    ------
    RequestError
        It can't be made, or can't be written to.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"--out {path}: {(error.strerror or str(error)).lower()}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise RequestError(f"--out {path}: can't be written to")
    return path
