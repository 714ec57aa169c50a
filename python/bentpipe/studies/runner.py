"""Runs studies: has their cells simulated, and writes figures, tables, claims and the report."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bentpipe.files import atomic_write
from bentpipe.processors import available_cores
from bentpipe.studies.provenance import Provenance
from bentpipe.studies.simulations import Awaited, simulate, simulations
from bentpipe.studies.study import Verdict, tally

if TYPE_CHECKING:
    import pyarrow as pa

    from bentpipe.results import RunResult
    from bentpipe.studies.study import Figure, Measurement, Study, Table

__all__ = ["DrawnFigure", "Progress", "Reproduced", "Reproduction", "reproduce", "simulate"]


@dataclass(frozen=True, kw_only=True)
class DrawnFigure:
    """A figure that was written, or a table, which has no `svg`."""

    figure: Figure | Table
    svg: Path | None
    parquet: Path
    csv: Path


@dataclass(frozen=True, kw_only=True)
class Reproduced:
    """A study that was run.

    * `cells_csv`: one row for each cell, with the command that repeats it.
    * `simulation_s`: time of all simulations, one after the other, in seconds.
    * `analysis_s`: processor time of the analysis and the drawing, in seconds.
    """

    study: Study[Any]
    figures: tuple[DrawnFigure, ...]
    verdicts: tuple[Verdict, ...]
    remarks: tuple[str, ...]
    cells: int
    cells_csv: Path
    seeds: tuple[int, ...]
    simulation_s: float
    analysis_s: float

    @property
    def tally(self) -> str:
        """How many claims hold: those of the paper, and our own."""
        return tally(self.verdicts)

    def evidence(self, verdict: Verdict) -> list[DrawnFigure]:
        """Return the figures and tables that a claim names and that this run has."""
        return [drawn for each in verdict.claim.figures for drawn in self._named(each)]

    def claims_on(self, drawn: DrawnFigure) -> list[Verdict]:
        """Return the claims that name a figure or table."""
        return [
            verdict
            for verdict in self.verdicts
            if any(each is drawn for each in self.evidence(verdict))
        ]

    def _named(self, name: str) -> list[DrawnFigure]:
        # "table 1" distinguishes a table from a figure of the same number.
        places = {name, f"figure-{name}", name.replace(" ", "-")}
        found = [drawn for drawn in self.figures if drawn.figure.name in places]
        return found or [drawn for drawn in self.figures if drawn.figure.id == name]


@dataclass(frozen=True, kw_only=True)
class Reproduction:
    """All studies of a run, and its origin."""

    studies: tuple[Reproduced, ...]
    provenance: Provenance
    quick: bool = False

    @property
    def verdicts(self) -> list[Verdict]:
        """All claims with their measurements."""
        return [verdict for each in self.studies for verdict in each.verdicts]

    @property
    def tally(self) -> str:
        """How many claims hold: those of the papers, and our own."""
        return tally(self.verdicts)

    def inconsistencies(self) -> list[str]:
        """Return a line for each claim whose stated cause contradicts its verdict.

        A quick run has none: causes are those of the full run.
        """
        if self.quick:
            return []
        return [
            f"{each.study}: {each.claim.id} {each.inconsistency}"
            for each in self.verdicts
            if each.inconsistency
        ]


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
    workers: int | None = None,
    dask: str | None = None,
    command: str = "",
    progress: Progress | None = None,
) -> Reproduction:
    """Run studies and write figures, tables, `claims.json`, `provenance.json` and `report.html`.

    Parameters
    ----------
    studies
        The studies to run.
    out
        The folder for the results.
    quick
        Whether to simulate fewer cells.
    workers
        Simulations at a time; by default the number of cores.
    dask
        The address of a Dask scheduler. Its workers simulate instead of this machine's cores.
    command
        The command line, for the report.
    progress
        Receives the progress.

    Raises
    ------
    RequestError
        `workers` and `dask` were both given, Dask is not installed, or no scheduler answers.
    WorkError
        A simulation failed, or the cluster went away.
    """
    progress = progress or Progress()
    began = time.perf_counter()
    at_a_time = workers or available_cores()
    where = f"{at_a_time} at a time" if dask is None else f"Dask cluster at {dask}"
    provenance = Provenance(command=command, workers=where)
    with simulations(workers, dask) as started:
        # All studies at once: while the figures of one are drawn, the cells of the next are
        # simulated. The study with the most cells goes last, so that few figures, whose drawing
        # takes one core, are left when nothing is left to simulate.
        cells = {study.key: _cells(study, quick) for study in studies}
        fewest_first = sorted(studies, key=lambda study: len(cells[study.key]))
        begun = started.begin([cells[study.key] for study in fewest_first])
        # Imported while the first cells are simulated.
        from bentpipe.report import write_report

        done = {
            study.key: _reproduce(study, futures, out=out, progress=progress)
            for study, futures in zip(fewest_first, begun, strict=True)
        }
    reproduction = Reproduction(
        studies=tuple(done[study.key] for study in studies),
        provenance=replace(provenance, elapsed_s=time.perf_counter() - began),
        quick=quick,
    )
    _write_json([verdict.as_json() for verdict in reproduction.verdicts], out / "claims.json")
    _write_json(reproduction.provenance.as_json(), out / "provenance.json")
    write_report(reproduction, out / "report.html")
    return reproduction


def _cells(study: Study[Any], quick: bool) -> list[Any]:
    return list(dict.fromkeys(study.cells(quick)))


def _reproduce(
    study: Study[Any], futures: Mapping[Any, Future[RunResult]], *, out: Path, progress: Progress
) -> Reproduced:
    began = time.thread_time()
    progress.begin(f"{study.key}: simulating", len(futures))
    outcomes = Awaited(
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
    summaries = {id(result): result.summary for result in outcomes.values()}.values()
    cells_csv = _write_cells(outcomes, folder)
    progress.step()
    return Reproduced(
        study=study,
        figures=figures,
        verdicts=verdicts,
        remarks=remarks,
        cells=len(futures),
        cells_csv=cells_csv,
        seeds=tuple(sorted({each.seed for each in summaries})),
        simulation_s=sum(each.wall_s for each in summaries),
        analysis_s=time.thread_time() - began,
    )


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

    from bentpipe.arrow_columns import of_values
    from bentpipe.plot.style import write_svg
    from bentpipe.studies.study import Figure

    svg = None
    if isinstance(figure, Figure):
        svg = folder / f"{figure.name}.svg"
        write_svg(figure.draw, svg, width=figure.width, height=figure.height)
    table = pa.table({name: of_values(each) for name, each in figure.columns.items()})
    parquet, csv = _write_table(table, folder / figure.name)
    return DrawnFigure(figure=figure, svg=svg, parquet=parquet, csv=csv)


def _write_cells(outcomes: Mapping[Any, RunResult], folder: Path) -> Path:
    """Write the cells and copies of their scenario files; commands run in the folder above."""
    import pyarrow as pa

    from bentpipe.arrow_columns import of_values

    scenarios = folder / "scenarios"
    scenarios.mkdir(exist_ok=True)
    contents: dict[str, str] = {}
    commands = []
    for cell in outcomes:
        scenario = cell.scenario()
        name, text = scenario.path.name, scenario.content()
        if contents.setdefault(name, text) != text:
            raise ValueError(f"{folder.name}: two scenario files have the name {name}")
        place = Path(folder.name, scenarios.name, name)
        commands.append(replace(scenario, path=place, text=None).command())
    for name, text in contents.items():
        (scenarios / name).write_text(text, encoding="utf-8")
    summaries = [result.summary for result in outcomes.values()]
    columns = {
        "command": commands,
        "seed": [each.seed for each in summaries],
        "duration_s": [each.duration_s for each in summaries],
        "packet_hops": [each.packet_hops for each in summaries],
        "simulation_s": [each.wall_s for each in summaries],
    }
    table = pa.table({name: of_values(values) for name, values in columns.items()})
    _, csv = _write_table(table, folder / "cells")
    return csv


def _write_table(table: pa.Table, place: Path) -> tuple[Path, Path]:
    """Write a table as Parquet and CSV; return both paths."""
    import pyarrow.csv as pa_csv
    import pyarrow.parquet as pq

    parquet, csv = place.with_name(f"{place.name}.parquet"), place.with_name(f"{place.name}.csv")
    pq.write_table(table, parquet)
    pa_csv.write_csv(table, csv)
    return parquet, csv


def _write_json(value: object, path: Path) -> None:
    text = json.dumps(value, indent=2, ensure_ascii=False)
    with atomic_write(path) as part:
        part.write_text(text + "\n", encoding="utf-8")
