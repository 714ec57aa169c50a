"""The plots of one run, as far as it has the probes for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.plot.style import COLOURS, new_axes, write_svg
from bentpipe.plot.thin import thin_line, thin_points

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bentpipe.results import Series

# A hundred flows make a hundred times three plots that nobody looks at.
MOST_SUBJECTS: Final = 12

Probes = Mapping[str, "Series"]


def write_run_plots(series: Probes, folder: Path) -> tuple[list[Path], int]:
    """Write every plot that the series allow, as SVG.

    Returns
    -------
    The files, and the number of flows and link directions that were left out.
    """
    subjects = _by_subject(series)
    drawn = dict(list(subjects.items())[:MOST_SUBJECTS])
    files = []
    for subject, probes in drawn.items():
        for kind in _KINDS:
            if _KINDS[kind][0] & probes.keys():
                file = folder / f"{subject}.{kind}.svg"
                write_svg(partial(_draw, kind=kind, subject=subject, probes=probes), file)
                files.append(file)
    return files, len(subjects) - len(drawn)


def _by_subject(series: Probes) -> dict[str, dict[str, Series]]:
    """Group "satellite.forward.queue" under "satellite.forward" as "queue"."""
    subjects: dict[str, dict[str, Series]] = {}
    for name, each in series.items():
        subject, _, quantity = name.rpartition(".")
        if len(each.times_s):
            subjects.setdefault(subject, {})[quantity] = each
    return {subject: probes for subject, probes in subjects.items() if _PLOTTED & probes.keys()}


def _draw(figure: Figure, *, kind: str, subject: str, probes: Probes) -> None:
    _, title, draw = _KINDS[kind]
    (axes,) = new_axes(figure)
    draw(axes, probes)
    axes.set_title(f"{subject}: {title}")
    axes.set_xlabel("time (s)")
    axes.set_xlim(left=0.0)
    if len(axes.get_legend_handles_labels()[1]) > 1:
        axes.legend()


def draw_time_sequence(
    axes: Axes, probes: Probes, *, names: Mapping[str, str] | None = None
) -> None:
    """Draw what was sent, retransmitted, acknowledged and delivered over time."""
    names = names or {}
    styles = (
        ("sent", COLOURS[0], "-"),
        ("delivered", COLOURS[3], "-"),
        ("acknowledged", COLOURS[2], "--"),
    )
    scale, unit = _byte_scale(_largest(probes, "retransmitted", *(name for name, _, _ in styles)))
    for quantity, colour, style in styles:
        if quantity in probes:
            label = names.get(quantity, quantity)
            _steps(axes, probes[quantity], scale, label=label, color=colour, linestyle=style)
    if "retransmitted" in probes:
        again = probes["retransmitted"]
        x, y = thin_points(again.times_s, again.values / scale)
        label = names.get("retransmitted", "retransmitted")
        axes.plot(x, y, "x", color=COLOURS[1], label=label, zorder=3)
    axes.set_ylabel(f"stream offset ({unit})")
    axes.set_ylim(bottom=0.0)


def _draw_window(axes: Axes, probes: Probes) -> None:
    largest = _largest(probes, "congestion_window")
    scale, unit = _byte_scale(largest)
    if (window := probes.get("congestion_window")) is not None:
        _steps(axes, window, scale, label="congestion window", color=COLOURS[0])
    if (threshold := probes.get("slow_start_threshold")) is not None:
        values = threshold.values / scale
        # A threshold starts out as good as infinite: it would flatten everything else.
        limit = 2.0 * largest / scale if largest else np.inf
        shown = np.where(values <= limit, values, np.nan)
        axes.step(
            *(threshold.times_s, shown),
            where="post",
            color=COLOURS[1],
            linestyle="--",
            label="slow start threshold",
        )
    axes.set_ylabel(f"window ({unit})")
    axes.set_ylim(bottom=0.0)


def _draw_queue(axes: Axes, probes: Probes) -> None:
    _steps(axes, probes["queue"], 1.0, color=COLOURS[0])
    axes.set_ylabel(f"queue ({probes['queue'].unit})")
    axes.set_ylim(bottom=0.0)


def _draw_goodput(axes: Axes, probes: Probes) -> None:
    series = probes["goodput"]
    highest = float(series.values.max())
    scale, unit = (1e6, "Mbit/s") if highest >= 2e6 else (1e3, "kbit/s")
    _steps(axes, series, scale, color=COLOURS[0])
    axes.set_ylabel(f"goodput ({unit})")
    axes.set_ylim(bottom=0.0)


def _largest(probes: Probes, *quantities: str) -> float:
    values = [probes[each].values for each in quantities if each in probes]
    return max((float(each.max()) for each in values if len(each)), default=0.0)


def _byte_scale(largest: float) -> tuple[float, str]:
    return (1e6, "MB") if largest >= 10e6 else (1e3, "kB")


def _steps(
    axes: Axes,
    series: Series,
    scale: float,
    *,
    color: str,
    label: str | None = None,
    linestyle: str = "-",
) -> None:
    x, y = thin_line(series.times_s, series.values / scale)
    axes.step(x, y, where="post", color=color, label=label, linestyle=linestyle)


_DrawOn = Callable[["Axes", Probes], None]
_KINDS: Final[Mapping[str, tuple[frozenset[str], str, _DrawOn]]] = {
    "time-sequence": (
        frozenset({"sent", "retransmitted", "acknowledged"}),
        "time-sequence graph",
        draw_time_sequence,
    ),
    "congestion-window": (
        frozenset({"congestion_window", "slow_start_threshold"}),
        "congestion window",
        _draw_window,
    ),
    "queue": (frozenset({"queue"}), "packets waiting", _draw_queue),
    "goodput": (frozenset({"goodput"}), "goodput", _draw_goodput),
}
_PLOTTED: Final = frozenset[str]().union(*(quantities for quantities, _, _ in _KINDS.values()))
