"""The plot of a sweep: goodput along one of its axes, medians with quartile bands."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bentpipe.plot.style import COLOURS, MARKERS, new_axes, write_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bentpipe.plot.curves import Curves


def write_sweep_plot(curves: Curves, path: Path) -> None:
    """Draw curves and write them as SVG."""
    write_svg(partial(_draw, curves=curves), path)


def _draw(figure: Figure, *, curves: Curves) -> None:
    (axes,) = new_axes(figure)
    highest = max((point[3] for curve in curves.curves for point in curve.points), default=0.0)
    scale, unit = (1e6, "Mbit/s") if highest >= 2e6 else (1e3, "kbit/s")
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
    if curves.log_x:
        axes.set_xscale("log")
    axes.set_xlabel(curves.x_label)
    axes.set_ylabel(f"goodput ({unit})")
    axes.set_ylim(bottom=0.0)
    axes.set_title(curves.title)
    if any(curve.label for curve in curves.curves):
        axes.legend(title=curves.legend, alignment="left")
