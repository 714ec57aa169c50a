"""The prediction for each flow of a scenario: its limits, its estimates, and every model."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from bentpipe import model
from bentpipe.kinds import window_rule
from bentpipe.prediction.acks import uplink_acks_bps
from bentpipe.prediction.assumptions import doubts, margin
from bentpipe.prediction.models import LOSS_LAWS, MODELS
from bentpipe.prediction.multicast import HEADER_BYTES, carousel
from bentpipe.prediction.network import Direction, directions
from bentpipe.prediction.obstacles import (
    NO_LOSS,
    STANDARD_SLOW_START,
    alone_obstacle,
)
from bentpipe.prediction.pages import page_load
from bentpipe.prediction.paths import FlowPath, flow_paths
from bentpipe.prediction.predictions import FlowPrediction, ModelAnswer, Prediction
from bentpipe.prediction.sharing import sharing_estimates
from bentpipe.scenario import Scenario
from bentpipe.units import format_rate


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
    alike: dict[Hashable, tuple[FlowPath, FlowPrediction]] = {}
    alone: dict[str, FlowPrediction] = {}
    paths = flow_paths(resolved)
    for path in paths:
        likeness = path.likeness
        if likeness not in alike:
            alike[likeness] = (path, _predict_flow(path))
        alone[path.flow] = _named_after(path, *alike[likeness])
    alone = _with_copies(paths, alone)
    found = _to_groups(resolved) | _sharing(paths, alone)
    flows = tuple(found[flow["name"]] for flow in resolved["flows"])
    return Prediction(scenario=name, flows=flows)


def _with_copies(
    paths: Sequence[FlowPath], alone: Mapping[str, FlowPrediction]
) -> dict[str, FlowPrediction]:
    """Mark flows whose segments a gateway's timer sends again although they only wait.

    A hybrid gateway without a TCP has no congestion window: all segments in its memory are on
    their way to the hosts. If they fill the link, the ACKs of a connection stop while the segments
    of the others pass. A pause longer than the timer makes the gateway send waiting segments again.
    """
    together: dict[tuple[str, float, str], list[FlowPath]] = {}
    for path in paths:
        # A transfer with a size may have ended.
        if path.by_timer is not None and path.windows and path.transfer_bytes is None:
            name, timer_s = path.by_timer
            if timer_s is not None and path.over_tcp:
                key = (name, timer_s, path.down_bottleneck.name)
                together.setdefault(key, []).append(path)
    found = dict(alone)
    for (name, timer_s, _), members in together.items():
        held_bits = 8.0 * sum(min(each.size_bytes for each in path.windows) for path in members)
        capacity_bps = float(members[0].asymmetric().capacity_bps)
        is_full = held_bits > capacity_bps * float(members[0].asymmetric().round_trip_s)
        silence_s = held_bits * (1.0 - 1.0 / len(members)) / capacity_bps
        if is_full and silence_s > timer_s:
            what = f"what goes again by the timer of {name}"
            for path in members:
                known = found[path.flow]
                found[path.flow] = replace(known, ignored=(what, *known.ignored))
    return found


def _sharing(
    paths: Sequence[FlowPath], alone: Mapping[str, FlowPrediction]
) -> dict[str, FlowPrediction]:
    """Return the predictions of flows with their shares of common links."""
    shared = sharing_estimates(paths, alone)
    firsts: dict[Hashable, str] = {}
    found = {}
    for path in paths:
        prediction = alone[path.flow]
        found_here = shared.get(path.flow)
        if found_here is not None:
            estimates = {**prediction.estimates_bps, **found_here}
            together = {**prediction.limits_bps, **estimates}
            prediction = replace(
                prediction,
                estimates_bps=estimates,
                lowest=min(together, key=together.__getitem__),
            )
        failed = (*doubts(path, prediction), *_range_of_losses(path, prediction))
        prediction = replace(prediction, doubts=failed)
        prediction = replace(prediction, margin=margin(prediction))
        like = firsts.setdefault((prediction.like, tuple((found_here or {}).items())), path.flow)
        found[path.flow] = replace(prediction, like=like)
    return found


def _named_after(path: FlowPath, like: FlowPath, known: FlowPrediction) -> FlowPrediction:
    """Return the prediction of a like flow with the names of this one."""
    obstacle, own = alone_obstacle(like), alone_obstacle(path)
    if obstacle != own:
        # The reason names the flow that shares the path.
        models = [
            replace(each, reason=own or "") if each.reason == obstacle else each
            for each in known.models
        ]
        known = replace(known, models=tuple(models))
    return replace(
        known,
        name=path.flow,
        downlink=tuple(each.name for each in path.downlink),
        uplink=tuple(each.name for each in path.uplink),
        downlink_bottleneck=path.down_bottleneck.name,
        uplink_bottleneck=path.up_bottleneck.name,
        ignored=_ignored(path),
        parts=tuple(map(_named_after, path.parts, like.parts, known.parts)),
    )


def _to_groups(resolved: Mapping[str, Any]) -> dict[str, FlowPrediction]:
    """Return the predictions of flows to groups, by name."""
    alike: dict[Hashable, FlowPrediction] = {}
    found = {}
    known = directions(resolved["links"], duration_s=resolved["duration_s"])
    header_bytes = HEADER_BYTES[resolved["ip"]]
    for flow in resolved["flows"]:
        if flow["channel"] is None:
            continue
        route = [known[name] for name in flow["route"]["forward"]]
        likeness = (
            flow["channel"],
            tuple(replace(each, name="", to="", carrier="") for each in route),
        )
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
        # A carousel never sends faster than its rate.
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
        doubts=("no margin was measured for flows to groups",),
        models=answers,
        ignored=tuple(f"{each.name}: {what}" for each in route for what in each.ignored),
        application=kind,
        over_tcp=False,
        like=name,
    )


def _ignored(path: FlowPath) -> tuple[str, ...]:
    links = (*path.downlink, *path.uplink)
    ignored = [f"{each.name}: {what}" for each in links for what in each.ignored]
    # Each part of a split connection has its own sender and its own losses.
    for each in path.parts or (path,):
        if _meets_losses(each) and _loss_formula(each) is None:
            ignored.insert(0, f"losses, of {_who_answers_loss(each)}")
    if path.processing_with_acks_s and not _is_one_way_tcp(path):
        ignored.insert(0, "processing: a packet's time at a processor")
    if not path.one_transfer:
        ignored.insert(0, f"application: {path.application}")
    return tuple(dict.fromkeys(ignored))


def _predict_flow(path: FlowPath) -> FlowPrediction:
    if path.parts:
        # Flow control at the gateways: the slowest part governs.
        parts = tuple(_predict_flow(replace(part, page=None)) for part in path.parts)
        slowest = min(parts, key=lambda part: part.lowest_bps)
        load = page_load(path)
        models = slowest.models if load is None else (*slowest.models, load)
        return replace(slowest, name=path.flow, like=path.flow, parts=parts, models=models)
    asymmetric = path.asymmetric()
    answers = tuple(each(path) for each in MODELS)
    if not path.one_transfer:
        reason = f"it is of one bulk transfer, and this is {path.application}"
        answers = tuple(
            ModelAnswer(name=each.name, applies=False, reason=reason) for each in answers
        )
        load = page_load(path)
        if load is not None:
            answers = (*answers, load)
    limits, estimates = _limits(path), _estimates(path)
    together = limits | estimates
    saturation = None
    # The equation assumes an uplink that carries the downlink's ACKs.
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


def _is_one_way_tcp(path: FlowPath) -> bool:
    """Whether one connection carries full segments one way and ACKs the other."""
    return path.over_tcp and path.one_transfer


def _counts_both_ways(path: FlowPath) -> bool:
    """Whether data in the uplink's direction also counts as goodput."""
    return (path.over_tcp or path.two_way) and path.application not in ("bulk", "packets")


def _limits(path: FlowPath) -> dict[str, float]:
    """Return the limits that hold for every window rule, in bit/s, by name."""
    asymmetric = path.asymmetric()
    propagation_s, ack_s = float(asymmetric.propagation_s), float(asymmetric.ack_time_s)
    # A flow that sends for a part of the run may do so while the path is at its best.
    time_s = Direction.packet_time_s if path.all_the_run else Direction.least_packet_time_s
    if path.changes:
        propagation_s = sum(each.least_delay_s for each in (*path.downlink, *path.uplink))
        ack_s = 0.0
    # The shortest round trip: the time of a full segment and of an ACK.
    round_trip_s = propagation_s + _slowest_s(path.downlink, path.packet_bytes, time_s)
    if not path.compresses_uplink:
        round_trip_s += ack_s
    limits = {"downlink": _downlink_bps(path, time_s)}
    if not path.over_tcp or _counts_both_ways(path):
        # There is no window, or one for each of several connections.
        pass
    elif path.windows:
        # gaid1998, section 3: window / T1, T1 being the server's round trip to the gateway.
        for each in path.windows:
            limits[each.name] = 8.0 * each.size_bytes / each.round_trip_s
    elif not path.intervening:
        # A gateway that acknowledges by itself allows more in flight than the ends' windows.
        limits["window"] = 8.0 * path.largest_window_bytes / round_trip_s
    if path.loss_rate >= 1.0:
        limits["loss"] = 0.0
    if _is_one_way_tcp(path):
        if path.pacing_bps is not None and (paced := _paced_bps(path, path.pacing_bps)) < math.inf:
            limits["pacing"] = paced
        if path.processing_s:
            limits["processing"] = 8.0 * path.segment_bytes / path.processing_s
    if path.transfer_bytes is not None and path.one_transfer:
        # The last byte travels one way after the round trips of slow start. A rule that follows
        # RFC 5681 at most doubles the window in each.
        rounds = 0
        if path.congestion_control in STANDARD_SLOW_START and not path.intervening:
            segments = math.ceil(path.transfer_bytes / path.segment_bytes)
            rounds = max(0, math.ceil(math.log2(segments / path.initial_window_segments + 1)) - 1)
        start_up_s = rounds * propagation_s + sum(each.least_delay_s for each in path.downlink)
        if start_up_s > 0.0:
            limits["transfer size"] = 8.0 * path.transfer_bytes / start_up_s
    return limits


# Bursts of a paced sender, as in Linux (docs/pacing.md): ten segments at the start, then those of
# a millisecond, at least two segments and at most 64 KiB.
_NOT_PACED: Final = 10
_BURST_S: Final = 1e-3
_SHORTEST_BURST: Final = 2
_LONGEST_BURST_BYTES: Final = 1 << 16


def _paced_bps(path: FlowPath, rate_bps: float) -> float:
    """Return the limit of a sender that paces at this rate; infinite for a short transfer."""
    burst = max(_SHORTEST_BURST * path.segment_bytes, rate_bps * _BURST_S / 8.0)
    # A late timer is made up for by half of a burst.
    free_bytes = _NOT_PACED * path.segment_bytes + 1.5 * min(burst, _LONGEST_BURST_BYTES)
    # The unpaced bytes count more in a short transfer.
    lasts_s = path.duration_s
    if path.transfer_bytes is not None:
        lasts_s = min(lasts_s, 8.0 * (path.transfer_bytes - free_bytes) / rate_bps)
    return rate_bps + 8.0 * free_bytes / lasts_s if lasts_s > 0.0 else math.inf


def _slowest_s(
    route: Sequence[Direction], packet_bytes: float, time_s: Callable[[Direction, float], float]
) -> float:
    return max(time_s(each, packet_bytes) for each in route)


def _downlink_bps(path: FlowPath, time_s: Callable[[Direction, float], float]) -> float:
    """Return the goodput of the links, given the time of a packet on each, in bit/s."""
    segment_bits = 8.0 * path.segment_bytes
    found = segment_bits / _slowest_s(path.downlink, path.packet_bytes, time_s)
    if not path.over_tcp and not path.two_way and path.datagrams is None:
        # Datagrams may be longer than segments: the share of headers may be near zero.
        found *= path.packet_bytes / path.segment_bytes
    elif _counts_both_ways(path):
        # Most of the data may take the uplink, over several connections.
        found += segment_bits / _slowest_s(path.uplink, path.packet_bytes, time_s)
    if path.compresses_downlink and path.over_tcp:
        # Compressed headers may be near zero bytes.
        found *= path.packet_bytes / path.segment_bytes
    return found


def _estimates(path: FlowPath) -> dict[str, float]:
    """Return the estimates, which a flow may exceed, in bit/s, by name.

    When a full queue drops ACKs, the remaining ones acknowledge more. In slow start, an ACK
    releases more segments than it acknowledges. The laws of loss assume equal distances between
    losses.
    """
    estimates: dict[str, float] = {}
    has_window = path.over_tcp and not _counts_both_ways(path) and not path.windows
    if has_window and not path.intervening and path.largest_window_bytes > path.window_bytes:
        # The send memory for a window a round trip; a single write may exceed it.
        round_trip_s = float(path.asymmetric().propagation_s + path.asymmetric().packet_time_s)
        estimates["send memory"] = 8.0 * path.window_bytes / round_trip_s
    if path.changes or any(each.states for each in (*path.downlink, *path.uplink)):
        estimates |= _on_average(path)
    if path.processing_with_acks_s > path.processing_s and _is_one_way_tcp(path):
        estimates["processing, with ACKs"] = 8.0 * path.segment_bytes / path.processing_with_acks_s
    if path.datagrams is not None:
        estimates["offered"] = path.datagrams.offered_bps
    if not path.over_tcp:
        # Datagrams are not acknowledged, and losses do not reduce their rate.
        return estimates
    # No formula has the number of ACKs that remain where a link removes ACKs.
    if (acks := uplink_acks_bps(path)) < math.inf:
        estimates["uplink ACKs"] = acks
    formula = _loss_formula(path)
    if formula is not None and _meets_losses(path):
        # Each state of the path has its own loss rate: laws of loss are convex, so that the rate at
        # the average loss rate is below the average of the rates (Jensen's inequality).
        estimates["loss"] = sum(
            share * _rate_in_state(state, formula)
            for share, state in path.states()
            if state is not None
        )
    return estimates


def _range_of_losses(path: FlowPath, prediction: FlowPrediction) -> tuple[str, ...]:
    """Return as a reason the range of the law of loss on a path whose losses change.

    If losses change slowly, each state counts by itself. If they change fast, a flow meets the
    average loss rate; losses that are clustered in time then leave more than the law has (E. Altman
    and others, A Stochastic Model of TCP/IP with Stationary Random Losses, SIGCOMM 2000).
    """
    formula = _loss_formula(path)
    slow_bps = prediction.estimates_bps.get("loss")
    if formula is None or slow_bps is None or not _meets_losses(path):
        return ()
    fast_bps = formula(path)
    if fast_bps >= slow_bps or math.isclose(fast_bps, slow_bps):
        return ()
    low, high = format_rate(fast_bps), format_rate(slow_bps)
    return (f"losses change: about {low} if they change fast, {high} if slowly",)


def _rate_in_state(path: FlowPath, formula: Callable[[FlowPath], float]) -> float:
    """Return the rate by a law of loss in a state of the path; the link's without losses."""
    if path.loss_rate >= 1.0:
        return 0.0
    return formula(path) if path.loss_rate > NO_LOSS else float(path.asymmetric().capacity_bps)


def _on_average(path: FlowPath) -> dict[str, float]:
    """Return the averages of the limits over the run, for a path that changes with time."""
    asymmetric = path.asymmetric()
    found = {}
    links = (*path.downlink, *path.uplink)
    if any(each.states for each in links):
        average_bps = sum(
            share * _downlink_bps(state, Direction.packet_time_s)
            for share, state in path.states()
            if state is not None
        )
        limit_bps = _downlink_bps(path, Direction.packet_time_s)
        if not (path.all_the_run and math.isclose(average_bps, limit_bps)):
            found["downlink, on average"] = average_bps
    elif not path.all_the_run:
        found["downlink, on average"] = _downlink_bps(path, Direction.packet_time_s)
    has_window = path.over_tcp and not _counts_both_ways(path)
    moves = any(each.least_delay_s != each.delay_s for each in links)
    if moves and has_window and not path.windows and not path.intervening:
        round_trip_s = float(asymmetric.propagation_s + asymmetric.packet_time_s)
        found["window, on average"] = 8.0 * path.largest_window_bytes / round_trip_s
    return found


def _meets_losses(path: FlowPath) -> bool:
    """Whether the path has random losses within the range of the formulas."""
    return path.over_tcp and NO_LOSS < path.loss_rate < 1.0


def _who_answers_loss(path: FlowPath) -> str:
    """Return the name of what responds to losses: the window rule, or a gateway."""
    return path.intervening[0] if path.intervening else path.congestion_control


def _loss_formula(path: FlowPath) -> Callable[[FlowPath], float] | None:
    """Return the law of random losses of the sender's window rule; None if there is none."""
    if path.intervening:
        return None
    law = window_rule(path.congestion_control).loss_law
    if law == "hybla" and path.hybla_reference_rtt_s is None:
        return None
    return None if law is None else LOSS_LAWS[law]
