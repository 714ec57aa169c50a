"""The plot of a sweep: goodput along one of its axes, medians with quartile bands."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
from matplotlib.ticker import EngFormatter

from bentpipe.plot.style import (
    COLOURS,
    MARKERS,
    count_on_x,
    legend_below,
    new_axes,
    rate_scale,
    write_svg,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bentpipe.plot.curves import Curves


# From here on numbers on an axis are long.
_LARGE: Final = 1e5
# Milliseconds that read better as seconds.
_SECONDS_FROM_MS: Final = 2e3
# So many signs have room below the axis.
_TICKS_IN_A_LINE: Final = 75


def write_sweep_plot(curves: Curves, path: Path) -> None:
    """Draw curves and write them as SVG."""
    write_svg(partial(_draw, curves=curves), path)


def _draw(figure: Figure, *, curves: Curves) -> None:
    (axes,) = new_axes(figure)
    highest = max((point[3] for curve in curves.curves for point in curve.points), default=0.0)
    scale, unit = _scale(curves.unit, highest)
    for index, curve in enumerate(curves.curves):
        x, lower, median, upper = np.asarray(curve.points, dtype=float).reshape(-1, 4).T
        colour = COLOURS[index % len(COLOURS)]
        marker = MARKERS[index % len(MARKERS)]
        line = "none" if curves.ticks is not None else "-"
        axes.plot(x, median / scale, color=colour, marker=marker, linestyle=line, label=curve.label)
        if curves.ticks is not None:
            axes.vlines(x, lower / scale, upper / scale, color=colour, alpha=0.5)
        elif (upper > lower).any():
            axes.fill_between(x, lower / scale, upper / scale, color=colour, alpha=0.2, linewidth=0)
    if curves.ticks is not None:
        axes.set_xticks(range(len(curves.ticks)), curves.ticks)
        if sum(len(tick) + 2 for tick in curves.ticks) > _TICKS_IN_A_LINE:
            # Side by side they would run into each other.
            axes.tick_params("x", rotation=30)
            for label in axes.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
    places = [float(point[0]) for curve in curves.curves for point in curve.points]
    if curves.log_x:
        _set_log_x(axes, places)
    elif curves.ticks is None and max(places, default=0.0) >= _LARGE:
        # "500 k" and "2 M", not 0.5 and 2.0 with a factor in a corner.
        axes.xaxis.set_major_formatter(EngFormatter())
    elif curves.ticks is None and all(place.is_integer() for place in places):
        count_on_x(axes)
    axes.set_xlabel(curves.x_label)
    axes.set_ylabel(f"{curves.y_label} ({unit})" if unit else curves.y_label)
    axes.set_ylim(bottom=0.0, top=None if highest > 0.0 else 1.0)
    axes.set_title(curves.title)
    if any(curve.label for curve in curves.curves):
        legend_below(figure, axes, title=curves.legend)


def _scale(unit: str, highest: float) -> tuple[float, str]:
    """Return what to divide values by so that the highest reads well, and the unit then."""
    if unit == "bit/s":
        return rate_scale(highest)
    if unit == "ms" and highest >= _SECONDS_FROM_MS:
        return 1e3, "s"
    if unit == "B" and highest >= _LARGE:
        return 1e6, "MB"
    return 1.0, unit


def _set_log_x(axes: Axes, places: list[float]) -> None:
    """Make the axis logarithmic; zero, which has no logarithm, stands a decade below the rest."""
    if min(places) > 0.0:
        axes.set_xscale("log")
        return
    smallest = min(place for place in places if place > 0.0)
    axes.set_xscale("symlog", linthresh=smallest, linscale=0.5)
    decades = range(math.floor(math.log10(smallest)), math.ceil(math.log10(max(places))) + 1)
    ticks = [0.0] + [10.0**decade for decade in decades if 10.0**decade >= smallest * 0.999]
    axes.set_xticks(ticks)
    axes.set_xticks([], minor=True)
    axes.set_xlim(-0.15 * smallest, max(places) * 1.3)
