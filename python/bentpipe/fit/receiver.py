"""A capture at the receiver: arrivals, the holes that lost packets leave, and one-way delays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.fit.passages import Passages
from bentpipe.fit.sender import mss_of

if TYPE_CHECKING:
    from bentpipe.fit.connection import Bools, Connection, Floats, Ints

# Units of timestamp clocks in use: 1 ms in Linux, 10 ms, 4 ms, 1 s, 1 us.
_TICKS_S: Final = (1e-6, 1e-3, 4e-3, 1e-2, 0.1, 1.0)
_TICK_TOLERANCE: Final = 0.05
# A late segment that arrives sooner than this share of the round trip after the gap was seen was
# reordered, not retransmitted, if there are no timestamps.
_REORDERED: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class ReceiverView:
    """What a capture at the receiver shows."""

    passages: Passages
    # Round trips from an acknowledgment to the data that it released, without queuing of the data;
    # their times of arrival, queuing times, and acknowledgments. Empty without timestamps.
    release_s: Floats
    release_rtt_s: Floats
    release_queued_s: Floats
    release_ack: Ints
    # Acknowledgments without data that were sent.
    ack_time_s: Floats
    ack_length: Ints
    # Resolution of the queuing times; None without timestamps.
    tick_s: float | None


def receiver_view(connection: Connection) -> ReceiverView | None:
    """Return what a capture at the receiver shows, or None if there is no data."""
    data, acks = connection.data, connection.acks
    own = np.flatnonzero(data.is_data & (data.offset >= 0))
    if len(own) < 2:
        return None
    mss = mss_of(connection)
    offset, payload = data.offset[own], data.payload[own]
    time_s, length, stamp = data.time_s[own], data.length[own], data.timestamp[own]
    ends = offset + payload
    highest = np.maximum.accumulate(ends)
    before = np.concatenate([[np.int64(0)], highest[:-1]])
    # Bytes between the highest byte so far and a segment: a hole.
    hole = np.maximum(0, offset - before)
    stamped = connection.has_timestamps
    was_reordered = _reordered(connection, offset, ends, before, time_s, stamp, stamped=stamped)
    reordered_bytes = _within_holes(offset, ends, before, hole, was_reordered)
    lost = np.round(np.maximum(0, hole - reordered_bytes) / mss).astype(np.int64)
    lost = np.where((hole > reordered_bytes) & (lost == 0), 1, lost)

    tick_s = _tick(time_s, stamp) if stamped else None
    one_way = (
        _excess(time_s, stamp, tick_s, ordered=~was_reordered)
        if tick_s is not None
        else np.full(len(own), np.nan)
    )
    # Segmentation offload merges segments that arrived.
    pieces = np.maximum(1, -(-payload // mss))
    passages = _with_lost(time_s, length, pieces, lost, one_way, was_reordered, mss, payload, ends)
    release = _releases(connection, own, one_way) if stamped else None
    none = np.zeros(0)
    pure = acks.is_pure_ack
    return ReceiverView(
        passages=passages,
        release_s=none if release is None else release[0],
        release_rtt_s=none if release is None else release[1],
        release_queued_s=none if release is None else release[2],
        release_ack=none.astype(np.int64) if release is None else release[3],
        ack_time_s=acks.time_s[pure],
        ack_length=acks.length[pure],
        tick_s=tick_s,
    )


def _reordered(
    connection: Connection,
    offset: Ints,
    ends: Ints,
    before: Ints,
    time_s: Floats,
    stamp: Ints,
    *,
    stamped: bool,
) -> Bools:
    """Return whether each segment that fills a hole was sent before the segments above it."""
    late = np.flatnonzero(ends <= before)
    reordered = np.zeros(len(offset), dtype=bool)
    handshake = [each for each in connection.handshake_s if each is not None]
    round_trip_s = max(handshake) if handshake else 0.0
    highest = np.maximum.accumulate(ends)
    for index in late:
        # The first segment above it that arrived.
        above = int(np.searchsorted(highest, ends[index], side="right"))
        if above >= index:
            continue
        if (stamped and stamp[index] < stamp[above]) or time_s[index] - time_s[
            above
        ] < _REORDERED * round_trip_s:
            reordered[index] = True
    return reordered


def _within_holes(offset: Ints, ends: Ints, before: Ints, hole: Ints, reordered: Bools) -> Ints:
    """Return the bytes of each hole that reordered segments filled."""
    filled = np.zeros(len(offset), dtype=np.int64)
    if reordered.any():
        starts = np.flatnonzero(hole > 0)
        for index in np.flatnonzero(reordered):
            at = np.searchsorted(before[starts], offset[index], side="right") - 1
            if at >= 0:
                filled[starts[at]] += ends[index] - offset[index]
    return filled


def _tick(time_s: Floats, stamp: Ints) -> float | None:
    """Return the unit of the sender's timestamp clock, or None if it is none in use."""
    ticks = int(stamp[-1] - stamp[0])
    if ticks <= 0 or time_s[-1] <= time_s[0]:
        return None
    unit = (time_s[-1] - time_s[0]) / ticks
    # Queuing makes the arrivals last longer than the sending.
    near = min(_TICKS_S, key=lambda known: abs(np.log(unit / known)))
    return near if abs(np.log(unit / near)) < 0.5 else None


def _excess(time_s: Floats, stamp: Ints, tick_s: float, *, ordered: Bools) -> Floats:
    """Return the excess of each one-way delay over the shortest."""
    delay = time_s - (stamp - stamp[0]) * tick_s
    shortest = float(np.min(delay[ordered])) if ordered.any() else float(np.min(delay))
    # A timestamp is the beginning of the tick, so that delays seem half a tick longer on average.
    return np.asarray(np.maximum(0.0, delay - shortest - tick_s / 2))


def _with_lost(
    time_s: Floats,
    length: Ints,
    pieces: Ints,
    lost: Ints,
    one_way: Floats,
    reordered: Bools,
    mss: int,
    payload: Ints,
    ends: Ints,
) -> Passages:
    """Return the passages: the arrivals, with the lost packets in the order of their sending."""
    # A lost packet was sent after the one whose bytes precede the hole.
    ends = np.maximum.accumulate(ends)
    holes = np.flatnonzero(lost)
    before = np.searchsorted(ends, ends[holes - 1], side="left")
    after = np.zeros(len(time_s), dtype=np.int64)
    np.add.at(after, before[holes > 0], lost[holes[holes > 0]])
    count = after + pieces
    at = np.repeat(np.arange(len(time_s)), count)
    number = np.arange(len(at)) - np.repeat(np.cumsum(count) - count, count)
    is_lost = number >= pieces[at]
    is_last = number == pieces[at] - 1
    header = length - payload
    size = np.where(is_lost | (pieces[at] > 1), mss + header[at], length[at])
    # The last piece of merged segments may be shorter.
    rest = payload[at] - (pieces[at] - 1) * mss + header[at]
    size = np.where(is_last & (pieces[at] > 1), rest, size)
    known = ~is_lost & is_last & ~reordered[at]
    return Passages(
        length=size,
        entered_s=time_s[at],
        is_lost=is_lost,
        is_known=np.ones(len(at), dtype=bool),
        seen_s=np.where(known, time_s[at], np.nan),
        queued_s=np.where(known, one_way[at], np.nan),
    )


def _releases(
    connection: Connection, own: Ints, one_way: Floats
) -> tuple[Floats, Floats, Floats, Ints] | None:
    """Return the round trips from an acknowledgment to the data that echoes its timestamp."""
    data, acks = connection.data, connection.acks
    sent = acks.timestamp
    if not len(sent) or np.any(np.diff(sent) < 0):
        return None
    echo = data.echo[own]
    # The first data that echoes a timestamp; the first acknowledgment that had it.
    _, first = np.unique(echo, return_index=True)
    first = np.sort(first)
    ack = np.searchsorted(sent, echo[first], side="left")
    found = (ack < len(sent)) & (sent[np.clip(ack, 0, len(sent) - 1)] == echo[first])
    first, ack = first[found], ack[found]
    arrived = data.time_s[own][first]
    rtt = arrived - acks.time_s[ack]
    fine = rtt > 0
    queued = one_way[first]
    return arrived[fine], (rtt - queued)[fine], queued[fine], ack[fine]
