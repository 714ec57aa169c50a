"""`bentpipe sweep`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from bentpipe.cli.declaring import check_text
from bentpipe.cli.output import WriteErrors, check_plot, print_json
from bentpipe.cli.progress import quiet_dask, somebody_looks
from bentpipe.cli.run_tables import format_shares
from bentpipe.cli.source import execute_files
from bentpipe.cli.tables import Table, print_prose
from bentpipe.errors import RequestError, WorkError
from bentpipe.scenario import parse_settings
from bentpipe.sweeps import Progress, load_definition, load_sweep
from bentpipe.sweeps import sweep as run_sweep
from bentpipe.sweeps.metric import parse_metric
from bentpipe.sweeps.summary import adds_up, summarise, varying
from bentpipe.units import format_rate, format_seconds

if TYPE_CHECKING:
    from bentpipe.sweeps import SweepResult
    from bentpipe.sweeps.metric import Metric
    from bentpipe.sweeps.summary import Point

# More rows than this nobody reads in a terminal.
_MOST_ROWS: Final = 60
_MOST_FAILURES: Final = 5


def sweep(
    *,
    file: str,
    out: Path | None,
    workers: int | None,
    cores: int | None,
    resume: bool,
    dask: str | None,
    series: bool,
    metric: str | None,
    plot: Path | None,
    python: Sequence[Path],
    settings: Sequence[str],
    as_json: bool,
) -> None:
    """Simulate the cells, keep their results, print what they came to.

    Raises
    ------
    WorkError
        A cell failed.
    """
    began = perf_counter()
    if out is not None:
        check_text(out, "--out")
    execute_files(python)
    definition = load_definition(file, series=series, settings=parse_settings(settings))
    looked_at = parse_metric(metric, definition) if metric is not None else None
    if plot is not None:
        _check_plot(plot, definition.axes)
    folder = out if out is not None else Path(f"{definition.name}.parquet")
    errors = WriteErrors()
    with _progress() as progress, quiet_dask():
        try:
            with errors.kept(folder):
                result = run_sweep(
                    definition,
                    out=folder,
                    workers=workers,
                    cores=cores,
                    resume=resume,
                    dask=dask,
                    progress=progress,
                )
        except KeyboardInterrupt:
            progress.say_what_is_kept(folder)
            raise
    is_whole = errors.first is None
    if not is_whole:
        # Cells are kept as they finish.
        result = _kept(folder, errors)
        progress.say_what_is_kept(folder)
    simulated = progress.simulated
    points = summarise(result, looked_at)
    drawn = False
    if plot is not None and result.finished:
        with errors.kept(plot):
            _plot(result, plot, looked_at, points)
            drawn = True
    if as_json:
        print_json(_as_data(result, points, folder, simulated, perf_counter() - began, looked_at))
    else:
        _print(result, points, simulated, perf_counter() - began, looked_at)
        if is_whole:
            print(f"wrote {folder}")
        if drawn:
            print(f"wrote {plot}")
    errors.raise_first()
    if result.failures:
        raise WorkError(_failed(result))


def _kept(folder: Path, errors: WriteErrors) -> SweepResult:
    """Return the cells that are in the folder; if there are none, raise the error of writing."""
    try:
        result = load_sweep(folder)
    except (RequestError, WorkError):
        errors.raise_first()
        raise
    if not result.finished:
        errors.raise_first()
    return result


def _print(
    result: SweepResult,
    points: list[Point],
    simulated: int,
    elapsed_s: float,
    metric: Metric | None,
) -> None:
    sweep = result.sweep
    sizes = " × ".join(f"{len(axis)} {axis.name}" for axis in sweep.axes)
    earlier = "" if simulated == len(sweep) else f", {simulated:,} of them now"
    print(f"{sweep.name}: {len(sweep):,} cells ({sizes}){earlier}, in {format_seconds(elapsed_s)}")
    axes = varying(sweep.axes)
    headings = [axis.name for axis in axes] or ["cells"]
    what = "goodput" if metric is None else str(metric)
    columns = (what, "quartiles", "retransmitted", "timeouts", "transfers finished", "limited by")
    table = Table(headings=(*headings, *columns))
    for point in points[:_MOST_ROWS]:
        place = [point.labels[axis.name] for axis in axes] or [str(point.cells)]
        table.add(*place, *_cells(point, metric))
    print()
    table.print()
    if len(points) > _MOST_ROWS:
        print(f"{len(points) - _MOST_ROWS} more rows: bentpipe.load_sweep reads them all")
    if metric is not None:
        _say_of_metric(metric, points)
    elif adds_up(points):
        print_prose("goodput is that of all flows, added up, each over its own time")
    several = [point for point in points if point.cells > 1]
    if several and all(point.alike for point in several):
        print(
            "the seeds make no difference: nothing in it is random "
            '(a flow\'s start may be: "uniform(0 s, 1 s)")'
        )
    elif several:
        print("medians over the seeds")


def _say_of_metric(metric: Metric, points: Sequence[Point]) -> None:
    """Print a hint if no cell has the metric: its group belongs to other applications."""
    if all(point.metric is None for point in points):
        print_prose(f"no cell has {metric}: no result of {metric.group} contains it")


def _cells(point: Point, metric: Metric | None) -> list[str]:
    if point.goodput_bps is None or point.retransmitted is None:
        return ["failed", "", "", "", "", ""]
    told = point.goodput_bps if metric is None else point.metric
    shown = format_rate if metric is None else metric.shown
    spread = "" if told is None else f"{shown(told.lower)} – {shown(told.upper)}"
    return [
        "–" if told is None else shown(told.median),
        spread if point.cells > 1 else "",
        f"{100 * point.retransmitted:.3g}%",
        f"{point.timeouts:g}",
        f"{point.finished_flows} of {point.flows}",
        format_shares(point.limits),
    ]


def _failed(result: SweepResult) -> str:
    failures = result.failures
    told = "; ".join(
        f"{_place(failure.place)}: {failure.error}" for failure in failures[:_MOST_FAILURES]
    )
    more = len(failures) - _MOST_FAILURES
    rest = f"; and {more} more" if more > 0 else ""
    return f"{len(failures)} of {len(result.sweep)} cells failed: {told}{rest}"


def _place(place: Any) -> str:
    return ", ".join(f"{name} = {value}" for name, value in place.items())


def _as_data(
    result: SweepResult,
    points: list[Point],
    folder: Path,
    simulated: int,
    elapsed_s: float,
    metric: Metric | None,
) -> dict[str, Any]:
    return {
        "sweep": result.sweep.name,
        "scenario": str(result.sweep.scenario.path),
        "out": str(folder),
        "axes": {axis.name: list(axis.coordinates) for axis in result.sweep.axes},
        "cells": len(result.sweep),
        "simulated": simulated,
        "failed": len(result.failures),
        "elapsed_s": elapsed_s,
        **({} if metric is None else {"metric": str(metric)}),
        "points": [point.as_json(with_metric=metric is not None) for point in points],
        "failures": [
            {
                "cell": failure.cell,
                "place": dict(failure.place),
                "error": failure.error,
                "command": failure.command,
            }
            for failure in result.failures
        ],
    }


class _Counting(Progress):
    """Counts what is done; shows nothing."""

    def __init__(self) -> None:
        self.simulated = 0
        self._earlier = 0
        self._total: int | None = None

    def begin(self, name: str, *, total: int, done: int, failed: int) -> None:
        del name, failed
        self._total, self._earlier = total, done

    def step(self, *, done: int, failed: int) -> None:
        del failed
        self.simulated += done

    def say_what_is_kept(self, folder: Path) -> None:
        """Print how many cells are complete. Reads no files, since the user has pressed Ctrl-C."""
        if self._total is not None:
            print(
                f"bentpipe: {self._earlier + self.simulated} of {self._total} cells are in "
                f"{folder}; --resume goes on",
                file=sys.stderr,
            )


@contextmanager
def _progress() -> Iterator[_Counting]:
    """Give a progress bar on stderr if that is a terminal."""
    if not somebody_looks():
        yield _Counting()
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    class Shown(_Counting):
        def __init__(self, bars: Bars) -> None:
            super().__init__()
            self._bars = bars
            self._task = bars.add_task("", total=None)
            self._failed = 0
            self._name = ""

        def begin(self, name: str, *, total: int, done: int, failed: int) -> None:
            super().begin(name, total=total, done=done, failed=failed)
            self._name, self._failed = name, failed
            self._bars.reset(self._task, total=total, completed=done, description=self._said())

        def step(self, *, done: int, failed: int) -> None:
            super().step(done=done, failed=failed)
            self._failed += failed
            self._bars.update(self._task, advance=done, description=self._said())

        def _said(self) -> str:
            return f"{self._name}, {self._failed} failed" if self._failed else self._name

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("remaining"),
        TimeRemainingColumn(),
    )
    with Bars(
        *columns,
        console=Console(stderr=True),
        transient=True,
        # Of a few long cells, the last one says more than none.
        speed_estimate_period=600.0,
    ) as bars:
        yield Shown(bars)


def _check_plot(plot: Path, axes: Any) -> None:
    from bentpipe.sweeps.curves import plotted_axes

    plotted_axes(axes)
    check_plot(plot)


def _plot(result: SweepResult, plot: Path, metric: Metric | None, points: list[Point]) -> None:
    from bentpipe.plot.sweep_plot import write_sweep_plot
    from bentpipe.sweeps.curves import curves

    write_sweep_plot(curves(result, metric, points=points), plot)
