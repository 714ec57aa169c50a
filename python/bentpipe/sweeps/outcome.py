"""Results of a sweep: a tidy table, an xarray Dataset, and the failures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from bentpipe.results import Series
from bentpipe.sweeps.records import FLOW, RUN, WALL
from bentpipe.sweeps.store import read_store, series_path

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

    from bentpipe.sweeps.definition import Coordinate, Sweep
    from bentpipe.sweeps.summary import Point


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A cell that failed: its coordinates, its error, and the command that repeats it."""

    cell: int
    place: Mapping[str, Coordinate]
    error: str
    command: str


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class SweepResult:
    """A sweep's results.

    `table` is tidy. Each cell has a row of kind "run" and one for each of its flows, groups of
    flows, link directions and gateways. Every row has the cell's number and its coordinates.
    `timing` has the wall time of each cell, the only difference between equal sweeps. `folder` is
    None if the results are in memory only.
    """

    sweep: Sweep
    folder: Path | None
    # pyarrow has no type annotations: these are pa.Table.
    table: pa.Table
    timing: pa.Table

    def __repr__(self) -> str:
        sizes = " × ".join(f"{len(axis)} {axis.name}" for axis in self.sweep.axes)
        left = len(self.sweep) - self.finished
        told = "".join(
            f", {count:,} {what}"
            for count, what in ((left, "not done yet"), (len(self.failures), "failed"))
            if count
        )
        return f"<SweepResult {self.sweep.name}: {len(self.sweep):,} cells ({sizes}){told}>"

    @property
    def finished(self) -> int:
        """The number of cells with an outcome, failures included."""
        return len(self.timing)

    @property
    def complete(self) -> bool:
        """Whether all cells have an outcome."""
        return self.finished == len(self.sweep)

    @property
    def wall_s(self) -> float:
        """The cells' wall times together, in seconds."""
        return float(pc.sum(self.timing[WALL]).as_py() or 0.0)

    @cached_property
    def failures(self) -> tuple[Failure, ...]:
        """The cells that failed, in order."""
        failed = self.table.filter(pc.field("error").is_valid())
        return tuple(
            self._failure(cell, error)
            for cell, error in zip(
                failed["cell"].to_pylist(), failed["error"].to_pylist(), strict=True
            )
        )

    def rows(self, kind: str = FLOW) -> pa.Table:
        """Return the rows of one kind ("run", "flow", "group", "link", "gateway").

        Only columns of such rows are included.
        """
        table = self.table.filter(pc.field("kind") == kind)
        axes = {"cell", "name", *self.sweep.columns()}
        names = [
            name
            for name in table.schema.names
            if name in axes or (name != "kind" and table[name].null_count < len(table))
        ]
        return table.select(names)

    @cached_property
    def dataset(self) -> xr.Dataset:
        """The results as an xarray Dataset with the axes, `flow`, `group` and `link` as dimensions.

        Variables of flows have plain names (`goodput_bps`). Those of groups begin with `group_`
        (`group_goodput_bps`), those of links with `link_`, those of gateways with `gateway_`. A
        cell that failed or has no outcome is NaN; `error` has the errors.
        """
        from bentpipe.sweeps.dataset import dataset_of

        return dataset_of(self)

    def series(self, cell: int) -> dict[str, Series]:
        """Return a cell's probes, if the sweep kept them.

        Raises
        ------
        FileNotFoundError
            There are none.
        """
        import pyarrow.parquet as pq

        if self.folder is None:
            raise FileNotFoundError("results in memory have no series")
        table = pq.read_table(series_path(self.folder, cell))
        names = pc.unique(table["series"]).to_pylist()
        found = {}
        for name in names:
            rows = table.filter(pc.field("series") == name)
            found[name] = Series(
                times_s=rows["time_s"].to_numpy(),
                values=rows["value"].to_numpy(),
                unit=rows["unit"][0].as_py(),
            )
        return found

    def plot(self, metric: str | None = None, *, points: Sequence[Point] | None = None) -> Figure:
        """Return goodput, or a metric such as "pages.page_load_ms.p50", along the axes.

        A second axis has one curve per value, a third one panel per value. Axes with one value are
        left out. `points` are those of `points()`, if they are known already.

        Raises
        ------
        RequestError
            There are no axes besides the seed, or more than three, or there is no such metric.
        """
        from bentpipe.plot.sweep_plot import sweep_figure
        from bentpipe.sweeps.curves import curves
        from bentpipe.sweeps.metric import parse_metric

        chosen = parse_metric(metric, self.sweep) if metric else None
        return sweep_figure(curves(self, chosen, points=points))

    def points(self) -> list[Point]:
        """Return medians and quartiles over the seeds, for each place on the other axes."""
        from bentpipe.sweeps.summary import summarise

        return summarise(self)

    def _repr_html_(self) -> str:
        from bentpipe.notebook import html_of_sweep

        return html_of_sweep(self)

    def in_memory(self) -> SweepResult:
        """Return the results without their folder."""
        return replace(self, folder=None)

    def _failure(self, cell: int, error: str) -> Failure:
        where = self.sweep.cell(cell)
        scenario = self.sweep.scenario_of(where)
        words = ["bentpipe", "run", str(scenario.path)]
        for key, value in scenario.settings:
            words += ["--set", f"{key}={value}"]
        return Failure(
            cell=cell,
            place=self.sweep.coordinates(where),
            error=error,
            command=shlex.join(words),
        )


def load_sweep(path: str | Path) -> SweepResult:
    """Read the results of a sweep, finished or under way.

    Raises
    ------
    RequestError
        The folder does not hold results of a sweep.
    """
    sweep, table, timing = read_store(Path(path))
    return SweepResult(sweep=sweep, folder=Path(path), table=table, timing=timing)


def run_rows(result: SweepResult) -> pa.Table:
    """Return one row for each cell that has an outcome."""
    return result.rows(RUN)
