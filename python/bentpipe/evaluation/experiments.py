"""The simulations of each criterion, and what is measured in them.

A condition is one situation: the cells of a rule with a seed, and the quantities that they give.
Quantities, bounds and their sources are in `criteria.toml`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Final

import numpy as np

from bentpipe.evaluation.networks import (
    CONSTRAINED,
    CUBIC,
    FAST,
    GEO,
    LEO,
    LONG,
    RENO,
    SLOW,
    WIRED,
    Cell,
    Flows,
    Network,
    Rule,
    Settings,
)
from bentpipe.evaluation.observation import Observed, jain, ratio

Measured = Mapping[str, float]

LONG_FLOW: Final = Flows(name="long")
RIVAL_FLOW: Final = Flows(name="other", host="rival")


@dataclass(frozen=True, kw_only=True)
class Condition:
    """A situation in which a rule is measured.

    `cells` returns the simulations of a rule with a seed. `measure` returns the quantities by the
    names of `criteria.toml`; it gets one observation for each cell.
    """

    name: str
    cells: Callable[[Rule, int], Sequence[Cell]]
    measure: Callable[..., Measured]


def _bdp(products: float) -> str:
    return f"queue {products:g} BDP"


def _several(count: int) -> str:
    return "1 flow" if count == 1 else f"{count} flows"


def single(
    network: Network,
    measure: Callable[[Observed], Measured],
    *,
    name: str = "",
    queue_bdp: float = 1.0,
    count: int = 1,
    queue: str = "",
    settings: Settings = (),
    probes: tuple[str, ...] = (),
) -> Condition:
    """Return the condition of long flows of the rule alone."""

    def cells(rule: Rule, seed: int) -> list[Cell]:
        return [
            Cell(
                network=network,
                subject=rule,
                flows=(replace(LONG_FLOW, count=count),),
                seed=seed,
                queue_bdp=queue_bdp,
                queue=queue,
                settings=settings,
                probes=probes,
            )
        ]

    described = name or f"{network.name}, {_bdp(queue_bdp)}, {_several(count)}"
    return Condition(name=described, cells=cells, measure=measure)


def _standing(seen: Observed) -> Measured:
    return {"standing_queue": seen.standing_queue()}


def _dropped(seen: Observed) -> Measured:
    return {"dropped": seen.dropped()}


def _jain(seen: Observed) -> Measured:
    return {"jain": jain(seen.goodputs("long"))}


def _utilisation(seen: Observed) -> Measured:
    return {"utilisation": seen.utilisation("long")}


# Congestion collapse.

_OUTAGE_S: Final = (20.0, 80.0)


def _sends_per_round(seen: Observed) -> Measured:
    (flow,) = seen.flows("long")
    rounds = seen.network.duration_s / seen.network.rtt_s
    return {"sends_per_round": flow.segments_sent / rounds}


def _late_sends(seen: Observed) -> Measured:
    start_s, end_s = _OUTAGE_S
    sent = seen.curve("long.sent_segment")
    return {"late_sends": float(len(sent.between(start_s + 30.0, end_s)))}


def _useful(seen: Observed) -> Measured:
    return {"useful": seen.utilisation("long")}


def _lossy(network: Network, share: float, **keys: str) -> Network:
    losses = (("links.bottleneck.forward.errors.packet_loss_rate", f"{share:g}"),)
    more = tuple((f"links.bottleneck.forward.errors.{key}", text) for key, text in keys.items())
    return replace(network, settings=(*network.settings, *losses, *more))


_OUTAGE: Final = replace(
    WIRED,
    duration_s=100.0,
    settings=(
        (
            "links.bottleneck.outages",
            f"[{{ at = '{_OUTAGE_S[0]:g} s', lasts = '{_OUTAGE_S[1] - _OUTAGE_S[0]:g} s' }}]",
        ),
    ),
)
COLLAPSE: Final = (
    single(
        replace(_lossy(WIRED, 0.5), duration_s=100.0),
        _sends_per_round,
        name="wired, half of the packets lost",
    ),
    single(_OUTAGE, _late_sends, name="wired, no link for 60 s", probes=("long.sent_segment",)),
    single(SLOW, _useful, name="slow, 100 flows, queue 2 BDP", queue_bdp=2.0, count=100),
)
BUFFERBLOAT: Final = (
    single(WIRED, _standing, queue_bdp=4.0),
    single(WIRED, _standing, queue_bdp=4.0, count=4),
    single(LEO, _standing, queue_bdp=4.0),
    single(GEO, _standing, queue_bdp=4.0),
)
HIGH_LOSS: Final = (
    *(single(WIRED, _dropped, queue_bdp=bdp, count=4) for bdp in (0.25, 0.5, 1.0)),
    single(LEO, _dropped, queue_bdp=0.5, count=4),
    single(GEO, _dropped, queue_bdp=0.5, count=4),
)


# Fairness among flows of the rule.


def late_comer(network: Network, *, queue_bdp: float) -> Condition:
    """Return the condition of a flow that begins while another one fills the link."""
    settled = replace(
        network, duration_s=1.5 * network.duration_s, settle_s=1.2 * network.duration_s
    )
    start = Flows(name="late", start=f"{network.settle_s:g} s")

    def measure(seen: Observed) -> Measured:
        return {"jain": jain([*seen.goodputs("long"), *seen.goodputs("late")])}

    def cells(rule: Rule, seed: int) -> list[Cell]:
        flows = (LONG_FLOW, start)
        return [Cell(network=settled, subject=rule, flows=flows, seed=seed, queue_bdp=queue_bdp)]

    name = f"{network.name}, {_bdp(queue_bdp)}, a late flow"
    return Condition(name=name, cells=cells, measure=measure)


def round_trips(network: Network, *, longer_s: float, queue_bdp: float = 1.0) -> Condition:
    """Return the condition of two flows of the rule of which one has a longer round trip."""
    length = replace(network, duration_s=2.0 * network.duration_s)
    access = (("links.rival_access.delay", f"{(longer_s / 2.0 + 0.001) * 1e3:g} ms"),)

    def measure(seen: Observed) -> Measured:
        shares = seen.goodput("long"), seen.goodput("other")
        return {"rtt_ratio": ratio(max(shares), min(shares))}

    def cells(rule: Rule, seed: int) -> list[Cell]:
        return [
            Cell(
                network=length,
                subject=rule,
                rival=rule,
                flows=(LONG_FLOW, RIVAL_FLOW),
                seed=seed,
                queue_bdp=queue_bdp,
                settings=access,
            )
        ]

    round_trip_ms = (network.rtt_s + longer_s) * 1e3
    name = f"{network.name}, round trips of {network.rtt_s * 1e3:g} and {round_trip_ms:g} ms"
    return Condition(name=name, cells=cells, measure=measure)


FAIRNESS: Final = (
    single(WIRED, _jain, count=4),
    single(WIRED, _jain, queue_bdp=4.0, count=4),
    single(LEO, _jain, count=4),
    single(GEO, _jain, count=4),
    late_comer(WIRED, queue_bdp=1.0),
    late_comer(GEO, queue_bdp=1.0),
    # Three times the round trip.
    round_trips(WIRED, longer_s=0.08),
)


# Short flows.

_SHORT: Final = "100 kB"


def _short_flows(network: Network, host: str) -> Flows:
    """Return short flows that begin at random times, one a second on average."""
    count = int(network.duration_s - network.settle_s) * 3 // 4
    return Flows(
        name="short",
        host=host,
        count=count,
        app=f'{{ kind = "bulk", size = "{_SHORT}" }}',
        start=f"{network.settle_s:g} s",
        spacing="exponential(1 s)",
    )


def short_flows(network: Network) -> Condition:
    """Return the condition of short flows of the rule beside a long one of the rule."""

    def measure(alone: Observed, beside: Observed) -> Measured:
        return {
            "slowdown": ratio(beside.completion_s("short"), alone.completion_s("short")),
            "long_share": beside.utilisation("long"),
        }

    def cells(rule: Rule, seed: int) -> list[Cell]:
        short = _short_flows(network, "user")
        cell = Cell(network=network, subject=rule, user=rule, flows=(short,), seed=seed)
        return [cell, replace(cell, flows=(LONG_FLOW, short))]

    name = f"{network.name}, {_bdp(1.0)}, 100 kB beside a long flow"
    return Condition(name=name, cells=cells, measure=measure)


def transfer(network: Network, size: str, *, queue_bdp: float = 1.0) -> Condition:
    """Return the condition of one transfer on an empty path."""

    def measure(seen: Observed) -> Measured:
        return {"transfer_s": seen.completion_s("short")}

    def cells(rule: Rule, seed: int) -> list[Cell]:
        app = f'{{ kind = "bulk", size = "{size}" }}'
        flows = (Flows(name="short", app=app),)
        return [Cell(network=network, subject=rule, flows=flows, seed=seed, queue_bdp=queue_bdp)]

    name = f"{network.name}, {_bdp(queue_bdp)}, {size} alone"
    return Condition(name=name, cells=cells, measure=measure)


SHORT_FLOWS: Final = (
    short_flows(WIRED),
    short_flows(LEO),
    short_flows(GEO),
    transfer(WIRED, "100 kB"),
    transfer(GEO, "1 MB"),
)


# Beside standard controls.


def beside(
    network: Network, rival: Rule, *, queue_bdp: float, count: int = 1, rivals: int = 1
) -> Condition:
    """Return the condition of flows of the rule beside those of a standard control.

    The second cell has flows of the standard control in the place of the rule's.
    """

    def measure(mixed: Observed, standard: Observed) -> Measured:
        theirs = mixed.goodput("other")
        fair = network.goodput_bps * rivals / (rivals + count)
        return {
            "kept": ratio(theirs, standard.goodput("other")),
            "least_share": theirs / fair,
        }

    def cells(rule: Rule, seed: int) -> list[Cell]:
        flows = (replace(LONG_FLOW, count=count), replace(RIVAL_FLOW, count=rivals))
        cell = Cell(
            network=network, subject=rule, rival=rival, flows=flows, seed=seed, queue_bdp=queue_bdp
        )
        return [cell, replace(cell, subject=rival)]

    numbers = f"{count} beside {rivals} {_NAMES[rival.name]}"
    name = f"{network.name}, {_bdp(queue_bdp)}, {numbers}"
    return Condition(name=name, cells=cells, measure=measure)


_NAMES: Final = {"cubic": "CUBIC", "reno": "Reno"}
COEXISTENCE: Final = (
    *(beside(WIRED, CUBIC, queue_bdp=bdp) for bdp in (0.5, 1.0, 4.0)),
    *(beside(WIRED, RENO, queue_bdp=bdp) for bdp in (0.5, 1.0, 4.0)),
    beside(WIRED, CUBIC, queue_bdp=1.0, count=4),
    beside(LEO, CUBIC, queue_bdp=1.0),
    beside(GEO, CUBIC, queue_bdp=1.0),
    beside(GEO, RENO, queue_bdp=1.0),
)


# Calls.


def calls(network: Network, *, queue_bdp: float) -> Condition:
    """Return the condition of a call and a video call beside a long flow of the rule."""
    voice = Flows(name="call", host="user", app='{ kind = "voice" }', start="1 s")
    video = Flows(name="video", host="user", app='{ kind = "video-call" }', start="1 s")

    def measure(alone: Observed, beside: Observed) -> Measured:
        metric = "video_call_rate_bps"
        return {
            "call_mos": beside.application("call", "call_mos"),
            "video_rate": ratio(
                beside.application("video", metric), alone.application("video", metric)
            ),
        }

    def cells(rule: Rule, seed: int) -> list[Cell]:
        cell = Cell(
            network=network, subject=rule, flows=(voice, video), seed=seed, queue_bdp=queue_bdp
        )
        return [cell, replace(cell, flows=(LONG_FLOW, voice, video))]

    return Condition(name=f"{network.name}, {_bdp(queue_bdp)}", cells=cells, measure=measure)


REAL_TIME: Final = (
    calls(WIRED, queue_bdp=1.0),
    calls(WIRED, queue_bdp=4.0),
    calls(LEO, queue_bdp=4.0),
    calls(GEO, queue_bdp=1.0),
)


# Short and long flows of different rules.


def mixed_lengths(network: Network) -> Condition:
    """Return the condition of short and long flows, one kind CUBIC and the other of the rule."""

    def measure(long: Observed, short: Observed, standard: Observed) -> Measured:
        return {
            "short_time": ratio(long.completion_s("short"), standard.completion_s("short")),
            "long_kept": ratio(short.goodput("long"), standard.goodput("long")),
        }

    def cells(rule: Rule, seed: int) -> list[Cell]:
        flows = (LONG_FLOW, _short_flows(network, "user"))
        cell = Cell(network=network, subject=rule, user=CUBIC, flows=flows, seed=seed)
        return [
            cell,
            replace(cell, subject=CUBIC, user=rule),
            replace(cell, subject=CUBIC),
        ]

    return Condition(name=f"{network.name}, {_bdp(1.0)}", cells=cells, measure=measure)


MIXED_LENGTHS: Final = (mixed_lengths(WIRED), mixed_lengths(LEO), mixed_lengths(GEO))


# Congestion control principles.

_LOST_PACKET: Final = 15_000


def _reduction(seen: Observed) -> Measured:
    """Measure what is in flight some round trips after one loss, relative to before it."""
    lost = seen.curve("bottleneck.forward.lost")
    in_flight = seen.curve("long.in_flight")
    after = lost.times_s[lost.values >= 1.0]
    if not len(after):
        return {"after_loss": float("nan")}
    lost_s = float(after[0])
    rtt_s = float(seen.curve("long.smoothed_rtt").at(np.array([lost_s]))[0])
    before = in_flight.between(lost_s - 2.0 * rtt_s, lost_s)
    later = in_flight.between(lost_s + 3.0 * rtt_s, lost_s + 5.0 * rtt_s)
    if not len(before) or not len(later):
        return {"after_loss": float("nan")}
    return {"after_loss": ratio(fmean(later.tolist()), fmean(before.tolist()))}


PRINCIPLES: Final = (
    single(
        WIRED,
        _reduction,
        name="wired, queue 4 BDP, one packet lost",
        queue_bdp=4.0,
        settings=(("links.bottleneck.forward.errors.lost_packets", f"[{_LOST_PACKET}]"),),
        probes=("long.in_flight", "long.smoothed_rtt"),
    ),
)


# Deployment.


def minority(network: Network) -> Condition:
    """Return the condition of one flow of the rule among seven of CUBIC."""
    others = 7

    def measure(mixed: Observed, standard: Observed) -> Measured:
        fair = network.goodput_bps / (others + 1)
        return {
            "own_share": mixed.goodput("long") / fair,
            "others_kept": ratio(mixed.goodput("other"), standard.goodput("other")),
        }

    def cells(rule: Rule, seed: int) -> list[Cell]:
        flows = (LONG_FLOW, replace(RIVAL_FLOW, count=others))
        cell = Cell(network=network, subject=rule, flows=flows, seed=seed)
        return [cell, replace(cell, subject=CUBIC)]

    name = f"{network.name}, {_bdp(1.0)}, 1 beside {others} CUBIC"
    return Condition(name=name, cells=cells, measure=measure)


_SPLIT: Final = tuple(
    (f"gateways.{gateway}.{key}", value)
    for gateway in ("near", "far")
    for key, value in (("kind", "split"), ("facing", "bottleneck"))
)
DEPLOYMENT: Final = (
    minority(WIRED),
    minority(GEO),
    single(GEO, _utilisation, name="GEO, split gateways at both ends", settings=_SPLIT),
)


# Paths.

TAIL_DROP: Final = (
    single(SLOW, _utilisation),
    *(single(WIRED, _utilisation, queue_bdp=bdp) for bdp in (0.25, 1.0, 4.0)),
    single(FAST, _utilisation),
    single(LONG, _utilisation),
)


def _lossy_use(network: Network, share: float, name: str, **keys: str) -> Condition:
    def measure(seen: Observed) -> Measured:
        return {"utilisation": seen.utilisation("long") / (1.0 - share)}

    return single(_lossy(network, share, **keys), measure, name=name)


_FADING: Final = (
    (
        "links.bottleneck.forward.fading",
        "{ clear = 'exponential(2 s)', faded = 'exponential(1 s)', rate = '10 Mbit/s' }",
    ),
)
WIRELESS: Final = (
    _lossy_use(WIRED, 0.001, "wired, 0.1% lost"),
    _lossy_use(WIRED, 0.01, "wired, 1% lost"),
    _lossy_use(WIRED, 0.01, "wired, 1% lost in bursts of 5", mean_burst_packets="5"),
    _lossy_use(LEO, 0.001, "LEO, 0.1% lost"),
    _lossy_use(GEO, 0.001, "GEO, 0.1% lost"),
    single(WIRED, _utilisation, name="wired, rate halved at random times", settings=_FADING),
)
_ECN: Final = (("hosts.subject.tcp.ecn", '"request"'),)


def _aqm(queue: str, name: str, target_s: float, settings: Settings = ()) -> Condition:
    def measure(seen: Observed) -> Measured:
        return {
            "aqm_utilisation": seen.utilisation("long"),
            "over_target": seen.mean_queue() * seen.network.rtt_s / target_s,
        }

    return single(WIRED, measure, name=f"wired, {name}", queue=queue, settings=settings, count=2)


_ROOM: Final = 'limit = "1000 packets"'
AQM: Final = (
    _aqm(f'{{ kind = "codel", {_ROOM} }}', "CoDel", 0.005),
    _aqm(f'{{ kind = "fq-codel", {_ROOM} }}', "FQ-CoDel", 0.005),
    _aqm(f'{{ kind = "pie", {_ROOM} }}', "PIE", 0.015),
    _aqm(f'{{ kind = "codel", {_ROOM}, ecn = true }}', "CoDel that marks (ECN)", 0.005, _ECN),
    _aqm(f'{{ kind = "pie", {_ROOM}, ecn = true }}', "PIE that marks (ECN)", 0.015, _ECN),
)


def _jitter() -> str:
    """Return a delay that changes every 100 ms, as where a terminal waits for its turn to send."""
    delays_ms = (18, 24, 20, 30, 18, 27, 22, 33, 19, 25)
    steps = [
        f"{{ at = '{place * 100} ms', delay = '{delay} ms' }}"
        for place, delay in enumerate(delays_ms)
    ]
    return f"[{', '.join(steps)}]"


_JITTER: Final = (
    ("links.bottleneck.forward.schedule", _jitter()),
    ("links.bottleneck.forward.schedule_every", "1 s"),
)
_LONGER: Final = (
    (
        "links.bottleneck.schedule",
        "[{ at = '20 s', delay = '60 ms' }, { at = '40 s', delay = '18 ms' }]",
    ),
)
VARYING_DELAY: Final = (
    single(WIRED, _utilisation, name="wired, delay changes every 100 ms", settings=_JITTER),
    single(WIRED, _utilisation, name="wired, 40 ms, then 124 ms, then 40 ms", settings=_LONGER),
    single(LEO, _utilisation, name="LEO, handover every 15 s"),
)


def _constrained(seen: Observed) -> Measured:
    (flow,) = seen.flows("long")
    return {
        "utilisation": seen.utilisation("long"),
        "retransmitted": ratio(flow.segments_retransmitted, flow.segments_sent),
    }


IOT: Final = (
    single(
        CONSTRAINED,
        _constrained,
        name="constrained, queue of 10 packets",
        queue='{ limit = "10 packets" }',
    ),
)
HIGH_DELAY: Final = (
    *(single(GEO, _utilisation, queue_bdp=bdp) for bdp in (0.25, 1.0)),
    transfer(GEO, "10 MB"),
)


def reordered(network: Network, share: float, late_by: str) -> Condition:
    """Return the condition of some packets that arrive late."""
    setting = f"{{ probability = {share:g}, late_by = '{late_by}' }}"

    def measure(late: Observed, in_order: Observed) -> Measured:
        (flow,) = late.flows("long")
        return {
            "of_in_order": ratio(late.goodput("long"), in_order.goodput("long")),
            "retransmitted": ratio(flow.segments_retransmitted, flow.segments_sent),
        }

    def cells(rule: Rule, seed: int) -> list[Cell]:
        cell = Cell(network=network, subject=rule, flows=(LONG_FLOW,), seed=seed, queue_bdp=4.0)
        late = (("links.bottleneck.forward.reordering", setting),)
        return [replace(cell, settings=late), cell]

    name = f"{network.name}, {share:.0%} of packets up to 40 ms late"
    return Condition(name=name, cells=cells, measure=measure)


REORDERING: Final = (
    reordered(WIRED, 0.01, "uniform(1 ms, 40 ms)"),
    reordered(GEO, 0.01, "uniform(1 ms, 40 ms)"),
)


# Changes.

_BURST_S: Final = (20.0, 40.0)


def onset(network: Network) -> Condition:
    """Return the condition of datagrams that take three quarters of the link for a while."""
    load = 0.75 * network.rate_bps
    start_s, end_s = (each * network.duration_s / 60.0 for each in _BURST_S)
    app = (
        '{ kind = "packets", size = "1200 B", '
        f'interval = "{1228.0 * 8.0 / load * 1e6:.0f} us", lasts = "{end_s - start_s:g} s" }}'
    )
    burst = Flows(name="burst", host="user", app=app, start=f"{start_s:g} s")

    def measure(seen: Observed) -> Measured:
        (flow,) = seen.flows("burst")
        messages = flow.extra["messages"]
        after = end_s + (end_s - start_s) / 2.0
        return {
            "burst_lost": 1.0 - ratio(messages["received"], messages["sent"]),
            "afterwards": seen.utilisation("long", from_s=end_s, until_s=after),
        }

    def cells(rule: Rule, seed: int) -> list[Cell]:
        return [Cell(network=network, subject=rule, flows=(LONG_FLOW, burst), seed=seed)]

    return Condition(
        name=f"{network.name}, {_bdp(1.0)}, a burst of {end_s - start_s:g} s",
        cells=cells,
        measure=measure,
    )


TRANSIENT: Final = (onset(WIRED), onset(GEO))


def path_change(network: Network) -> Condition:
    """Return the condition of a path with a quarter of the rate for a third of the time."""
    start_s, end_s = network.duration_s / 3.0, 2.0 * network.duration_s / 3.0
    longer_ms = (0.75 * network.rtt_s - 0.002) * 1e3
    usual_ms = (0.5 * network.rtt_s - 0.002) * 1e3
    steps = (
        f"[{{ at = '{start_s:g} s', rate = '{network.rate_bps / 4.0:.0f} bit/s', "
        f"delay = '{longer_ms:g} ms' }}, {{ at = '{end_s:g} s', "
        f"rate = '{network.rate_bps:.0f} bit/s', delay = '{usual_ms:g} ms' }}]"
    )

    def measure(seen: Observed) -> Measured:
        slow = seen.utilisation("long", from_s=start_s, until_s=end_s)
        fast = seen.utilisation("long", from_s=end_s)
        return {
            "narrow_used": 4.0 * slow,
            "wide_used": fast,
            "dropped": seen.dropped(from_s=start_s, until_s=end_s),
        }

    return single(
        network,
        measure,
        name=f"{network.name}, a quarter of the rate for {end_s - start_s:g} s",
        settings=(("links.bottleneck.schedule", steps),),
    )


PATH_CHANGE: Final = (path_change(WIRED), path_change(GEO))

EXPERIMENTS: Final[Mapping[str, Sequence[Condition]]] = {
    "collapse": COLLAPSE,
    "bufferbloat": BUFFERBLOAT,
    "high-loss": HIGH_LOSS,
    "fairness": FAIRNESS,
    "short-flows": SHORT_FLOWS,
    "coexistence": COEXISTENCE,
    "real-time": REAL_TIME,
    "mixed-lengths": MIXED_LENGTHS,
    "principles": PRINCIPLES,
    "deployment": DEPLOYMENT,
    "tail-drop": TAIL_DROP,
    "wireless": WIRELESS,
    "aqm": AQM,
    "varying-delay": VARYING_DELAY,
    "constrained": IOT,
    "high-delay": HIGH_DELAY,
    "reordering": REORDERING,
    "transient": TRANSIENT,
    "path-change": PATH_CHANGE,
}
