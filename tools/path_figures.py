#!/usr/bin/env python3
"""Draw the figures of docs/changing-paths.md, each from a run of its ready-made network.

tools/path_figures.py docs/images [NAME ...]
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import bentpipe
from bentpipe.plot.binned import bin_edges, extreme_and_mean, mean_rate, round_trip_edges
from bentpipe.plot.overview import round_trip_s
from bentpipe.plot.style import COLOURS, legend_below, new_axes, write_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Time bins of a figure: the teeth of a sawtooth within a bin are too narrow to show.
BINS = 120

# Series shown of each run: the series, the axis, and the factor of its values.
FIGURES = {
    "leo-handover": (
        ("download.goodput", "goodput\n(Mbit/s)", 1e-6),
        ("download.smoothed_rtt", "smoothed RTT\n(ms)", 1e3),
        ("satellite.forward.lost", "packets lost\nso far", 1.0),
    ),
    "leo-lossy": (
        ("download.goodput", "goodput\n(Mbit/s)", 1e-6),
        ("download.smoothed_rtt", "smoothed RTT\n(ms)", 1e3),
        ("satellite.forward.lost", "packets lost\nso far", 1.0),
    ),
    "geo-rain": (
        ("download.goodput", "goodput\n(Mbit/s)", 1e-6),
        ("download.smoothed_rtt", "smoothed RTT\n(ms)", 1e3),
        ("satellite.forward.queue_bytes", "queue\n(kB)", 1e-3),
    ),
    "geo-fade": (
        ("download.goodput", "goodput\n(Mbit/s)", 1e-6),
        ("satellite.forward.queue", "queue\n(packets)", 1.0),
        ("satellite.forward.lost", "packets lost\nso far", 1.0),
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


def draw(figure: Figure, *, name: str) -> None:
    """Draw one network's run, a row for each series."""
    result = bentpipe.run(name)
    rows = FIGURES[name]
    axes = new_axes(figure, rows=len(rows))
    duration_s = result.summary.duration_s
    edges = bin_edges(duration_s, count=BINS)
    for each, (series, label, factor) in zip(axes, rows, strict=True):
        data = result.series[series]
        if series.endswith((".goodput", ".utilization")):
            bins = round_trip_edges(
                duration_s,
                round_trip_s=round_trip_s(result.summary, series.rpartition(".")[0]),
                interval_s=float(data.times_s[1] - data.times_s[0]),
            )
            rates = factor * mean_rate([data], bins)
            each.stairs(rates, bins, baseline=None, color=COLOURS[0])
        elif series.endswith(".lost"):
            each.plot(data.times_s, factor * data.values, drawstyle="steps-post")
        else:
            # A sawtooth has hundreds of teeth: show its highest values and its average.
            highest, means = extreme_and_mean([data], edges)
            each.stairs(
                factor * highest,
                edges,
                baseline=None,
                color=COLOURS[1],
                label="most of the samples",
            )
            each.stairs(
                factor * means, edges, baseline=None, color=COLOURS[0], label="mean of the samples"
            )
        each.set_ylabel(label)
        each.set_ylim(bottom=0.0)
        each.set_xlim(0.0, duration_s)
    axes[0].set_title(name)
    axes[-1].set_xlabel("time (s)")
    # One legend explains the two lines of all panels that have two.
    legend_below(figure, next((a for a in axes if a.get_legend_handles_labels()[1]), axes[-1]))


def main() -> None:
    """Write the figures that are named, or all."""
    folder, *names = sys.argv[1:]
    for name in names or FIGURES:
        write_svg(partial(draw, name=name), Path(folder) / f"{name}.svg", height=5.4)


if __name__ == "__main__":
    main()
