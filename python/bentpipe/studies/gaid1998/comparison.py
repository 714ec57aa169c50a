"""Beyond the paper: a comparison of remedies."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bentpipe.plot.style import COLOURS, legend_below, new_axes
from bentpipe.studies.gaid1998.cells import (
    BEYOND_DURATION_S,
    BEYOND_LOSSES,
    FITTED,
    HOSTS,
    METHODS,
    NETWORKS,
    RemedyDownload,
    with_parameters,
)
from bentpipe.studies.study import Figure, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.gaid1998.evidence import Evidence


def goodput_bps(evidence: Evidence, cell: RemedyDownload) -> float:
    """Return the goodput of the host's application, bit/s."""
    return 8.0 * evidence.received_bytes(cell) / BEYOND_DURATION_S


def comparison_figures(evidence: Evidence) -> list[Figure]:
    """Return the figures that are not in the paper."""
    return [_remedies(evidence), _open(evidence)]


def _remedies(evidence: Evidence) -> Figure:
    columns: dict[str, list[Value]] = {
        name: [] for name in ("network", "hosts", "loss", "method", "goodput_bps")
    }
    groups = [
        (network, hosts, loss) for network in NETWORKS for hosts in HOSTS for loss in BEYOND_LOSSES
    ]
    values: dict[str, list[float]] = {method: [] for method in METHODS}
    for network, hosts, loss in groups:
        for method in METHODS:
            rate = goodput_bps(
                evidence, RemedyDownload(method=method, network=network, hosts=hosts, loss=loss)
            )
            values[method].append(rate)
            row: tuple[Value, ...] = (network, hosts, loss, method, rate)
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        width = 0.8 / len(METHODS)
        places = np.arange(len(groups), dtype=float)
        for index, (method, rates) in enumerate(values.items()):
            axes.bar(
                places + (index - len(METHODS) / 2 + 0.5) * width,
                [max(rate, 1.0) / 1e6 for rate in rates],
                width,
                color=COLOURS[index],
                label=method,
            )
        axes.set_yscale("log")
        axes.set_ylabel("goodput (Mbit/s)")
        axes.set_xticks(
            places,
            [f"{network}\n{hosts}\n{100 * loss:g}% lost" for network, hosts, loss in groups],
            fontsize=8,
        )
        legend_below(canvas, axes, columns=3)

    return Figure(
        id="A1",
        title="Which remedy to take",
        caption="A download of 60 s on the paper's network (29.9 kbit/s back) and on one of 2026 "
        "(50 Mbit/s down, 1 Mbit/s back), with the papers' end hosts (Reno, 45 kbyte of window, no "
        "SACK) and today's; without losses and with 0.1% of the packets lost on the satellite. "
        'Split and hybrid gateways stand at the hub; split and "hybrid, SACK" send with CUBIC.',
        columns=columns,
        draw=draw,
        width=9.5,
        height=5.2,
    )


def _open(evidence: Evidence) -> Figure:
    opens = evidence.simulated_parameters()
    columns: dict[str, list[Value]] = {
        "segment_bytes": [each.mss_bytes for each in opens],
        "queue_packets": [each.queue_packets for each in opens],
        "round_trip_ms": [2 * each.delay_ms for each in opens],
        "delayed_ack": [each.delayed_ack for each in opens],
        "window_freed_by_host": [each.held_by_host for each in opens],
        "sent_mb": [evidence.sent_mb(with_parameters(each)) for each in opens],
    }
    amounts = np.array([evidence.sent_mb(with_parameters(each)) for each in opens])
    order = np.argsort(amounts)
    sent = amounts[order]
    chosen = [opens[index] == FITTED for index in order]

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.plot(np.arange(len(sent)), sent, "o", color=COLOURS[0], label="a combination")
        axes.plot(
            [index for index, each in enumerate(chosen) if each],
            [value for value, each in zip(sent, chosen, strict=True) if each],
            "D",
            color=COLOURS[1],
            label="taken",
        )
        axes.axhline(7.0, color=COLOURS[6], linestyle="--", label="the paper's 7 Mbyte")
        axes.set_yscale("log")
        axes.set(
            xlabel="combinations of what the paper leaves open, in order",
            ylabel="sent in 100 s (Mbyte)",
        )
        legend_below(canvas, axes, columns=3)

    return Figure(
        id="A2",
        title="What the paper leaves open",
        caption="What the server sends in set 1, by segment size, modem queue, round trip to the "
        "server, delayed ACKs, and what frees the gateway's window.",
        columns=columns,
        draw=draw,
    )
