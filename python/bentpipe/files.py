"""Files that are there as a whole or not at all."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def as_a_whole(path: Path) -> Iterator[Path]:
    """Give the path that a file is to be written at; when the block ends, it gets its name.

    Where the block fails, as on a full disk, nothing of it is left, and what was there before is. A
    pipe or a device is written to as it is, and a link stays one.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    whole = path.resolve()
    part = whole.with_name(f".{whole.name}.part")
    try:
        yield part
        part.replace(whole)
    except BaseException:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise
