"""Figures 12 and 16 to 44 of the paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bentpipe.plot.style import COLOURS, legend_below, new_axes
from bentpipe.studies.evidence import Curve
from bentpipe.studies.gaid1998.cells import DURATION_S, NAMES, SETS, standard
from bentpipe.studies.study import Figure, Value

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.gaid1998.evidence import Evidence

_STYLES: Final = ("-", "--", "-.", ":")


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


def figures(evidence: Evidence) -> list[Figure]:
    """Return every figure, numbered as the paper numbers them."""
    return [_network(), *(_figure(evidence, plan) for plan in _PLANS)]


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


def _kbit(curve: Curve) -> Curve:
    rate = curve.rate(end_s=DURATION_S)
    return Curve(times_s=rate.times_s, values=8e-3 * rate.values)


def _kbyte(curve: Curve) -> Curve:
    known = curve.known()
    return Curve(times_s=known.times_s, values=1e-3 * known.values)


def _over_time(
    plan: _Plan,
    *,
    title: str,
    caption: str,
    curves: Mapping[str, Curve],
    y_label: str,
    end_s: float = DURATION_S,
) -> Figure:
    curves = {name: curve.until(end_s) for name, curve in curves.items()}
    columns: dict[str, list[Value]] = {"curve": [], "time_s": [], "value": []}
    for name, curve in curves.items():
        columns["curve"] += [name] * len(curve.times_s)
        columns["time_s"] += curve.times_s.tolist()
        columns["value"] += curve.values.tolist()

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for index, (name, curve) in enumerate(curves.items()):
            axes.plot(
                curve.times_s,
                curve.values,
                _STYLES[index % len(_STYLES)],
                color=COLOURS[index],
                drawstyle="steps-post",
                label=name,
            )
        axes.set_xlim(0.0, end_s)
        # Start the axis at zero: otherwise small variations look large.
        axes.set_ylim(0.0, 1.05 * max(float(curve.values.max()) for curve in curves.values()))
        axes.set_xlabel("time (s)")
        axes.set_ylabel(y_label)
        if len(curves) > 1:
            legend_below(canvas, axes, columns=3)

    of_set = f"Set {plan.set_}: {NAMES[plan.set_]}. "
    return Figure(id=plan.number, title=title, caption=of_set + caption, columns=columns, draw=draw)


def _throughput(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)
    return _over_time(
        plan,
        title="Throughput at the end-user and at the hybrid gateway",
        caption="Seconds of what the host's application receives, and of what the gateway receives "
        "from the server in order.",
        curves={
            "at the hybrid host": _kbit(evidence.curve(cell, "download.delivered")),
            "at the hybrid gateway": _kbit(evidence.curve(cell, "hub.received")),
        },
        y_label="throughput (kbit/s)",
    )


def _load(evidence: Evidence, plan: _Plan) -> Figure:
    used = evidence.curve(standard(plan.set_), "satellite.forward.utilization").known()
    return _over_time(
        plan,
        title="Downstream data load",
        caption="The share of the satellite's 10 Mbit/s that is used, in tenths of a second of "
        "the first 10 s.",
        curves={"satellite": Curve(times_s=used.times_s, values=100.0 * used.values)},
        y_label="load (%)",
        end_s=10.0,
    )


def _numbers(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)
    return _over_time(
        plan,
        title="Sequence number received by the hybrid host and ACK number received at the hybrid "
        "gateway",
        caption="Counted from the server's first byte; the first 10 s.",
        curves={
            "sequence number at the host": _kbyte(
                evidence.curve(cell, "download.received_segment")
            ),
            "ACK number at the gateway": _kbyte(evidence.curve(cell, "hub.acknowledged")),
        },
        y_label="bytes (kbyte)",
        end_s=10.0,
    )


def _duplicate(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)
    again = evidence.counted(cell, "to_host", "retransmissions")
    return _over_time(
        plan,
        title="Example of a duplicated segment received by the hybrid host",
        caption="The first 1.2 s; a segment received by the host is where it begins in the "
        "stream, "
        "so that one that comes twice goes back. The gateway's timer expires 200 ms after the "
        "first segment "
        "has left, before that has even arrived: it goes again. Of the whole set, "
        f"{again} segments reach the host twice.",
        curves={
            "sent by the gateway": _kbyte(evidence.curve(cell, "hub.sent")),
            "segments received by the host": _kbyte(
                evidence.curve(cell, "download.received_segment")
            ),
            "acknowledged by the host": _kbyte(evidence.curve(cell, "hub.acknowledged")),
        },
        y_label="bytes (kbyte)",
        end_s=1.2,
    )


def _window(evidence: Evidence, plan: _Plan) -> Figure:
    return _over_time(
        plan,
        title="Window advertised by the hybrid host at the hybrid gateway",
        caption="As the last ACK that came by modem had it.",
        curves={"window": _kbyte(evidence.curve(standard(plan.set_), "hub.host_window"))},
        y_label="window (kbyte)",
    )


def _sent(evidence: Evidence, plan: _Plan) -> Figure:
    return _over_time(
        plan,
        title="Amount of data sent by the hybrid gateway to the hybrid host",
        caption="In tenths of a second of the first 10 s.",
        curves={
            "sent": Curve(
                **_fields(
                    evidence.curve(standard(plan.set_), "hub.sent").rate(
                        end_s=DURATION_S, step_s=0.1
                    ),
                    scale=1e-4,
                )
            )
        },
        y_label="data (kbyte)",
        end_s=10.0,
    )


def _fields(curve: Curve, *, scale: float) -> dict[str, np.ndarray]:
    return {"times_s": curve.times_s, "values": scale * curve.values}


def _eligible(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)
    return _over_time(
        plan,
        title="Comparison between the window size and the amount of data eligible to be sent by "
        "the hybrid gateway",
        caption="What the gateway may have under way: all that it holds, since it anticipates the "
        "host's window.",
        curves={
            "eligible": _kbyte(evidence.curve(cell, "hub.eligible")),
            "window of the host": _kbyte(evidence.curve(cell, "hub.host_window")),
        },
        y_label="bytes (kbyte)",
    )


def _rtt(evidence: Evidence, plan: _Plan) -> Figure:
    cell = standard(plan.set_)

    def milliseconds(series: str) -> Curve:
        known = evidence.curve(cell, series).known()
        return Curve(times_s=known.times_s, values=1e3 * known.values)

    return _over_time(
        plan,
        title="RTT measured at the server and the hybrid host",
        caption="At the server the mean of what was measured in a tenth of a second, at the "
        "gateway smoothed. "
        "The host sends nothing but ACKs in this simulation, so that it measures "
        "nothing; the gateway measures the way to it and back.",
        curves={
            "server to gateway": milliseconds("download.measured_rtt"),
            "gateway to host": milliseconds("hub.smoothed_rtt"),
        },
        y_label="round-trip time (ms)",
    )


def _sets(evidence: Evidence, plan: _Plan) -> Figure:
    return _over_time(
        plan,
        title="Comparison of the throughput at the end-user",
        caption="The sets so far.",
        curves={
            f"set {number}": _kbit(evidence.curve(standard(number), "download.delivered"))
            for number in SETS[:4]
        },
        y_label="throughput (kbit/s)",
    )


def _timeouts(evidence: Evidence, plan: _Plan) -> Figure:
    curves = {}
    for number, timeout in ((4, "200 ms"), (5, "10 ms")):
        cell = standard(number)
        curves[f"host, {timeout}"] = _kbit(evidence.curve(cell, "download.delivered"))
        curves[f"gateway, {timeout}"] = _kbit(evidence.curve(cell, "hub.received"))
    return _over_time(
        plan,
        title="Comparison of throughput at the hybrid host and at the hybrid gateway",
        caption="With ACK timeouts of 200 ms (set 4) and 10 ms; the first 20 s.",
        curves=curves,
        y_label="throughput (kbit/s)",
        end_s=20.0,
    )


_BOXES: Final = (("server", 0.0), ("hybrid\ngateway", 1.0), ("hybrid\nhost", 2.2))


def _network() -> Figure:
    rows: Sequence[tuple[str, str, str, str]] = (
        ("LAN", "both", "10 Mbit/s", "open: swept"),
        ("satellite", "gateway to host", "10 Mbit/s", "250 ms"),
        ("modem", "host to gateway, in a tunnel", "9.6 or 29.9 kbit/s", "1 ms"),
    )
    columns: dict[str, list[Value]] = {
        name: [row[index] for row in rows]
        for index, name in enumerate(("link", "way", "rate", "delay"))
    }

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.axis("off")
        axes.set_xlim(-0.4, 2.6)
        axes.set_ylim(-0.7, 0.8)
        for name, x in _BOXES:
            axes.text(
                x,
                0.0,
                name,
                ha="center",
                va="center",
                bbox={"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": COLOURS[6]},
            )
        _arrow(axes, (0.22, 0.0), (0.74, 0.0), "<->", "Ethernet,\n10 Mbit/s", 0.16, 0.0)
        _arrow(axes, (1.2, 0.12), (2.0, 0.12), "->", "satellite: 10 Mbit/s, 250 ms", 0.42, -0.35)
        _arrow(axes, (2.0, -0.12), (1.2, -0.12), "->", "modem: 9.6 kbit/s, tunnel", -0.42, -0.35)

    return Figure(
        id="12",
        title="Hybrid network",
        caption="The server, the hybrid gateway and the hybrid host, as simulated (figures 9 to 15 "
        "of the paper are OPNET's views of it).",
        columns=columns,
        draw=draw,
        height=2.6,
    )


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    style: str,
    label: str,
    above: float,
    bend: float,
) -> None:
    axes.annotate(
        "",
        xy=end,
        xytext=start,
        arrowprops={
            "arrowstyle": style,
            "color": COLOURS[0],
            "connectionstyle": f"arc3,rad={bend}",
        },
    )
    axes.text((start[0] + end[0]) / 2, start[1] + above, label, ha="center", va="center")
