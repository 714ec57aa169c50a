"""The figure of a comparison: the kernel's TCP and ours, on top of each other."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bentpipe.plot.style import COLOURS, new_axes, write_svg
from bentpipe.plot.thin import thin_line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bentpipe.comparison import Comparison
    from bentpipe.results import Series

_MOST_FLOWS: Final = 4


def write_comparison_plot(comparison: Comparison, path: Path) -> None:
    """Draw bytes and congestion windows over time, simulated and emulated, and write SVG."""
    write_svg(partial(_draw, comparison=comparison), path, height=6.4)


def _draw(figure: Figure, *, comparison: Comparison) -> None:
    bytes_, windows = new_axes(figure, rows=2)
    flows = comparison.simulated.summary.flows[:_MOST_FLOWS]
    for number, flow in enumerate(flows):
        colour = COLOURS[number % len(COLOURS)]
        pairs = (("emulated", "-", comparison.emulated), ("simulated", "--", comparison.simulated))
        for label, style, result in pairs:
            name = f"{flow.name}, {label}" if len(flows) > 1 else label
            for axes, quantity, scale in (
                (bytes_, "delivered", 1e6),
                (windows, "congestion_window", 1e3),
            ):
                series = result.series.get(f"{flow.name}.{quantity}")
                if series is not None and len(series.times_s):
                    x, y = _line(series)
                    axes.plot(x, y / scale, style, color=colour, label=name)
    bytes_.set(
        title=f"{comparison.simulated.summary.scenario}: the kernel's TCP and ours",
        ylabel="delivered (MB)",
    )
    windows.set(ylabel="congestion window (kB)", xlabel="time (s)")
    for axes in (bytes_, windows):
        axes.set_xlim(left=0.0)
    if bytes_.get_legend_handles_labels()[1]:
        bytes_.legend()


def _line(series: Series):  # type: ignore[no-untyped-def]
    return thin_line(series.times_s, series.values)
