"""Simulation of one cell, in a thread of this process or on another machine."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bentpipe.results import run

if TYPE_CHECKING:
    from bentpipe.scenario import Scenario

_INTERNAL: Final = "internal error: "


@dataclass(frozen=True, kw_only=True)
class Task:
    """A cell to simulate, with the scenario's text.

    `default_probes` is that of `bentpipe.run`, for a cell whose series are kept, and `cores` the
    number of cores that the cell may use.
    """

    cell: int
    scenario: Scenario
    series: bool
    default_probes: bool = True
    cores: int = 1


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a cell: a summary, or the error that ended it.

    `series` is a Parquet file of the probes, if they were asked for, and `units` has the unit of
    each, also of those without a sample.
    """

    cell: int
    wall_s: float
    summary_json: str | None = None
    error: str | None = None
    series: bytes | None = None
    units: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_internal_error(self) -> bool:
        """Whether the cell ended by an error of the program, not of its scenario."""
        return self.error is not None and self.error.startswith(_INTERNAL)


@dataclass(frozen=True)
class SummaryOutput:
    """The output of a run on another machine; its series are elsewhere, if it has any."""

    summary_json: str
    series: dict[str, Any] = field(default_factory=dict)


def simulate(task: Task, *, progress: Callable[[float, float], None] | None = None) -> Outcome:
    """Simulate a cell and return its outcome, also if it fails. Releases the GIL.

    `progress` is called regularly; if it raises KeyboardInterrupt, the cell ends.
    """
    began = time.perf_counter()
    try:
        buffer = io.BytesIO()
        result = run(
            task.scenario,
            default_probes=task.series and task.default_probes,
            probes_to=buffer if task.series else None,
            no_probes=not task.series,
            progress=progress,
            cores=task.cores,
        )
        series = buffer.getvalue() if task.series else None
        units = result.units if task.series else {}
    except BaseException as error:
        # A panic in the simulator is not an Exception. It fails the cell like any other error.
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        return Outcome(cell=task.cell, wall_s=time.perf_counter() - began, error=_line(error))
    return Outcome(
        cell=task.cell,
        wall_s=time.perf_counter() - began,
        summary_json=result.summary_json,
        series=series,
        units=units,
    )


def _line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    expected = isinstance(error, ValueError | RuntimeError)
    return text if expected and text else f"{_INTERNAL}{type(error).__name__}: {text}"
