"""Assumptions of the models that a flow does not meet, as reasons for the reader."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from bentpipe.kinds import window_rule, window_rules
from bentpipe.units import format_rate

if TYPE_CHECKING:
    from bentpipe.prediction.paths import FlowPath

# Rules with the slow start of RFC 5681: in a round trip, a sender sends at most twice the data
# acknowledged in the one before.
STANDARD_SLOW_START: Final = {
    name for name, rule in window_rules().items() if not rule.own_slow_start
}

# Loss rates below this one count as zero.
NO_LOSS: Final = 1e-15

# The recurrence of `delayed_ack` keeps a round's arrivals: some 150 bytes a segment.
LONGEST_ROUND: Final = 500_000


def alone_obstacle(path: FlowPath) -> str | None:
    """Return why a model of one end-to-end connection does not apply; None if it does."""
    if path.intervening:
        return f"{', '.join(path.intervening)} on the way is no plain router"
    if path.sharing:
        others = path.shares_with or f"{path.sharing} other flows"
        return f"the path is shared with {others}; the model has one flow"
    if path.on_demand:
        return f"at {path.on_demand} packets wait for grants; it assumes a transmitter of some rate"
    if path.pacing_bps is not None:
        return f"the sender paces at {format_rate(path.pacing_bps)}; the model has a window alone"
    if path.processing_with_acks_s:
        return "a processor on the way takes time for each packet; the model has only links"
    if path.changed_acks:
        return f"it has ACKs as the receiver sends them ({path.changed_acks})"
    if path.not_plain:
        return (
            f"{path.not_plain}; the model has links of one rate, one delay and one loss rate, "
            "drop-tail queues and independent losses"
        )
    return None


def lossless_obstacle(path: FlowPath) -> str | None:
    """Return why a model of a loss-free transfer does not apply; None if it does."""
    obstacle = alone_obstacle(path)
    if obstacle is not None:
        return obstacle
    if path.has_losses:
        return "the downlink loses packets; it assumes none"
    if path.quick_acks and path.segments_per_ack > 1:
        which = "first" if path.quick_acks == "auto" else f"first {path.quick_acks}"
        return f"the {which} ACKs aren't delayed; it delays them all"
    if path.congestion_control not in STANDARD_SLOW_START:
        return f"it models standard slow start, not {path.congestion_control}'s"
    sent = math.ceil(transfer_size(path) / path.segment_bytes)
    # Slow start ends at the window, the threshold, or the transfer's end, whichever comes first.
    highest = min(path.largest_window_segments, sent)
    if highest > LONGEST_ROUND:
        return f"it follows rounds of up to {LONGEST_ROUND:,} segments, not of {highest:,}"
    if highest > path.initial_threshold_segments:
        return "slow start ends before the window is fully open; it assumes the contrary"
    if path.slow_start in ("hystart", "hystart++") and highest > _circle_segments(path):
        return "HyStart may end slow start when round trips get longer; it assumes the contrary"
    # The longest queue: segments beyond the bandwidth-delay product, or a third of the window in
    # slow start (three segments leave for two acknowledged), or the initial window, sent at once.
    waiting = max(
        highest - pipe_segments(path),
        highest / 3.0,
        min(path.initial_window_segments, highest) - 1,
    )
    if waiting > path.buffer_segments:
        return "the window overflows the downlink's buffer; it assumes no loss"
    return None


def random_loss_obstacle(path: FlowPath, *, of: str = "reno") -> str | None:
    """Return why a window rule's model of random losses does not apply; None if it does."""
    obstacle = alone_obstacle(path)
    if obstacle is None and path.loss_rate <= NO_LOSS:
        obstacle = "the downlink loses no packets at random"
    if obstacle is None and path.loss_rate >= 1.0:
        obstacle = "the downlink loses every packet"
    if obstacle is None and window_rule(path.congestion_control).loss_law != of:
        whose = {"reno": "Reno", "cubic": "CUBIC", "hybla": "Hybla"}[of]
        obstacle = f"it models {whose}'s answer to loss, not {path.congestion_control}'s"
    return obstacle


def short_obstacle(path: FlowPath) -> str | None:
    """Return a reason if a transfer probably ends before its first loss; None otherwise."""
    if path.transfer_bytes is None:
        return None
    segments = math.ceil(path.transfer_bytes / path.segment_bytes)
    if segments * path.loss_rate >= 1.0:
        return None
    return (
        "it is about the long run: not one of this transfer's "
        f"{segments:,} segments is lost on average"
    )


def reno_like(path: FlowPath) -> bool:
    """Whether the window rule answers losses as Reno does."""
    return window_rule(path.congestion_control).loss_law == "reno"


def _circle_segments(path: FlowPath) -> float:
    """Return the window above which data or ACKs queue."""
    asymmetric = path.asymmetric()
    ack_time_s = float(asymmetric.ack_time_s)
    unqueued = float(asymmetric.round_trip_s) / ack_time_s if ack_time_s > 0.0 else math.inf
    return min(pipe_segments(path), unqueued * path.segments_per_ack)


def pipe_segments(path: FlowPath) -> float:
    """Return the bandwidth-delay product, in segments."""
    asymmetric = path.asymmetric()
    return float(asymmetric.round_trip_s / asymmetric.packet_time_s)


def transfer_size(path: FlowPath) -> float:
    """Return the transfer's size; without one, the data that the link carries until the end."""
    if path.transfer_bytes is not None:
        return path.transfer_bytes
    capacity_bps = float(path.asymmetric().capacity_bps)
    return max(path.segment_bytes, capacity_bps * path.duration_s / 8.0)
