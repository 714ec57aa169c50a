"""Studies run: cells in parallel, then figures, claims and the report written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from bentpipe.errors import WorkError
from bentpipe.results import run
from bentpipe.studies.study import Verdict

if TYPE_CHECKING:
    from bentpipe.results import RunResult
    from bentpipe.studies.study import Analysis, Cell, Figure, Study

_CellT = TypeVar("_CellT", bound="Cell")


@dataclass(frozen=True, kw_only=True)
class DrawnFigure:
    """A figure that was written."""

    figure: Figure
    svg: Path
    parquet: Path


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """A study that was run."""

    study: Study[Any]
    analysis: Analysis
    figures: tuple[DrawnFigure, ...]
    verdicts: tuple[Verdict, ...]
    cells: int


class Progress:
    """Hears how far the work is; this one says nothing."""

    def begin(self, task: str, total: int) -> None:
        """Note that a task of `total` steps begins."""

    def step(self) -> None:
        """Note that a step of the task is done."""


def reproduce(
    studies: Sequence[Study[Any]],
    *,
    out: Path,
    quick: bool = False,
    progress: Progress | None = None,
) -> list[Reproduced]:
    """Run studies and write their figures, `claims.json` and `report.html` into `out`.

    Raises
    ------
    WorkError
        A simulation failed.
    """
    from bentpipe.report import write_report

    progress = progress or Progress()
    reproduced = [_reproduce(study, out=out, quick=quick, progress=progress) for study in studies]
    verdicts = [verdict.as_json() for each in reproduced for verdict in each.verdicts]
    claims = json.dumps(verdicts, indent=2, ensure_ascii=False)
    (out / "claims.json").write_text(claims + "\n", encoding="utf-8")
    write_report(reproduced, out / "report.html", quick=quick)
    return reproduced


def _reproduce(study: Study[Any], *, out: Path, quick: bool, progress: Progress) -> Reproduced:
    cells = list(dict.fromkeys(study.cells(quick)))
    progress.begin(f"{study.key}: simulating", len(cells))
    outcomes = simulate(cells, on_done=progress.step)
    progress.begin(f"{study.key}: drawing", 1)
    analysis = study.analyse(outcomes)
    verdicts = judge(study, analysis)
    folder = out / study.key
    folder.mkdir(parents=True, exist_ok=True)
    figures = tuple(_write(figure, folder) for figure in analysis.figures)
    progress.step()
    return Reproduced(
        study=study, analysis=analysis, figures=figures, verdicts=verdicts, cells=len(cells)
    )


def simulate(
    cells: Sequence[_CellT], *, on_done: Callable[[], None] = lambda: None
) -> dict[_CellT, RunResult]:
    """Simulate cells on all cores; threads do, because the simulator releases the GIL.

    Raises
    ------
    WorkError
        A simulation failed; the first one that did, and how to run it alone.
    """

    def one(cell: _CellT) -> RunResult:
        scenario = cell.scenario()
        try:
            result = run(scenario, default_probes=False)
        except (ValueError, RuntimeError) as error:
            raise WorkError(f"{error}; to see it again: {scenario.command()}") from error
        on_done()
        return result

    with ThreadPoolExecutor(max_workers=_cores()) as pool:
        futures = {cell: pool.submit(one, cell) for cell in cells}
        try:
            wait(futures.values(), return_when=FIRST_EXCEPTION)
        finally:
            # After a failure, and after Ctrl-C: what hasn't begun needn't.
            pool.shutdown(wait=True, cancel_futures=True)
    for future in futures.values():
        if not future.cancelled() and (error := future.exception()) is not None:
            raise error
    return {cell: future.result() for cell, future in futures.items()}


def judge(study: Study[Any], analysis: Analysis) -> tuple[Verdict, ...]:
    """Put claims and measurements together.

    Raises
    ------
    ValueError
        A claim was not measured, or something was that nobody claimed.
    """
    measurements: Mapping[str, Any] = analysis.measurements
    claimed = {claim.id for claim in study.claims}
    if claimed != measurements.keys():
        odd = ", ".join(sorted(claimed ^ measurements.keys()))
        raise ValueError(f"{study.key}: claims and measurements don't match: {odd}")
    return tuple(
        Verdict(study=study.key, claim=claim, measurement=measurements[claim.id])
        for claim in study.claims
    )


def _write(figure: Figure, folder: Path) -> DrawnFigure:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from bentpipe.plot.style import write_svg

    svg = folder / f"figure-{figure.id}.svg"
    parquet = folder / f"figure-{figure.id}.parquet"
    write_svg(figure.draw, svg, width=figure.width, height=figure.height)
    pq.write_table(pa.table({name: list(each) for name, each in figure.columns.items()}), parquet)
    return DrawnFigure(figure=figure, svg=svg, parquet=parquet)


def _cores() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
