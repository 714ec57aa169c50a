"""Criteria as data, and the verdicts that follow from measured values."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import isfinite
from pathlib import Path
from statistics import median
from typing import Any, Final

MEETS: Final = "meets"
COMPARABLE: Final = "comparable"
FAILS: Final = "does not meet"
INCONCLUSIVE: Final = "inconclusive"
# From the best to the worst, with the words that a reader sees.
VERDICTS: Final[Mapping[str, str]] = {
    MEETS: "every value is within its bound, with each seed",
    COMPARABLE: "a bound is missed, but no more than by the standard control, within the margin",
    INCONCLUSIVE: "the seeds disagree, or nothing was measured",
    FAILS: "a bound is missed with each seed, and by more than the standard control misses it",
}


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A quantity, and what decides about it.

    * `at_most`, `at_least`: the bound.
    * `better`: "less" or "more", for a quantity without a bound.
    * `standard`: whether a value that misses the bound is compared with the standard control's.
    * `source`: the source of the bound.
    """

    id: str
    what: str
    source: str
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None
    better: str = ""
    standard: bool = False
    percent: bool = False

    def __post_init__(self) -> None:
        given = [self.at_most is not None, self.at_least is not None, self.better != ""]
        if sum(given) != 1:
            raise ValueError(f"measure {self.id}: expected one of at_most, at_least and better")
        if self.better not in {"", "less", "more"}:
            raise ValueError(f'measure {self.id}: expected better = "less" or "more"')
        if self.better and not self.standard:
            raise ValueError(f"measure {self.id}: nothing to compare with")

    @property
    def less_is_better(self) -> bool:
        """Whether smaller values are better."""
        return self.at_most is not None or self.better == "less"

    @property
    def bound(self) -> float | None:
        """The bound, or None."""
        return self.at_least if self.at_most is None else self.at_most

    def judge(self, value: float, standard: float | None, *, margin: float) -> str:
        """Return the verdict on one value, given that of the standard control with the seed."""
        if value != value:
            return INCONCLUSIVE
        bound = self.bound
        if bound is not None and (value <= bound if self.less_is_better else value >= bound):
            return MEETS
        if not self.standard or standard is None:
            return FAILS
        if standard != standard:
            return INCONCLUSIVE
        low, high = standard * (1.0 - margin), standard * (1.0 + margin)
        better, worse = (
            (value < low, value > high)
            if self.less_is_better
            else (
                value > high,
                value < low,
            )
        )
        if worse:
            return FAILS
        return MEETS if bound is None and better else COMPARABLE

    def shown(self, value: float) -> str:
        """Return a value as a reader sees it."""
        if not isfinite(value):
            return "–" if value != value else "never"
        if self.percent:
            return f"{100.0 * value:.2g}%" if 0.0 < value < 0.1 else f"{100.0 * value:.0f}%"
        text = f"{value:.0f}" if value >= 100.0 else f"{value:.{1 if value >= 10.0 else 2}f}"
        return f"{text} {self.unit}".rstrip()

    @property
    def bound_in_words(self) -> str:
        """The bound as a reader sees it."""
        if self.at_most is not None:
            return f"at most {self.shown(self.at_most)}"
        if self.at_least is not None:
            return f"at least {self.shown(self.at_least)}"
        return "as the standard control"


@dataclass(frozen=True, kw_only=True)
class Criterion:
    """A criterion of RFC 9743 and its measures."""

    id: str
    section: str
    title: str
    asks: str
    method: str
    measures: Mapping[str, Measure]


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The contents of `criteria.toml`."""

    margin: float
    criteria: tuple[Criterion, ...]
    not_evaluated: tuple[Mapping[str, str], ...]
    python_limits: tuple[Mapping[str, str], ...]


@cache
def rules() -> Rules:
    """Return the criteria and the rules of their verdicts."""
    with (Path(__file__).parent / "criteria.toml").open("rb") as file:
        data = tomllib.load(file)
    return Rules(
        margin=data["margin"],
        criteria=tuple(_criterion(each) for each in data["criterion"]),
        not_evaluated=tuple(data["not_evaluated"]),
        python_limits=tuple(data["python_limit"]),
    )


def _criterion(table: Mapping[str, Any]) -> Criterion:
    measures = {name: Measure(id=name, **each) for name, each in table["measures"].items()}
    return Criterion(**{**table, "measures": measures})


@dataclass(frozen=True, kw_only=True)
class Row:
    """The values of a rule for one quantity in one condition, one for each seed."""

    condition: str
    measure: Measure
    values: tuple[float, ...]
    verdict: str
    standard: float | None = None

    @property
    def median(self) -> float:
        """The median over the seeds; NaN without a value."""
        known = [each for each in self.values if each == each]
        return median(known) if known else float("nan")

    @property
    def middle(self) -> str:
        """The median as a reader sees it."""
        return self.measure.shown(self.median)

    @property
    def range(self) -> str:
        """The range over the seeds as a reader sees it; empty where they agree."""
        known = [each for each in self.values if each == each]
        ends = [self.measure.shown(each) for each in (min(known), max(known))] if known else [""]
        return f"{ends[0]} to {ends[-1]}" if ends[0] != ends[-1] else ""

    @property
    def shown(self) -> str:
        """The median, and the range over the seeds where they differ visibly."""
        return f"{self.middle} ({self.range})" if self.range else self.middle


def row(
    condition: str,
    measure: Measure,
    values: Sequence[float],
    standard: Sequence[float] | None,
    *,
    margin: float,
) -> Row:
    """Judge the values of a rule for one quantity in one condition.

    `standard` has the standard control's values with the same seeds; None for no comparison.
    """
    theirs = [None] * len(values) if standard is None else list(standard)
    found = {
        measure.judge(value, other, margin=margin)
        for value, other in zip(values, theirs, strict=True)
    }
    known = [each for each in theirs if each is not None and each == each]
    return Row(
        condition=condition,
        measure=measure,
        values=tuple(values),
        verdict=_together(found),
        standard=median(known) if measure.standard and known else None,
    )


def _together(found: set[str]) -> str:
    """Return the verdict on several seeds: those that disagree about failing are inconclusive."""
    if len(found) == 1:
        return next(iter(found))
    return INCONCLUSIVE if found & {FAILS, INCONCLUSIVE} else COMPARABLE


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A rule's rows for one criterion, and the verdict that follows from them."""

    criterion: Criterion
    rule: str
    rows: tuple[Row, ...]
    standard: str

    @property
    def verdict(self) -> str:
        """The worst of the rows."""
        found = {each.verdict for each in self.rows}
        return next((each for each in reversed(list(VERDICTS)) if each in found), INCONCLUSIVE)

    @property
    def decisive(self) -> list[Row]:
        """The rows that decide: those with the verdict of the criterion."""
        return [each for each in self.rows if each.verdict == self.verdict]

    @property
    def counts(self) -> str:
        """How many values have which verdict."""
        return _counted(each.verdict for each in self.rows)

    @property
    def reason(self) -> str:
        """Why: how many values decide, and the one that is farthest from its bound."""
        rows = self.decisive
        if not rows:
            return "nothing was measured"
        worst = max(rows, key=_distance)
        few = f"{len(rows)} of {len(self.rows)} values" if len(self.rows) > 1 else "the only value"
        bound = worst.measure.bound_in_words
        if worst.standard is not None:
            bound += f"; {label(self.standard)}: {worst.measure.shown(worst.standard)}"
        nearest = "nearest to its bound" if self.verdict == MEETS else "farthest from its bound"
        which = f", {nearest}" if len(rows) > 1 else ""
        return f"{few}{which}: {worst.measure.what}, {worst.condition}: {worst.shown} ({bound})"


def _distance(each: Row) -> float:
    """Return how far a row's median is on the wrong side of its bound, as a ratio."""
    bound = each.measure.bound
    if bound is None:
        bound = each.standard or 0.0
    value = each.median
    if value != value:
        return 0.0
    above, below = (value, bound) if each.measure.less_is_better else (bound, value)
    if below:
        return above / below
    return float("inf") if above else 0.0


_LABELS: Final = {"cubic": "CUBIC", "reno": "Reno", "bbr": "BBR", "bbr3": "BBRv3", "hybla": "Hybla"}


def label(rule: str) -> str:
    """Return a rule's name as a reader knows it."""
    return _LABELS.get(rule, rule)


def tally(judged: Iterable[Judged]) -> str:
    """Return how many criteria have which verdict."""
    return _counted(each.verdict for each in judged)


def _counted(found: Iterable[str]) -> str:
    counts = Counter(found)
    return ", ".join(f"{verdict}: {counts[verdict]}" for verdict in VERDICTS if counts[verdict])
