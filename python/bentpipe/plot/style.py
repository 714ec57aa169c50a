"""How every figure looks: colours that the colour-blind can tell apart, axes that say their units.

Figures are made without pyplot, so they can be drawn in any thread and need no display.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from textwrap import fill
from typing import IO, TYPE_CHECKING, Any, Final

import matplotlib as mpl
from cycler import cycler
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullFormatter

from bentpipe.files import atomic_write
from bentpipe.plot.layout import MeasuredOnce

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

# Okabe and Ito, "Color Universal Design", without the yellow that white paper swallows.
COLOURS: Final = (
    "#0072B2",  # blue
    "#D55E00",  # vermilion
    "#009E73",  # bluish green
    "#CC79A7",  # reddish purple
    "#E69F00",  # orange
    "#56B4E9",  # sky blue
    "#000000",
)
MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")

# Pixels per inch of a PNG.
_PNG_DPI: Final = 150

# Characters of a label that have room beside the axes.
_BESIDE: Final = 48

_STYLE: Final[dict[Any, Any]] = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "font.size": 10,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "lines.linewidth": 1.4,
    "lines.markersize": 5,
    "svg.fonttype": "path",  # looks the same everywhere
    "svg.hashsalt": "bentpipe",  # equal figures, equal files
}


def write_svg(
    draw: Callable[[Figure], None], path: Path, *, width: float = 7.2, height: float = 4.2
) -> None:
    """Have a figure drawn in our style and write it as SVG; equal figures give equal bytes.

    Width and height are in inches.
    """
    save_svg(new_figure(draw, width=width, height=height), path)


def new_figure(
    draw: Callable[[Figure], None], *, width: float = 7.2, height: float = 4.2
) -> Figure:
    """Return a figure drawn in our style; width and height are in inches."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout=MeasuredOnce())
        draw(figure)
    return figure


def save_svg(figure: Figure, target: Path | IO[str]) -> None:
    """Write a figure as SVG; equal figures give equal bytes."""
    with mpl.rc_context(_STYLE):
        # (`Figure.savefig` draws all of it twice: first to lay it out.)
        canvas: Any = FigureCanvasSVG(figure)
        metadata = {"Date": None, "Creator": "bentpipe"}
        if isinstance(target, Path):
            with atomic_write(target) as part:
                canvas.print_svg(part, metadata=metadata)
        else:
            canvas.print_svg(target, metadata=metadata)


def save_png(figure: Figure, path: Path) -> None:
    """Write a figure as PNG; equal figures give equal bytes."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    with mpl.rc_context(_STYLE):
        canvas: Any = FigureCanvasAgg(figure)
        with atomic_write(path) as part:
            figure.set_dpi(_PNG_DPI)
            canvas.print_png(part, metadata={"Software": "bentpipe"})


def new_axes(figure: Figure, *, rows: int = 1, columns: int = 1) -> list[Axes]:
    """Return the figure's axes, row by row."""
    return list(figure.subplots(rows, columns, squeeze=False).flat)


def log_x_in_seconds(axes: Axes, shortest_s: float, longest_s: float) -> None:
    """Make x logarithmic, with times as people write them: 0.5, 1, 2, not powers of ten."""
    axes.set_xscale("log")
    # Three ticks in each of many decades would run into each other.
    between = (1.0, 2.0, 5.0) if longest_s < 2e3 * shortest_s else (1.0,)
    axes.xaxis.set_major_locator(LogLocator(subs=between))
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.xaxis.set_minor_formatter(NullFormatter())


def count_on_y(axes: Axes) -> None:
    """Have y count in whole numbers: there is no half of a packet."""
    axes.yaxis.set_major_locator(_whole_numbers())


def count_on_x(axes: Axes) -> None:
    """Have x count in whole numbers: there is no half of a user."""
    axes.xaxis.set_major_locator(_whole_numbers())


def _whole_numbers() -> MaxNLocator:
    # As `AutoLocator` chooses them, but for fractions.
    return MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True)


def rate_scale(highest_bps: float) -> tuple[float, str]:
    """Return what to divide rates by so that the highest reads well, and the unit then."""
    return (1e6, "Mbit/s") if highest_bps >= 2e6 else (1e3, "kbit/s")


def draw_steps(
    axes: Axes, values: NDArray[np.float64], edges: NDArray[np.float64], **style: Any
) -> None:
    """Draw a value for each interval. A line ends where it is: it does not fall to zero."""
    axes.stairs(values, edges, baseline=None, **style)


def legend_beside(axes: Axes) -> None:
    """Put the legend to the right of the axes, where no line is; none for a single nameless one.

    A long label takes several lines: it would leave the axes no width.
    """
    handles, labels = axes.get_legend_handles_labels()
    if not handles:
        return
    axes.legend(
        handles,
        [fill(label, _BESIDE, break_on_hyphens=False) for label in labels],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0.0,
        alignment="left",
    )


def legend_below(
    figure: Figure, axes: Axes, *, title: str | None = None, columns: int | None = None
) -> None:
    """Put the legend below the axes, where no line is.

    In `columns`; without, in as many as there is room for, and none for a single line.
    """
    handles, labels = axes.get_legend_handles_labels()
    if columns is None:
        if len(labels) < 2 and not title:
            return
        longest = max((len(label) for label in labels), default=1)
        columns = max(1, min(len(labels), 90 // (longest + 6)))
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, title=title)
