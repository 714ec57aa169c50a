"""Which closed forms apply to a flow, why the others don't, and what each gives."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from bentpipe import _native, model
from bentpipe.prediction.multicast import HEADER_BYTES, carousel
from bentpipe.prediction.network import Direction, directions
from bentpipe.prediction.paths import FlowPath, flow_paths
from bentpipe.scenario import Scenario

# Whose slow start grows the window by what is acknowledged, and no more: in a round trip, they send
# at most twice what was acknowledged in the one before.
_STANDARD_SLOW_START: Final = {
    rule for rule, (_, own, _) in _native.window_rules().items() if not own
}
# Fewer losses than this, as a share of packets, no transfer ever meets.
NO_LOSS: Final = 1e-15
# The recurrence of `delayed_ack` keeps a round's arrivals: some 150 bytes a segment.
LONGEST_ROUND: Final = 500_000
# Mathis et al. fit their constant to losses up to about this; above it, timeouts dominate.
HIGHEST_LIGHT_LOSS: Final = 0.02


@dataclass(frozen=True, kw_only=True)
class ModelAnswer:
    """What one model says of one flow; no numbers where it doesn't apply."""

    name: str
    applies: bool
    reason: str
    throughput_bps: float | None = None
    transfer_time_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class FlowPrediction:
    """The closed forms' view of one flow.

    Times run from the first data segment's departure to the last byte's arrival: the handshake,
    one round trip more, isn't in them. Rates are application bits per second.

    Of what is no TCP, windows are zero. Of calls and echoes the round trip is that of their own
    packets; of a flow to a group, on which nothing comes back, `uplink` is empty, its
    bottleneck has no name, and the round trip is the way there.
    """

    name: str
    downlink: tuple[str, ...]
    uplink: tuple[str, ...]
    downlink_bottleneck: str
    uplink_bottleneck: str
    round_trip_s: float
    capacity_bps: float
    loss_rate: float
    window_segments: int
    window_bytes: int
    saturation_window_bytes: int | None
    transfer_bytes: int | None
    # Nothing passes these; `binding` is the lowest.
    limits_bps: Mapping[str, float]
    binding: str
    # These a flow may pass: what its ACKs or its rule's answer to loss would come to in the long
    # run. Of a rule for which there is no formula, nothing is said about losses.
    estimates_bps: Mapping[str, float]
    # The lowest of the limits and estimates.
    lowest: str
    models: tuple[ModelAnswer, ...]
    # What the path does that the formulas don't know of: 'satellite.return: acks "compaction"'.
    ignored: tuple[str, ...] = ()
    # What the flow does; whether data both ways is its goodput; whether TCP carries it.
    application: str = "bulk"
    two_way: bool = False
    over_tcp: bool = True
    # The first flow with the same prediction, but for the names of links.
    like: str = ""
    # Where gateways split the connection: each part's prediction, in the order of the data. The
    # slowest governs, and all that is said above but the route is that part's.
    parts: tuple[FlowPrediction, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The predictions for every flow of a scenario."""

    scenario: str
    flows: tuple[FlowPrediction, ...]


def predict(
    scenario: Scenario | str | Path | Mapping[str, Any],
    *,
    settings: Mapping[str, object] | None = None,
) -> Prediction:
    """Evaluate the closed forms on a scenario.

    Parameters
    ----------
    scenario
        A scenario, a file, a ready-made scenario's name, or what a file would hold as a dict.
    settings
        Keys to change, such as `{"hosts.server.tcp.congestion_control": "reno"}`.

    Raises
    ------
    RequestError, ScenarioError
        There is no such scenario, or it is wrong.
    """
    resolved = Scenario.of(scenario).with_settings(settings or {}).resolved()
    return predict_resolved(resolved, name=resolved["name"])


def predict_resolved(resolved: Mapping[str, Any], *, name: str) -> Prediction:
    """Evaluate the closed forms on a scenario whose defaults are filled in."""
    # A hundred users have a hundred flows, and one prediction but for the names.
    alike: dict[Hashable, FlowPrediction] = {}
    found = _to_groups(resolved)
    for path in flow_paths(resolved):
        known = alike.get(path.likeness)
        if known is None:
            known = alike[path.likeness] = _predict_flow(path)
        found[path.flow] = _named_after(path, known)
    flows = tuple(found[flow["name"]] for flow in resolved["flows"])
    return Prediction(scenario=name, flows=flows)


def _named_after(path: FlowPath, known: FlowPrediction) -> FlowPrediction:
    """Return what is known of a flow with the names of this one, which is like it."""
    return replace(
        known,
        name=path.flow,
        downlink=tuple(each.name for each in path.downlink),
        uplink=tuple(each.name for each in path.uplink),
        downlink_bottleneck=path.down_bottleneck.name,
        uplink_bottleneck=path.up_bottleneck.name,
        ignored=_ignored(path),
        parts=tuple(map(_named_after, path.parts, known.parts)),
    )


def _to_groups(resolved: Mapping[str, Any]) -> dict[str, FlowPrediction]:
    """Return what can be said of flows to groups, by their names."""
    alike: dict[Hashable, FlowPrediction] = {}
    found = {}
    known = directions(resolved["links"])
    header_bytes = HEADER_BYTES[resolved["ip"]]
    for flow in resolved["flows"]:
        if flow["channel"] is None:
            continue
        route = [known[name] for name in flow["route"]["forward"]]
        likeness = (flow["channel"], tuple(replace(each, name="", to="") for each in route))
        if likeness not in alike:
            alike[likeness] = _to_group(flow, route, header_bytes)
        found[flow["name"]] = replace(alike[likeness], name=flow["name"])
    return found


def _to_group(
    flow: Mapping[str, Any], route: Sequence[Direction], header_bytes: int
) -> FlowPrediction:
    app = flow["app"]
    name, kind = flow["name"], app["kind"]
    part_bytes = app.get("datagram_bytes", 1_472)
    packet_bytes = part_bytes + header_bytes
    slowest = max(route, key=lambda each: each.packet_time_s(packet_bytes))
    limits = {"downlink": 8.0 * part_bytes / slowest.packet_time_s(packet_bytes)}
    estimates: dict[str, float] = {}
    answers: tuple[ModelAnswer, ...] = ()
    if kind == "carousel":
        # While it sends, and so at any time.
        limits["offered"] = app["rate_bps"]
        of = carousel(app, route=route, header_bytes=header_bytes)
        estimates["carousel"] = of.goodput_bps
        fits = app["rate_bps"] <= limits["downlink"]
        answer = ModelAnswer(
            name="carousel",
            applies=fits,
            reason=(
                f"{100.0 * of.whole:.3g}% of the files become whole, if losses are independent "
                "and nothing else waits before the link"
                if fits
                else "it is of files that pass every link as fast as they are sent"
            ),
            throughput_bps=of.goodput_bps if fits else None,
            transfer_time_s=of.time_s if fits else None,
        )
        answers = (answer,)
        if not fits:
            del estimates["carousel"]
    together = limits | estimates
    lost = 1.0 - math.prod(1.0 - each.loss_rate(packet_bytes) for each in route)
    return FlowPrediction(
        name=name,
        downlink=tuple(each.name for each in route),
        uplink=(),
        downlink_bottleneck=slowest.name,
        uplink_bottleneck="",
        round_trip_s=sum(each.delay_s + each.packet_time_s(packet_bytes) for each in route),
        capacity_bps=limits["downlink"],
        loss_rate=lost,
        window_segments=0,
        window_bytes=0,
        saturation_window_bytes=None,
        transfer_bytes=app.get("size_bytes"),
        limits_bps=limits,
        binding=min(limits, key=limits.__getitem__),
        estimates_bps=estimates,
        lowest=min(together, key=together.__getitem__),
        models=answers,
        ignored=tuple(f"{each.name}: {what}" for each in route for what in each.ignored),
        application=kind,
        over_tcp=False,
        like=name,
    )


def _ignored(path: FlowPath) -> tuple[str, ...]:
    links = (*path.downlink, *path.uplink)
    ignored = [f"{each.name}: {what}" for each in links for what in each.ignored]
    # Where the connection is split, each part has its own sender, and its own losses.
    for each in path.parts or (path,):
        if _meets_losses(each) and _loss_formula(each) is None:
            ignored.insert(0, f"losses, of {_who_answers_loss(each)}")
    if path.application != "bulk":
        ignored.insert(0, f"application: {path.application}")
    return tuple(dict.fromkeys(ignored))


def _predict_flow(path: FlowPath) -> FlowPrediction:
    if path.parts:
        # A gateway holds back who is faster: two connections, or three, and the slower one governs.
        parts = tuple(_predict_flow(part) for part in path.parts)
        slowest = min(
            parts, key=lambda part: {**part.limits_bps, **part.estimates_bps}[part.lowest]
        )
        return replace(slowest, name=path.flow, like=path.flow, parts=parts)
    asymmetric = path.asymmetric()
    answers = tuple(each(path) for each in _MODELS)
    if path.application != "bulk":
        reason = f"it is of one bulk transfer, and this is {path.application}"
        answers = tuple(
            ModelAnswer(name=each.name, applies=False, reason=reason) for each in answers
        )
    limits, estimates = _limits(path), _estimates(path)
    together = limits | estimates
    saturation = None
    # The equation assumes an uplink that is fast enough for the downlink's ACKs.
    if path.over_tcp and float(asymmetric.asymmetry) <= path.segments_per_ack:
        segments = float(model.obata2000.saturation_window_segments(path=asymmetric))
        saturation = math.ceil(segments) * path.segment_bytes
    return FlowPrediction(
        name=path.flow,
        downlink=tuple(each.name for each in path.downlink),
        uplink=tuple(each.name for each in path.uplink),
        downlink_bottleneck=path.down_bottleneck.name,
        uplink_bottleneck=path.up_bottleneck.name,
        round_trip_s=float(asymmetric.round_trip_s),
        capacity_bps=float(asymmetric.capacity_bps),
        loss_rate=path.loss_rate,
        window_segments=path.window_segments if path.over_tcp else 0,
        window_bytes=path.window_segments * path.segment_bytes if path.over_tcp else 0,
        saturation_window_bytes=saturation,
        transfer_bytes=path.transfer_bytes,
        limits_bps=limits,
        binding=min(limits, key=limits.__getitem__),
        estimates_bps=estimates,
        lowest=min(together, key=together.__getitem__),
        models=answers,
        ignored=_ignored(path),
        application=path.application,
        two_way=_counts_both_ways(path),
        over_tcp=path.over_tcp,
        like=path.flow,
    )


def _counts_both_ways(path: FlowPath) -> bool:
    """Whether data that goes against the downlink's direction is the flow's goodput, too."""
    return (path.over_tcp or path.two_way) and path.application not in ("bulk", "packets")


def _limits(path: FlowPath) -> dict[str, float]:
    """Return what no flow can pass, whatever its window rule does, in bit/s, by name."""
    asymmetric = path.asymmetric()
    packet_s = float(asymmetric.packet_time_s)
    propagation_s = float(asymmetric.propagation_s)
    # A window a round trip: at the least, a full segment's way there and an ACK's back.
    round_trip_s = propagation_s + packet_s
    if not path.compresses_uplink:
        round_trip_s += float(asymmetric.ack_time_s)
    limits = {"downlink": float(asymmetric.capacity_bps)}
    if not path.over_tcp and not path.two_way:
        # Datagrams may be longer than segments: the headers' share is as small as one likes.
        limits["downlink"] *= path.packet_bytes / path.segment_bytes
    elif _counts_both_ways(path):
        # Perhaps most of it goes where a transfer's ACKs go, and over several connections.
        back_s = max(each.packet_time_s(path.packet_bytes) for each in path.uplink)
        limits["downlink"] += 8.0 * path.segment_bytes / back_s
    elif path.windows:
        # gaid1998, section 3: window / T1, T1 being the server's round trip to the gateway.
        for each in path.windows:
            limits[each.name] = 8.0 * each.size_bytes / each.round_trip_s
    elif not path.intervening:
        # A gateway that acknowledges by itself lets more out than the ends' windows over the path.
        limits["window"] = 8.0 * path.window_bytes / round_trip_s
    if path.compresses_downlink and path.over_tcp:
        # The headers may shrink to nothing.
        limits["downlink"] *= path.packet_bytes / path.segment_bytes
    if path.loss_rate >= 1.0:
        limits["loss"] = 0.0
    if path.transfer_bytes is not None and path.application == "bulk":
        # Of the transfer, the last byte travels one way after as many round trips as slow start
        # needs at the least: no rule that keeps to RFC 5681 more than doubles the window in one.
        rounds = 0
        if path.congestion_control in _STANDARD_SLOW_START and not path.intervening:
            segments = math.ceil(path.transfer_bytes / path.segment_bytes)
            rounds = max(0, math.ceil(math.log2(segments / path.initial_window_segments + 1)) - 1)
        start_up_s = rounds * propagation_s + path.propagation_down_s
        if start_up_s > 0.0:
            limits["transfer size"] = 8.0 * path.transfer_bytes / start_up_s
    return limits


def _estimates(path: FlowPath) -> dict[str, float]:
    """Return what the path lets a flow expect, and what one may well pass, in bit/s, by name.

    ACKs that a full queue drops leave more to those that get through; while slow start goes on, an
    ACK lets more out than it acknowledges. And losses at random are not as far apart as formulas
    have them.
    """
    asymmetric = path.asymmetric()
    estimates: dict[str, float] = {}
    if path.datagrams is not None:
        estimates["offered"] = path.datagrams.offered_bps
    if not path.over_tcp:
        # Nobody acknowledges datagrams, or sends less of them for a loss.
        return estimates
    # Of ACKs that are made fewer or shorter on the way, nobody knows how many get through.
    if not path.changed_acks:
        acks = path.segments_per_ack * float(asymmetric.payload_bits / asymmetric.ack_time_s)
        estimates["uplink ACKs"] = acks
    formula = _loss_formula(path)
    if formula is not None and _meets_losses(path):
        estimates["loss"] = formula(path)
    return estimates


def _meets_losses(path: FlowPath) -> bool:
    """Whether TCP meets losses that a formula could be about."""
    return path.over_tcp and NO_LOSS < path.loss_rate < 1.0


def _who_answers_loss(path: FlowPath) -> str:
    """Return whose answer to loss it is: a window rule, or a gateway that sends again itself."""
    return path.intervening[0] if path.intervening else path.congestion_control


def _loss_formula(path: FlowPath) -> Callable[[FlowPath], float] | None:
    """Return what says how fast the sender's window rule is where packets are lost at random."""
    if path.intervening:
        return None
    if _reno_like(path):
        return _padhye_bps
    if path.congestion_control == "cubic":
        return _cubic_bps
    return _hybla_bps if path.hybla_reference_rtt_s is not None else None


def _obata2000(path: FlowPath) -> ModelAnswer:
    name = "obata2000"
    obstacle = _lossless_obstacle(path)
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
        transfer_bytes=_size(path),
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
    obstacle = _lossless_obstacle(path)
    if obstacle is not None:
        return _no_answer(name, obstacle)
    answer = model.delayed_ack.transfer(
        path=path.asymmetric(),
        transfer_bytes=_size(path),
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
    pipe, buffer = _pipe_segments(path), path.buffer_segments
    obstacle = _alone_obstacle(path)
    if obstacle is None and path.has_losses:
        obstacle = "it knows no losses but those of a full buffer"
    if obstacle is None and path.window_segments <= pipe + buffer:
        obstacle = "the window never overflows the downlink's buffer, so the window doesn't cycle"
    if obstacle is None and not _reno_like(path):
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
    return _light_loss("mathis", path, _random_loss_obstacle(path), _mathis_bps)


def _cubic(path: FlowPath) -> ModelAnswer:
    obstacle = _random_loss_obstacle(path, of="cubic")
    return _light_loss("cubic", path, obstacle, _cubic_bps)


def _hybla(path: FlowPath) -> ModelAnswer:
    obstacle = _random_loss_obstacle(path, of="hybla")
    if obstacle is None and path.hybla_reference_rtt_s is None:
        obstacle = 'a loss halves its window; here it leaves a quarter (after_loss = "quarter")'
    return _light_loss("hybla", path, obstacle, _hybla_bps)


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
            _short_obstacle(path)
            if unlimited <= window_bps
            else "it has no advertised window, and here the window binds before the loss does"
        )
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
    obstacle = _random_loss_obstacle(path) or _short_obstacle(path)
    if obstacle is not None:
        return _no_answer(name, obstacle)
    return ModelAnswer(
        name=name,
        applies=True,
        reason="a long transfer with random loss and timeouts",
        throughput_bps=_padhye_bps(path),
    )


def _cardwell(path: FlowPath) -> ModelAnswer:
    name = "cardwell"
    obstacle = _random_loss_obstacle(path)
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


def _alone_obstacle(path: FlowPath) -> str | None:
    if path.intervening:
        return f"{', '.join(path.intervening)} on the way is no plain router"
    if path.sharing:
        others = path.shares_with or f"{path.sharing} other flows"
        return f"the path is shared with {others}; the model has one flow"
    if path.changed_acks:
        return f"it has ACKs as the receiver sends them ({path.changed_acks})"
    return None


def _lossless_obstacle(path: FlowPath) -> str | None:
    """Say what keeps a model of a loss-free transfer from applying."""
    obstacle = _alone_obstacle(path)
    if obstacle is not None:
        return obstacle
    if path.has_losses:
        return "the downlink loses packets; it assumes none"
    if path.quick_acks and path.segments_per_ack > 1:
        which = "first" if path.quick_acks == "auto" else f"first {path.quick_acks}"
        return f"the {which} ACKs aren't delayed; it delays them all"
    if path.congestion_control not in _STANDARD_SLOW_START:
        return f"it models standard slow start, not {path.congestion_control}'s"
    sent = math.ceil(_size(path) / path.segment_bytes)
    # Slow start ends at the window, the threshold, or the transfer's end, whichever comes first.
    highest = min(path.window_segments, sent)
    if highest > LONGEST_ROUND:
        return f"it follows rounds of up to {LONGEST_ROUND:,} segments, not of {highest:,}"
    if highest > path.initial_threshold_segments:
        return "slow start ends before the window is fully open; it assumes the contrary"
    if path.slow_start in ("hystart", "hystart++") and highest > _circle_segments(path):
        return "HyStart may end slow start when round trips get longer; it assumes the contrary"
    # What waits at most: what the pipe doesn't hold; in slow start, a third of the window, because
    # three segments leave for two that are acknowledged; the initial window, sent at once.
    waiting = max(
        highest - _pipe_segments(path),
        highest / 3.0,
        min(path.initial_window_segments, highest) - 1,
    )
    if waiting > path.buffer_segments:
        return "the window overflows the downlink's buffer; it assumes no loss"
    return None


def _random_loss_obstacle(path: FlowPath, *, of: str = "reno") -> str | None:
    """Say what keeps a model of random losses from applying that is of this window rule."""
    obstacle = _alone_obstacle(path)
    if obstacle is None and path.loss_rate <= NO_LOSS:
        obstacle = "the downlink loses no packets at random"
    if obstacle is None and path.loss_rate >= 1.0:
        obstacle = "the downlink loses every packet"
    if (
        obstacle is None
        and path.congestion_control != of
        and not (of == "reno" and _reno_like(path))
    ):
        whose = {"reno": "Reno", "cubic": "CUBIC", "hybla": "Hybla"}[of]
        obstacle = f"it models {whose}'s answer to loss, not {path.congestion_control}'s"
    return obstacle


def _short_obstacle(path: FlowPath) -> str | None:
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


def _reno_like(path: FlowPath) -> bool:
    return path.congestion_control in {"reno", "newreno"}


def _circle_segments(path: FlowPath) -> float:
    """Return the window from which on data or ACKs queue."""
    asymmetric = path.asymmetric()
    ack_time_s = float(asymmetric.ack_time_s)
    unqueued = float(asymmetric.round_trip_s) / ack_time_s if ack_time_s > 0.0 else math.inf
    return min(_pipe_segments(path), unqueued * path.segments_per_ack)


def _pipe_segments(path: FlowPath) -> float:
    asymmetric = path.asymmetric()
    return float(asymmetric.round_trip_s / asymmetric.packet_time_s)


def _size(path: FlowPath) -> float:
    """Return the transfer's size; what the link carries until the end where it has none."""
    if path.transfer_bytes is not None:
        return path.transfer_bytes
    capacity_bps = float(path.asymmetric().capacity_bps)
    return max(path.segment_bytes, capacity_bps * path.duration_s / 8.0)


def _timeout_s(path: FlowPath) -> float:
    # RFC 6298 section 2.3 with a round-trip time that doesn't vary.
    return max(path.minimum_rto_s, float(path.asymmetric().round_trip_s))


def _padhye_bps(path: FlowPath) -> float:
    return float(
        model.padhye.throughput_bps(
            path=path.asymmetric(),
            loss_rate=path.loss_rate,
            retransmission_timeout_s=_timeout_s(path),
            window_segments=path.window_segments,
            segments_per_ack=path.avoidance_segments_per_ack,
        )
    )


def _mathis_bps(path: FlowPath) -> float:
    return float(
        model.mathis.throughput_bps(
            path=path.asymmetric(),
            loss_rate=path.loss_rate,
            segments_per_ack=path.avoidance_segments_per_ack,
        )
    )


def _cubic_bps(path: FlowPath) -> float:
    return float(model.cubic.throughput_bps(path=path.asymmetric(), loss_rate=path.loss_rate))


def _hybla_bps(path: FlowPath) -> float:
    return float(
        model.hybla.throughput_bps(
            path=path.asymmetric(),
            loss_rate=path.loss_rate,
            reference_rtt_s=path.hybla_reference_rtt_s or 0.025,
            segments_per_ack=path.avoidance_segments_per_ack,
        )
    )


_MODELS: Final[tuple[Callable[[FlowPath], ModelAnswer], ...]] = (
    _obata2000,
    _delayed_ack,
    _lakshman,
    _mathis,
    _padhye,
    _cardwell,
    _cubic,
    _hybla,
)
