"""What keeps a model from applying to a flow, and what of the flow says so."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from bentpipe import _native
from bentpipe.units import format_rate

if TYPE_CHECKING:
    from bentpipe.prediction.paths import FlowPath

# Whose slow start grows the window by what is acknowledged, and no more: in a round trip, they send
# at most twice what was acknowledged in the one before.
STANDARD_SLOW_START: Final = {
    rule for rule, (_, own, _) in _native.window_rules().items() if not own
}

# Fewer losses than this, as a share of packets, no transfer ever meets.
NO_LOSS: Final = 1e-15

# The recurrence of `delayed_ack` keeps a round's arrivals: some 150 bytes a segment.
LONGEST_ROUND: Final = 500_000


def alone_obstacle(path: FlowPath) -> str | None:
    """Say what keeps a model of one connection from end to end from applying."""
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
    """Say what keeps a model of a loss-free transfer from applying."""
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
    # What waits at most: what the pipe doesn't hold; in slow start, a third of the window, because
    # three segments leave for two that are acknowledged; the initial window, sent at once.
    waiting = max(
        highest - pipe_segments(path),
        highest / 3.0,
        min(path.initial_window_segments, highest) - 1,
    )
    if waiting > path.buffer_segments:
        return "the window overflows the downlink's buffer; it assumes no loss"
    return None


def random_loss_obstacle(path: FlowPath, *, of: str = "reno") -> str | None:
    """Say what keeps a model of random losses from applying that is of this window rule."""
    obstacle = alone_obstacle(path)
    if obstacle is None and path.loss_rate <= NO_LOSS:
        obstacle = "the downlink loses no packets at random"
    if obstacle is None and path.loss_rate >= 1.0:
        obstacle = "the downlink loses every packet"
    if (
        obstacle is None
        and path.congestion_control != of
        and not (of == "reno" and reno_like(path))
    ):
        whose = {"reno": "Reno", "cubic": "CUBIC", "hybla": "Hybla"}[of]
        obstacle = f"it models {whose}'s answer to loss, not {path.congestion_control}'s"
    return obstacle


def short_obstacle(path: FlowPath) -> str | None:
    """Say whether a transfer ends before a loss, so that its window never goes up and down."""
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
    """Whether the window rule is Reno's."""
    return path.congestion_control in {"reno", "newreno"}


def _circle_segments(path: FlowPath) -> float:
    """Return the window from which on data or ACKs queue."""
    asymmetric = path.asymmetric()
    ack_time_s = float(asymmetric.ack_time_s)
    unqueued = float(asymmetric.round_trip_s) / ack_time_s if ack_time_s > 0.0 else math.inf
    return min(pipe_segments(path), unqueued * path.segments_per_ack)


def pipe_segments(path: FlowPath) -> float:
    """Return the bandwidth-delay product, in segments."""
    asymmetric = path.asymmetric()
    return float(asymmetric.round_trip_s / asymmetric.packet_time_s)


def transfer_size(path: FlowPath) -> float:
    """Return the transfer's size; what the link carries until the end where it has none."""
    if path.transfer_bytes is not None:
        return path.transfer_bytes
    capacity_bps = float(path.asymmetric().capacity_bps)
    return max(path.segment_bytes, capacity_bps * path.duration_s / 8.0)
