"""ACK clocking: whether ACKs that share a return link set the rate of their transfers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bentpipe.prediction.network import Direction
    from bentpipe.prediction.paths import FlowPath

# A sender that measures its delivery rate has at most two bandwidth-delay products in flight
# (draft-ietf-ccwg-bbr, BBRDefaultCwndGain).
PRODUCTS_IN_FLIGHT: Final = 2.0


@dataclass(frozen=True, kw_only=True)
class Acks:
    """The ACKs of a transfer on one direction of a link."""

    direction: str
    # ACKs that its queue holds.
    queue: float
    # Time for which one ACK occupies the direction, and the round trip without queues.
    time_s: float
    round_trip_s: float
    # ACKs on their way when the window is full.
    window: float
    measures_its_rate: bool

    @classmethod
    def of(
        cls, path: FlowPath, direction: Direction, *, time_s: float, round_trip_s: float
    ) -> Acks:
        """Return the ACKs of a path on a direction that each occupies for `time_s`."""
        segments: float = path.window_segments
        if path.windows:
            # A gateway that answers for the host limits the segments in flight to it.
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
    """Whether ACKs that have a return link to themselves set the rate of their transfers.

    They do as long as the link and its queue hold all of them. When the queue overflows, an ACK
    that arrives also acknowledges the segments of those that were dropped (RFC 9293 section
    3.10.7.4: ACKs are cumulative), and the senders' windows keep growing.
    """
    pipe = max(each.round_trip_s / each.time_s for each in sharing)
    room = pipe + sum({each.direction: each.queue for each in sharing}.values())
    # The transfers together measure the rate that the ACKs allow.
    measured = PRODUCTS_IN_FLIGHT * pipe / len(sharing)
    in_flight = sum(
        min(each.window, measured) if each.measures_its_rate else each.window for each in sharing
    )
    return in_flight <= room


def uplink_acks_bps(path: FlowPath) -> float:
    """Return the payload rate that the ACKs on a full return link acknowledge, bit/s.

    It is infinite where the link removes ACKs.
    """
    if path.thins_acks:
        return math.inf
    asymmetric = path.asymmetric()
    per_ack = path.segments_per_ack * float(asymmetric.payload_bits)
    return per_ack / float(asymmetric.ack_time_s)
