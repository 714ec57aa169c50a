"""Where matplotlib keeps what it knows of this machine's fonts, if there is no home for it.

Without a place that it can write to it makes a new one each time, finds out anew, and says so in
two lines.
"""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

_VARIABLE = "MPLCONFIGDIR"


def see_to_a_cache() -> None:
    """Have matplotlib, before it is imported, use a folder of ours if it can't write to its own."""
    if _VARIABLE in os.environ or "matplotlib" in sys.modules or not hasattr(os, "getuid"):
        return
    if all(_can_be_made(place) for place in _its_own()):
        return
    folder = _ours()
    if folder is not None:
        os.environ[_VARIABLE] = str(folder)


def _its_own() -> list[Path]:
    """Return the folders that matplotlib would use (`matplotlib.get_configdir`, `get_cachedir`)."""
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 (`Path.home` fails where there is none)
    if not sys.platform.startswith(("linux", "freebsd")):
        return [home / ".matplotlib"]
    return [
        Path(os.environ.get(variable) or home / hidden) / "matplotlib"
        for variable, hidden in (("XDG_CONFIG_HOME", ".config"), ("XDG_CACHE_HOME", ".cache"))
    ]


def _can_be_made(folder: Path) -> bool:
    """Whether a folder can be written to, or else be made."""
    try:
        while not folder.exists():
            folder = folder.parent
        return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)
    except OSError:
        return False


def _ours() -> Path | None:
    """Return a folder of this user's among temporary files; None if it can't be had.

    Its name is known to everybody, so that it has to be a folder that nobody else can write to.
    """
    import tempfile

    try:
        folder = Path(tempfile.gettempdir()) / f"bentpipe-matplotlib-{os.getuid()}"
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
    except OSError:
        return None
    others = stat.S_IWGRP | stat.S_IWOTH
    ours = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return folder if ours and not found.st_mode & others else None
