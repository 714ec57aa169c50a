"""Measurements of published findings about CUBIC, Reno and BBR."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Final

from bentpipe.evaluation.experiments import LONG_FLOW, RIVAL_FLOW
from bentpipe.evaluation.networks import (
    BBR,
    BBR3,
    CUBIC,
    FAST,
    RENO,
    WIRED,
    Cell,
    Flows,
    Network,
    Rule,
)
from bentpipe.evaluation.observation import Observed, ratio
from bentpipe.studies.study import Claim, Measurement, Verdict, read_claims

FILE: Final = Path(__file__).parent / "findings.toml"
SEEDS: Final = (1, 2, 3)
_SHORT_QUEUES: Final = (0.25, 0.5, 1.0)
_RIVALS: Final = (1, 4, 16)
_PAPER: Final = replace(FAST, rtt_s=0.1, duration_s=60.0, settle_s=0.0)
# Queues in bandwidth-delay products, with the network and its duration.
_DEEP: Final = (16.0, replace(WIRED, rate_bps=10e6, duration_s=400.0, settle_s=100.0))
_VERY_DEEP: Final = (32.0, replace(WIRED, rate_bps=10e6, duration_s=200.0, settle_s=60.0))
_FAR: Final = replace(FAST, rtt_s=0.04, duration_s=120.0, settle_s=20.0)

Observe = Callable[[Cell], Observed]


def _alone(rule: Rule, queue_bdp: float, *, count: int = 1, network: Network = WIRED) -> Cell:
    flows = (replace(LONG_FLOW, count=count),)
    return Cell(network=network, subject=rule, flows=flows, seed=SEEDS[0], queue_bdp=queue_bdp)


def _beside_cubic(
    rule: Rule, queue_bdp: float, *, rivals: int = 1, network: Network = WIRED
) -> Cell:
    flows = (LONG_FLOW, replace(RIVAL_FLOW, count=rivals))
    return Cell(network=network, subject=rule, flows=flows, seed=SEEDS[0], queue_bdp=queue_bdp)


def _with_loss(rule: Rule, share: float) -> Cell:
    losses = (("links.bottleneck.forward.errors.packet_loss_rate", f"{share:g}"),)
    return replace(_alone(rule, 1.0, network=_PAPER), settings=losses)


def _two_round_trips(rule: Rule) -> Cell:
    flows = (LONG_FLOW, Flows(name="other", host="rival"))
    return Cell(
        network=_FAR,
        subject=rule,
        rival=rule,
        flows=flows,
        seed=SEEDS[0],
        queue_bdp=0.25,
        settings=(("links.rival_access.delay", "61 ms"),),
    )


def cells() -> list[Cell]:
    """Return the simulations of all findings."""
    found = [_beside_cubic(rule, bdp) for rule in (BBR, BBR3) for bdp in (0.5, 1.0)]
    found += [_alone(rule, bdp, count=4) for rule in (BBR, BBR3, CUBIC) for bdp in _SHORT_QUEUES]
    found += [_alone(rule, 4.0, count=count) for rule in (BBR, CUBIC) for count in (1, 4)]
    found += [_with_loss(CUBIC, 0.001), _with_loss(CUBIC, 0.01), _with_loss(BBR, 0.01)]
    found += [_two_round_trips(rule) for rule in (RENO, CUBIC)]
    found += [
        _beside_cubic(BBR, bdp, rivals=rivals, network=network)
        for bdp, network in (_DEEP, _VERY_DEEP)
        for rivals in _RIVALS
    ]
    return [replace(cell, seed=seed) for cell in found for seed in SEEDS]


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """The simulations of the findings; numbers are medians over the seeds."""

    observe: Observe

    def of(self, cell: Cell, number: Callable[[Observed], float]) -> float:
        """Return a number of a cell."""
        return median(number(self.observe(replace(cell, seed=seed))) for seed in SEEDS)


def _share(seen: Observed) -> float:
    ours = seen.goodput("long")
    return ratio(ours, ours + seen.goodput("other"))


def _shallow_share(evidence: Evidence) -> Measurement:
    share = evidence.of(_beside_cubic(BBR, 0.5), _share)
    return Measurement(measured=f"{share:.0%} of the goodput", values={"bbr_share": [share]})


def _dropped(evidence: Evidence, rule: Rule) -> list[float]:
    return [evidence.of(_alone(rule, bdp, count=4), Observed.dropped) for bdp in _SHORT_QUEUES]


def _listed(values: Sequence[float], show: Callable[[float], str]) -> str:
    return ", ".join(show(each) for each in values)


def _percent(value: float) -> str:
    return f"{value:.1%}"


def _shallow_loss(evidence: Evidence) -> Measurement:
    bbr, cubic = _dropped(evidence, BBR), _dropped(evidence, CUBIC)
    over = [ratio(one, other) for one, other in zip(bbr, cubic, strict=True)]
    return Measurement(
        measured=f"BBR drops {_listed(bbr, _percent)}, CUBIC {_listed(cubic, _percent)}",
        values={"bbr_dropped": bbr, "over_cubic": over},
    )


def _deep_queue(evidence: Evidence) -> Measurement:
    bbr, cubic = (
        evidence.of(_alone(rule, 4.0, count=4), Observed.mean_queue) for rule in (BBR, CUBIC)
    )
    return Measurement(
        measured=f"BBR {bbr:.2f} products, CUBIC {cubic:.2f}",
        values={"bbr_queue_rtt": [bbr], "cubic_queue_rtt": [cubic]},
    )


def _bufferbloat(evidence: Evidence) -> Measurement:
    bbr, cubic = (evidence.of(_alone(rule, 4.0), Observed.mean_queue) for rule in (BBR, CUBIC))
    return Measurement(
        measured=f"CUBIC {cubic:.2f} products, BBR {bbr:.2f}",
        values={"cubic_queue_rtt": [cubic], "bbr_queue_rtt": [bbr]},
    )


def _random_loss(evidence: Evidence) -> Measurement:
    def used(rule: Rule, loss: float) -> float:
        return evidence.of(_with_loss(rule, loss), lambda seen: seen.utilisation("long"))

    little, much, bbr = used(CUBIC, 0.001), used(CUBIC, 0.01), used(BBR, 0.01)
    return Measurement(
        measured=f"CUBIC uses {little:.1%} of the link at 0.1% and {much:.1%} at 1%; "
        f"BBR {bbr:.1%} at 1%",
        values={
            "cubic_at_0_1_percent": [little],
            "cubic_at_1_percent": [much],
            "bbr_at_1_percent": [bbr],
        },
    )


def _bbr3_loss(evidence: Evidence) -> Measurement:
    new, old = _dropped(evidence, BBR3), _dropped(evidence, BBR)
    return Measurement(
        measured=f"version 3 drops {_listed(new, _percent)}, version 1 {_listed(old, _percent)}",
        values={
            "bbr3_dropped": new,
            "bbr_over_bbr3": [ratio(one, other) for one, other in zip(old, new, strict=True)],
        },
    )


def _friendlier(evidence: Evidence) -> Measurement:
    def cubic(rule: Rule, bdp: float) -> float:
        return evidence.of(_beside_cubic(rule, bdp), lambda seen: seen.goodput("other"))

    more = [ratio(cubic(BBR3, bdp), cubic(BBR, bdp)) for bdp in (0.5, 1.0)]
    return Measurement(
        measured=f"CUBIC gets {_listed(more, lambda each: f'{each:.1f}')} times as much",
        values={"cubic_beside_bbr3_over_bbr": more},
    )


def _round_trips(evidence: Evidence) -> Measurement:
    def short_over_long(rule: Rule) -> float:
        return evidence.of(
            _two_round_trips(rule), lambda seen: ratio(seen.goodput("long"), seen.goodput("other"))
        )

    reno, cubic = short_over_long(RENO), short_over_long(CUBIC)
    return Measurement(
        measured=f"Reno {reno:.1f} to 1, CUBIC {cubic:.1f} to 1",
        values={"reno_ratio": [reno], "cubic_over_reno": [ratio(cubic, reno)]},
    )


def _fixed_share(queue: tuple[float, Network], evidence: Evidence) -> Measurement:
    bdp, network = queue
    shares = [
        evidence.of(_beside_cubic(BBR, bdp, rivals=rivals, network=network), _share)
        for rivals in _RIVALS
    ]
    return Measurement(
        measured=f"{_listed(shares, lambda each: f'{each:.0%}')} beside "
        f"{_listed(_RIVALS, str)} flows",
        values={"bbr_share": shares, "spread": [ratio(max(shares), min(shares))]},
    )


_MEASURES: Final[Mapping[str, Callable[[Evidence], Measurement]]] = {
    "bbr-shallow-share": _shallow_share,
    "bbr-shallow-loss": _shallow_loss,
    "bbr-deep-queue": _deep_queue,
    "cubic-bufferbloat": _bufferbloat,
    "random-loss": _random_loss,
    "bbr3-loss": _bbr3_loss,
    "bbr3-friendlier": _friendlier,
    "reno-round-trips": _round_trips,
    "bbr-fixed-share": partial(_fixed_share, _DEEP),
    "bbr-fixed-share-very-deep": partial(_fixed_share, _VERY_DEEP),
}


def claims() -> tuple[Claim, ...]:
    """Return the findings as they are published."""
    return read_claims(FILE)


def check(observe: Observe) -> tuple[Verdict, ...]:
    """Measure the findings; `observe` returns a cell's simulation."""
    evidence = Evidence(observe=observe)
    return tuple(
        Verdict(study="evaluate", claim=claim, measurement=_MEASURES[claim.id](evidence))
        for claim in claims()
    )
