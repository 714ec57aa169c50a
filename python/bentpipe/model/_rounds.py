"""The round recurrence behind `delayed_ack`, whose docstring has the mathematics.

Arrays have one row per transfer. Two-dimensional ones have one column per segment of the round,
padded on the right to the longest round of the block; padding is never read.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from ._arrays import BoolArray, FloatArray, IntArray

SAME_S = 1e-9
"""Two states whose times differ by less than this, in seconds, are one state.

Far above the rounding of a double after a day of simulated time (1e-11 s), far below a packet.
"""


@dataclass(kw_only=True)
class Transfers:
    """Constants of each transfer; every array is one-dimensional, with one element each."""

    packet_s: FloatArray
    ack_s: FloatArray
    down_delay_s: FloatArray
    up_delay_s: FloatArray
    timer_s: FloatArray
    window: IntArray
    initial_window: IntArray
    segments: IntArray
    arrival_wins_ties: BoolArray
    counts_segments: BoolArray

    def rows(self, keep: BoolArray) -> Transfers:
        """Return the transfers selected by `keep`."""
        return Transfers(**{f.name: getattr(self, f.name)[keep] for f in fields(self)})

    def timer_beats(self, gap_s: FloatArray) -> BoolArray:
        """Return whether the timer expires before an arrival `gap_s` after its start."""
        deadline = self.timer_s + np.where(self.arrival_wins_ties, SAME_S, -SAME_S)
        if gap_s.ndim > 1:
            deadline = deadline[:, None]
        return np.asarray(gap_s > deadline)

    def timer_ties(self, gap_s: FloatArray) -> BoolArray:
        """Return whether an arrival `gap_s` after the timer's start coincides with its expiry."""
        timer = self.timer_s[:, None] if gap_s.ndim > 1 else self.timer_s
        return np.asarray(np.abs(gap_s - timer) <= SAME_S)


@dataclass(kw_only=True)
class Round:
    """Arrivals of a round at the client: the state that determines all later rounds.

    Segments `base + 1 ... base + size` arrive at the times `arrival`. If `pending`, one earlier
    segment arrived less than a timer ago and shares the first ACK. At `uplink_free`, the uplink has
    sent the ACKs of earlier rounds. `congestion_window` is at most the advertised window. `tied` is
    whether an arrival and a timer have coincided so far.
    """

    base: IntArray
    size: IntArray
    arrival: FloatArray
    pending: BoolArray
    uplink_free: FloatArray
    congestion_window: IntArray
    tied: BoolArray

    def rows(self, keep: BoolArray) -> Round:
        """Return the rounds selected by `keep`."""
        return Round(**{f.name: getattr(self, f.name)[keep] for f in fields(self)})

    def last_arrival(self) -> FloatArray:
        """Arrival of the last segment of the round, seconds."""
        last: FloatArray = np.take_along_axis(self.arrival, self.size[:, None] - 1, axis=1)
        return last[:, 0]


def first_round(transfers: Transfers) -> Round:
    """Return the round of the initial window, sent at time 0 back to back."""
    size = np.minimum(np.minimum(transfers.initial_window, transfers.window), transfers.segments)
    count = len(size)
    start = np.zeros((count, int(size.max())))
    sent = fifo(start, transfers.packet_s, np.zeros(count))
    return Round(
        base=np.zeros(count, dtype=np.int64),
        size=size,
        arrival=sent + transfers.down_delay_s[:, None],
        pending=np.zeros(count, dtype=np.bool_),
        uplink_free=np.zeros(count),
        congestion_window=np.minimum(transfers.initial_window, transfers.window),
        tied=np.zeros(count, dtype=np.bool_),
    )


def fifo(
    ready: FloatArray,
    service_s: FloatArray,
    free: FloatArray,
    rank: IntArray | None = None,
) -> FloatArray:
    """Return departure times from a first-in first-out link, by Lindley's recursion for a batch.

    The recursion is "x(i) = max(ready(i), x(i-1)) + S". Its solution is
    "x(i) = (i + 1) S + max(free, max over k <= i of (ready(k) - k S))".

    The argument `rank` is the position of each column in the queue. Columns without a packet repeat
    the rank before them and are ready at minus infinity.
    """
    position = np.arange(ready.shape[1])[None, :] if rank is None else rank
    service = service_s[:, None]
    slack = np.maximum.accumulate(ready - position * service, axis=1)
    return np.asarray((position + 1) * service + np.maximum(free[:, None], slack))


def next_round(now: Round, transfers: Transfers) -> Round:
    """Return the arrivals of the next round; every transfer must have segments left to send."""
    columns = np.arange(now.arrival.shape[1])[None, :]
    exists = columns < now.size[:, None]
    released = now.base + now.size
    acks, ready, lone, tied = _acknowledge(now, transfers, exists)

    rank = np.cumsum(acks, axis=1) - 1
    departed = fifo(np.where(acks, ready, -np.inf), transfers.ack_s, now.uplink_free, rank)
    uplink_free = departed[:, -1]
    # An ACK in column i covers the round up to there, and the pending segment.
    by_segments = columns + 1 + now.pending[:, None]
    grown = now.congestion_window[:, None] + np.where(
        transfers.counts_segments[:, None], by_segments, rank + 1
    )
    limit = now.base[:, None] + columns + 1 + np.minimum(grown, transfers.window[:, None])
    sent = rank[:, -1] + 1

    # The last segment without a partner: the next round's first segment may arrive before its
    # timer.
    any_ack = sent > 0
    first_ack = departed[np.arange(len(sent)), np.argmax(acks, axis=1)] + transfers.up_delay_s
    last_arrival = now.last_arrival()
    downlink_free = last_arrival - transfers.down_delay_s
    next_arrival = (
        np.maximum(first_ack, downlink_free) + transfers.packet_s + transfers.down_delay_s
    )
    wait = np.where(any_ack, next_arrival - last_arrival, np.inf)
    timer = lone & transfers.timer_beats(wait)
    tied |= lone & transfers.timer_ties(wait)
    timer_departed = np.maximum(uplink_free, last_arrival + transfers.timer_s) + transfers.ack_s
    covered = now.size + now.pending
    growth = np.where(transfers.counts_segments, covered, sent + 1)
    timer_limit = released + np.minimum(now.congestion_window + growth, transfers.window)

    acks = np.column_stack((acks, timer))
    ack_arrival = np.column_stack((departed, timer_departed)) + transfers.up_delay_s[:, None]
    limit = np.column_stack((limit, timer_limit))
    start, size = _release(acks, ack_arrival, limit, released, transfers.segments)
    growth = np.where(transfers.counts_segments, covered - (lone & ~timer), sent + timer)
    return Round(
        base=released,
        size=size,
        arrival=fifo(start, transfers.packet_s, downlink_free) + transfers.down_delay_s[:, None],
        pending=lone & ~timer,
        uplink_free=np.where(timer, timer_departed, uplink_free),
        congestion_window=np.minimum(now.congestion_window + growth, transfers.window),
        tied=now.tied | tied,
    )


def _acknowledge(
    now: Round, transfers: Transfers, exists: BoolArray
) -> tuple[BoolArray, FloatArray, BoolArray, BoolArray]:
    """Return which segments trigger an ACK and when, whether the last is alone, and any ties.

    Segments alternate: the first of a pair starts the timer, the second sends the ACK. A gap of a
    timer or more ends a pair early, and the alternation restarts behind it.
    """
    columns = np.arange(now.arrival.shape[1])[None, :]
    spacing = np.diff(now.arrival, axis=1)
    gap = np.zeros_like(exists)
    gap[:, 1:] = transfers.timer_beats(spacing)
    run_start = np.maximum.accumulate(np.where(gap, columns, 0), axis=1)
    offset = np.where(run_start == 0, now.pending[:, None], False)
    first = (columns - run_start + offset) % 2 == 0
    followed_by_gap = np.zeros_like(exists)
    followed_by_gap[:, :-1] = gap[:, 1:] & exists[:, 1:]
    acks = exists & (~first | followed_by_gap)
    ready = now.arrival + np.where(first, transfers.timer_s[:, None], 0.0)
    lone: BoolArray = np.take_along_axis(first, now.size[:, None] - 1, axis=1)[:, 0]
    tied = np.any(transfers.timer_ties(spacing) & first[:, :-1] & exists[:, 1:], axis=1)
    return acks, ready, lone, tied


def _release(
    acks: BoolArray,
    ack_arrival: FloatArray,
    limit: IntArray,
    released: IntArray,
    segments: IntArray,
) -> tuple[FloatArray, IntArray]:
    """Return the times at which segments of the next round may leave, and their number.

    An ACK releases the segments between the previous ACK's highest allowed segment and its own.
    """
    allowed = np.where(acks, np.minimum(limit, segments[:, None]), released[:, None])
    allowed = np.maximum.accumulate(allowed, axis=1)
    before = np.column_stack((released, allowed[:, :-1]))
    row, column = np.nonzero(allowed > before)
    size = allowed[:, -1] - released
    start = np.full((len(released), int(size.max())), -np.inf)
    start[row, before[row, column] - released[row]] = ack_arrival[row, column]
    return np.maximum.accumulate(start, axis=1), size


@dataclass(kw_only=True)
class Snapshot:
    """A round relative to its first arrival: equal snapshots have equal, shifted futures."""

    base: IntArray
    origin: FloatArray
    size: IntArray
    offsets: FloatArray
    pending: BoolArray
    uplink_wait: FloatArray
    congestion_window: IntArray

    def rows(self, keep: BoolArray) -> Snapshot:
        """Return the snapshots selected by `keep`."""
        return Snapshot(**{f.name: getattr(self, f.name)[keep] for f in fields(self)})


def snapshot(now: Round) -> Snapshot:
    """Return the round's state relative to its first arrival."""
    origin = now.arrival[:, 0]
    exists = np.arange(now.arrival.shape[1])[None, :] < now.size[:, None]
    return Snapshot(
        base=now.base,
        origin=origin,
        size=now.size,
        offsets=np.where(exists, now.arrival - origin[:, None], 0.0),
        pending=now.pending,
        # No ACK of this round is ready before its first arrival: an earlier free time makes no
        # difference.
        uplink_wait=np.maximum(now.uplink_free - origin, 0.0),
        congestion_window=now.congestion_window,
    )


def same(a: Snapshot, b: Snapshot) -> BoolArray:
    """Return, per transfer, whether the two snapshots agree within `SAME_S`.

    The arrival of the pending segment is not compared: it shares the first ACK in any case.
    """
    width = min(a.offsets.shape[1], b.offsets.shape[1])
    near = np.abs(a.offsets[:, :width] - b.offsets[:, :width]) <= SAME_S
    return np.asarray(
        (a.size == b.size)
        & (a.pending == b.pending)
        & (a.congestion_window == b.congestion_window)
        & (np.abs(a.uplink_wait - b.uplink_wait) <= SAME_S)
        & np.all(near, axis=1)
    )
