"""Data of a sweep's figure: goodput, or a metric, along up to three axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bentpipe.errors import RequestError
from bentpipe.plot.curves import Curve, Curves
from bentpipe.sweeps.outcome import run_rows
from bentpipe.sweeps.summary import ADDED_UP, Point, adds_up, shown, summarise, varying

if TYPE_CHECKING:
    from bentpipe.sweeps.definition import Axis
    from bentpipe.sweeps.metric import Metric
    from bentpipe.sweeps.outcome import SweepResult
    from bentpipe.sweeps.summary import Point

# Axes of a figure: x, curves and panels.
_MOST_AXES: Final = 3
_MOST_PANELS: Final = 12
# Seeds that are listed one by one at most.
_MOST_SEEDS: Final = 8


@dataclass(frozen=True, kw_only=True)
class PlottedAxes:
    """The axes of a sweep's figure: the x axis, one curve per value, one panel per value."""

    along: Axis
    curve: Axis | None = None
    panel: Axis | None = None


def plotted_axes(axes: Sequence[Axis]) -> PlottedAxes:
    """Choose the axes of a figure; the seed and axes with a single value are left out.

    A numeric axis goes along x; of several, the longest one. Of the other two axes, the longer one
    has a curve per value and the shorter one a panel per value.

    Raises
    ------
    RequestError
        There are no axes, more than three, or too many panels.
    """
    besides_seed = varying(axes)
    chosen = [axis for axis in besides_seed if len(axis) > 1] or besides_seed[:1]
    if not 1 <= len(chosen) <= _MOST_AXES:
        names = ", ".join(axis.name for axis in chosen) or "none"
        raise RequestError(
            f"--plot: expected one to three axes besides the seed, got {len(chosen)} ({names}); "
            "bentpipe.load_sweep reads results for plots of your own"
        )
    along = max(chosen, key=lambda axis: (_numeric(axis), len(axis)))
    others = sorted((axis for axis in chosen if axis is not along), key=len, reverse=True)
    curve, panel, *_ = [*others, None, None]
    if panel is not None and len(panel) > _MOST_PANELS:
        raise RequestError(
            f"--plot: the shortest of three axes has one panel per value, at most {_MOST_PANELS}; "
            f"{panel.name} has {len(panel)}"
        )
    return PlottedAxes(along=along, curve=curve, panel=panel)


def curves(
    result: SweepResult, metric: Metric | None = None, *, points: Sequence[Point] | None = None
) -> list[Curves]:
    """Return a sweep's goodput, or a metric, as the panels of a figure.

    `points` are the sweep's points, if they are known already.

    Raises
    ------
    RequestError
        The sweep has no axes for a figure, or too many.
    """
    axes = plotted_axes(result.sweep.axes)
    along = axes.along
    panels: dict[str, dict[str, list[tuple[float, float, float, float]]]] = {}
    if points is None:
        points = summarise(result, metric)
    if not points:
        raise RequestError(f"{result.sweep.name}: no cell has finished: nothing to plot")
    for point in points:
        panel = panels.setdefault(_label(axes.panel, point), {})
        curve = panel.setdefault(_label(axes.curve, point), [])
        if (found := point.goodput_bps if metric is None else point.metric) is not None:
            place = point.place[along.name]
            x = float(place) if _numeric(along) else float(along.coordinates.index(place))
            curve.append((x, found.lower, found.median, found.upper))
    whole = Curves(
        title=result.sweep.name,
        x_label=_described(along),
        log_x=_is_log(along),
        ticks=None if _numeric(along) else tuple(map(shown, along.coordinates)),
        legend=_stem(axes.curve) if axes.curve is not None else "",
        y_label=str(metric) if metric else ADDED_UP if adds_up(points) else "goodput",
        unit=metric.unit if metric else "bit/s",
        note=_note(result, points, metric),
        curves=(),
    )
    return [
        replace(
            whole,
            panel="" if axes.panel is None else f"{_stem(axes.panel)} {label}",
            curves=tuple(
                Curve(label=name, points=tuple(sorted(places))) for name, places in found.items()
            ),
        )
        for label, found in panels.items()
    ]


def _label(axis: Axis | None, point: Point) -> str:
    return "" if axis is None else point.labels[axis.name]


def _note(result: SweepResult, points: Sequence[Point], metric: Metric | None) -> str:
    """Return a note with the seeds of a figure and the meaning of its bands."""
    rows = run_rows(result)
    known = rows["seed"].drop_null().unique().to_pylist() if "seed" in rows.schema.names else []
    seeds = sorted(map(int, known))
    several = max((point.cells for point in points), default=0) > 1
    if not several:
        # Where the seed is zipped with another key, each point has its own seed.
        return f"seed {seeds[0]}" if len(seeds) == 1 else ""
    if seeds == list(range(seeds[0], seeds[0] + len(seeds))):
        named = f"seeds {seeds[0]} to {seeds[-1]}"
    elif len(seeds) <= _MOST_SEEDS:
        named = f"seeds {', '.join(map(str, seeds))}"
    else:
        named = f"{len(seeds)} seeds from {seeds[0]} to {seeds[-1]}"
    values = [point.goodput_bps if metric is None else point.metric for point in points]
    if all(each is None or each.lower == each.upper for each in values):
        return f"{named}, all alike"
    return f"medians over {named}; bands are quartiles"


def _numeric(axis: Axis) -> bool:
    return all(
        isinstance(each, int | float) and not isinstance(each, bool) for each in axis.coordinates
    )


def _is_log(axis: Axis) -> bool:
    """Return whether an axis needs a logarithmic scale: its values span decades unevenly.

    Values of a range in even steps get a linear scale, however far they reach.
    """
    if not _numeric(axis):
        return False
    values = sorted(float(each) for each in axis.coordinates)
    # Zero, as in an error rate of 0, is left out: it has its own place on a logarithmic axis.
    positive = [each for each in values if each > 0.0]
    if values[0] < 0.0 or len(positive) < 2 or positive[-1] < 30.0 * positive[0]:
        return False
    return _widest_gap([math.log(each) for each in positive]) <= _widest_gap(positive)


def _widest_gap(values: Sequence[float]) -> float:
    """Return the largest gap between neighbouring values, as a share of the axis."""
    gaps = (after - before for before, after in pairwise(values))
    return max(gaps) / (values[-1] - values[0])


def _described(axis: Axis) -> str:
    shown = {"bps": "bit/s", "bytes": "B"}.get(axis.unit, axis.unit)
    return _stem(axis) + (f" ({shown})" if shown else "")


def _stem(axis: Axis) -> str:
    """Return an axis's name in words without its unit, which is shown with the values."""
    unit = axis.unit
    return (axis.name.removesuffix(f"_{unit}") if unit else axis.name).replace("_", " ")
