"""The plot of a sweep: goodput along up to three axes, medians with quartile bands."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    new_figure,
    rate_scale,
    save_svg,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bentpipe.plot.curves import Curves


# From here on numbers on an axis are long.
_LARGE: Final = 1e5
# Milliseconds that read better as seconds.
_SECONDS_FROM_MS: Final = 2e3
# Characters that have room below an axis of the whole width.
_TICKS_IN_A_LINE: Final = 75
_PANELS_IN_A_ROW: Final = 3
# Inches.
_PANEL_WIDTH: Final = 3.2
_MARGIN: Final = 0.6


def write_sweep_plot(panels: Sequence[Curves], path: Path) -> None:
    """Draw a sweep's panels and write them as SVG."""
    save_svg(sweep_figure(panels), path)


def sweep_figure(panels: Sequence[Curves]) -> Figure:
    """Return the figure of a sweep: one panel, or several with the same axes."""
    columns = min(len(panels), _PANELS_IN_A_ROW)
    rows = -(-len(panels) // columns)
    draw = partial(_draw, panels=panels)
    if len(panels) == 1:
        return new_figure(draw)
    return new_figure(draw, width=_MARGIN + _PANEL_WIDTH * columns, height=1.2 + 2.6 * rows)


def _draw(figure: Figure, *, panels: Sequence[Curves]) -> None:
    columns = min(len(panels), _PANELS_IN_A_ROW)
    rows = -(-len(panels) // columns)
    several = len(panels) > 1
    grid = figure.subplots(rows, columns, squeeze=False, sharex=several, sharey=several)
    all_axes = list(grid.flat)
    curves = panels[0]
    points = [point for panel in panels for curve in panel.curves for point in curve.points]
    highest = max((point[3] for point in points), default=0.0)
    scale, unit = _scale(curves.unit, highest)
    places = [float(point[0]) for point in points]
    for number, panel in enumerate(panels):
        axes = all_axes[number]
        _draw_panel(axes, panel, scale)
        _set_x(axes, panel, places, room=_TICKS_IN_A_LINE // columns)
        if several:
            axes.set_title(panel.panel)
        # A panel above an empty place is the lowest of its column.
        if number + columns >= len(panels):
            axes.set_xlabel(curves.x_label)
            axes.tick_params("x", labelbottom=True)
        if number % columns == 0:
            axes.set_ylabel(f"{curves.y_label} ({unit})" if unit else curves.y_label)
    for axes in all_axes[len(panels) :]:
        axes.set_visible(False)
    # After all panels: it ends the scaling to what is drawn, and they may share the axis.
    all_axes[0].set_ylim(bottom=0.0, top=None if highest > 0.0 else 1.0)
    title = f"{curves.title}: {curves.note}" if curves.note else curves.title
    if several:
        figure.suptitle(title, x=0.01, ha="left", fontsize=11)
    else:
        all_axes[0].set_title(title)
    if any(curve.label for panel in panels for curve in panel.curves):
        fullest = max(range(len(panels)), key=lambda number: len(panels[number].curves))
        legend_below(figure, all_axes[fullest], title=curves.legend)


def _draw_panel(axes: Axes, curves: Curves, scale: float) -> None:
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


def _set_x(axes: Axes, curves: Curves, places: list[float], *, room: int) -> None:
    """Set scale and ticks of the x axis; `room` is how many characters it has room for."""
    if curves.ticks is not None:
        axes.set_xticks(range(len(curves.ticks)), curves.ticks)
        if sum(len(tick) + 2 for tick in curves.ticks) > room:
            # Side by side they would run into each other.
            axes.tick_params("x", rotation=30)
            for label in axes.get_xticklabels():
                label.set(ha="right", rotation_mode="anchor")
    if curves.log_x:
        _set_log_x(axes, places)
    elif curves.ticks is None and max(places, default=0.0) >= _LARGE:
        # "500 k" and "2 M", not 0.5 and 2.0 with a factor in a corner.
        axes.xaxis.set_major_formatter(EngFormatter())
    elif curves.ticks is None and all(place.is_integer() for place in places):
        count_on_x(axes)


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
