"""Packets in the order in which they entered the link, with delays, losses and queuing times.

This is the common form of what captures at the sender and at the receiver show of the direction of
the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bentpipe.fit.connection import Bools, Floats, Ints

# Bits and seconds, a row for each train.
Trains = NDArray[np.float64]

# Packets of a train at least, and usually.
_LEAST_TRAIN: Final = 8
_TRAIN: Final = 32


@dataclass(frozen=True, kw_only=True)
class Passages:
    """Packets with data in the order in which they entered the link, retransmissions included."""

    # IP bytes.
    length: Ints
    # When it was sent, if the capture is from the sender; else when it arrived, or the next did.
    entered_s: Floats
    # Whether it was lost; whether its fate is known.
    is_lost: Bools
    is_known: Bools
    # When its delivery was seen: its arrival, or its acknowledgment; nan if that is not known.
    seen_s: Floats
    # Queuing time, from the excess of its delay over the shortest; nan if that is not known.
    queued_s: Floats

    @cached_property
    def context_s(self) -> Floats:
        """Queuing time around each packet: the greater of the packets before and after it.

        That of the packet itself is not used: lost packets have none, and are compared with others.
        """
        known = np.flatnonzero(~np.isnan(self.queued_s))
        if len(known) < _LEAST_TRAIN:
            return np.full(len(self.length), np.nan)
        every = np.arange(len(self.length))
        before = np.clip(np.searchsorted(known, every, side="left") - 1, 0, None)
        after = np.clip(np.searchsorted(known, every, side="right"), None, len(known) - 1)
        return np.asarray(np.maximum(self.queued_s[known[before]], self.queued_s[known[after]]))

    def trains(self, eligible: Bools, *, size: int = _TRAIN, seen_each: int = 1) -> Trains:
        """Return trains of consecutive packets without a loss: bits, and seconds that they took.

        All packets of a train whose delivery was seen are `eligible`, and `seen_each` of them or
        more were seen.
        """
        positions, times, joined = self._joined(eligible)
        passed = np.cumsum(self.length)
        found: list[tuple[float, float]] = []
        for run in np.split(np.arange(len(positions)), np.flatnonzero(~joined) + 1):
            own = positions[run]
            count = int(own[-1] - own[0]) if len(own) else 0
            if count < _LEAST_TRAIN or len(run) <= seen_each:
                continue
            pieces = max(1, min(count // size, (len(run) - 1) // seen_each))
            marks = np.searchsorted(own, own[0] + np.linspace(0, count, pieces + 1).round())
            marks = np.unique(np.clip(marks, 0, len(run) - 1))
            bits = np.diff(passed[own[marks]]) * 8.0
            taken = np.diff(times[run][marks])
            found += [pair for pair in zip(bits, taken, strict=True) if pair[1] > 0]
        return np.asarray(found, dtype=np.float64).reshape(-1, 2)

    def gaps(self) -> Trains:
        """Return bits and seconds from each delivery that was seen to the next one.

        Gaps with a loss within them have no seconds (nan).
        """
        positions, times, joined = self._joined(np.ones(len(self.length), dtype=bool))
        bits = np.diff(np.cumsum(self.length)[positions]) * 8.0
        return np.column_stack([bits, np.where(joined, np.diff(times), np.nan)])

    def _joined(self, eligible: Bools) -> tuple[Ints, Floats, Bools]:
        """Return packets whose delivery was seen, their times, and which follow without a break."""
        positions = np.flatnonzero(~np.isnan(self.seen_s))
        broken = np.cumsum(self.is_lost | ~self.is_known)
        times = self.seen_s[positions]
        # A run ends where a packet is lost, is out of order, or is not eligible.
        joined = (
            (broken[positions[1:]] == broken[positions[:-1]])
            & (np.diff(times) >= 0)
            & eligible[positions[1:]]
            & eligible[positions[:-1]]
        )
        return positions, times, np.asarray(joined)
