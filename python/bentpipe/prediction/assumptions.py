"""Whether the lowest limit or estimate of a flow is likely what it gets, and within which margin.

Every formula has assumptions. This module checks them for a flow and states each one that fails.
If none fails, the value is likely, and `MARGINS` has the share of it by which the goodput may
differ. Otherwise it is an estimate without a margin.

The margins were measured, not chosen: `tools/prediction_margins.py` simulates random networks of
seeds from 1,000,000 on, which no test uses, and prints the largest deviation of each kind. A
margin is that deviation, or the mean and four standard deviations where that is more, rounded up
to the next 5%. docs/predict.md has the figures.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from bentpipe.kinds import window_rule
from bentpipe.prediction.acks import Acks, hold_back
from bentpipe.prediction.loads import offered_shares
from bentpipe.prediction.obstacles import NO_LOSS, pipe_segments
from bentpipe.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from bentpipe.prediction.paths import FlowPath
    from bentpipe.prediction.predictions import FlowPrediction

# By the name of the lowest limit or estimate. Kinds without an entry are never likely.
MARGINS: Final[Mapping[str, float]] = {
    "downlink": 0.20,
    "window": 0.25,
    "pacing": 0.10,
    "loss": 0.45,
    "uplink ACKs": 0.50,
    "offered": 0.05,
}

# A start-up that takes longer than this share of a transfer is part of what it gets.
_LONGEST_START_UP: Final = 0.1
# Round trips with a full queue, as a share of a transfer, which a recovery from losses may take.
_LONGEST_RECOVERY: Final = 0.1
# Two limits that are nearer than this hold a flow back in turn.
_APART: Final = 1.5
# Windows of fewer segments wait for the delayed-ACK timer (RFC 9293 section 3.8.6.3).
_FEW_SEGMENTS: Final = 10
# A transfer has at least so many windows before its last one counts for little.
_WINDOWS: Final = 20
# Random losses: so many make an average, and with more of them timeouts dominate (`mathis`).
_MANY_LOSSES: Final = 50
_LIGHT_LOSS: Final = 0.02
# Datagrams: so many make an average.
_MANY_PACKETS: Final = 100
# RFC 9438 section 5: CUBIC's window grows by C t^3, C in segments per cubed second.
_CUBIC_C: Final = 0.4


def doubts(path: FlowPath, prediction: FlowPrediction) -> tuple[str, ...]:
    """Return the assumptions that fail of the lowest limit or estimate of a flow.

    Parameters
    ----------
    path
        The flow's path; of a split connection, that of the whole.
    prediction
        The prediction for the flow, shares of links included.
    """
    return tuple(dict.fromkeys(_doubts(path, prediction)))


def margin(prediction: FlowPrediction) -> float | None:
    """Return the share by which the goodput may differ from the lowest; None if not likely."""
    return None if prediction.doubts else MARGINS[prediction.lowest]


def _doubts(path: FlowPath, prediction: FlowPrediction) -> Iterator[str]:
    kind = prediction.lowest
    if kind not in MARGINS:
        yield f'no margin was measured for "{kind}"'
    if path.parts:
        yield "gateways split the connection, and no formula knows how its parts fit together"
    if path.intervening:
        yield f"no formula knows the retransmissions of {', '.join(path.intervening)}"
    if path.sharing:
        others = path.shares_with or f"{path.sharing} other flows"
        decides = "chance decides who gets more"
        if path.datagrams is not None:
            decides = "a queue that they fill drops its packets"
        yield f"it shares the path with {others}; {decides}"
    yield from _of_links(path)
    if path.datagrams is not None:
        yield from _of_datagrams(path, prediction)
    elif not (path.one_transfer and path.over_tcp):
        yield f"the application ({path.application}) may send less"
    else:
        yield from _of_transfer(path, prediction)


def _of_links(path: FlowPath) -> Iterator[str]:
    """Yield the features of links that no formula includes."""
    for direction in (*path.downlink, *path.uplink):
        for what in direction.ignored:
            yield f"{direction.name} has {what}"


def _of_datagrams(path: FlowPath, prediction: FlowPrediction) -> Iterator[str]:
    if path.datagrams is None:
        return
    packets = path.duration_s * path.datagrams.offered_bps / (8.0 * path.datagrams.payload_bytes)
    if packets < _MANY_PACKETS:
        yield f"{packets:,.0f} packets are too few for an average"
    lost = 1.0 - (1.0 - path.loss_rate) * (1.0 - path.ack_loss_rate)
    if lost > _LIGHT_LOSS:
        yield f"links lose {lost:.1%} of the packets"
    if prediction.round_trip_s > _LONGEST_START_UP * path.duration_s:
        yield "the first packets take long to arrive, compared with the run"
    if path.processors:
        yield "a processor takes time for each packet"
    for direction, share in offered_shares(path):
        if share > 1.0 / _APART:
            yield f"{direction.name} has little more room than the packets take, or less"


def _of_transfer(path: FlowPath, prediction: FlowPrediction) -> Iterator[str]:
    values = prediction.rates_bps
    kind, lowest_bps = prediction.lowest, prediction.lowest_bps
    if lowest_bps <= 0.0:
        yield "nothing arrives"
        return
    lasts_s = path.duration_s
    if path.transfer_bytes is not None:
        lasts_s = min(lasts_s, 8.0 * path.transfer_bytes / lowest_bps)
    start_up_s = _start_up_s(path, prediction, lowest_bps)
    if start_up_s > _LONGEST_START_UP * lasts_s:
        yield (
            f"the start-up takes about {format_seconds(start_up_s)} "
            f"of {format_seconds(lasts_s)}; it is left out"
        )
    near = [name for name, value in values.items() if name != kind and value < _APART * lowest_bps]
    if near:
        yield f"{near[0]} is nearly as low, and both hold the flow back"
    first_s = prediction.round_trip_s + path.initial_window_segments * max(
        each.packet_time_s(path.packet_bytes) for each in path.downlink
    )
    if first_s > path.initial_rto_s:
        yield (
            f"the first window takes {format_seconds(first_s)}, longer than the first timeout "
            f"of {format_seconds(path.initial_rto_s)}"
        )
    if path.window_segments < _FEW_SEGMENTS:
        yield f"a window of {path.window_segments} segments waits for delayed ACKs"
    if any(each.listed_losses for each in path.downlink):
        yield "listed packets are lost"
    if path.ack_loss_rate > _LIGHT_LOSS:
        yield f"links lose {path.ack_loss_rate:.1%} of the ACKs"
    if path.pacing_bps is not None and kind == "pacing" and lowest_bps > 1.05 * path.pacing_bps:
        yield "the first burst of a short transfer is not paced"
    if kind == "loss":
        yield from _of_losses(path, lowest_bps * lasts_s)
    elif path.loss_rate > NO_LOSS:
        yield "random losses reduce the window, too"
    else:
        yield from _of_overflow(path, lasts_s)
    if kind == "uplink ACKs":
        yield from _of_acks(path, lasts_s)


def _start_up_s(path: FlowPath, prediction: FlowPrediction, lowest_bps: float) -> float:
    """Return the time until a flow sends at a rate: the handshake, and slow start.

    HyStart may end slow start early (RFC 9406); then the window grows as in congestion avoidance.
    """
    round_trip_s = prediction.round_trip_s
    segments = max(1.0, lowest_bps * round_trip_s / (8.0 * path.segment_bytes))
    rounds = 1.0 + max(0.0, math.log2(segments / path.initial_window_segments))
    if path.slow_start.startswith("hystart") and segments > path.initial_window_segments:
        return rounds * round_trip_s + math.cbrt(segments / _CUBIC_C)
    return rounds * round_trip_s


def _of_losses(path: FlowPath, bits: float) -> Iterator[str]:
    """Yield the assumptions of a law of random losses that fail for a transfer of `bits`."""
    if path.loss_rate > _LIGHT_LOSS:
        yield f"at {path.loss_rate:.1%} loss, timeouts dominate"
    losses = path.loss_rate * bits / (8.0 * path.segment_bytes)
    if losses < _MANY_LOSSES:
        yield f"about {losses:,.0f} losses are too few for an average"
    if path.largest_window_segments <= _FEW_SEGMENTS:
        yield "the window is small"


def _of_overflow(path: FlowPath, lasts_s: float) -> Iterator[str]:
    """Yield the assumptions that fail if the window overflows a queue."""
    pipe = pipe_segments(path)
    narrow = min(
        path.downlink,
        key=lambda each: (each.buffer_segments(path.packet_bytes), -each.packet_time_s(1.0)),
    )
    room = narrow.buffer_segments(path.packet_bytes)
    window = path.largest_window_segments
    if path.transfer_bytes is not None:
        window = min(window, math.ceil(path.transfer_bytes / path.segment_bytes))
    if window <= pipe + room:
        return
    if path.largest_window_bytes > path.window_bytes and path.window_segments < 2.0 * (pipe + room):
        yield (
            "the send memory fills up, and each write then releases a burst "
            f"that may overflow the queue of {narrow.name}"
        )
    if window < _APART * (pipe + room):
        # No segment follows the last one of a full receive window, so that its loss causes no
        # duplicate ACKs (RFC 5681 section 3.2).
        yield (
            f"the window is hardly larger than the queue of {narrow.name}, "
            "so that losses wait for timeouts"
        )
    kept = window_rule(path.congestion_control).kept_after_loss
    if kept is None and not path.measures_its_rate:
        yield (
            f"the window overflows the queue of {narrow.name}, "
            f"and no formula knows how {path.congestion_control} answers"
        )
    # A queue of this length keeps the link busy after a loss (obata2000, section 3.1, `lakshman`).
    needed = pipe * (1.0 / (kept or 0.5) - 1.0)
    if room < needed:
        yield f"the queue of {narrow.name} is too short to keep the link busy after a loss"
    waits_s = max(
        min(each.buffer_segments(path.packet_bytes), window - pipe)
        * each.packet_time_s(path.packet_bytes)
        for each in path.downlink
    )
    recovery_s = float(path.asymmetric().round_trip_s) + waits_s
    if recovery_s > _LONGEST_RECOVERY * lasts_s:
        yield (
            f"slow start overflows the queue of {narrow.name}, and a recovery of "
            f"{format_seconds(recovery_s)} or more is long for {format_seconds(lasts_s)}"
        )


def _of_acks(path: FlowPath, lasts_s: float) -> Iterator[str]:
    """Yield the assumptions that fail if ACKs set the rate of a transfer."""
    slowest = path.up_bottleneck
    acks = Acks.of(
        path,
        slowest,
        time_s=path.answer_time_s(slowest),
        round_trip_s=float(path.asymmetric().round_trip_s),
    )
    if path.measures_its_rate:
        yield f"{path.congestion_control} paces by the rate that it measures, not by ACKs"
    if not hold_back([acks]):
        yield "the uplink's queue drops ACKs, and those that remain acknowledge more"
    waits_s = acks.window * acks.time_s
    if waits_s > _LONGEST_RECOVERY * lasts_s:
        yield (
            f"ACKs queue for up to {format_seconds(waits_s)}, "
            f"which is long for {format_seconds(lasts_s)}"
        )
    if path.transfer_bytes is not None and path.transfer_bytes < _WINDOWS * path.window_bytes:
        # Its last window needs no ACKs.
        yield "the transfer has only a few windows, and the last of them waits for no ACK"
