"""What users feel of a network: how long pages, answers and files take, how calls sound."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bentpipe.application_metrics import times_of

if TYPE_CHECKING:
    from bentpipe.advice.advisor import RemedyResult
    from bentpipe.results import GroupResult, RunResult

# A page's first byte is part of its loading, and how a call sounds has the delay in it.
_NOT_LISTED: Final = frozenset({"first byte", "mouth to ear"})
_OPINION_SCORE: Final = "MOS"
# Where so much less than before comes to an end, those that do are others than before.
_FEWER_COMPLETED: Final = 0.05

# Remedies that are told of for each measure.
MOST_LISTED: Final = 3

MeasureName = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class UserMeasure:
    """One measure of a table's flows: a median in ms, or a call's mean opinion score.

    `ended` is the share of what was begun that it is about.
    """

    value: float
    completed: float


@dataclass(frozen=True, kw_only=True)
class RemedyExperience:
    """A remedy, and what a measure came to with it.

    `gain` is how many times better that is: a time's half is 2. Where anything is random it is the
    median of `gains`, one for each seed that the remedy was simulated with, and `value` is that of
    the scenario's own.
    """

    result: RemedyResult
    value: float
    gain: float
    gains: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Experience:
    """What the users of a table's flows feel, and remedies, the best first.

    `what` is "page load", "response", "file", "mail", "echo", "packet delay", "start-up" (a
    video's), of which `value` is the median, in ms, or "MOS", of which it is the mean.
    """

    flow: str
    what: str
    unit: str
    value: float
    remedies: tuple[RemedyExperience, ...]


def measures_of(result: RunResult) -> dict[MeasureName, UserMeasure]:
    """Return what the users of each table's flows feel, by flow and measure."""
    return {
        (group.name, what): measure
        for group in result.summary.groups
        for what, measure in _measures_of_group(group).items()
    }


def _measures_of_group(group: GroupResult) -> dict[str, UserMeasure]:
    found = {
        what: UserMeasure(value=float(quantiles["p50"]), completed=ended / max(begun, 1))
        for what, (ended, begun), quantiles in times_of(group.extra)
        if what not in _NOT_LISTED and quantiles.get("p50") is not None
    }
    scores = group.extra.get("call_mos")
    if scores is not None and scores.get("mean") is not None:
        found[_OPINION_SCORE] = UserMeasure(value=float(scores["mean"]), completed=1.0)
    return found


def experiences(
    without: Sequence[Mapping[MeasureName, UserMeasure]], remedies: Sequence[RemedyResult]
) -> tuple[Experience, ...]:
    """Put together what is felt without any remedy, one result a seed, and with each."""
    return tuple(
        Experience(
            flow=flow,
            what=what,
            unit="" if what == _OPINION_SCORE else "ms",
            value=measure.value,
            remedies=tuple(
                sorted(
                    (
                        gained
                        for each in remedies
                        if (gained := _gain((flow, what), without, each)) is not None
                    ),
                    key=lambda each: (
                        each.result.remedy.every_network,
                        -each.gain,
                        -each.result.gain,
                    ),
                )
            ),
        )
        for (flow, what), measure in without[0].items()
    )


def overall_gain(
    measures: tuple[Mapping[MeasureName, UserMeasure], Mapping[MeasureName, UserMeasure]],
    rates_bps: tuple[Mapping[str, float], Mapping[str, float]],
) -> float:
    """Return how many times better all flows are served, before and with a remedy.

    The geometric mean over the tables of flows, each of which counts once: by what its users feel,
    or by its goodput where they feel nothing that is measured. 0 where less comes to an end.
    """
    tables: dict[str, list[float]] = {}
    before, after = measures
    for name in before:
        gains = gains_of(name, [before], [after])
        tables.setdefault(name[0], []).append(gains[0] if gains else 0.0)
    for table, rate_bps in rates_bps[0].items():
        if table not in tables:
            tables[table] = [rates_bps[1].get(table, 0.0) / rate_bps if rate_bps > 0.0 else 1.0]
    return _geometric_mean([_geometric_mean(gains) for gains in tables.values()])


def _geometric_mean(values: Sequence[float]) -> float:
    return statistics.geometric_mean(values) if all(value > 0.0 for value in values) else 0.0


def gains_of(
    name: MeasureName,
    without: Sequence[Mapping[MeasureName, UserMeasure]],
    with_it: Sequence[Mapping[MeasureName, UserMeasure]],
) -> tuple[float, ...]:
    """Return how many times better a measure is with a remedy, for each seed.

    Nothing where less comes to an end with it.
    """
    gains = []
    for before, after in zip(without, with_it, strict=False):
        old, new = before.get(name), after.get(name)
        if old is None or new is None or new.completed < old.completed - _FEWER_COMPLETED:
            return ()
        better, worse = (new, old) if name[1] == _OPINION_SCORE else (old, new)
        gains.append(better.value / worse.value if worse.value > 0.0 else 1.0)
    return tuple(gains)


def _gain(
    name: MeasureName, without: Sequence[Mapping[MeasureName, UserMeasure]], result: RemedyResult
) -> RemedyExperience | None:
    gains = gains_of(name, without, result.measures)
    if not gains:
        return None
    return RemedyExperience(
        result=result,
        value=result.measures[0][name].value,
        gain=statistics.median(gains),
        gains=gains,
    )
