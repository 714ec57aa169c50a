"""Figures that the paper does not draw: sending beyond the host's window, the rest of table 2."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.plot import published
from bentpipe.plot.style import COLOURS, MARKERS, legend_below, new_axes
from bentpipe.studies.columns import Columns, add, add_samples, append, empty
from bentpipe.studies.gaid1998.cells import (
    FACTORS,
    FITTED,
    SETS,
    STANDARD_SENT_MB,
    anticipating,
    standard,
)
from bentpipe.studies.gaid1998.figures import envelope, legend_of, nested_widths, thinned
from bentpipe.studies.study import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.gaid1998.evidence import Evidence

# Interval of the points in seconds: there are too many segments to show each.
_STEP_S: Final = 0.25
_SHOWN_S: Final = 20.0


def probe_figures(evidence: Evidence) -> list[Figure]:
    """Return the figures of quantities that the paper records but does not draw."""
    return [_anticipation(evidence), _delays(evidence), _sender(evidence)]


def _anticipation(evidence: Evidence) -> Figure:
    sets = SETS[:4]
    limits = ["unlimited" if factor is None else f"{factor:g}" for factor in FACTORS]
    received = {
        number: [evidence.received_bytes(anticipating(number, factor)) / 1e6 for factor in FACTORS]
        for number in sets
    }
    columns: Columns = {}
    for number, amounts in received.items():
        append(
            columns,
            sent_at_most=list(limits),
            set=[number] * len(limits),
            received_mbyte=amounts,
        )

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        places = np.arange(len(limits))
        for index, (number, amounts) in enumerate(received.items()):
            axes.plot(
                places,
                amounts,
                color=COLOURS[index],
                marker=MARKERS[index],
                label=f"set {number}",
            )
        used = float(FACTORS.index(FITTED.factor))
        published.mark(axes, used, STANDARD_SENT_MB, label="paper, set 1")
        axes.set(
            yscale="log",
            ylabel="received in 100 s (Mbyte)",
            xlabel="windows of the host that the gateway sends at most",
        )
        axes.set_xticks(places, limits)
        legend_below(canvas, axes, columns=5)

    enough = next(
        limit
        for limit, amount in zip(limits, received[1], strict=True)
        if amount >= 0.95 * STANDARD_SENT_MB
    )
    rising = [
        limit
        for index, limit in enumerate(limits)
        if all(received[after][index] > received[before][index] for before, after in pairwise(sets))
    ]
    return Figure(
        id="A6",
        title="How far the gateway sends beyond the host's window",
        caption="What the host receives in 100 s, of about 100 Mbyte that the application offers, "
        "where the gateway sends at most so many of the windows that the host has advertised, and "
        f"where it sends all it has. Each set brings more than the one before with: "
        f"{', '.join(rising)}. The paper's 7 Mbyte in set 1 need a limit of {enough}.",
        columns=columns,
        draw=draw,
    )


def _delays(evidence: Evidence) -> Figure:
    medians, columns = {}, empty("set", "time_s", "least_s", "median_s", "most_s")
    for number in SETS:
        known = evidence.curve(standard(number), "download.segment_delay").known()
        least, median, most = envelope(known.until(_SHOWN_S), _STEP_S)
        medians[number] = median
        rows = zip(median.times_s, least, median.values, most, strict=True)
        for row in rows:
            add(columns, number, *map(float, row))

    def draw(canvas: Canvas) -> None:
        all_axes = new_axes(canvas, rows=2)
        for axes, numbers in zip(all_axes, ((1, 2), (3, 4, 5)), strict=True):
            for width, number in zip(nested_widths(len(numbers)), numbers, strict=True):
                axes.plot(
                    medians[number].times_s,
                    1e3 * medians[number].values,
                    color=COLOURS[number - 1],
                    linewidth=width,
                    label=f"set {number}",
                )
            axes.set(xlim=(0.0, _SHOWN_S), ylim=(0.0, None), ylabel="delay (ms)")
        all_axes[-1].set_xlabel("time (s)")
        legend_of(canvas, all_axes)

    return Figure(
        id="A7",
        title="End-to-end delay of the segments received by the hybrid host",
        caption="Table 2, number 0: from the server's sending of a segment to its arrival at the "
        "host, whatever the gateway did with it in between; the median of every quarter of a "
        "second in the first 20 s. The least and the greatest are in the figure's data.",
        columns=columns,
        draw=draw,
        height=5.0,
    )


@dataclass(frozen=True, kw_only=True)
class _Quantity:
    """A row of the figure: a series in every set, or several series of one."""

    number: str
    label: str
    series: str
    scale: float


_QUANTITIES: Final = (
    _Quantity(
        number="3",
        label="sequence number\nsent (Mbyte)",
        series="download.sent_segment",
        scale=1e-6,
    ),
    _Quantity(
        number="4",
        label="ACK number sent\n(Mbyte)",
        series="hub.acknowledged_to_server",
        scale=1e-6,
    ),
    _Quantity(
        number="5",
        label="congestion\nwindow (kbyte)",
        series="download.congestion_window",
        scale=1e-3,
    ),
    _Quantity(number="6", label="round trip (ms)", series="download.measured_rtt", scale=1e3),
    _Quantity(number="7", label="deviation (ms)", series="download.rtt_deviation", scale=1e3),
)


def _sender(evidence: Evidence) -> Figure:
    columns: Columns = {}
    curves = {}
    for quantity in _QUANTITIES:
        for number in SETS:
            known = evidence.curve(standard(number), quantity.series).known().until(_SHOWN_S)
            if quantity.number == "3":
                _, known, _ = envelope(known, 0.1)
            curves[quantity, number] = thinned(known, _SHOWN_S)
            scaled = replace(known, values=quantity.scale * known.values)
            add_samples(columns, scaled, set=number, number=quantity.number)

    def draw(canvas: Canvas) -> None:
        all_axes = new_axes(canvas, rows=len(_QUANTITIES))
        widths = nested_widths(len(SETS))
        for axes, quantity in zip(all_axes, _QUANTITIES, strict=True):
            for index, number in enumerate(SETS):
                curve = curves[quantity, number]
                axes.plot(
                    curve.times_s,
                    quantity.scale * curve.values,
                    color=COLOURS[index],
                    linewidth=widths[index],
                    drawstyle="steps-post",
                    label=f"set {number}",
                )
            axes.set(xlim=(0.0, _SHOWN_S), ylim=(0.0, None))
            axes.set_ylabel(quantity.label, fontsize=8.5)
        all_axes[-1].set_xlabel("time (s)")
        legend_of(canvas, all_axes)

    return Figure(
        id="A8",
        title="The server's TCP, and the ACK number that the gateway sends it",
        caption="Table 2, numbers 3 to 7: sequence number sent by the server, ACK number sent by "
        "the gateway in place of the host's, congestion window, measured round trip (mean of a "
        "tenth of a second) and its mean deviation. The first 20 s; thin lines lie on wide ones.",
        columns=columns,
        draw=draw,
        height=8.0,
    )
