"""Summary of a sweep: medians and quartiles over the seeds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bentpipe.results import limit_shares
from bentpipe.sweeps.outcome import SweepResult, run_rows
from bentpipe.toml import literal

if TYPE_CHECKING:
    import pyarrow as pa

    from bentpipe.sweeps.definition import Axis, Coordinate
    from bentpipe.sweeps.metric import Metric

SEED = "seed"
_LIMITED: Final = re.compile(r"limited_(.+)_s")


@dataclass(frozen=True, kw_only=True)
class Quartiles:
    """The quartiles of a few values."""

    lower: float
    median: float
    upper: float


@dataclass(frozen=True, kw_only=True)
class Point:
    """Results of the cells that differ only in their seed.

    Goodput is the sum over all flows, each over its own time. Where flows do not run at the same
    time, the sum exceeds the rate of a link. `retransmitted` is the share of segments that are
    retransmissions. Both are None where every cell failed. `metric` is the requested metric; None
    where no cell has it.
    """

    place: Mapping[str, Coordinate]
    # Values as in the file, such as "250 ms".
    labels: Mapping[str, str]
    cells: int
    failed: int
    goodput_bps: Quartiles | None
    retransmitted: float | None
    timeouts: float | None
    finished_flows: int
    flows: int
    # Whether all cells have the same total goodput, as without randomness.
    alike: bool
    metric: Quartiles | None = None
    # Limits of the senders, as shares of all their time in all cells, the largest first. Empty
    # where no sender waited.
    limits: Mapping[str, float] = field(default_factory=dict)

    @property
    def limited_by(self) -> str | None:
        """The largest limit of the senders."""
        return next(iter(self.limits), None)

    def as_json(self, *, with_metric: bool = False) -> dict[str, Any]:
        """Return the point as plain data."""
        data = asdict(self)
        del data["labels"], data["alike"]
        if not with_metric:
            del data["metric"]
        data["limited_by"] = self.limited_by
        return data


def varying(axes: Iterable[Axis]) -> tuple[Axis, ...]:
    """Return the axes other than the seed."""
    return tuple(axis for axis in axes if [each.key for each in axis.variables] != [SEED])


def summarise(result: SweepResult, metric: Metric | None = None) -> list[Point]:
    """Return a point for each combination of the axes other than the seed, in order."""
    sweep = result.sweep
    kept = varying(sweep.axes)
    shown = [at for at, axis in enumerate(sweep.axes) if axis in kept]
    runs = run_rows(result)
    failed = np.zeros(len(sweep), dtype=bool)
    done = np.zeros(len(sweep), dtype=bool)
    done[runs["cell"].to_numpy()] = True
    for failure in result.failures:
        failed[failure.cell] = True
    flows = result.rows()
    totals = _totals(flows, len(sweep))
    values = None if metric is None else metric.values(result)
    limited_s = _limited_s(flows, len(sweep))
    groups: dict[tuple[int, ...], list[int]] = {}
    for cell in np.flatnonzero(done).tolist():
        indices = sweep.cell(cell).indices
        groups.setdefault(tuple(indices[at] for at in shown), []).append(cell)
    points = []
    for key in sorted(groups):
        cells = np.asarray(groups[key])
        good = cells[~failed[cells]]
        axes = [(sweep.axes[at], index) for at, index in zip(shown, key, strict=True)]
        points.append(
            Point(
                place={axis.name: axis.coordinates[index] for axis, index in axes},
                labels={axis.name: _label(axis, index) for axis, index in axes},
                cells=len(cells),
                failed=int(failed[cells].sum()),
                goodput_bps=quartiles(totals["goodput_bps"][good]) if len(good) else None,
                retransmitted=_share(totals, good),
                timeouts=float(np.median(totals["timeouts"][good])) if len(good) else None,
                finished_flows=int(totals["finished"][good].sum()),
                flows=int(totals["flows"][good].sum()),
                alike=all(len(np.unique(each[good])) <= 1 for each in totals.values()),
                metric=None if values is None else _known_quartiles(values[good]),
                limits=limit_shares({name: each[good].sum() for name, each in limited_s.items()}),
            )
        )
    return points


# Description of goodput where there are several flows.
ADDED_UP: Final = "all flows' goodput, added up"


def adds_up(points: Iterable[Point]) -> bool:
    """Return whether goodput is a sum over several flows."""
    return any(point.flows > point.cells - point.failed for point in points)


def quartiles(values: Sequence[float] | np.ndarray[Any, Any]) -> Quartiles:
    """Return the quartiles, interpolated linearly."""
    lower, median, upper = np.quantile(np.asarray(values, dtype=float), [0.25, 0.5, 0.75])
    return Quartiles(lower=float(lower), median=float(median), upper=float(upper))


def _known_quartiles(values: np.ndarray[Any, Any]) -> Quartiles | None:
    known = values[~np.isnan(values)]
    return quartiles(known) if len(known) else None


def _totals(flows: pa.Table, count: int) -> dict[str, np.ndarray[Any, Any]]:
    """Return the sums over the flows of each of `count` cells."""
    cells = flows["cell"].to_numpy()
    totals = {"flows": np.bincount(cells, minlength=count)}
    for name in ("goodput_bps", "segments_sent", "segments_retransmitted", "timeouts"):
        weights = flows[name].to_numpy() if name in flows.schema.names else np.zeros(len(cells))
        totals[name] = np.bincount(cells, weights=weights, minlength=count)
    unfinished = "finish_s" not in flows.schema.names
    ended = np.zeros(len(cells)) if unfinished else flows["finish_s"].is_valid().to_numpy()
    totals["finished"] = np.bincount(cells, weights=ended, minlength=count)
    return totals


def _limited_s(flows: pa.Table, count: int) -> dict[str, np.ndarray[Any, Any]]:
    """Return the time of each limit over the flows of each of `count` cells."""
    cells = flows["cell"].to_numpy()
    # limited_s.send_buffer is limited_send_buffer_s.
    columns = [name for name in flows.schema.names if _LIMITED.fullmatch(name)]
    return {
        _LIMITED.sub(r"\1", column): np.bincount(
            cells,
            weights=np.nan_to_num(flows[column].to_numpy()),
            minlength=count,
        )
        for column in columns
    }


def _share(totals: Mapping[str, np.ndarray[Any, Any]], cells: np.ndarray[Any, Any]) -> float | None:
    if not len(cells):
        return None
    sent = totals["segments_sent"][cells]
    return float(np.median(totals["segments_retransmitted"][cells] / np.maximum(sent, 1)))


def _label(axis: Axis, index: int) -> str:
    if axis.zipped:
        return str(axis.coordinates[index])
    value = axis.variables[0].values[index]
    return shown(value)


def shown(value: object) -> str:
    """Return a value of an axis as in the file, a string without its quotes."""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return f"{value:g}"
    return literal(value)
