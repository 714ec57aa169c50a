"""Where a command's output goes."""

from __future__ import annotations

import json
import os
from pathlib import Path

from bentpipe.errors import RequestError


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
