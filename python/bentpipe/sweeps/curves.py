"""What a sweep's plot shows: goodput, or what else was asked for, along one axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from bentpipe.errors import RequestError
from bentpipe.plot.curves import Curve, Curves
from bentpipe.sweeps.summary import ADDED_UP, SEED, adds_up, shown, summarise

if TYPE_CHECKING:
    from bentpipe.sweeps.definition import Axis
    from bentpipe.sweeps.metric import Metric
    from bentpipe.sweeps.outcome import SweepResult


def curve_axes(axes: Sequence[Axis]) -> tuple[Axis, Axis | None]:
    """Return the axis that goes along the plot and the one that has a curve for each value.

    Along the plot goes the axis of numbers; of two, the longer one.

    Raises
    ------
    RequestError
        There are not one or two axes besides the seed.
    """
    varying = [axis for axis in axes if [each.key for each in axis.variables] != [SEED]]
    if len(varying) not in {1, 2}:
        names = ", ".join(axis.name for axis in varying) or "none"
        raise RequestError(
            f"--plot: expected one or two axes besides the seed, got {len(varying)} ({names}); "
            "bentpipe.load_sweep reads results for plots of your own"
        )
    along = max(varying, key=lambda axis: (_numeric(axis), len(axis)))
    others = [axis for axis in varying if axis is not along]
    return along, others[0] if others else None


def curves(result: SweepResult, metric: Metric | None = None) -> Curves:
    """Return a sweep's goodput, or a metric, as curves: one for each value of another axis."""
    along, other = curve_axes(result.sweep.axes)
    found: dict[str, list[tuple[float, float, float, float]]] = {}
    points = summarise(result, metric)
    for point in points:
        label = point.labels[other.name] if other is not None else ""
        curve = found.setdefault(label, [])
        if (found_here := point.goodput_bps if metric is None else point.metric) is not None:
            place = point.place[along.name]
            x = float(place) if _numeric(along) else float(along.coordinates.index(place))
            curve.append((x, found_here.lower, found_here.median, found_here.upper))
    ticks = None if _numeric(along) else tuple(map(shown, along.coordinates))
    return Curves(
        title=result.sweep.name,
        x_label=_described(along),
        log_x=_is_log(along),
        ticks=ticks,
        legend=other.name.replace("_", " ") if other is not None else "",
        y_label=str(metric) if metric else ADDED_UP if adds_up(points) else "goodput",
        unit=metric.unit if metric else "bit/s",
        curves=tuple(
            Curve(label=label, points=tuple(sorted(places))) for label, places in found.items()
        ),
    )


def _numeric(axis: Axis) -> bool:
    return all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in axis.coordinates
    )


def _is_log(axis: Axis) -> bool:
    """Whether the values spread over decades: on a linear scale they would lie on each other.

    Those of a range in even steps don't, however far it goes.
    """
    if not _numeric(axis):
        return False
    values = sorted(float(each) for each in axis.coordinates)
    # "No errors at all" is often one of the values: it gets a place of its own.
    positive = [each for each in values if each > 0.0]
    if values[0] < 0.0 or len(positive) < 2 or positive[-1] < 30.0 * positive[0]:
        return False
    return _widest_gap([math.log(each) for each in positive]) <= _widest_gap(positive)


def _widest_gap(values: Sequence[float]) -> float:
    """Return which share of an axis lies between the two neighbours that are furthest apart."""
    gaps = (after - before for before, after in pairwise(values))
    return max(gaps) / (values[-1] - values[0])


def _described(axis: Axis) -> str:
    unit = axis.unit
    stem = axis.name.removesuffix(f"_{unit}") if unit else axis.name
    shown = {"bps": "bit/s", "bytes": "B"}.get(unit, unit)
    return stem.replace("_", " ") + (f" ({shown})" if unit else "")
