"""Beyond the paper: a comparison of remedies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.plot import published
from bentpipe.plot.style import COLOURS, MARKERS, legend_below, new_axes
from bentpipe.studies.columns import add, empty
from bentpipe.studies.gaid1998.cells import (
    BEYOND_DURATION_S,
    BEYOND_LOSSES,
    FITTED,
    HOSTS,
    METHODS,
    NETWORKS,
    STANDARD_SENT_MB,
    RemedyDownload,
)
from bentpipe.studies.gaid1998.open_settings import SEARCH, setting_of
from bentpipe.studies.open_settings import Row, committed
from bentpipe.studies.study import Figure, Table, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.gaid1998.evidence import Evidence


def goodput_bps(evidence: Evidence, cell: RemedyDownload) -> float:
    """Return the goodput of the host's application, bit/s."""
    return 8.0 * evidence.received_bytes(cell) / BEYOND_DURATION_S


def remedies_figure(evidence: Evidence) -> Figure:
    """Return the figure that compares remedies."""
    columns = empty("network", "hosts", "loss", "method", "goodput_bps")
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
            add(columns, network, hosts, loss, method, rate)

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        width = 0.8 / len(METHODS)
        places = np.arange(len(groups), dtype=float)
        for index, (method, rates) in enumerate(values.items()):
            axes.plot(
                places + (index - len(METHODS) / 2 + 0.5) * width,
                [max(rate, 1.0) / 1e6 for rate in rates],
                MARKERS[index],
                color=COLOURS[index],
                label=method,
            )
        for place in places[1:]:
            axes.axvline(place - 0.5, color="#DDDDDD", linewidth=0.6)
        axes.grid(visible=False, axis="x")
        axes.set(yscale="log", ylabel="goodput (Mbit/s)")
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


_HEADS: Final[Mapping[str, str]] = {
    "segment_bytes": "segment (B)",
    "queue_packets": "modem queue (packets)",
    "delay_ms": "delay to the server (ms)",
    "delayed_ack": "delayed ACKs",
    "windows_sent": "host windows sent",
    "window_freed_by": "window freed by",
    "load_mbyte_s": "load of sets 3 to 5 (Mbyte/s)",
    "sent_mbyte": "sent in set 1 (Mbyte)",
    "rate_over_window_over_t1": "rate over window / T1",
    "set_2_kbps": "set 2 (kbit/s)",
    "set_2_over_1": "set 2 over 1",
    "set_3_over_2": "set 3 over 2",
    "set_4_over_3": "set 4 over 3",
    "host_5_over_4": "5 over 4, host",
    "gateway_5_over_4": "5 over 4, gateway",
    "duplicates": "duplicates in set 3",
}


def open_settings_figures() -> tuple[Figure, Table]:
    """Return the figure and the table of the committed search over open settings."""
    rows = committed("gaid1998")
    names = [*rows[0].setting, *rows[0].measured]
    columns = {name: _column(rows, name) for name in names}
    columns["claims_met"] = [row.within for row in rows]
    sent = np.array([row.measured["sent_mbyte"] for row in rows])
    within = np.array([row.within for row in rows])
    order = np.argsort(sent)
    used = [rows[index].setting == setting_of(FITTED) for index in order]
    most = int(within.max())
    claims = len(SEARCH.published)

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        places = np.arange(len(order))
        for colour, (label, chosen) in zip(
            (COLOURS[5], COLOURS[2], COLOURS[1]),
            {
                f"at most {most - 2} of {claims} claims": within[order] <= most - 2,
                f"{most - 1} claims": within[order] == most - 1,
                f"{most} claims": within[order] == most,
            }.items(),
            strict=True,
        ):
            axes.plot(
                places[chosen], sent[order][chosen], "o", color=colour, markersize=3.5, label=label
            )
        axes.plot(
            places[used],
            sent[order][used],
            "s",
            color=COLOURS[6],
            fillstyle="none",
            markersize=9,
            label="used",
        )
        published.band(axes, STANDARD_SENT_MB, STANDARD_SENT_MB)
        axes.set(
            yscale="log",
            xlabel="settings, by what the server sends",
            ylabel="sent in set 1 in 100 s (Mbyte)",
        )
        legend_below(canvas, axes, columns=3)

    best = [row for row in SEARCH.best(rows) if row.within == most]
    table = {_HEADS.get(name, name): _column(best, name) for name in names}
    table["claims met"] = [row.within for row in best]
    return (
        Figure(
            id="A2",
            title="What the paper leaves open",
            caption=f"Every one of {len(rows)} settings of what the paper leaves open: segment "
            "size, modem queue, delay to the server, delayed ACKs, data sent beyond the host's "
            "window, and what frees the gateway's window. Each is judged by "
            f"{claims} claims over all five sets ({', '.join(SEARCH.published)}); "
            f"{int((within == most).sum())} settings meet {most} of them, none meets more. From "
            "open_settings.csv, which tools/search_open_settings.py writes.",
            columns=columns,
            draw=draw,
        ),
        Table(
            id="A15",
            title="Settings that meet the most claims",
            caption="All settings of the search that meet the most claims, by their deviation. "
            '"5 over 4" is set 5 over set 4, and so on; the ACK timeout\'s claim needs '
            "both.",
            columns=table,
        ),
    )


def _column(rows: Sequence[Row], name: str) -> list[Value]:
    """Return a column of rows; as text, if it has texts and numbers."""
    values: list[Value] = [{**row.setting, **row.measured}[name] for row in rows]
    mixed = any(isinstance(value, str) for value in values)
    return [f"{value:g}" if mixed and isinstance(value, float) else value for value in values]
