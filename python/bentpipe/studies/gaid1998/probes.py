"""Figures that the paper does not draw: sending beyond the host's window, the rest of table 2."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from bentpipe.plot.style import COLOURS, legend_below, new_axes
from bentpipe.studies.gaid1998.cells import (
    DURATION_S,
    FACTORS,
    SETS,
    anticipating,
    standard,
)
from bentpipe.studies.study import Figure, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.evidence import Curve
    from bentpipe.studies.gaid1998.evidence import Evidence

# Interval of the points in seconds: there are too many segments to show each.
_STEP_S = 0.25


def probe_figures(evidence: Evidence) -> list[Figure]:
    """Return the figures of quantities that the paper records but does not draw."""
    return [_anticipation(evidence), _delays(evidence), _sender(evidence)]


def _anticipation(evidence: Evidence) -> Figure:
    sets = SETS[:4]
    amounts = {
        f"{factor:g} window{'s' if factor > 1 else ''}": [
            evidence.received_bytes(anticipating(number, factor)) / 1e6 for number in sets
        ]
        for factor in FACTORS
    }
    amounts["as far as there is data"] = [
        evidence.received_bytes(standard(number)) / 1e6 for number in sets
    ]
    columns: dict[str, list[Value]] = {"sent_at_most": [], "set": [], "received_mbyte": []}
    for name, received in amounts.items():
        columns["sent_at_most"] += [name] * len(sets)
        columns["set"] += list(sets)
        columns["received_mbyte"] += received

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        width = 0.8 / len(amounts)
        places = np.arange(len(sets), dtype=float)
        for index, (name, received) in enumerate(amounts.items()):
            shift = (index - len(amounts) / 2 + 0.5) * width
            axes.bar(places + shift, received, width, color=COLOURS[index], label=name)
        axes.set_yscale("log")
        axes.set_ylabel("received in 100 s (Mbyte)")
        axes.set_xticks(places, [f"set {number}" for number in sets])
        legend_below(canvas, axes, columns=3)

    return Figure(
        id="A6",
        title="How far the gateway sends beyond the host's window",
        caption="What the host receives in 100 s, of about 100 Mbyte that the application offers, "
        "where the gateway sends so many of the windows that the host has advertised, and where it "
        "sends all it has. Only with two to eight windows does each set bring more than the one "
        "before; the paper's 7 Mbyte in set 1 need more.",
        columns=columns,
        draw=draw,
    )


def _thinned(curve: Curve) -> dict[str, list[float]]:
    """Return the minimum, median and maximum of every interval that has samples."""
    known = curve.known()
    bins = (known.times_s / _STEP_S).astype(int)
    edges = np.flatnonzero(np.diff(bins)) + 1
    parts = np.split(known.values, edges)
    starts = known.times_s[np.concatenate(([0], edges))] if len(known.times_s) else known.times_s
    return {
        "time_s": [float(_STEP_S * (int(start / _STEP_S) + 0.5)) for start in starts],
        "least": [float(part.min()) for part in parts if len(part)],
        "median": [float(np.median(part)) for part in parts if len(part)],
        "most": [float(part.max()) for part in parts if len(part)],
    }


def _delays(evidence: Evidence) -> Figure:
    curves = {
        number: _thinned(evidence.curve(standard(number), "download.segment_delay"))
        for number in SETS
    }
    columns: dict[str, list[Value]] = {
        name: [] for name in ("set", "time_s", "least_s", "median_s", "most_s")
    }
    for number, curve in curves.items():
        columns["set"] += [number] * len(curve["time_s"])
        columns["time_s"] += curve["time_s"]
        for name in ("least", "median", "most"):
            columns[f"{name}_s"] += curve[name]

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for index, (number, curve) in enumerate(curves.items()):
            axes.plot(curve["time_s"], curve["median"], color=COLOURS[index], label=f"set {number}")
            axes.fill_between(
                curve["time_s"], curve["least"], curve["most"], color=COLOURS[index], alpha=0.2
            )
        axes.set_xlim(0.0, 20.0)
        axes.set_ylim(0.0, None)
        axes.set_xlabel("time (s)")
        axes.set_ylabel("delay (s)")
        legend_below(canvas, axes, columns=5)

    return Figure(
        id="A7",
        title="End-to-end delay of the segments received by the hybrid host",
        caption="Table 2, number 0: from the server's sending of a segment to its arrival at the "
        "host, whatever the gateway did with it in between; median of every quarter of a second, "
        "and from the least to the most. The first 20 s. Where the server's window is what the "
        "gateway holds, a segment leaves at once.",
        columns=columns,
        draw=draw,
    )


def _sender(evidence: Evidence) -> Figure:
    series: Mapping[str, tuple[str, str, float]] = {
        "congestion window": ("download.congestion_window", "window (kbyte)", 1e-3),
        "measured RTT": ("download.measured_rtt", "round trip (ms)", 1e3),
        "mean deviation": ("download.rtt_deviation", "deviation (ms)", 1e3),
    }
    columns: dict[str, list[Value]] = {"set": [], "what": [], "time_s": [], "value": []}
    curves = {}
    for name, (probe, _, scale) in series.items():
        for number in SETS:
            known = evidence.curve(standard(number), probe).known().until(20.0)
            curves[name, number] = (known.times_s, scale * known.values)
            columns["set"] += [number] * len(known.times_s)
            columns["what"] += [name] * len(known.times_s)
            columns["time_s"] += known.times_s.tolist()
            columns["value"] += (scale * known.values).tolist()

    def draw(canvas: Canvas) -> None:
        all_axes = new_axes(canvas, rows=len(series))
        for axes, (name, (_, label, _)) in zip(all_axes, series.items(), strict=True):
            for index, number in enumerate(SETS):
                times, values = curves[name, number]
                axes.plot(
                    times,
                    values,
                    color=COLOURS[index],
                    drawstyle="steps-post",
                    label=f"set {number}",
                )
            axes.set_xlim(0.0, min(20.0, DURATION_S))
            axes.set_ylim(0.0, None)
            axes.set_ylabel(label)
        all_axes[-1].set_xlabel("time (s)")
        legend_below(canvas, all_axes[-1], columns=5)

    return Figure(
        id="A8",
        title="What the server's TCP knows",
        caption="Table 2, numbers 5 to 7: congestion window, measured round trips (the mean of "
        "those of a tenth of a second) and their mean deviation. The first 20 s.",
        columns=columns,
        draw=draw,
        height=6.0,
    )
