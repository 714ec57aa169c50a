"""Figures 3 to 12 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.plot import published
from bentpipe.plot.style import COLOURS, MARKERS, legend_below, new_axes
from bentpipe.studies.columns import Columns, add_samples, append
from bentpipe.studies.evidence import Curve
from bentpipe.studies.samaraweera1999 import cells
from bentpipe.studies.samaraweera1999.cells import (
    COMPACTION,
    METHODS,
    NAMES,
    PAPERS,
    QUEUES,
    SPACING,
    Download,
    shared,
    single,
    staggered,
)
from bentpipe.studies.samaraweera1999.evidence import Evidence, jain
from bentpipe.studies.study import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# Payload that the satellite link carries.
_MOST_MBPS: Final = cells.FORWARD_BPS * cells.PAYLOAD_BYTES / cells.PACKET_BYTES / 1e6
# Bins of a queue over a run of a minute: half a second, about a round trip.
_BINS: Final = 120
STYLES = ("-", "--", "-.", ":", "-", "--", "-.")


def figures(evidence: Evidence) -> list[Figure]:
    """Return every figure, numbered as the paper numbers them."""
    return [
        _figure_3(evidence),
        _figure_4(evidence),
        _figure_5(evidence),
        _figure_6(evidence),
        _figure_7(evidence),
        _figure_8(evidence),
        _figure_9(evidence),
        _figure_10(evidence),
        _figure_11(evidence),
        _figure_12(evidence),
    ]


def _curves(
    downloads: Mapping[str, Download],
    of: Callable[[Download], Curve],
    *,
    scale: float = 1.0,
) -> tuple[Columns, dict[str, Curve]]:
    columns: Columns = {}
    found = {}
    for name, download in downloads.items():
        curve = of(download)
        found[name] = Curve(times_s=curve.times_s, values=curve.values * scale)
        add_samples(columns, found[name], curve=name)
    return columns, found


def _draw_curves(
    axes: Axes, curves: Mapping[str, Curve], *, indices: Sequence[int] | None = None
) -> None:
    chosen = indices or range(len(curves))
    for index, (name, curve) in zip(chosen, curves.items(), strict=True):
        axes.plot(
            curve.times_s,
            curve.values,
            STYLES[index],
            color=COLOURS[index],
            drawstyle="steps-post",
            label=name,
        )


def _draw_envelope(axes: Axes, curve: Curve, *, index: int, name: str, end_s: float) -> None:
    """Draw a queue that changes faster than a figure shows: its range and its mean per bin."""
    edges = np.linspace(0.0, end_s, _BINS + 1)
    starts = np.searchsorted(curve.times_s, edges[:-1])
    count = np.searchsorted(curve.times_s, edges[-1])
    values = curve.values[:count]
    low = np.minimum.reduceat(values, starts)
    high = np.maximum.reduceat(values, starts)
    mean = np.add.reduceat(values, starts) / np.diff(np.append(starts, count))
    centres = 0.5 * (edges[:-1] + edges[1:])
    colour = COLOURS[index]
    axes.fill_between(centres, low, high, color=colour, alpha=0.3, linewidth=0.0)
    axes.plot(centres, mean, STYLES[index], color=colour, linewidth=1.2, label=f"{name}: mean")


def _queue_panels(
    canvas: Canvas, curves: Mapping[str, Curve], indices: Sequence[int], *, y_label: str
) -> None:
    """Draw queues in panels of one scale, one below the other."""
    panels = new_axes(canvas, rows=len(curves))
    top = 1.05 * max(float(curve.values.max()) for curve in curves.values())
    for axes, index, (name, curve) in zip(panels, indices, curves.items(), strict=True):
        _draw_envelope(axes, curve, index=index, name=name, end_s=cells.DURATION_S)
        axes.set(title=name, xlim=(0.0, cells.DURATION_S), ylim=(0.0, top), ylabel=y_label)
    panels[-1].set_xlabel("time (s)")


_RANGE: Final = "Shaded: the range within half a second; line: its mean."


def _index(method: str) -> int:
    return list(METHODS).index(method)


def _single_figure(
    *,
    number: str,
    title: str,
    caption: str,
    methods: Sequence[str],
    of: Callable[[Download], Curve],
    scale: float,
    y_label: str,
    start_s: float = 0.0,
    end_s: float = cells.DURATION_S,
    logarithmic: bool = False,
    line: tuple[float, str] | None = None,
    at_s: float | None = None,
) -> Figure:
    downloads = {NAMES[method]: single(method) for method in methods}
    columns, curves = _curves(downloads, of, scale=scale)
    indices = [_index(method) for method in methods]

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        _draw_curves(axes, curves, indices=indices)
        axes.set_xlim(start_s, end_s)
        if logarithmic:
            axes.set_yscale("log")
        else:
            axes.set_ylim(
                0.0, 1.05 * max(each.until(end_s).values.max() for each in curves.values())
            )
        if line is not None:
            axes.axhline(line[0], color="grey", linewidth=1.0, linestyle=":", label=line[1])
        if at_s is not None:
            late = curves[NAMES[COMPACTION]]
            published.mark(axes, at_s, float(late.at(at_s)), label=f"paper: {at_s:g} s")
        axes.set(xlabel="time (s)", ylabel=y_label)
        legend_below(canvas, axes, columns=4)

    return Figure(id=number, title=title, caption=caption, columns=columns, draw=draw)


_ONE = "One download, 9.6 kbit/s back."


def _figure_3(evidence: Evidence) -> Figure:
    return _single_figure(
        number="3",
        title="The congestion window over time",
        caption=f"{_ONE} The send buffer of 720 kB limits what is in flight: a larger window has "
        "no effect.",
        methods=PAPERS,
        of=evidence.window,
        scale=1e-3,
        y_label="congestion window (kB)",
        line=(cells.BUFFER_BYTES / 1e3, "send buffer"),
        logarithmic=True,
    )


def _figure_4(evidence: Evidence) -> Figure:
    return _single_figure(
        number="4",
        title="How far the sender has got, over time",
        caption=f"{_ONE} The gradient is the throughput. Marked: where compaction passes header "
        "compression, as the paper says.",
        methods=PAPERS,
        of=evidence.sent,
        scale=1e-6,
        y_label="sequence number sent (MB)",
        at_s=4.0,
    )


def _figure_5(evidence: Evidence) -> Figure:
    amounts = np.arange(10e3, 3e6, 10e3)
    times = {method: evidence.time_to_send_s(single(method), amounts) for method in PAPERS}
    columns: Columns = {}
    for method, found in times.items():
        append(
            columns,
            method=[method] * len(amounts),
            bytes=amounts.tolist(),
            time_s=[None if np.isnan(time) else float(time) for time in found],
        )

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for method, found in times.items():
            index = _index(method)
            axes.plot(
                found, amounts / 1e6, STYLES[index], color=COLOURS[index], label=NAMES[method]
            )
        published.band(axes, 1.2, 1.2, label="paper: suppression passes at 1.2 MB")
        axes.set(xlim=(0.0, 20.0), ylim=(0.0, amounts[-1] / 1e6))
        axes.set(xlabel="time (s)", ylabel="bytes sent (MB)")
        legend_below(canvas, axes, columns=3)

    return Figure(
        id="5",
        title="The beginning of the transfer",
        caption=f"{_ONE} Below 1.2 MB, the paper says, suppression is behind compression.",
        columns=columns,
        draw=draw,
    )


def _figure_6(evidence: Evidence) -> Figure:
    return _single_figure(
        number="6",
        title="The congestion window with compaction, and with spacing",
        caption=f"{_ONE} From the beginning of compaction on. Without spacing the window grows in "
        "leaps.",
        methods=(COMPACTION, SPACING),
        of=evidence.window,
        scale=1e-3,
        y_label="congestion window (kB)",
        start_s=4.0,
        end_s=6.5,
    )


def _figure_7(evidence: Evidence) -> Figure:
    downloads = {NAMES[method]: single(method) for method in (COMPACTION, SPACING)}
    columns, curves = _curves(downloads, evidence.queue)

    def draw(canvas: Canvas) -> None:
        indices = [_index(COMPACTION), _index(SPACING)]
        _queue_panels(canvas, curves, indices, y_label="queue (packets)")

    return Figure(
        id="7",
        title="The satellite interface's queue, one session",
        caption=f"{_ONE} {_RANGE}",
        columns=columns,
        draw=draw,
        height=5.2,
    )


def _figure_8(evidence: Evidence) -> Figure:
    queue = evidence.queue(cells.FAST)
    window = evidence.window(cells.FAST)
    columns: Columns = {}
    add_samples(columns, queue, curve="queue (packets)")
    add_samples(columns, window, curve="congestion window (B)")

    def draw(canvas: Canvas) -> None:
        above, below = new_axes(canvas, rows=2)
        above.plot(queue.times_s, queue.values, color=COLOURS[0], drawstyle="steps-post")
        half = 0.5 * cells.PIPE_SEGMENTS
        published.band(above, half, half, label="paper: half of the bandwidth-delay product")
        above.set(ylabel="queue (packets)", ylim=(0.0, None))
        above.legend(loc="lower right")
        below.plot(window.times_s, window.values / 1e3, color=COLOURS[1], drawstyle="steps-post")
        below.set(ylabel="window (kB)", yscale="log")
        below.axhline(cells.BUFFER_BYTES / 1e3, color="grey", linestyle=":", label="send buffer")
        below.legend(loc="lower right")
        below.set_xlabel("time (s)")
        for axes in (above, below):
            axes.set_xlim(0.0, 15.0)

    return Figure(
        id="8",
        title="The satellite interface's queue and the window, 430 kbit/s back",
        caption="One download, nothing modified: no ACK waits. Slow start sends two segments for "
        "every ACK, at twice the link's rate.",
        columns=columns,
        draw=draw,
    )


def _figure_9(evidence: Evidence) -> Figure:
    downloads = {NAMES[method]: shared(method, cells.SLOW_BPS) for method in (COMPACTION, SPACING)}
    columns, curves = _curves(downloads, evidence.queue)

    def draw(canvas: Canvas) -> None:
        indices = [_index(COMPACTION), _index(SPACING)]
        _queue_panels(canvas, curves, indices, y_label="queue (packets)")

    return Figure(
        id="9",
        title="The satellite interface's queue, three sessions",
        caption=f"Three downloads that start together, 9.6 kbit/s back. {_RANGE}",
        columns=columns,
        draw=draw,
        height=5.2,
    )


def _figure_10(evidence: Evidence) -> Figure:
    columns: Columns = {}
    for queue in QUEUES:
        for session in (1, 2, 3):
            curve = evidence.sent(staggered(queue, cells.SLOW_BPS), session)
            add_samples(columns, curve, queue=queue, curve=f"session-{session}")

    def draw(canvas: Canvas) -> None:
        panels = new_axes(canvas, rows=2, columns=2)
        for axes, queue in zip(panels, QUEUES, strict=True):
            for session in (1, 2, 3):
                curve = evidence.sent(staggered(queue, cells.SLOW_BPS), session)
                axes.plot(
                    curve.times_s,
                    curve.values / 1e6,
                    STYLES[session - 1],
                    color=COLOURS[session - 1],
                    label=f"session {session}",
                )
            index = jain(evidence.shares_bps(queue, cells.SLOW_BPS))
            axes.set(
                title=f"{cells.QUEUE_NAMES[queue]}: Jain's index {index:.2f}",
                xlim=(0.0, cells.STAGGERED_DURATION_S),
                ylim=(0.0, None),
                xlabel="time (s)",
                ylabel="sequence number (MB)",
            )
        legend_below(canvas, panels[0], columns=3)

    return Figure(
        id="10",
        title="Three sessions that start one after another",
        caption="Compaction with spacing, 9.6 kbit/s back, three duplicate ACKs kept; the "
        f"satellite interface holds {cells.SHORT_QUEUE_PACKETS} packets. The paper has drop-tail "
        "alone. Jain's index is of the goodputs while all three are there, the mean of "
        f"{len(cells.STAGGERS_S)} "
        "runs with other pauses between the starts; the first is drawn.",
        columns=columns,
        draw=draw,
        width=8.6,
        height=6.4,
    )


def _figure_11(evidence: Evidence) -> Figure:
    rates = [
        rate
        for rate in cells.RETURN_RATES_BPS
        if all(evidence.has(shared(method, rate)) for method in METHODS)
    ]
    goodputs = {
        method: [evidence.goodput_bps(shared(method, rate)) for rate in rates] for method in METHODS
    }
    columns: Columns = {}
    for method, found in goodputs.items():
        append(
            columns,
            method=[method] * len(rates),
            return_bps=list(rates),
            goodput_bps=found,
            timeouts=[evidence.timeouts(shared(method, rate)) for rate in rates],
        )

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for index, (method, found) in enumerate(goodputs.items()):
            axes.plot(
                [rate / 1e3 for rate in rates],
                [each / 1e6 for each in found],
                MARKERS[index] + STYLES[index],
                color=COLOURS[index],
                label=NAMES[method],
            )
        axes.set_xscale("log")
        ticks = [rate / 1e3 for rate in rates if rate != 28_800]
        axes.set_xticks(ticks, labels=[f"{tick:g}" for tick in ticks])
        axes.set_xticks([], minor=True)
        axes.set_ylim(0.0, 10.0)
        axes.axhline(_MOST_MBPS, color="grey", linewidth=1.0, linestyle=":", label="link's payload")
        axes.set(
            xlabel="rate of the return link (kbit/s)", ylabel="goodput of all sessions (Mbit/s)"
        )
        legend_below(canvas, axes, columns=2)

    return Figure(
        id="11",
        title="Goodput by the rate of the return link",
        caption=f"Three downloads that start together, {cells.DURATION_S} s. The last two curves "
        "are not in the paper.",
        columns=columns,
        draw=draw,
        height=4.8,
    )


def _figure_12(evidence: Evidence) -> Figure:
    downloads = {method: shared(method, cells.FIGURE_12_BPS) for method in PAPERS}
    columns, curves = _curves(
        {NAMES[method]: each for method, each in downloads.items()},
        lambda download: evidence.queue(download, "return"),
    )

    def draw(canvas: Canvas) -> None:
        above, below = new_axes(canvas, rows=2)
        for axes, shown in ((above, PAPERS[:2]), (below, PAPERS[2:])):
            for method in shown:
                name = NAMES[method]
                _draw_envelope(
                    axes, curves[name], index=_index(method), name=name, end_s=cells.DURATION_S
                )
            axes.set(xlim=(0.0, cells.DURATION_S), ylim=(0.0, None))
            axes.set(xlabel="time (s)", ylabel="queue (ACKs)")
            axes.legend(loc="upper right")

    return Figure(
        id="12",
        title="The return interface's queue, 32 kbit/s back",
        caption=f"Three downloads that start together; the scales differ. {_RANGE}",
        columns=columns,
        draw=draw,
        height=5.6,
    )
