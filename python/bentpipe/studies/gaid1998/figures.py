"""Figures 16 to 44 of the paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.plot import published
from bentpipe.plot.style import COLOURS, legend_below, new_axes
from bentpipe.studies.columns import Columns, add_samples
from bentpipe.studies.evidence import Curve
from bentpipe.studies.gaid1998.cells import (
    COMMERCIAL_KBPS,
    DURATION_S,
    NAMES,
    REQUEST_RTT,
    SATELLITE_DELAY_S,
    SETS,
    STANDARD_SENT_MB,
    STANDARD_WINDOW_BYTES,
    asking,
    plain,
    standard,
)
from bentpipe.studies.study import Figure

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.gaid1998.evidence import Evidence

_STYLES: Final = ("-", "--", "-.", ":")
# Slow start is shown by itself, in steps much shorter than it lasts.
_START_S: Final = 5.0
_START_STEP_S: Final = 0.2
_FEW: Final = 5
# Points of a curve at most.
_DRAWN: Final = 400
_DUPLICATE_S: Final = 1.2


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """The quantity and the set that a figure shows."""

    number: str
    set_: int
    what: str


# The paper shows the same quantities of every set, and further ones of some.
_PLANS: Final = tuple(
    _Plan(number=str(number), set_=set_, what=what)
    for set_, first, whats in (
        (1, 16, ("throughput", "load", "numbers", "window", "sent", "eligible", "rtt")),
        (2, 23, ("throughput", "numbers", "window", "sent", "eligible", "rtt")),
        (
            3,
            29,
            ("throughput", "load", "numbers", "duplicate", "window", "sent", "eligible", "rtt"),
        ),
        (4, 37, ("throughput", "sets", "window", "sent", "eligible", "rtt")),
        (5, 43, ("throughput", "timeouts")),
    )
    for number, what in enumerate(whats, first)
)


def figures(evidence: Evidence, set_: int) -> list[Figure]:
    """Return the figures of a set, numbered as the paper numbers them."""
    return [_figure(evidence, plan) for plan in _PLANS if plan.set_ == set_]


def _figure(evidence: Evidence, plan: _Plan) -> Figure:
    makers = {
        "throughput": _throughput,
        "load": _load,
        "numbers": _numbers,
        "duplicate": _duplicate,
        "window": _window,
        "sent": _sent,
        "eligible": _eligible,
        "rtt": _rtt,
        "sets": _sets,
        "timeouts": _timeouts,
    }
    return makers[plan.what](evidence, plan)


@dataclass(frozen=True, kw_only=True)
class _Panel:
    """One pair of axes: curves over time.

    With `envelope_s`, curves are shown as the median of every interval of that length, between its
    least and its greatest value. With `nested`, lines get thinner from the first to the last.
    `rates` hold for the step before their time; other values until the next sample. `colour` is the
    first curve's.
    """

    curves: Mapping[str, Curve]
    y_label: str
    end_s: float = DURATION_S
    envelope_s: float = 0.0
    nested: bool = False
    rates: bool = False
    colour: int = 0
    marks: Callable[[Axes], None] | None = None

    def drawn(self) -> dict[str, Curve]:
        """Return the curves as far as they are drawn."""
        return {name: curve.until(self.end_s) for name, curve in self.curves.items()}

    def draw(self, axes: Axes) -> None:
        """Draw the panel."""
        most = 0.0
        widths = nested_widths(len(self.curves))
        for index, (name, curve) in enumerate(self.drawn().items()):
            colour = COLOURS[self.colour + index]
            if self.envelope_s:
                least, curve, greatest = envelope(curve, self.envelope_s)
                axes.fill_between(
                    curve.times_s, least, greatest, color=colour, alpha=0.3, linewidth=0
                )
                most = max(most, float(greatest.max()))
            else:
                curve = thinned(curve, self.end_s)
            steps = "steps-pre" if self.rates else "steps-post"
            axes.plot(
                curve.times_s,
                curve.values,
                "-" if self.nested else _STYLES[index % len(_STYLES)],
                color=colour,
                drawstyle="default" if self.envelope_s else steps,
                # A line of a few points hardly shows.
                marker="." if len(curve.values) < _FEW else "none",
                linewidth=widths[index] if self.nested else 1.4,
                label=name,
            )
            most = max(most, float(curve.values.max()))
        axes.set_xlim(0.0, self.end_s)
        # Start the axis at zero: otherwise small variations look large.
        axes.set_ylim(0.0, 1.08 * most)
        axes.set_ylabel(self.y_label)
        if self.marks is not None:
            self.marks(axes)


def thinned(curve: Curve, end_s: float) -> Curve:
    """Return the last sample of each of so many intervals as can be told apart in a figure."""
    bins = (curve.times_s * (_DRAWN / end_s)).astype(int)
    last = np.flatnonzero(np.diff(bins, append=_DRAWN + 1))
    return Curve(times_s=curve.times_s[last], values=curve.values[last])


def nested_widths(count: int) -> list[float]:
    """Return widths of lines that lie on each other: the first is drawn below the others."""
    return [float(width) for width in np.linspace(4.5, 1.2, count)]


def envelope(curve: Curve, step_s: float) -> tuple[np.ndarray, Curve, np.ndarray]:
    """Return the least, the median and the greatest value of every interval that has samples."""
    bins = (curve.times_s / step_s).astype(int)
    edges = np.flatnonzero(np.diff(bins)) + 1
    parts = np.split(curve.values, edges)
    first = bins[np.concatenate(([0], edges))]
    middle = Curve(
        times_s=(first + 0.5) * step_s, values=np.array([np.median(part) for part in parts])
    )
    least = np.array([part.min() for part in parts])
    return least, middle, np.array([part.max() for part in parts])


def _of_panels(plan: _Plan, *, title: str, caption: str, panels: Sequence[_Panel]) -> Figure:
    columns: Columns = {}
    for panel in panels:
        for name, curve in panel.drawn().items():
            add_samples(columns, curve, panel=panel.y_label.replace("\n", " "), curve=name)

    def draw(canvas: Canvas) -> None:
        all_axes = new_axes(canvas, rows=len(panels))
        for axes, panel in zip(all_axes, panels, strict=True):
            panel.draw(axes)
        all_axes[-1].set_xlabel("time (s)")
        legend_of(canvas, all_axes)

    return Figure(
        id=plan.number,
        title=title,
        caption=f"Set {plan.set_}: {NAMES[plan.set_]}. {caption}",
        columns=columns,
        draw=draw,
        height=4.4 if len(panels) == 1 else 5.6,
    )


def legend_of(canvas: Canvas, all_axes: Sequence[Axes]) -> None:
    """Put one legend below all axes, with each label once."""
    entries: dict[str, Artist] = {}
    for axes in all_axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if len(entries) > 1:
        longest = max(len(label) for label in entries)
        columns = max(1, min(len(entries), 90 // (longest + 6)))
        canvas.legend(
            list(entries.values()), list(entries), loc="outside lower center", ncols=columns
        )


def _kbit(curve: Curve, step_s: float = 1.0) -> Curve:
    rate = curve.rate(end_s=DURATION_S, step_s=step_s)
    return Curve(times_s=rate.times_s, values=8e-3 * rate.values)


def _scaled(curve: Curve, scale: float) -> Curve:
    known = curve.known()
    return Curve(times_s=known.times_s, values=scale * known.values)


def _kbyte(curve: Curve) -> Curve:
    return _scaled(curve, 1e-3)


def _mark_set_1(axes: Axes) -> None:
    mean_kbps = 8e3 * STANDARD_SENT_MB / DURATION_S
    bound_kbps = 8e-3 * STANDARD_WINDOW_BYTES / SATELLITE_DELAY_S
    published.mark(axes, [0.97 * DURATION_S] * 2, [mean_kbps, bound_kbps])


def _mark_level(level: float, axes: Axes) -> None:
    published.band(axes, level, level)


def _mark_seven(axes: Axes) -> None:
    published.mark(axes, DURATION_S, STANDARD_SENT_MB)
    axes.set_xlim(0.0, 1.02 * DURATION_S)


def _throughput(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)
    series = {
        "at the hybrid host": evidence.curve(cell, "download.delivered"),
        "at the hybrid gateway": evidence.curve(cell, "hub.received"),
    }
    caption = (
        "Data received by the host's application, and data that the gateway receives from the "
        f"server in order. Above: the start, in steps of {_START_STEP_S:g} s; below: seconds."
    )
    marks = None
    if plan.set_ == 1:
        marks = _mark_set_1
        series["at the host, without the gateway"] = evidence.curve(plain(), "download.delivered")
        caption += (
            " Published: 7 Mbyte in 100 s from the server, and at most 16 kbyte/s without the "
            "gateway."
        )
    elif plan.set_ == 2:
        marks = partial(_mark_level, COMMERCIAL_KBPS)
        caption += " Published: 400 kbit/s, the rate of the service that the paper models."

    panels = [
        _Panel(
            curves={name: _kbit(curve, _START_STEP_S) for name, curve in series.items()},
            y_label="throughput (kbit/s)",
            rates=True,
            end_s=_START_S,
        ),
        _Panel(
            curves={name: _kbit(curve) for name, curve in series.items()},
            y_label="throughput (kbit/s)",
            rates=True,
            marks=marks,
        ),
    ]
    return _of_panels(
        plan,
        title="Throughput at the end-user and at the hybrid gateway",
        caption=caption,
        panels=panels,
    )


def _load(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)
    used = evidence.curve(cell, "satellite.forward.utilization").known()
    caption = (
        "Above: data that the gateway has received from the server, as a total. Below: the share "
        "of the satellite's 10 Mbit/s that is used, by seconds."
    )
    seconds = np.ceil(used.times_s - 1e-9)
    ends = np.unique(seconds)
    share = np.array([100.0 * used.values[seconds == end].mean() for end in ends])
    marks = None
    if plan.set_ == 1:
        marks = _mark_seven
        caption += " Published: 7 Mbyte in 100 s."

    return _of_panels(
        plan,
        title="Downstream data load",
        caption=caption,
        panels=[
            _Panel(
                curves={"from the server": _scaled(evidence.curve(cell, "hub.received"), 1e-6)},
                y_label="data (Mbyte)",
                marks=marks,
            ),
            _Panel(
                curves={"satellite": Curve(times_s=ends, values=share)},
                y_label="load (%)",
                colour=1,
                rates=True,
            ),
        ],
    )


def _numbers(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)
    return _of_panels(
        plan,
        title="Sequence number received by the hybrid host and ACK number received at the hybrid "
        "gateway",
        caption="Counted from the server's first byte; the start of the transfer.",
        panels=[
            _Panel(
                curves={
                    "sequence number at the host": _kbyte(
                        evidence.curve(cell, "download.received_segment")
                    ),
                    "ACK number at the gateway": _kbyte(evidence.curve(cell, "hub.acknowledged")),
                },
                y_label="bytes (kbyte)",
                end_s=_START_S,
            )
        ],
    )


def _segment_ends(curve: Curve) -> Curve:
    """Return the ends of received segments, from where they begin.

    A segment ends where the next one of the stream begins, since their data do not overlap.
    """
    starts = np.unique(curve.values)
    after = dict(pairwise(starts))
    known = np.array([start in after for start in curve.values], dtype=bool)
    return Curve(
        times_s=curve.times_s[known],
        values=np.array([after[start] for start in curve.values[known]]),
    )


def _duplicate(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)
    received = _segment_ends(evidence.curve(cell, "download.received_segment").known())
    seen = set[float]()
    twice = np.zeros(len(received.values), dtype=bool)
    for index, end in enumerate(received.values):
        twice[index] = end in seen
        seen.add(end)
    points = {
        "received by the host": Curve(
            times_s=received.times_s[~twice], values=1e-3 * received.values[~twice]
        ),
        "received a second time": Curve(
            times_s=received.times_s[twice], values=1e-3 * received.values[twice]
        ),
    }
    lines = {
        "sent by the gateway": _kbyte(evidence.curve(cell, "hub.sent")),
        "acknowledged by the host": _kbyte(evidence.curve(cell, "hub.acknowledged")),
    }
    shown = {name: each.until(_DUPLICATE_S) for name, each in {**lines, **points}.items()}
    columns: Columns = {}
    for name, curve in shown.items():
        add_samples(columns, curve, curve=name)
    again = evidence.counted(cell, "to_host", "retransmissions")

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for name, style, colour in zip(lines, ("-", "--"), COLOURS, strict=False):
            curve = shown[name]
            axes.plot(
                curve.times_s,
                curve.values,
                style,
                color=colour,
                drawstyle="steps-post",
                label=name,
            )
        for name, marker, size, colour in zip(
            points, (".", "x"), (4.0, 7.0), COLOURS[2:4], strict=True
        ):
            curve = shown[name]
            axes.plot(
                curve.times_s,
                curve.values,
                marker,
                color=colour,
                markersize=size,
                label=name,
            )
        axes.set(
            xlim=(0.0, _DUPLICATE_S),
            ylim=(0.0, 1.05 * float(shown["sent by the gateway"].values.max())),
            xlabel="time (s)",
            ylabel="end of the data (kbyte)",
        )
        legend_below(canvas, axes, columns=2)

    return Figure(
        id=plan.number,
        title="Example of a duplicated segment received by the hybrid host",
        caption=f"Set {plan.set_}: {NAMES[plan.set_]}. The start of the transfer. All curves show "
        "the end of the data: of what was sent, of a received segment, and the ACK number. The "
        "gateway's timer of 200 ms is shorter than the way to the host and back, so that segments "
        f"are sent again that are not lost. In the whole run the gateway sends {again} twice.",
        columns=columns,
        draw=draw,
    )


def _window(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)
    return _of_panels(
        plan,
        title="Window advertised by the hybrid host at the hybrid gateway",
        caption="In the last ACK that has come by modem: the median of every second, and the range "
        "of its values. Published: the host's receive buffer.",
        panels=[
            _Panel(
                curves={"window": _kbyte(evidence.curve(cell, "hub.host_window"))},
                y_label="window (kbyte)",
                envelope_s=1.0,
                marks=partial(_mark_level, 1e-3 * cell.host_window_bytes),
            )
        ],
    )


def _sent(evidence: Evidence, plan: _Plan) -> Figure:
    rate = evidence.curve(standard(plan.set_), "hub.sent").rate(
        end_s=DURATION_S, step_s=_START_STEP_S
    )
    return _of_panels(
        plan,
        title="Amount of data sent by the hybrid gateway to the hybrid host",
        caption="The start of the transfer, in steps of a fifth of a second.",
        panels=[
            _Panel(
                curves={
                    "sent": Curve(times_s=rate.times_s, values=_START_STEP_S * 1e-3 * rate.values)
                },
                y_label=f"data in {_START_STEP_S:g} s (kbyte)",
                rates=True,
                end_s=_START_S,
            )
        ],
    )


def _eligible(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)
    return _of_panels(
        plan,
        title="Comparison between the window size and the amount of data eligible to be sent by "
        "the hybrid gateway",
        caption="Data that the gateway holds for the host, and may have in flight, since it "
        "anticipates the host's window: the median of every second, and the range of its values.",
        panels=[
            _Panel(
                curves={
                    "eligible": _kbyte(evidence.curve(cell, "hub.eligible")),
                    "window of the host": _kbyte(evidence.curve(cell, "hub.host_window")),
                },
                y_label="bytes (kbyte)",
                envelope_s=1.0,
            )
        ],
    )


def _rtt(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)
    return _of_panels(
        plan,
        title="RTT measured at the server and the hybrid host",
        caption="At the server the mean of a tenth of a second; at the gateway the smoothed round "
        "trip to the host. The host sends ACKs only and measures nothing, so its curve is of "
        "another run, in which it also sends a request of 40 bytes to the server every half "
        "second: to the server by modem and back by satellite. It ends where the modem's queue is "
        "full of ACKs and drops requests. Medians of every two seconds, and ranges.",
        panels=[
            _Panel(
                curves={
                    "server to gateway": _scaled(
                        evidence.curve(cell, "download.measured_rtt"), 1e3
                    ),
                    "gateway to host": _scaled(evidence.curve(cell, "hub.smoothed_rtt"), 1e3),
                    "host to server": _scaled(evidence.curve(asking(plan.set_), REQUEST_RTT), 1e3),
                },
                y_label="round-trip time (ms)",
                envelope_s=2.0,
            )
        ],
    )


def _sets(evidence: Evidence, plan: _Plan) -> Figure:
    received = {
        number: _kbit(evidence.curve(standard(number), "download.delivered")) for number in SETS[:4]
    }
    return _of_panels(
        plan,
        title="Comparison of the throughput at the end-user",
        caption="All sets so far, by seconds. Above: the sets with a gateway window of 64 kbyte; "
        "below: those with 1000 kbyte, whose lines nearly coincide. Published: 400 kbit/s, the "
        "rate of the service that the paper models.",
        panels=[
            _Panel(
                curves={f"set {number}": received[number] for number in numbers},
                y_label="throughput (kbit/s)",
                rates=True,
                nested=nested,
                colour=numbers[0] - 1,
                marks=None if nested else partial(_mark_level, COMMERCIAL_KBPS),
            )
            for numbers, nested in (((1, 2), False), ((3, 4), True))
        ],
    )


def _timeouts(evidence: Evidence, plan: _Plan) -> Figure:
    places = {"host": "download.delivered", "gateway": "hub.received"}
    sets = ((4, "200 ms"), (5, "10 ms"))
    return _of_panels(
        plan,
        title="Comparison of throughput at the hybrid host and at the hybrid gateway",
        caption=f"With ACK timeouts of 200 ms (set 4) and 10 ms; steps of {_START_STEP_S:g} s.",
        panels=[
            _Panel(
                curves={
                    timeout: _kbit(evidence.curve(standard(number), series), _START_STEP_S)
                    for number, timeout in sets
                },
                y_label=f"at the {place} (kbit/s)",
                rates=True,
                end_s=_START_S,
            )
            for place, series in places.items()
        ],
    )
