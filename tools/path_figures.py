#!/usr/bin/env python3
"""Draw the figures of docs/changing-paths.md, each from a run of its ready-made network.

tools/path_figures.py docs/images [NAME ...]
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import bentpipe
from bentpipe.plot.style import new_axes, write_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Floats = NDArray[np.float64]

# What of each run is shown: the series, the axis, and what its values are multiplied by.
FIGURES = {
    "leo-handover": (
        ("download.goodput", "goodput\n(Mbit/s)", 1e-6),
        ("download.smoothed_rtt", "smoothed RTT\n(ms)", 1e3),
        ("satellite.forward.lost", "packets lost\nso far", 1.0),
    ),
    "geo-rain": (
        ("download.goodput", "goodput\n(Mbit/s)", 1e-6),
        ("download.smoothed_rtt", "smoothed RTT\n(ms)", 1e3),
        ("satellite.forward.queue_bytes", "queue\n(kB)", 1e-3),
    ),
    "ship-link": (
        ("film.goodput", "film's goodput\n(Mbit/s)", 1e-6),
        ("satellite.forward.queue", "queue\n(packets)", 1.0),
        ("satellite.forward.lost", "packets lost\nso far", 1.0),
    ),
    "dish-and-modem": (
        ("download.goodput", "goodput\n(Mbit/s)", 1e-6),
        ("download.smoothed_rtt", "smoothed RTT\n(ms)", 1e3),
        ("modem.forward.queue", "queue at the\nmodem (packets)", 1.0),
    ),
    "vsat-office": (
        ("satellite.forward.utilization", "share of 20 Mbit/s\ndown (%)", 100.0),
        ("satellite.forward.queue", "queue at the hub\n(packets)", 1.0),
        ("satellite.return.queue", "queue at the office\n(packets)", 1.0),
    ),
}


def _by_second(times_s: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return averages over each second of what are averages over shorter times."""
    second = np.floor(times_s)
    starts = np.flatnonzero(np.diff(second, prepend=-1.0))
    counts = np.diff(starts, append=len(values))
    return second[starts], np.add.reduceat(values, starts) / counts


def draw(figure: Figure, *, name: str) -> None:
    """Draw one network's run, a row for each series."""
    result = bentpipe.run(name)
    rows = FIGURES[name]
    axes = new_axes(figure, rows=len(rows))
    for each, (series, label, factor) in zip(axes, rows, strict=True):
        data = result.series[series]
        times_s, values = data.times_s, data.values
        if series.endswith(".goodput"):
            times_s, values = _by_second(times_s, values)
        each.plot(times_s, factor * values)
        each.set_ylabel(label)
        each.set_ylim(bottom=0.0)
        each.set_xlim(0.0, result.summary.duration_s)
    axes[0].set_title(name)
    axes[-1].set_xlabel("time (s)")


def main() -> None:
    """Write the figures that are named, or all."""
    folder, *names = sys.argv[1:]
    for name in names or FIGURES:
        write_svg(partial(draw, name=name), Path(folder) / f"{name}.svg", height=5.4)


if __name__ == "__main__":
    main()
