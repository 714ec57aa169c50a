"""Where a command's output goes."""

from __future__ import annotations

import errno
import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from bentpipe.cli.declaring import check_text
from bentpipe.errors import RequestError, reason
from bentpipe.files import locked, reserved

# Errors of a write that has begun, for which the system names no file.
NO_ROOM: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})
# Why no file can be made in a folder.
_NO_WRITING: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class ClosedOutput(io.TextIOBase):
    """A standard output that was closed: writing to it fails, as it does in a shell."""

    def write(self, _text: str) -> int:
        """Fail."""
        raise OSError(errno.EBADF, "Closed", "standard output")


def print_json(value: object) -> None:
    """Print one JSON object; a string is JSON already."""
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    print(text.rstrip())


@contextmanager
def writing_to(place: Path | None) -> Iterator[None]:
    """Add the place to errors of a full disk; libraries and the system leave it out."""
    try:
        yield
    except OSError as error:
        if place is None or error.errno not in NO_ROOM or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(place)) from error


class WriteErrors:
    """Keeps the first error of writing a file until the result has been printed."""

    def __init__(self) -> None:
        self.first: OSError | None = None

    @contextmanager
    def kept(self, place: Path | None = None) -> Iterator[None]:
        """Keep an error of the block, which writes to `place`."""
        try:
            with writing_to(place):
                yield
        except BrokenPipeError:
            raise
        except OSError as error:
            self.first = self.first or error

    def raise_first(self) -> None:
        """Raise the first error, if there was any.

        Raises
        ------
        OSError
            A file could not be written.
        """
        if self.first is not None:
            raise self.first


@contextmanager
def made_folder(path: Path | None) -> Iterator[Path | None]:
    """Make a folder for output if there is none, and lock it during the block.

    Raises
    ------
    RequestError
        The folder can't be made or written to, or another command is writing there.
    """
    if path is None:
        yield None
        return
    # Parquet's library takes no other names.
    check_text(path, "--out")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise RequestError(f"--out {path}: is a file; expected a folder") from None
    except OSError as error:
        raise RequestError(f"--out {path}: {reason(error)}") from None
    if not os.access(path, os.W_OK | os.X_OK):
        raise RequestError(f"--out {path}: can't be written to")
    with ExitStack() as held:
        try:
            held.enter_context(locked(path))
        except BlockingIOError:
            raise RequestError(f"--out {path}: another command is writing there") from None
        yield path


@contextmanager
def captures(links: Sequence[str], folder: Path | None = None) -> Iterator[list[tuple[str, Path]]]:
    """Name the captures of links, each once, in a folder, or in the one that we are in.

    Nobody else writes them during the block: packets of two networks make no file.

    Raises
    ------
    RequestError
        One can't be written there, or another command is writing it.
    """
    named = [(link, (folder or Path()) / f"{link}.pcapng") for link in dict.fromkeys(links)]
    with ExitStack() as held:
        for link, path in named:
            try:
                held.enter_context(reserved(path))
            except BlockingIOError:
                raise RequestError(f"--pcap {link}: another command is writing {path}") from None
            except OSError as error:
                # The simulator refuses an unknown link later.
                if error.errno in _NO_WRITING:
                    raise RequestError(f"--pcap {link}: {path}: {reason(error)}") from None
        yield named


def check_plot(path: Path) -> None:
    """Refuse a file for a plot that can't be written, before any work is done.

    Raises
    ------
    RequestError
        It isn't SVG, or there is no such folder.
    """
    if path.suffix != ".svg":
        raise RequestError(f"--plot {path}: expected a file that ends in .svg")
    check_place(path, "--plot")


def check_place(path: Path, option: str) -> None:
    """Refuse a file that can't be written, before any work is done.

    Raises
    ------
    RequestError
        It is a folder, there is no such folder, or nothing can be written there.
    """
    folder = path.parent
    if path.is_dir():
        raise RequestError(f"{option} {path}: is a folder; expected a file")
    if not folder.is_dir():
        raise RequestError(f"{option} {path}: there is no folder {folder}")
    # A file is written beside its place first; a pipe or a device is not.
    written = path if path.exists() and not path.is_file() else folder
    if not os.access(written, os.W_OK):
        raise RequestError(f"{option} {path}: {written} can't be written to")
