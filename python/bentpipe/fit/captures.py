"""Reads the largest TCP connection of a capture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bentpipe import _native
from bentpipe.errors import RequestError
from bentpipe.fit.connection import Connection, make_connection

# Segments that are read of a connection: 60 bytes of memory each.
MOST_SEGMENTS: Final = 4_000_000
_LEAST_SEGMENTS: Final = 20
_LEAST_PAYLOAD: Final = 20_000
# Below this share, other connections use a part of the link that matters.
_ALONE: Final = 0.95

Progress = Callable[[int], None]


def read_capture(path: Path, progress: Progress | None = None) -> Connection:
    """Read the connection of a capture that carries most payload.

    Raises
    ------
    RequestError
        The file is no capture, or has no transfer in it.
    """
    try:
        listing = _native.capture_connections(path, progress=progress)
    except ValueError as error:
        raise RequestError(f"{path}: {error}") from None
    connections: list[dict[str, Any]] = listing["connections"]
    sizes = [max(each["payload"]) for each in connections]
    expected = "expected a capture with a TCP transfer"
    if not sizes:
        raise RequestError(f"{path}: {expected}, got {listing['packets']:,} packets without TCP")
    index = sizes.index(max(sizes))
    listed = connections[index]
    count = sum(listed["segments"])
    if sizes[index] < _LEAST_PAYLOAD or count < _LEAST_SEGMENTS:
        raise RequestError(
            f"{path}: {expected} of at least {_LEAST_PAYLOAD // 1000} kB, got {sizes[index]:,} B "
            "in the largest connection"
        )
    if min(listed["segments"]) == 0:
        raise RequestError(f"{path}: {expected} in both directions, got one direction only")
    payload = sum(sum(each["payload"]) for each in connections)
    share = sum(listed["payload"]) / payload
    notes = []
    if listing["cut"]:
        notes.append("the file ends within a packet: the packets before it were used")
    if share < _ALONE:
        notes.append(
            f"other connections carry {1 - share:.0%} of the payload: rates are those left to the "
            "largest one"
        )
    columns = _native.capture_segments(path, index, most=MOST_SEGMENTS, progress=progress)
    if columns["limited"]:
        notes.append(f"only the first {MOST_SEGMENTS:,} segments were used")
    return make_connection(path, listed, columns, share=share, notes=tuple(notes))
