"""Measures of user experience: times of pages, responses and files, and quality of calls."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bentpipe.application_metrics import OPINION_SCORES, opinion_scores_of, times_of

if TYPE_CHECKING:
    from bentpipe.advice.advisor import RemedyResult
    from bentpipe.results import GroupResult, RunResult

# Parts of other measures: page load includes the first byte, MOS includes the delay.
_NOT_LISTED: Final = frozenset({"first byte", "mouth to ear", "capture to display"})
# With so much smaller a share of completed items, those completed are not comparable.
_FEWER_COMPLETED: Final = 0.05

# Remedies that are listed for each measure.
MOST_LISTED: Final = 3

MeasureName = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class UserMeasure:
    """A measure of a table's flows: a median in ms, or the mean opinion score of calls.

    `completed` is the share of the started items that were completed.
    """

    value: float
    completed: float


@dataclass(frozen=True, kw_only=True)
class RemedyExperience:
    """The effect of a remedy on a measure.

    `gain` is how many times better the measure is: 2 for half the time. Where anything is random,
    it is the median of `gains`, one for each simulated seed. `value` is that of the scenario's own
    seed.
    """

    result: RemedyResult
    value: float
    gain: float
    gains: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Experience:
    """A measure of user experience of a table's flows, and remedies, the best first.

    `what` is "MOS" or "video MOS" (a video call's), whose mean is `value`, or a time, whose median
    in ms is `value`: "page load", "response", "file", "mail", "echo", "packet delay", or "start-up"
    of a video.
    """

    flow: str
    what: str
    unit: str
    value: float
    remedies: tuple[RemedyExperience, ...]


def measures_of(result: RunResult) -> dict[MeasureName, UserMeasure]:
    """Return the measures of user experience by flow and measure."""
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
    for what, _, scores in opinion_scores_of(group.extra):
        if scores.get("mean") is not None:
            found[what] = UserMeasure(value=float(scores["mean"]), completed=1.0)
    return found


def experiences(
    without: Sequence[Mapping[MeasureName, UserMeasure]], remedies: Sequence[RemedyResult]
) -> tuple[Experience, ...]:
    """Return each measure without remedies, and the gains of all remedies.

    `without` has the measures of each seed.
    """
    return tuple(
        Experience(
            flow=flow,
            what=what,
            unit="" if what in OPINION_SCORES else "ms",
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
    """Return how many times better all flows are served with a remedy.

    The geometric mean over the tables of flows, each of which counts once: by its measures of user
    experience, or by its goodput if it has none. 0 if fewer items are completed.
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

    Empty if fewer items are completed with it.
    """
    gains = []
    for before, after in zip(without, with_it, strict=False):
        old, new = before.get(name), after.get(name)
        if old is None or new is None or new.completed < old.completed - _FEWER_COMPLETED:
            return ()
        better, worse = (new, old) if name[1] in OPINION_SCORES else (old, new)
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
