"""Whether a claim holds: one function of what was measured, what is expected, and the tolerance.

What is expected is data in `claims.toml`, so that what a reader sees is what was applied::

    tolerance = 0.2
    expect.goodput_mbps = { value = 50.0 }

A study measures, and names each quantity as the claim does; it compares nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

# What was measured, by quantity: every number is to be as expected.
Values = Mapping[str, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """What every value of a quantity is to be: all that is named here at once.

    `value` is met within the tolerance, which is relative. Bounds are moved by it: with 0.05,
    `at_least = 90` is met from 85.5 on. `at_least` and `at_most` are met by the bound itself,
    `more_than` and `less_than` are not.
    """

    value: float | None = None
    at_least: float | None = None
    at_most: float | None = None
    more_than: float | None = None
    less_than: float | None = None

    def __post_init__(self) -> None:
        if all(getattr(self, each.name) is None for each in fields(self)):
            raise ValueError("nothing is expected")

    def met(self, measured: float, tolerance: float) -> bool:
        """Whether a value is as expected; what is not a number never is."""
        low, high = 1.0 - tolerance, 1.0 + tolerance
        return (
            measured == measured
            and (self.value is None or abs(measured / self.value - 1.0) <= tolerance)
            and (self.at_least is None or measured >= self.at_least * low)
            and (self.at_most is None or measured <= self.at_most * high)
            and (self.more_than is None or measured > self.more_than * low)
            and (self.less_than is None or measured < self.less_than * high)
        )


def holds(values: Values, expected: Mapping[str, Expectation], tolerance: float) -> bool:
    """Judge a claim: every value of every quantity is as expected. None at all prove nothing.

    Raises
    ------
    ValueError
        A quantity was measured that nothing is expected of, or the other way round.
    """
    if values.keys() != expected.keys():
        odd = ", ".join(sorted(values.keys() ^ expected.keys()))
        raise ValueError(f"measured and expected quantities don't match: {odd}")
    return all(
        len(values[name]) > 0 and all(each.met(float(one), tolerance) for one in values[name])
        for name, each in expected.items()
    )


def steps(values: Sequence[float]) -> list[float]:
    """Return each value over the one before it: more than 1 where they rise."""
    return [ratio(after, before) for before, after in pairwise(values)]


def ratio(one: float, other: float) -> float:
    """Return one value over another; nothing over nothing is not a number."""
    if other:
        return float(one / other)
    return float("inf") if one > 0 else float("nan")
