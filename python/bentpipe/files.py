"""Files that are there as a whole or not at all, folders that one at a time writes to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def as_a_whole(path: Path) -> Iterator[Path]:
    """Give the path that a file is to be written at; when the block ends, it gets its name.

    Where the block fails, as on a full disk, nothing of it is left, and what was there before is;
    the system's error is then one about the file. A pipe or a device is written to as it is, and
    a link stays one.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    whole = path.resolve()
    part = whole.with_name(f".{whole.name}.part")
    try:
        yield part
        part.replace(whole)
    except BaseException as error:
        with suppress(OSError):
            part.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(part), part):
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep others from writing into the folder; the lock goes when the process does.

    Raises
    ------
    BlockingIOError
        Another process has it, or another part of this one.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    descriptor = None
    try:
        # A folder that can be written to and not read, a file system without locks: there is none.
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
        if descriptor is not None:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise
            except OSError:
                pass
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
