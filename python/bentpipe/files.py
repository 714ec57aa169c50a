"""Atomic file writes, and locks on files and folders."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def partial_path(path: Path) -> Path:
    """Return the path of the partial file. The simulator's captures use the same name."""
    whole = path.resolve()
    return whole.with_name(f".{whole.name}.part")


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """Yield a path to write to; the file is renamed to its final name when the block ends.

    If the block fails, as on a full disk, the partial file is removed and the previous file
    remains; a system error then names the final file. Pipes and devices are written to directly,
    and symbolic links are followed.
    """
    if path.exists() and not path.is_file():
        yield path
        return
    whole = path.resolve()
    part = partial_path(path)
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
    """Lock a folder against other writers; the lock ends with the block or the process.

    Raises
    ------
    BlockingIOError
        The folder is locked already, by another process or by this one.
    """
    descriptor = None
    try:
        # A folder that is writable but not readable cannot be locked.
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
    """Lock a file against other writers, even while it is replaced.

    The lock is held on a file beside it, because the file itself may be replaced. The lock ends
    with the block or the process.

    Raises
    ------
    BlockingIOError
        The file is locked already, by another process or by this one.
    OSError
        Nothing can be written there.
    """
    whole = path.resolve()
    beside = whole.with_name(f".{whole.name}.lock")
    while True:
        descriptor = os.open(beside, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _lock(descriptor)
            # The previous holder may have removed the lock file between the two calls.
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
        # The file system has no locks.
        pass
