"""Access to the runs of a study: the outcome of a cell, and a probe's samples as a curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from bentpipe.errors import WorkError

if TYPE_CHECKING:
    from bentpipe.results import RunResult
    from bentpipe.studies.study import Cell

Floats = NDArray[np.float64]
_CellT = TypeVar("_CellT", bound="Cell")


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A probe's samples; each value holds until the next sample."""

    times_s: Floats
    values: Floats

    def at(self, times_s: Floats | float) -> Floats:
        """Return the values at these times."""
        index = np.searchsorted(self.times_s, np.asarray(times_s) + 1e-9, side="right") - 1
        values: Floats = self.values[np.maximum(index, 0)]
        return values

    def known(self) -> Curve:
        """Return the samples that have a value."""
        known = ~np.isnan(self.values)
        return Curve(times_s=self.times_s[known], values=self.values[known])

    def until(self, end_s: float) -> Curve:
        """Return the samples up to a time."""
        early = self.times_s <= end_s
        return Curve(times_s=self.times_s[early], values=self.values[early])

    def between(self, start_s: float, end_s: float) -> Floats:
        """Return the values of the samples from one time to another."""
        return self.values[(self.times_s >= start_s) & (self.times_s <= end_s)]

    def rate(self, *, end_s: float, step_s: float = 1.0) -> Curve:
        """Return the rate of growth of a total, per second, over steps of `step_s` up to a time."""
        known = self.known()
        times = np.arange(0.0, end_s + step_s / 2, step_s)
        grown = np.diff(known.at(times)) / step_s
        return Curve(times_s=times[1:], values=grown)


class Runs(Generic[_CellT]):
    """The outcomes of a study's cells."""

    def __init__(self, outcomes: Mapping[_CellT, RunResult]) -> None:
        self.outcomes = outcomes

    def has(self, cell: _CellT) -> bool:
        """Whether the cell was simulated."""
        return cell in self.outcomes

    def result(self, cell: _CellT) -> RunResult:
        """Return a run.

        Raises
        ------
        WorkError
            It was not simulated.
        """
        if cell not in self.outcomes:
            raise WorkError(f"not simulated: {cell.scenario().command()}")
        return self.outcomes[cell]
