"""Whether acknowledgments that share a way back are the clock of what they acknowledge."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bentpipe.prediction.network import Direction
    from bentpipe.prediction.paths import FlowPath

# Who measures the rate at which data is delivered keeps two bandwidth-delay products of it in
# flight at the most (draft-ietf-ccwg-bbr, BBRDefaultCwndGain), whatever the window could be.
PRODUCTS_IN_FLIGHT: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Acks:
    """The acknowledgments of a transfer on one direction."""

    direction: str
    # What of them may wait there.
    queue: float
    # What one occupies the direction, and the round trip without queues.
    time_s: float
    round_trip_s: float
    # How many are on their way when the window is full.
    window: float
    measures_its_rate: bool

    @classmethod
    def of(
        cls, path: FlowPath, direction: Direction, *, time_s: float, round_trip_s: float
    ) -> Acks:
        """Return those of a path on a direction that takes so long for each."""
        segments: float = path.window_segments
        if path.windows:
            # What a gateway that answers for the host lets out to it.
            segments = min(each.size_bytes for each in path.windows) / path.segment_bytes
        if path.transfer_bytes is not None:
            segments = min(segments, math.ceil(path.transfer_bytes / path.segment_bytes))
        return cls(
            direction=direction.name,
            queue=direction.buffer_segments(path.answer_bytes),
            time_s=time_s,
            round_trip_s=round_trip_s,
            window=segments / path.segments_per_ack,
            measures_its_rate=path.measures_its_rate,
        )


def hold_back(sharing: Sequence[Acks]) -> bool:
    """Whether the acknowledgments that have a way back to themselves are their transfers' clock.

    They are as long as all of them find room: each then acknowledges what the receiver meant it
    to. When the queue overflows, one that gets through stands for those that were dropped, and the
    senders' windows grow on.
    """
    pipe = max(each.round_trip_s / each.time_s for each in sharing)
    room = pipe + sum({each.direction: each.queue for each in sharing}.values())
    # What is measured is what the clock lets through, of all together.
    measured = PRODUCTS_IN_FLIGHT * pipe / len(sharing)
    in_flight = sum(
        min(each.window, measured) if each.measures_its_rate else each.window for each in sharing
    )
    return in_flight <= room


def uplink_acks_bps(path: FlowPath) -> float:
    """Return what as many acknowledgments acknowledge as the way back takes, bit/s.

    Infinite where they become fewer on the way.
    """
    if path.thins_acks:
        return math.inf
    asymmetric = path.asymmetric()
    per_ack = path.segments_per_ack * float(asymmetric.payload_bits)
    return per_ack / float(asymmetric.ack_time_s)
