"""Which remedies are worth further seeds: the rule by which most are simulated only once.

What a remedy gives with the scenario's own seed says nearly always whether it is any good, because
the scenario without it had the same luck. So every remedy is simulated with that seed, and with the
further ones only if it may be among those that an advice is about. How much further seeds may
change, those tell that have them. Nothing here depends on which simulation ends first: the same
file has the same advice.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final

from bentpipe.advice.bench import WORTHWHILE, Bench, Trial
from bentpipe.advice.felt import MOST_TOLD, gains_of

if TYPE_CHECKING:
    from bentpipe.advice.felt import Felt, Name
    from bentpipe.advice.remedy import Remedy

# What gives less on top of another remedy is no sign that more is to be had: half of WORTHWHILE.
_PROMISING: Final = 1.01
# Where luck moves gains apart by more, one seed says little of what is on top of another remedy.
_MUCH_LUCK: Final = 1.1
# Those that have all seeds before anything is known of luck.
_LEADERS: Final = 2
# The best remedies that are tried in pairs: overall, and of each measure of user experience.
_PAIRED: Final = 3
_PAIRED_OF_MEASURE: Final = 2

# The gains by some measure, one a seed; none where the measure says nothing of a remedy.
_Gains = Callable[[Trial], Sequence[float]]


def tried_alone(bench: Bench, several: Iterable[Remedy]) -> list[Trial]:
    """Simulate each remedy by itself; all seeds for those that are, or may be, worth doing."""
    return _simulated_as_needed(bench, several)


def _simulated_as_needed(
    bench: Bench, several: Iterable[Remedy], *, known: Sequence[Trial] = ()
) -> list[Trial]:
    """Simulate remedies with the first seed, and those that may be listed with all seeds.

    `known` are remedies that were simulated before and are listed with these.
    """
    trials = bench.tried(several)
    measures = _measures(bench)
    wanted = (
        _near(trials, measures, known) if known else _leaders(trials, measures, anyway=bench.random)
    )
    while wanted:
        completed = bench.complete(wanted)
        # A remedy that fails with a further seed is dropped.
        trials = [each for each in trials if each not in wanted or each in completed]
        wanted = _near(trials, measures, known)
    return trials


def pairs_of_best(bench: Bench, alone: Sequence[Trial]) -> list[Trial]:
    """Simulate pairs of the best remedies of different kinds.

    The best remedies are the first three overall and the first two of each measure of user
    experience. Those of one list are of different kinds. All pairs get the first seed, and further
    seeds by the rule that selects them for single remedies.
    """
    candidates = [each for each in alone if not each.remedy.every_network]
    best = [
        each
        for gains, most in _rankings(bench)
        for each in _first_of_kinds(candidates, gains)[:most]
    ]
    pairs = [
        one.remedy.and_also(other.remedy)
        for one, other in combinations(dict.fromkeys(best), 2)
        if one.remedy.kind != other.remedy.kind
    ]
    return _simulated_as_needed(bench, pairs, known=alone)


def _rankings(bench: Bench) -> list[tuple[_Gains, int]]:
    """Return the lists that pairs are made of, each with the number of remedies to take."""
    without = [each.felt for each in bench.without]
    return [
        (_overall, _PAIRED),
        *((_gains_of_measure(without, name), _PAIRED_OF_MEASURE) for name in without[0]),
    ]


def _first_of_kinds(trials: Sequence[Trial], gains: _Gains) -> list[Trial]:
    """Return the best remedy of each kind, if it is worthwhile; the best one first.

    Equal gains are ranked by goodput.
    """
    first_of_kind: dict[str, Trial] = {}
    for each in sorted(trials, key=lambda each: (_median(gains, each), each.gain), reverse=True):
        if _median(gains, each) >= WORTHWHILE:
            first_of_kind.setdefault(each.remedy.kind, each)
    return list(first_of_kind.values())


def tried_on_top(
    bench: Bench, best: Trial, alone: Sequence[Trial], known: Sequence[Trial] = ()
) -> Trial | None:
    """Return the best remedy with another one on top, if that gives more; all seeds were tried.

    What gives nothing by itself, or even takes something, may give once another limit is gone: long
    segments in a small window, then in a large one. So each family is tried. But its best one comes
    first, and the others only if that one may give something. `known` are combinations that were
    simulated already.
    """
    simulated = {each.remedy.settings: each for each in known}
    families = _families(best, alone)
    scatter = _scatter(best, alone)

    def on_top(several: Iterable[Trial]) -> list[Trial]:
        wanted = [best.remedy.and_also(each.remedy) for each in several]
        new = bench.tried([each for each in wanted if each.settings not in simulated])
        return new + [simulated[each.settings] for each in wanted if each.settings in simulated]

    firsts = on_top(first for first, *_ in families)
    poor = [each.remedy for each in firsts if not _promises(each, best, scatter)]
    further = on_top(
        other
        for first, *others in families
        if best.remedy.and_also(first.remedy) not in poor
        for other in others
    )
    return _better(bench, best, firsts + further, scatter)


def _promises(trial: Trial, best: Trial, scatter: float) -> bool:
    return trial.overall_gains[0] * scatter >= _PROMISING * best.overall_gains[0]


def _scatter(best: Trial, alone: Sequence[Trial]) -> float:
    """Return by which factor luck moves remedies beside the best one; 1 where it is not much.

    What moves all of them alike is nobody's luck.
    """
    moved = [1.0]
    for each in alone:
        ratios = [mine / its for mine, its in zip(each.gains, best.gains, strict=False) if its > 0]
        moved += [
            max(ratio / ratios[0], ratios[0] / ratio)
            for ratio in ratios[1:]
            if ratio > 0 and ratios[0] > 0
        ]
    usual = _usual(moved)
    return usual if usual >= _MUCH_LUCK else 1.0


def _families(best: Trial, alone: Sequence[Trial]) -> list[list[Trial]]:
    """Return the remedies whose kinds the best one has not yet, by family: its best one first."""
    taken = set(best.remedy.kind.split(", "))
    families: dict[tuple[str, str], list[Trial]] = {}
    for each in sorted(alone, key=lambda each: each.first_worth, reverse=True):
        if each.remedy.kind not in taken and not each.remedy.every_network:
            families.setdefault((each.remedy.kind, each.remedy.family), []).append(each)
    return list(families.values())


def _better(bench: Bench, best: Trial, trials: Sequence[Trial], scatter: float) -> Trial | None:
    """Return the best of those on top of `best`, if it gives more: the nearest to it at first."""
    ranked = sorted(trials, key=lambda each: each.first_worth, reverse=True)
    completed: list[Trial] = []
    wanted = [each for each in ranked if _promises(each, best, scatter)][:_LEADERS]
    while wanted:
        completed += bench.complete(wanted)
        ranked = [each for each in ranked if each not in wanted]
        bar = max([WORTHWHILE * best.overall_gain, *(each.overall_gain for each in completed)])
        luck = scatter * max(_luck([best, *completed], _overall), default=1.0)
        wanted = [each for each in ranked if each.overall_gains[0] * luck >= bar][:_LEADERS]
    better = max(completed, key=lambda each: each.worth, default=None)
    if better is None or better.overall_gain < WORTHWHILE * best.overall_gain:
        return None
    return better


def _measures(bench: Bench) -> list[_Gains]:
    """Return how to ask for gains: of goodput, overall, and of each measure that users feel.

    Where nothing is random, further seeds only tell whether a remedy that helps draws.
    """
    without = [each.felt for each in bench.without]

    if not bench.random or not without[0]:
        return [_of_goodput]
    return [_of_goodput, _overall, *(_gains_of_measure(without, name) for name in without[0])]


def _gains_of_measure(without: Sequence[Mapping[Name, Felt]], name: Name) -> _Gains:
    return lambda trial: gains_of(name, without, [each.felt for each in trial.outcomes])


def _of_goodput(trial: Trial) -> Sequence[float]:
    return trial.gains


def _overall(trial: Trial) -> Sequence[float]:
    return trial.overall_gains


def _leaders(trials: Sequence[Trial], measures: Sequence[_Gains], *, anyway: bool) -> list[Trial]:
    """Return those with which to find out about luck: the first ones by goodput and by feeling.

    Those by goodput `anyway`, or only if they help.
    """
    ranked = sorted(trials, key=lambda each: each.first_worth, reverse=True)
    found = [each for each in ranked if anyway or each.gains[0] >= WORTHWHILE][:_LEADERS]
    for gains in measures[1:]:
        if gains is _overall:
            continue
        good = [each for each in trials if _first(gains, each) >= WORTHWHILE]
        found += sorted(good, key=lambda each: -_first(gains, each))[:MOST_TOLD]
    return list(dict.fromkeys(found))


def _near(
    trials: Sequence[Trial], measures: Sequence[_Gains], known: Sequence[Trial]
) -> list[Trial]:
    """Return those without further seeds that may matter, as luck goes with those that have them.

    By goodput, all that are worth doing are told of, and the first one is built upon. Overall, and
    of what users feel, the first three are told of, and the first one overall is built upon.
    """
    completed = [each for each in [*known, *trials] if each.complete]
    wanted: list[Trial] = []
    for gains in measures:
        # Overall, the measures' luck adds up: it would give all seeds to everything.
        luck = [1.0] if gains is _overall else [*_luck(completed, gains), 1.0]
        known = sorted((_median(gains, each) for each in completed), reverse=True)
        by_goodput = gains is _of_goodput
        told = WORTHWHILE if by_goodput else max([WORTHWHILE, *known[MOST_TOLD - 1 : MOST_TOLD]])
        builds = by_goodput and _overall not in measures
        first = max([WORTHWHILE, *known[:1]]) if builds else math.inf
        wanted += [
            each
            for each in trials
            if not each.complete
            and (
                _first(gains, each) * _usual(luck) >= told
                or _first(gains, each) * max(luck) >= first
            )
        ]
    return list(dict.fromkeys(wanted))


def _luck(completed: Sequence[Trial], gains: _Gains) -> list[float]:
    """Return what further seeds have made of first gains."""
    return [
        _median(gains, each) / _first(gains, each) for each in completed if _first(gains, each) > 0
    ]


def _usual(luck: Sequence[float]) -> float:
    """Return what three of four do not exceed: one that is far out is no rule for all.

    But at least that nothing changes: what would be told of by the first seed gets the others.
    """
    return max(1.0, sorted(luck)[round(0.75 * (len(luck) - 1))])


def _first(gains: _Gains, trial: Trial) -> float:
    return next(iter(gains(trial)), 0.0)


def _median(gains: _Gains, trial: Trial) -> float:
    return statistics.median(gains(trial) or [0.0])
