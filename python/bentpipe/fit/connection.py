"""A TCP connection of a capture: its segments as columns, and where they were captured."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

SYN: Final = 0b10
ACK: Final = 0b1_0000
# Capture points closer to one end than this share of the round-trip time are at that end.
_AT_END: Final = 0.1
_MODULUS: Final = 2**32


@dataclass(frozen=True, kw_only=True)
class Way:
    """The segments that one end sent, in the order of the capture. Offsets begin at 0."""

    time_s: Floats
    # IP packet, and payload, in bytes.
    length: Ints
    payload: Ints
    # Stream offset of the first byte; the SYN is at -1.
    offset: Ints
    # Stream offset that is acknowledged of the other way.
    acknowledged: Ints
    flags: Ints
    # Advertised window in bytes, scaled.
    window: Ints
    timestamp: Ints
    echo: Ints
    # Blocks of selective acknowledgment: index of the segment, and the offsets.
    sack_segment: Ints
    sack_from: Ints
    sack_to: Ints

    @cached_property
    def is_data(self) -> Bools:
        """Whether each segment has payload."""
        return np.asarray(self.payload > 0)

    @cached_property
    def is_pure_ack(self) -> Bools:
        """Whether each segment only acknowledges."""
        return np.asarray((self.payload == 0) & (self.flags & ACK != 0) & (self.flags & 0b111 == 0))


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options in the SYN of one end."""

    mss: int | None
    window_scale: int | None
    sack_permitted: bool


@dataclass(frozen=True, kw_only=True)
class Connection:
    """The largest connection of a capture, seen by the end that sends most of the data."""

    path: Path
    # Addresses and ports of the sender and the receiver of the data.
    sender: tuple[str, int]
    receiver: tuple[str, int]
    # Whether the sender opened the connection: an upload.
    sender_opened: bool
    data: Way
    acks: Way
    # Options of the SYNs of the sender and the receiver, where they were captured.
    options: tuple[Options | None, Options | None]
    # Epoch time of time 0.
    began_s: float
    # Share of the capture's payload that is in this connection.
    share: float
    notes: tuple[str, ...]

    @property
    def is_v6(self) -> bool:
        """Whether the connection is over IPv6."""
        return ":" in self.sender[0]

    @property
    def duration_s(self) -> float:
        """Time from the first segment to the last."""
        ends = [way.time_s[-1] for way in (self.data, self.acks) if len(way.time_s)]
        return float(max(ends))

    @cached_property
    def has_timestamps(self) -> bool:
        """Whether both ends send timestamps."""
        return bool(self.data.timestamp.any() and self.acks.timestamp.any())

    @cached_property
    def handshake_s(self) -> tuple[float | None, float | None]:
        """Delays of the handshake: capture point to the sender and back, and to the receiver."""
        opener, answerer = (self.data, self.acks) if self.sender_opened else (self.acks, self.data)
        syn = opener.time_s[(opener.flags & (SYN | ACK)) == SYN]
        answer = answerer.time_s[(answerer.flags & (SYN | ACK)) == SYN | ACK]
        # A repeated SYN has no unambiguous answer (Karn).
        if len(syn) != 1 or len(answer) != 1:
            return None, None
        third = opener.time_s[(opener.flags & SYN == 0) & (opener.time_s >= answer[0])]
        to_answerer = float(answer[0] - syn[0])
        to_opener = float(third[0] - answer[0]) if len(third) else None
        if self.sender_opened:
            return to_opener, to_answerer
        return to_answerer, to_opener

    @cached_property
    def at_sender(self) -> bool | None:
        """Whether the capture is from the sender's end; None if it is from neither end."""
        to_sender, to_receiver = self.handshake_s
        if to_sender is None or to_receiver is None:
            to_sender, to_receiver = _turnarounds(self.data, self.acks)
        whole = to_sender + to_receiver
        if to_sender <= _AT_END * whole:
            return True
        if to_receiver <= _AT_END * whole:
            return False
        return None


def _turnarounds(data: Way, acks: Way) -> tuple[float, float]:
    """Return the least delays from an acknowledgment to new data, and from data to its ACK."""
    sent = data.is_data
    ends = np.maximum.accumulate(data.offset[sent] + data.payload[sent])
    times = data.time_s[sent]
    # The first acknowledgment that covers the segments.
    covered = np.searchsorted(np.maximum.accumulate(acks.acknowledged), ends, side="left")
    inside = covered < len(acks.time_s)
    to_receiver = acks.time_s[covered[inside]] - times[inside]
    before = np.searchsorted(acks.time_s, times, side="right") - 1
    known = before >= 0
    to_sender = times[known] - acks.time_s[before[known]]
    # Most data at a sender follows an acknowledgment at once; at a receiver, it rarely does.
    return (
        float(np.quantile(to_sender, 0.25)) if to_sender.size else 0.0,
        float(max(0.0, np.min(to_receiver))) if to_receiver.size else 0.0,
    )


def _unwrapped(values: NDArray[np.uint32], start: int) -> Ints:
    """Return sequence numbers as offsets from `start`, without wrapping at 2^32."""
    if not len(values):
        return np.zeros(0, dtype=np.int64)
    steps = np.diff(values.astype(np.int64), prepend=np.int64(start)).astype(np.int64)
    steps = (steps + _MODULUS // 2) % _MODULUS - _MODULUS // 2
    return np.cumsum(steps)


def make_connection(
    path: Path,
    listed: dict[str, Any],
    columns: dict[str, Any],
    *,
    share: float,
    notes: tuple[str, ...],
) -> Connection:
    """Make the connection of the native columns."""
    data_end = int(listed["payload"][1] > listed["payload"][0])
    began_ns = int(columns["time_ns"].min())
    ways = [columns["sender"] == end for end in (0, 1)]
    handshakes = listed["handshakes"]
    starts = [_start(columns, ways, end) for end in (0, 1)]
    # A window is scaled only if both ends offer it (RFC 7323 section 2.2).
    scaled = all(each is not None and each[1] is not None for each in handshakes)
    made = []
    for end in (data_end, 1 - data_end):
        scale = min(handshakes[end][1], 14) if scaled else 0
        made.append(_way(columns, ways[end], began_ns, starts[end], starts[1 - end], scale))
    options = [
        None
        if handshakes[end] is None
        else Options(
            mss=handshakes[end][0],
            window_scale=handshakes[end][1],
            sack_permitted=handshakes[end][2],
        )
        for end in (data_end, 1 - data_end)
    ]
    ends = listed["ends"]
    return Connection(
        path=path,
        sender=tuple(ends[data_end]),
        receiver=tuple(ends[1 - data_end]),
        sender_opened=_opener(listed) == data_end,
        data=made[0],
        acks=made[1],
        options=(options[0], options[1]),
        began_s=began_ns / 1e9,
        share=share,
        notes=notes,
    )


def _opener(listed: dict[str, Any]) -> int:
    """Return the end that opened the connection: by its SYN, or else by its higher port."""
    if any(each is not None for each in listed["handshakes"]):
        return 0
    (_, first), (_, second) = listed["ends"]
    return int(second > first)


def _start(columns: dict[str, Any], ways: list[Bools], end: int) -> int:
    """Return the sequence number of the first byte that an end sends."""
    own = ways[end]
    syn = own & (columns["flags"] & SYN != 0)
    if syn.any():
        return (int(columns["sequence"][syn][0]) + 1) % _MODULUS
    if own.any():
        return int(columns["sequence"][own][0])
    acknowledged = columns["acknowledgment"][ways[1 - end]]
    return int(acknowledged[0]) if len(acknowledged) else 0


def _way(
    columns: dict[str, Any], own: Bools, began_ns: int, start: int, peer_start: int, scale: int
) -> Way:
    acknowledges = columns["flags"][own] & ACK != 0
    acknowledgment = columns["acknowledgment"][own].copy()
    acknowledgment[~acknowledges] = peer_start
    is_syn = columns["flags"][own] & SYN != 0
    places = np.flatnonzero(own)
    # SACK blocks of this way, with the index of the segment within it.
    segment = columns["sack_segment"].astype(np.int64)
    mine = own[segment] if len(segment) else np.zeros(0, dtype=bool)
    index = np.searchsorted(places, segment[mine])
    acknowledged = _unwrapped(acknowledgment, peer_start)
    blocks = [
        _near(columns[name][mine], acknowledged[index], peer_start)
        for name in ("sack_from", "sack_to")
    ]
    return Way(
        time_s=(columns["time_ns"][own] - began_ns) / 1e9,
        length=columns["length"][own].astype(np.int64),
        payload=columns["payload"][own].astype(np.int64),
        offset=_unwrapped(columns["sequence"][own], start),
        acknowledged=acknowledged,
        flags=columns["flags"][own].astype(np.int64),
        window=columns["window"][own].astype(np.int64) << np.where(is_syn, 0, scale),
        timestamp=columns["timestamp"][own].astype(np.int64),
        echo=columns["echo"][own].astype(np.int64),
        sack_segment=index,
        sack_from=blocks[0],
        sack_to=blocks[1],
    )


def _near(values: NDArray[np.uint32], near: Ints, start: int) -> Ints:
    """Return sequence numbers as the offsets from `start` that are closest to `near`."""
    offsets = values.astype(np.int64) - start
    return np.asarray(near + (offsets - near + _MODULUS // 2) % _MODULUS - _MODULUS // 2)
