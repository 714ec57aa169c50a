"""Files that are there as a whole or not at all, files and folders that one at a time writes to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def part_of(path: Path) -> Path:
    """Return where a file is written until it is whole; the simulator's captures have the same."""
    whole = path.resolve()
    return whole.with_name(f".{whole.name}.part")


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
    part = part_of(path)
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
    descriptor = None
    try:
        # A folder that can be written to and not read has no lock.
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
        if descriptor is not None:
            _lock(descriptor)
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


@contextmanager
def reserved(path: Path) -> Iterator[None]:
    """Keep others who ask from writing the file, whatever becomes of it meanwhile.

    The lock is a file's beside it, since the file itself may be replaced. It goes when the process
    does, and the file with the block.

    Raises
    ------
    BlockingIOError
        Another process has it, or another part of this one.
    OSError
        Nothing can be written there.
    """
    whole = path.resolve()
    beside = whole.with_name(f".{whole.name}.lock")
    while True:
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor)
            # Whoever had it before may have removed it between the two calls.
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(descriptor), beside.stat()):
                    break
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)
    try:
        yield
    finally:
        with suppress(OSError):
            beside.unlink()
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    try:
        import fcntl
    except ImportError:  # Windows
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError:
        # A file system without locks.
        pass
