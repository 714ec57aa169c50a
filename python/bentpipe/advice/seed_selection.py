"""Selection of the remedies that are simulated with further seeds.

Every remedy is simulated with the scenario's own seed first. The scenario without it was simulated
with the same random numbers, so that one seed usually shows whether a remedy helps. Further seeds
are simulated only for remedies that may be listed. The remedies that have further seeds show how
much these change a gain. No decision depends on the order in which simulations end, so that the
same file gives the same advice.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Final

from bentpipe.advice.trials import WORTHWHILE, Trial, TrialRunner
from bentpipe.advice.user_experience import MOST_LISTED, gains_of

if TYPE_CHECKING:
    from bentpipe.advice.remedy import Remedy
    from bentpipe.advice.user_experience import MeasureName, UserMeasure

# Smallest gain on top of another remedy for which a family is tried further: half of WORTHWHILE.
_PROMISING: Final = 1.01
# Random variation between seeds from which one seed says little about a combination.
_MUCH_VARIATION: Final = 1.1
# Remedies that get all seeds before the variation between seeds is known.
_LEADERS: Final = 2
# The best remedies that are tried in pairs: overall, and of each measure of user experience.
_PAIRED: Final = 3
_PAIRED_OF_MEASURE: Final = 2

# Gains of a remedy by one measure, one per seed; empty if the measure is unknown with the remedy.
_Gains = Callable[[Trial], Sequence[float]]


def try_alone(runner: TrialRunner, remedies: Iterable[Remedy]) -> list[Trial]:
    """Simulate each remedy alone; all seeds for those that are, or may be, worthwhile."""
    return _simulate_as_needed(runner, remedies)


def _simulate_as_needed(
    runner: TrialRunner, remedies: Iterable[Remedy], *, earlier: Sequence[Trial] = ()
) -> list[Trial]:
    """Simulate remedies with the first seed, and those that may be listed with all seeds.

    `earlier` are trials of other remedies in the same list.
    """
    trials = runner.run_first_seed(remedies)
    measures = _measures(runner)
    if earlier:
        needed = _needed(trials, measures, earlier)
    else:
        needed = _leaders(trials, measures, always=runner.random)
    while needed:
        completed = runner.run_all_seeds(needed)
        # A remedy that fails with a further seed is dropped.
        trials = [each for each in trials if each not in needed or each in completed]
        needed = _needed(trials, measures, earlier)
    return trials


def try_pairs(runner: TrialRunner, alone: Sequence[Trial]) -> list[Trial]:
    """Simulate pairs of the best remedies of different kinds.

    The best remedies are the first three overall, and the first two of each measure of user
    experience; those of one list are of different kinds. All pairs get the first seed. Further
    seeds follow the same rule as for single remedies.
    """
    candidates = [each for each in alone if not each.remedy.every_network]
    best = [
        each
        for gains, most in _rankings(runner)
        for each in _best_of_kinds(candidates, gains)[:most]
    ]
    pairs = [
        one.remedy.and_also(other.remedy)
        for one, other in combinations(dict.fromkeys(best), 2)
        if one.remedy.kind != other.remedy.kind
    ]
    return _simulate_as_needed(runner, pairs, earlier=alone)


def _rankings(runner: TrialRunner) -> list[tuple[_Gains, int]]:
    """Return the measures by which pairs are chosen, each with the number of remedies to take."""
    without = [each.measures for each in runner.without]
    return [
        (_overall, _PAIRED),
        *((_gains_of_measure(without, name), _PAIRED_OF_MEASURE) for name in without[0]),
    ]


def _best_of_kinds(trials: Sequence[Trial], gains: _Gains) -> list[Trial]:
    """Return the best worthwhile remedy of each kind, the best one first.

    Equal gains are ranked by goodput.
    """
    best_of_kind: dict[str, Trial] = {}
    for each in sorted(trials, key=lambda each: (_median(gains, each), each.gain), reverse=True):
        if _median(gains, each) >= WORTHWHILE:
            best_of_kind.setdefault(each.remedy.kind, each)
    return list(best_of_kind.values())


def try_on_top(
    runner: TrialRunner, best: Trial, alone: Sequence[Trial], pairs: Sequence[Trial] = ()
) -> Trial | None:
    """Return the best combination of `best` with another remedy, with all seeds, if it is better.

    A remedy without a gain of its own may help once another limit is gone: long segments help in a
    large window, but not in a small one. Therefore each family is tried, its best member first.
    The other members are tried only if that one is promising. `pairs` are combinations that were
    simulated already.
    """
    simulated = {each.remedy.settings: each for each in pairs}
    families = _families(best, alone)
    variation = _variation(best, alone)

    def on_top(several: Iterable[Trial]) -> list[Trial]:
        wanted = [best.remedy.and_also(each.remedy) for each in several]
        new = runner.run_first_seed([each for each in wanted if each.settings not in simulated])
        return new + [simulated[each.settings] for each in wanted if each.settings in simulated]

    firsts = on_top(first for first, *_ in families)
    poor = [each.remedy for each in firsts if not _is_promising(each, best, variation)]
    further = on_top(
        other
        for first, *others in families
        if best.remedy.and_also(first.remedy) not in poor
        for other in others
    )
    return _better(runner, best, firsts + further, variation)


def _is_promising(trial: Trial, best: Trial, variation: float) -> bool:
    return trial.overall_gains[0] * variation >= _PROMISING * best.overall_gains[0]


def _variation(best: Trial, alone: Sequence[Trial]) -> float:
    """Return the usual change of gains between seeds relative to the best remedy; 1 if small.

    Changes that all remedies have in common are left out.
    """
    changes = [1.0]
    for each in alone:
        ratios = [mine / its for mine, its in zip(each.gains, best.gains, strict=False) if its > 0]
        changes += [
            max(ratio / ratios[0], ratios[0] / ratio)
            for ratio in ratios[1:]
            if ratio > 0 and ratios[0] > 0
        ]
    usual = _third_quartile(changes)
    return usual if usual >= _MUCH_VARIATION else 1.0


def _families(best: Trial, alone: Sequence[Trial]) -> list[list[Trial]]:
    """Return the remedies of kinds that `best` does not contain, by family, best member first."""
    taken = set(best.remedy.kind.split(", "))
    families: dict[tuple[str, str], list[Trial]] = {}
    for each in sorted(alone, key=lambda each: each.first_rank, reverse=True):
        if each.remedy.kind not in taken and not each.remedy.every_network:
            families.setdefault((each.remedy.kind, each.remedy.family), []).append(each)
    return list(families.values())


def _better(
    runner: TrialRunner, best: Trial, trials: Sequence[Trial], variation: float
) -> Trial | None:
    """Return the best combination if it is worthwhile; complete those that may be the best."""
    ranked = sorted(trials, key=lambda each: each.first_rank, reverse=True)
    completed: list[Trial] = []
    wanted = [each for each in ranked if _is_promising(each, best, variation)][:_LEADERS]
    while wanted:
        completed += runner.run_all_seeds(wanted)
        ranked = [each for each in ranked if each not in wanted]
        bar = max([WORTHWHILE * best.overall_gain, *(each.overall_gain for each in completed)])
        changes = _changes_by_seeds([best, *completed], _overall)
        reach = variation * max(changes, default=1.0)
        wanted = [each for each in ranked if each.overall_gains[0] * reach >= bar][:_LEADERS]
    better = max(completed, key=lambda each: each.rank, default=None)
    if better is None or better.overall_gain < WORTHWHILE * best.overall_gain:
        return None
    return better


def _measures(runner: TrialRunner) -> list[_Gains]:
    """Return the measures by which remedies are listed: goodput, overall, and user experience.

    Without randomness, goodput is enough: further seeds then only show whether a remedy that helps
    draws random numbers.
    """
    without = [each.measures for each in runner.without]
    if not runner.random or not without[0]:
        return [_of_goodput]
    return [_of_goodput, _overall, *(_gains_of_measure(without, name) for name in without[0])]


def _gains_of_measure(
    without: Sequence[Mapping[MeasureName, UserMeasure]], name: MeasureName
) -> _Gains:
    return lambda trial: gains_of(name, without, [each.measures for each in trial.outcomes])


def _of_goodput(trial: Trial) -> Sequence[float]:
    return trial.gains


def _overall(trial: Trial) -> Sequence[float]:
    return trial.overall_gains


def _leaders(trials: Sequence[Trial], measures: Sequence[_Gains], *, always: bool) -> list[Trial]:
    """Return the remedies that get further seeds first: the best ones by rank and by measure.

    Those by rank need a gain, unless `always`.
    """
    ranked = sorted(trials, key=lambda each: each.first_rank, reverse=True)
    found = [each for each in ranked if always or each.gains[0] >= WORTHWHILE][:_LEADERS]
    for gains in measures[1:]:
        if gains is _overall:
            continue
        good = [each for each in trials if _first(gains, each) >= WORTHWHILE]
        found += sorted(good, key=lambda each: -_first(gains, each))[:MOST_LISTED]
    return list(dict.fromkeys(found))


def _needed(
    trials: Sequence[Trial], measures: Sequence[_Gains], earlier: Sequence[Trial]
) -> list[Trial]:
    """Return the remedies that may be listed and lack further seeds.

    By goodput, all worthwhile remedies are listed, and combinations are made of the first one.
    Overall and for each measure of user experience, the first three are listed, and combinations
    are made of the first one overall.

    The change that further seeds may bring to a gain is that of the completed remedies which had
    at least this gain with the first seed. Those with less had bad luck: further seeds raise them
    more than the others.
    """
    completed = [each for each in [*earlier, *trials] if each.complete]
    needed: list[Trial] = []
    for gains in measures:
        known = sorted((_median(gains, each) for each in completed), reverse=True)
        by_goodput = gains is _of_goodput
        listed = WORTHWHILE if by_goodput else max([WORTHWHILE, *known[MOST_LISTED - 1 :][:1]])
        combined = by_goodput and _overall not in measures
        first_place = max([WORTHWHILE, *known[:1]]) if combined else math.inf
        for each in trials:
            if each.complete:
                continue
            gain = _first(gains, each)
            # Overall, the variations of all measures add up: all remedies would get all seeds.
            as_good = [other for other in completed if _first(gains, other) >= gain]
            changes = [] if gains is _overall else _changes_by_seeds(as_good, gains)
            changes.append(1.0)
            if gain * _third_quartile(changes) >= listed or gain * max(changes) >= first_place:
                needed.append(each)
    return list(dict.fromkeys(needed))


def _changes_by_seeds(completed: Sequence[Trial], gains: _Gains) -> list[float]:
    """Return the median gain over the first seed's gain of each remedy."""
    return [
        _median(gains, each) / _first(gains, each) for each in completed if _first(gains, each) > 0
    ]


def _third_quartile(changes: Sequence[float]) -> float:
    """Return the third quartile of changes, at least 1.

    An outlier among the changes does not count. With 1, a remedy that would be listed by its first
    seed gets the further ones.
    """
    return max(1.0, sorted(changes)[round(0.75 * (len(changes) - 1))])


def _first(gains: _Gains, trial: Trial) -> float:
    return next(iter(gains(trial)), 0.0)


def _median(gains: _Gains, trial: Trial) -> float:
    return statistics.median(gains(trial) or [0.0])
