"""Runs studies: simulates cells in parallel, and writes figures, claims and the report."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

from bentpipe.errors import WorkError
from bentpipe.files import atomic_write
from bentpipe.results import run
from bentpipe.studies.study import Verdict
from bentpipe.sweeps.local import cores
from bentpipe.sweeps.stopping import deferred_interrupts, finished

if TYPE_CHECKING:
    from bentpipe.results import RunResult
    from bentpipe.scenario import Scenario
    from bentpipe.studies.study import Cell, Figure, Measurement, Study, Table

_CellT = TypeVar("_CellT", bound="Cell")


@dataclass(frozen=True, kw_only=True)
class DrawnFigure:
    """A figure that was written, or a table, which has no `svg`."""

    figure: Figure | Table
    svg: Path | None
    parquet: Path
    csv: Path


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """A study that was run."""

    study: Study[Any]
    figures: tuple[DrawnFigure, ...]
    verdicts: tuple[Verdict, ...]
    remarks: tuple[str, ...]
    cells: int


class Progress:
    """Receives the progress of a study; this base class ignores it."""

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
    progress = progress or Progress()
    with _Simulations() as simulations:
        # All studies at once: while the figures of one are drawn, the cells of the next are
        # simulated. The study with the most cells goes last, so that few figures, whose drawing
        # takes one core, are left when nothing is left to simulate.
        cells = {study.key: _cells(study, quick) for study in studies}
        fewest_first = sorted(studies, key=lambda study: len(cells[study.key]))
        begun = {study.key: simulations.begin(cells[study.key]) for study in fewest_first}
        # Imported while the first cells are simulated.
        from bentpipe.report import write_report

        done = {
            study.key: _reproduce(study, begun[study.key], out=out, progress=progress)
            for study in fewest_first
        }
    reproduced = [done[study.key] for study in studies]
    verdicts = [verdict.as_json() for each in reproduced for verdict in each.verdicts]
    claims = json.dumps(verdicts, indent=2, ensure_ascii=False)
    with atomic_write(out / "claims.json") as part:
        part.write_text(claims + "\n", encoding="utf-8")
    write_report(reproduced, out / "report.html", quick=quick)
    return reproduced


def _cells(study: Study[Any], quick: bool) -> list[Any]:
    return list(dict.fromkeys(study.cells(quick)))


def _reproduce(
    study: Study[Any], futures: Mapping[Any, Future[RunResult]], *, out: Path, progress: Progress
) -> Reproduced:
    progress.begin(f"{study.key}: simulating", len(futures))
    outcomes = _Awaited(
        futures,
        on_done=progress.step,
        on_all=lambda: progress.begin(f"{study.key}: drawing", 1),
    )
    folder = out / study.key
    folder.mkdir(parents=True, exist_ok=True)
    analysis = study.analyse(outcomes)
    figures = tuple(_write(figure, folder) for figure in analysis.figures)
    outcomes.wait()
    verdicts = judge(study, analysis.measurements())
    remarks = tuple(analysis.remarks())
    progress.step()
    return Reproduced(
        study=study, figures=figures, verdicts=verdicts, remarks=remarks, cells=len(futures)
    )


def simulate(
    cells: Sequence[_CellT], *, on_done: Callable[[], None] = lambda: None
) -> dict[_CellT, RunResult]:
    """Simulate cells on all cores.

    Raises
    ------
    WorkError
        A simulation failed: the message names the first one, and the command that repeats it.
    """
    with _Simulations() as simulations:
        outcomes = _Awaited(simulations.begin(cells), on_done=on_done)
        outcomes.wait()
        return dict(outcomes)


class _Simulations:
    """Simulates cells on all cores, in threads, because the simulator releases the GIL.

    After a failure or Ctrl-C, waiting cells are cancelled and running ones interrupted.
    """

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(max_workers=cores())
        self._stopped = threading.Event()
        self._begun: dict[Scenario, Future[RunResult]] = {}

    def __enter__(self) -> _Simulations:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def begin(self, cells: Sequence[_CellT]) -> dict[_CellT, Future[RunResult]]:
        """Submit cells in this order; those with the same scenario share a run."""
        with deferred_interrupts():
            return {cell: self._run_of(cell.scenario()) for cell in cells}

    def _run_of(self, scenario: Scenario) -> Future[RunResult]:
        if scenario not in self._begun:
            self._begun[scenario] = self._pool.submit(self._simulate, scenario)
        return self._begun[scenario]

    def _simulate(self, scenario: Scenario) -> RunResult:
        try:
            return run(scenario, default_probes=False, progress=self._look)
        except (ValueError, RuntimeError) as error:
            raise WorkError(f"{error}; to see it again: {scenario.command()}") from error

    def _look(self, *_: float) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt


class _Awaited(Mapping[_CellT, "RunResult"]):
    """Results of cells; access waits for the end of the cell's simulation."""

    def __init__(
        self,
        futures: Mapping[_CellT, Future[RunResult]],
        *,
        on_done: Callable[[], None],
        on_all: Callable[[], None] = lambda: None,
    ) -> None:
        self._futures = futures
        self._on_done = on_done
        self._on_all = on_all
        self._sharing = Counter(futures.values())
        self._completed: SimpleQueue[Future[RunResult]] = SimpleQueue()
        self._running = len(self._sharing)
        for future in self._sharing:
            future.add_done_callback(self._completed.put)

    def __getitem__(self, cell: _CellT) -> RunResult:
        future = self._futures[cell]
        self._wait_until(future.done)
        return future.result()

    def __contains__(self, cell: object) -> bool:
        return cell in self._futures

    def __iter__(self) -> Iterator[_CellT]:
        return iter(self._futures)

    def __len__(self) -> int:
        return len(self._futures)

    def wait(self) -> None:
        """Wait for all; raises the first error."""
        self._wait_until(lambda: self._running == 0)

    def _wait_until(self, enough: Callable[[], bool]) -> None:
        if enough():
            return
        with deferred_interrupts() as look:
            while not enough():
                look()
                for future in finished(self._completed):
                    future.result()
                    self._running -= 1
                    for _ in range(self._sharing[future]):
                        self._on_done()
                    if self._running == 0:
                        self._on_all()


def judge(study: Study[Any], measurements: Mapping[str, Measurement]) -> tuple[Verdict, ...]:
    """Return the claims with their measurements.

    Raises
    ------
    ValueError
        A claim was not measured, or a measurement has no claim.
    """
    claimed = {claim.id for claim in study.claims}
    if claimed != measurements.keys():
        odd = ", ".join(sorted(claimed ^ measurements.keys()))
        raise ValueError(f"{study.key}: claims and measurements don't match: {odd}")
    return tuple(
        Verdict(study=study.key, claim=claim, measurement=measurements[claim.id])
        for claim in study.claims
    )


def _write(figure: Figure | Table, folder: Path) -> DrawnFigure:
    import pyarrow as pa
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    from bentpipe.arrow_columns import of_values
    from bentpipe.plot.style import write_svg
    from bentpipe.studies.study import Figure

    parquet, csv = (folder / f"{figure.name}.{kind}" for kind in ("parquet", "csv"))
    svg = None
    if isinstance(figure, Figure):
        svg = folder / f"{figure.name}.svg"
        write_svg(figure.draw, svg, width=figure.width, height=figure.height)
    columns = {name: of_values(each) for name, each in figure.columns.items()}
    table = pa.table(columns)
    pq.write_table(table, parquet)
    pa_csv.write_csv(table, csv)
    return DrawnFigure(figure=figure, svg=svg, parquet=parquet, csv=csv)
