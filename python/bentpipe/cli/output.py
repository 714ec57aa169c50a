"""Where a command's output goes."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path

from bentpipe.errors import RequestError


class ClosedOutput(io.TextIOBase):
    """A standard output that was closed: what is written to it fails, as it does in a shell."""

    def write(self, _text: str) -> int:
        """Fail."""
        raise OSError(errno.EBADF, "Closed", "standard output")


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


def check_plot(path: Path) -> None:
    """Refuse a file for a plot that can't be written, before any work is done.

    Raises
    ------
    RequestError
        It isn't SVG, or there is no such folder.
    """
    if path.suffix != ".svg":
        raise RequestError(f"--plot {path}: expected a file that ends in .svg")
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise RequestError(f"--plot {path}: there is no folder {folder} to write to")
