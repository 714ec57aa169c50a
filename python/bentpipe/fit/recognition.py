"""Recognises the kind of a measurement by its content, and reads it."""

from __future__ import annotations

import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from bentpipe.errors import RequestError, reason

if TYPE_CHECKING:
    from bentpipe.fit.measurement import Measurement

EXPECTED: Final = (
    "expected a capture (pcap, pcapng), output of ping, JSON of iperf3 or IRTT, or flent's data"
)
_CAPTURES: Final = (
    b"\xa1\xb2\xc3\xd4",
    b"\xd4\xc3\xb2\xa1",
    b"\xa1\xb2\x3c\x4d",
    b"\x4d\x3c\xb2\xa1",
    b"\x0a\x0d\x0d\x0a",
)
_GZIP: Final = b"\x1f\x8b"
# Longest text of a measurement that is not a capture; these are read as a whole.
LONGEST_TEXT: Final = 256 << 20
_LONGEST_LINE: Final = 4096
# Beginning of a text in which ping's first line or reply is looked for.
_BEGINNING: Final = 1 << 16

Progress = Callable[[int, int], None]


def read_measurement(path: Path, progress: Progress | None = None) -> Measurement:
    """Read a measurement of any kind. `progress` gets the bytes read, and those of the file.

    Raises
    ------
    RequestError
        The file is none of the kinds, or is damaged.
    OSError
        The file cannot be read.
    """
    if path.is_dir():
        raise RequestError(f"{path}: is a folder; {EXPECTED}")
    try:
        if not path.is_file():
            if path.exists():
                raise RequestError(f"{path}: is not a regular file; {EXPECTED}")
            raise RequestError(f"{path}: no such file; {EXPECTED}")
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING)
    except OSError as error:
        raise RequestError(f"{path}: {reason(error)}") from None
    if not beginning:
        raise RequestError(f"{path}: {EXPECTED}, got an empty file")
    if beginning.startswith(_CAPTURES):
        from bentpipe.fit.capture_measurement import measure_capture

        whole = path.stat().st_size
        return measure_capture(
            path, None if progress is None else lambda read: progress(read, whole)
        )
    if beginning.startswith(_GZIP):
        return _of_text(path, _unpacked(path))
    if path.stat().st_size > LONGEST_TEXT:
        raise RequestError(f"{path}: {EXPECTED}, got more than {LONGEST_TEXT >> 20} MiB of others")
    return _of_text(path, path.read_bytes())


def _unpacked(path: Path) -> bytes:
    try:
        with gzip.open(path, "rb") as file:
            content = file.read(LONGEST_TEXT + 1)
    except (OSError, EOFError, zlib.error):
        raise RequestError(f"{path}: {EXPECTED}, got a damaged gzip file") from None
    if content.startswith(_CAPTURES):
        raise RequestError(f"{path}: expected a capture that is not compressed: gunzip it first")
    if len(content) > LONGEST_TEXT:
        raise RequestError(f"{path}: {EXPECTED}, got more than {LONGEST_TEXT >> 20} MiB of others")
    return content


def _of_text(path: Path, content: bytes) -> Measurement:
    if content.lstrip()[:1] == b"{":
        return _of_json(path, content)
    beginning = content[:_BEGINNING]
    if b"bytes from" in beginning or beginning.startswith(b"PING "):
        from bentpipe.fit.probes import read_ping

        return read_ping(path, _lines(io.BytesIO(content)))
    raise RequestError(f"{path}: {EXPECTED}")


def _lines(file: IO[bytes]) -> Iterator[str]:
    while line := file.readline(_LONGEST_LINE):
        yield line.decode("utf-8", "replace")


def _of_json(path: Path, content: bytes) -> Measurement:
    try:
        data: Any = json.loads(content)
    except (ValueError, RecursionError):
        raise RequestError(
            f"{path}: expected JSON of iperf3, IRTT or flent, got incomplete or invalid JSON"
        ) from None
    if isinstance(data, dict):
        if "round_trips" in data:
            from bentpipe.fit.probes import read_irtt

            return read_irtt(path, data)
        from bentpipe.fit.throughput import read_flent, read_iperf3

        if "x_values" in data and "results" in data:
            return read_flent(path, data)
        if "start" in data and "end" in data:
            return read_iperf3(path, data)
    raise RequestError(f"{path}: expected JSON of iperf3, IRTT or flent, got another")
