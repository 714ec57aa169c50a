"""Evaluation of claims: whether measured values meet expectations within a tolerance.

Expectations are data in `claims.toml`, so that readers see the values that were applied::

    tolerance = 0.2
    expect.goodput_mbps = { value = 50.0 }

A study measures, and names each quantity as the claim does; it compares nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise

# Measured numbers by quantity: each number must meet the expectation.
Values = Mapping[str, Sequence[float]]


@dataclass(frozen=True, kw_only=True)
class Expectation:
    """Expectations of every number of a quantity; all conditions given here must hold.

    `value` is met within the tolerance, which is relative. Bounds are moved by it: with 0.05,
    `at_least = 90` is met from 85.5 on. `at_least` and `at_most` include the bound itself,
    `more_than` and `less_than` do not.
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
        """Return whether a value meets the expectations; NaN never does."""
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
    """Return whether every number of every quantity is as expected; an empty quantity fails.

    Raises
    ------
    ValueError
        A quantity was measured without an expectation, or the other way round.
    """
    if values.keys() != expected.keys():
        odd = ", ".join(sorted(values.keys() ^ expected.keys()))
        raise ValueError(f"measured and expected quantities don't match: {odd}")
    return all(
        len(values[name]) > 0 and all(each.met(float(one), tolerance) for one in values[name])
        for name, each in expected.items()
    )


def steps(values: Sequence[float]) -> list[float]:
    """Return each value divided by the previous one: above 1 where they rise."""
    return [ratio(after, before) for before, after in pairwise(values)]


def ratio(one: float, other: float) -> float:
    """Return the ratio of two values; NaN for 0 / 0."""
    if other:
        return float(one / other)
    return float("inf") if one > 0 else float("nan")
