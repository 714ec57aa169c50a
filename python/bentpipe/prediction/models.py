"""The models: whether each applies to a flow, why not, and its result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from bentpipe import model
from bentpipe.prediction.obstacles import (
    alone_obstacle,
    lossless_obstacle,
    pipe_segments,
    random_loss_obstacle,
    reno_like,
    short_obstacle,
    transfer_size,
)
from bentpipe.prediction.predictions import ModelAnswer

if TYPE_CHECKING:
    from bentpipe.prediction.paths import FlowPath

# Mathis et al. fit their constant to loss rates up to about this one; above it, timeouts dominate.
HIGHEST_LIGHT_LOSS: Final = 0.02
_FULL_LINK: Final = (
    "the window fills the downlink before a random loss reduces it; "
    "it assumes a round trip without a queue"
)


def _obata2000(path: FlowPath) -> ModelAnswer:
    name = "obata2000"
    obstacle = lossless_obstacle(path)
    if obstacle is None and path.counts_bytes and path.segments_per_ack > 1:
        obstacle = (
            "it grows the window by one segment an ACK; here an ACK of two segments grows it "
            f'by two (slow_start = "{path.slow_start}")'
        )
    if obstacle is None and path.initial_window_segments != 1:
        obstacle = (
            f"it starts with a window of 1 segment, this flow with {path.initial_window_segments}"
        )
    if obstacle is None and path.segments_per_ack == 1:
        obstacle = "it assumes delayed ACKs"
    if obstacle is not None:
        return _no_answer(name, obstacle)
    answer = model.obata2000.transfer(
        path=path.asymmetric(),
        transfer_bytes=transfer_size(path),
        window_segments=path.window_segments,
        delayed_ack_s=path.delayed_ack_s,
    )
    return _of_transfer(
        name, "a loss-free transfer from a window of 1 segment, delayed ACKs", answer
    )


def _no_answer(name: str, obstacle: str) -> ModelAnswer:
    return ModelAnswer(name=name, applies=False, reason=obstacle)


_Transfer = (
    model.obata2000.Obata2000Prediction
    | model.delayed_ack.DelayedAckPrediction
    | model.cardwell.CardwellPrediction
)


def _of_transfer(name: str, reason: str, answer: _Transfer) -> ModelAnswer:
    return ModelAnswer(
        name=name,
        applies=True,
        reason=reason,
        throughput_bps=float(answer.throughput_bps),
        transfer_time_s=float(answer.transfer_time_s),
    )


def _delayed_ack(path: FlowPath) -> ModelAnswer:
    name = "delayed_ack"
    obstacle = lossless_obstacle(path)
    if obstacle is not None:
        return _no_answer(name, obstacle)
    answer = model.delayed_ack.transfer(
        path=path.asymmetric(),
        transfer_bytes=transfer_size(path),
        window_segments=path.window_segments,
        delayed_ack_s=path.delayed_ack_s,
        initial_window_segments=path.initial_window_segments,
        counts_segments=path.counts_bytes,
    )
    return _of_transfer(
        name, "a loss-free transfer: obata2000 with the delayed-ACK timer in every round", answer
    )


def _lakshman(path: FlowPath) -> ModelAnswer:
    name = "lakshman"
    pipe, buffer = pipe_segments(path), path.buffer_segments
    obstacle = alone_obstacle(path)
    if obstacle is None and path.has_losses:
        obstacle = "it has no losses apart from those of a full buffer"
    if obstacle is None and path.largest_window_segments <= pipe + buffer:
        obstacle = "the window never overflows the downlink's buffer, so the window doesn't cycle"
    if obstacle is None and not reno_like(path):
        obstacle = f"it models Reno's window, not {path.congestion_control}'s"
    if obstacle is not None:
        return _no_answer(name, obstacle)
    answer = model.lakshman.throughput(
        path=path.asymmetric(),
        buffer_segments=buffer,
        segments_per_ack=path.segments_per_ack,
    )
    return ModelAnswer(
        name=name,
        applies=True,
        reason="the window overflows the downlink's buffer again and again; start-up left out",
        throughput_bps=float(answer.throughput_bps),
    )


def _mathis(path: FlowPath) -> ModelAnswer:
    return _light_loss("mathis", path, random_loss_obstacle(path), _mathis_bps)


def _cubic(path: FlowPath) -> ModelAnswer:
    obstacle = random_loss_obstacle(path, of="cubic")
    return _light_loss("cubic", path, obstacle, cubic_bps)


def _hybla(path: FlowPath) -> ModelAnswer:
    obstacle = random_loss_obstacle(path, of="hybla")
    if obstacle is None and path.hybla_reference_rtt_s is None:
        obstacle = 'a loss halves its window; here it leaves a quarter (after_loss = "quarter")'
    return _light_loss("hybla", path, obstacle, hybla_bps)


def _light_loss(
    name: str, path: FlowPath, obstacle: str | None, rate_bps: Callable[[FlowPath], float]
) -> ModelAnswer:
    """Answer by a law of long transfers that has neither timeouts nor an advertised window."""
    if obstacle is None and path.loss_rate > HIGHEST_LIGHT_LOSS:
        obstacle = (
            f"it has no timeouts, and at {path.loss_rate:.1%} loss they dominate "
            f"(above {HIGHEST_LIGHT_LOSS:.0%})"
        )
    if obstacle is None:
        unlimited = rate_bps(path)
        asymmetric = path.asymmetric()
        bits = path.window_segments * float(asymmetric.payload_bits)
        window_bps = bits / float(asymmetric.round_trip_s)
        obstacle = (
            short_obstacle(path)
            if unlimited <= window_bps
            else "it has no advertised window, and here the window binds before the loss does"
        )
        if obstacle is None and unlimited >= float(asymmetric.capacity_bps):
            obstacle = _FULL_LINK
        if obstacle is None:
            return ModelAnswer(
                name=name,
                applies=True,
                reason="a long transfer with light random loss",
                throughput_bps=unlimited,
            )
    return _no_answer(name, obstacle)


def _padhye(path: FlowPath) -> ModelAnswer:
    name = "padhye"
    obstacle = random_loss_obstacle(path) or short_obstacle(path)
    if obstacle is None and padhye_bps(path) >= float(path.asymmetric().capacity_bps):
        obstacle = _FULL_LINK
    if obstacle is not None:
        return _no_answer(name, obstacle)
    return ModelAnswer(
        name=name,
        applies=True,
        reason="a long transfer with random loss and timeouts",
        throughput_bps=padhye_bps(path),
    )


def _cardwell(path: FlowPath) -> ModelAnswer:
    name = "cardwell"
    obstacle = random_loss_obstacle(path)
    if obstacle is None and path.transfer_bytes is None:
        obstacle = "it predicts the time of a transfer, and this one has no size"
    if obstacle is None and path.loss_rate >= 0.5:
        obstacle = "its handshake has no finite mean at half of the packets lost or more"
    if obstacle is not None or path.transfer_bytes is None:
        return _no_answer(name, obstacle or "")
    answer = model.cardwell.transfer(
        path=path.asymmetric(),
        transfer_bytes=path.transfer_bytes,
        loss_rate=path.loss_rate,
        retransmission_timeout_s=_timeout_s(path),
        window_segments=path.window_segments,
        segments_per_ack=path.avoidance_segments_per_ack,
        slow_start_segments_per_ack=1 if path.counts_bytes else path.segments_per_ack,
        initial_window_segments=path.initial_window_segments,
        delayed_ack_s=path.delayed_ack_s if path.initial_window_segments == 1 else 0.0,
        handshake=False,
    )
    return _of_transfer(
        name, "the expected time of a transfer with random loss, slow start included", answer
    )


def _timeout_s(path: FlowPath) -> float:
    # RFC 6298 section 2.3 with a constant round-trip time.
    return max(path.minimum_rto_s, float(path.asymmetric().round_trip_s))


def padhye_bps(path: FlowPath) -> float:
    """Return Reno's rate by Padhye et al., in bit/s."""
    return float(
        model.padhye.throughput_bps(
            path=path.asymmetric(),
            loss_rate=path.loss_event_rate,
            retransmission_timeout_s=_timeout_s(path),
            window_segments=path.window_segments,
            segments_per_ack=path.avoidance_segments_per_ack,
        )
    )


def _mathis_bps(path: FlowPath) -> float:
    return float(
        model.mathis.throughput_bps(
            path=path.asymmetric(),
            loss_rate=path.loss_event_rate,
            segments_per_ack=path.avoidance_segments_per_ack,
        )
    )


def cubic_bps(path: FlowPath) -> float:
    """Return CUBIC's rate by RFC 9438 section 5, in bit/s."""
    return float(model.cubic.throughput_bps(path=path.asymmetric(), loss_rate=path.loss_event_rate))


def hybla_bps(path: FlowPath) -> float:
    """Return Hybla's rate by Caini and Firrincieli, in bit/s."""
    return float(
        model.hybla.throughput_bps(
            path=path.asymmetric(),
            loss_rate=path.loss_event_rate,
            reference_rtt_s=path.hybla_reference_rtt_s or 0.025,
            segments_per_ack=path.avoidance_segments_per_ack,
        )
    )


# The law of random losses of each rule that has one.
LOSS_LAWS: Final[Mapping[str, Callable[[FlowPath], float]]] = {
    "reno": padhye_bps,
    "cubic": cubic_bps,
    "hybla": hybla_bps,
}

MODELS: Final[tuple[Callable[[FlowPath], ModelAnswer], ...]] = (
    _obata2000,
    _delayed_ack,
    _lakshman,
    _mathis,
    _padhye,
    _cardwell,
    _cubic,
    _hybla,
)
