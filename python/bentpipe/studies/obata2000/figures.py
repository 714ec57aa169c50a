"""Figures 5 to 10 of the paper, and one of our own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bentpipe.plot.run_plots import draw_time_sequence
from bentpipe.plot.style import COLOURS, MARKERS, legend_below, new_axes
from bentpipe.studies.columns import Columns, append
from bentpipe.studies.obata2000 import cells
from bentpipe.studies.obata2000.cells import (
    ASYMMETRIC,
    FIGURE_5,
    FIGURE_6,
    SYMMETRIC,
    Network,
    Transfer,
)
from bentpipe.studies.obata2000.evidence import (
    Evidence,
    Floats,
    corrected_bps,
    existing_bps,
    formula_bps,
)
from bentpipe.studies.open_settings import committed
from bentpipe.studies.study import Figure, Table, Value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_NO_MEASUREMENTS = (
    "The paper's experimental points can't be measured again and are left out; simulations of a "
    "60-second connection, as in the experiment, stand in for them."
)


def figures(evidence: Evidence) -> list[Figure | Table]:
    """Return every figure and table, numbered as the paper numbers them."""
    return [
        _throughput_figure(
            evidence,
            number="5",
            curves=FIGURE_5,
            title="Throughput over the maximum window, with various delays of the uplink",
            caption="2048 kbit/s and 250 ms down, 64 kbit/s up, a file of 1024 KByte.",
        ),
        _throughput_figure(
            evidence,
            number="6",
            curves=FIGURE_6,
            title="Throughput over the maximum window, with various bandwidths of the uplink",
            caption="2048 kbit/s and 250 ms down, 125 ms up, a file of 1024 KByte.",
        ),
        _vsat_figure(
            evidence,
            number="7",
            network=SYMMETRIC,
            title="The symmetric network: 64 kbit/s and 250 ms both ways",
            caption=f"Redundancy of 16/15 (equation 5'). {_NO_MEASUREMENTS}",
        ),
        _vsat_figure(
            evidence,
            number="8",
            network=ASYMMETRIC,
            title="The asymmetric network: 64 kbit/s and 250 ms down, 737 kbit/s and 25 ms up",
            caption="Redundancy of 16/15 (equation 5'). The crosses at 32 KByte are connections "
            "that lose two segments, as in figure 9, with various gaps between the two. "
            f"{_NO_MEASUREMENTS}",
            lossy=True,
        ),
        _figure_9(evidence),
        _vsat_figure(
            evidence,
            number="10",
            network=ASYMMETRIC,
            title="The asymmetric network again, without losses",
            caption="In the paper, the same network with other operating systems, which lost "
            f"nothing. {_NO_MEASUREMENTS}",
        ),
        _error_figure(evidence),
        _open_settings(),
    ]


def _throughput_figure(
    evidence: Evidence, *, number: str, curves: Mapping[str, Network], title: str, caption: str
) -> Figure:
    """Draw figure 5 or 6: lines are formulas, symbols are simulations."""
    lines = {name: _line(network, range(2, 140)) for name, network in curves.items()}
    symbols = {name: cells.figure_cells(network, 1024) for name, network in curves.items()}
    columns: Columns = {}
    for name, transfers in symbols.items():
        comparison = evidence.compare(transfers)
        append(
            columns,
            curve=[name] * len(transfers),
            window_segments=[each.window_segments for each in transfers],
            window_bytes=[each.window_segments * cells.SEGMENT_BYTES for each in transfers],
            simulated_bps=comparison.simulated_bps.tolist(),
            formula_bps=comparison.formula_bps.tolist(),
            corrected_bps=comparison.corrected_bps.tolist(),
            formula_error=comparison.formula_error.tolist(),
            corrected_error=comparison.corrected_error.tolist(),
        )

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for colour, marker, (name, transfers) in zip(
            COLOURS, MARKERS, symbols.items(), strict=False
        ):
            line = lines[name]
            axes.plot(_kbytes(line), formula_bps(line) / 1e3, color=colour)
            axes.plot(_kbytes(line), corrected_bps(line) / 1e3, color=colour, **_CORRECTED)
            simulated = [evidence.simulated_bps(each) / 1e3 for each in transfers]
            axes.plot(_kbytes(transfers), simulated, marker, color=colour, label=f"{name} up")
        _explain(axes, {"formula (10)": {}, "corrected formula": _CORRECTED})
        axes.plot([], [], "o", color="grey", markerfacecolor="none", label="symbols: simulation")
        axes.legend(loc="upper left")
        _window_axis(axes, (4, 8, 16, 32, 64, 128, 192))
        axes.set_ylabel("throughput (kbit/s)")

    lines_caption = "Lines: the formula as printed (solid) and corrected (dashed), for every "
    lines_caption += "window of whole segments. Symbols: simulation."
    return Figure(
        id=number, title=title, caption=f"{caption} {lines_caption}", columns=columns, draw=draw
    )


def _vsat_figure(
    evidence: Evidence,
    *,
    number: str,
    network: Network,
    title: str,
    caption: str,
    lossy: bool = False,
) -> Figure:
    """Draw figure 7, 8 or 10: the proposed and the existing formula, and simulations."""
    line = _line(network, range(1, cells.window_segments(33) + 1))
    transfers = cells.vsat_cells(network, timed=False)
    connections = cells.vsat_cells(network, timed=True)
    comparison = evidence.compare(transfers)
    minute_bps = [evidence.simulated_bps(each) for each in connections]
    existing = {name: existing_bps(transfers, reading=name) for name in ("published", "windowed")}
    columns: Columns = {}
    append(
        columns,
        window_segments=[each.window_segments for each in transfers],
        window_bytes=[each.window_segments * cells.SEGMENT_BYTES for each in transfers],
        lost_segments=[0] * len(transfers),
        simulated_file_bps=comparison.simulated_bps.tolist(),
        simulated_60s_bps=minute_bps,
        formula_bps=comparison.formula_bps.tolist(),
        corrected_bps=comparison.corrected_bps.tolist(),
        existing_published_bps=existing["published"].tolist(),
        existing_windowed_bps=existing["windowed"].tolist(),
    )
    losing = list(cells.lossy_cells().values()) if lossy else []
    losing_bps = [evidence.simulated_bps(each) for each in losing]
    if losing:
        nothing: list[Value] = [None] * len(losing)
        append(
            columns,
            window_segments=[each.window_segments for each in losing],
            window_bytes=[each.window_segments * cells.SEGMENT_BYTES for each in losing],
            lost_segments=[len(each.lost_segments) for each in losing],
            simulated_file_bps=nothing,
            simulated_60s_bps=losing_bps,
            formula_bps=nothing,
            corrected_bps=nothing,
            existing_published_bps=nothing,
            existing_windowed_bps=nothing,
        )

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        x = _kbytes(line)
        for name, style in _EXISTING.items():
            label = f"existing formula [4], {style['label']}"
            y = existing_bps(line, reading=name) / 1e3
            axes.plot(x, y, color=style["color"], linestyle=style["linestyle"], label=label)
        axes.plot(x, formula_bps(line) / 1e3, color=COLOURS[0], label="proposed formula (10)")
        axes.plot(
            x, corrected_bps(line) / 1e3, color=COLOURS[0], label="corrected formula", **_CORRECTED
        )
        symbols: Sequence[tuple[Sequence[Transfer], Sequence[float], str, dict[str, Any]]] = (
            (
                transfers,
                comparison.simulated_bps.tolist(),
                "o",
                {"label": "simulation, 1024 KByte"},
            ),
            (connections, minute_bps, "s", _CONNECTION),
            (losing, losing_bps, "x", {"label": "the same, two segments lost"}),
        )
        for points, rates, marker, options in symbols:
            if points:
                y = np.array(rates) / 1e3
                axes.plot(_kbytes(points), y, marker, **({"color": COLOURS[1]} | options))
        axes.legend(loc="lower right")
        _window_axis(axes, (2, 3, 4, 6, 8, 12, 16, 24, 32))
        axes.set_ylabel("throughput (kbit/s)")

    return Figure(id=number, title=title, caption=caption, columns=columns, draw=draw)


def _figure_9(evidence: Evidence) -> Figure:
    gap = cells.FIGURE_9_GAPS[0]
    result = evidence.outcomes[cells.lossy_cells()[gap]]
    probes = {name.removeprefix(f"{cells.FLOW}."): series for name, series in result.series.items()}
    columns: Columns = {}
    for name in ("sent", "retransmitted", "acknowledged", "delivered", "congestion_window"):
        series = probes[name]
        append(
            columns,
            series=[name] * len(series.times_s),
            time_s=series.times_s.tolist(),
            value=series.values.tolist(),
            unit=[series.unit] * len(series.times_s),
        )

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        names = {"sent": "sent by the server", "delivered": "delivered at the client"}
        shown = {name: each for name, each in probes.items() if name != "acknowledged"}
        draw_time_sequence(axes, shown, names=names)
        axes.set(xlabel="time (s)", xlim=(0.0, cells.CONNECTION_S))
        axes.legend(loc="upper left")

    return Figure(
        id="9",
        title="Sequence numbers at the server and the client, two segments lost",
        caption=f"Figure 8's network with a window of 32 KByte; the satellite link loses data "
        f"segments {cells.FIGURE_9_FIRST_LOSS} and {cells.FIGURE_9_FIRST_LOSS + gap}. Which two "
        "were lost in the experiment, the paper doesn't say.",
        columns=columns,
        draw=draw,
    )


def _error_figure(evidence: Evidence) -> Figure:
    groups = {
        "figures 5 and 6": evidence.figures_5_and_6,
        "random networks": evidence.random,
    }
    columns: Columns = {}
    for name, comparison in groups.items():
        networks = [each.network for each in comparison.transfers]
        append(
            columns,
            group=[name] * len(networks),
            downlink_bps=[each.downlink_bps for each in networks],
            downlink_delay_s=[each.downlink_delay_s for each in networks],
            uplink_bps=[each.uplink_bps for each in networks],
            uplink_delay_s=[each.uplink_delay_s for each in networks],
            window_segments=[each.window_segments for each in comparison.transfers],
            file_bytes=[each.file_bytes for each in comparison.transfers],
            simulated_bps=comparison.simulated_bps.tolist(),
            formula_error=comparison.formula_error.tolist(),
            corrected_error=comparison.corrected_error.tolist(),
            timer_tied=comparison.tied.tolist(),
        )

    def draw(canvas: Canvas) -> None:
        smallest = 1e-6
        for axes, (name, comparison) in zip(
            new_axes(canvas, columns=2), groups.items(), strict=True
        ):
            for label, errors, colour, style in (
                ("formula (10), (12)", comparison.formula_error, COLOURS[1], "-"),
                ("corrected formula", comparison.corrected_error, COLOURS[0], "-"),
            ):
                ordered = np.sort(np.maximum(np.abs(errors), smallest))
                share = np.arange(1, len(ordered) + 1) / len(ordered)
                axes.step(ordered, share, where="post", color=colour, linestyle=style, label=label)
            axes.axvline(0.02, color="grey", linestyle=":", label="2%")
            axes.set(
                xscale="log",
                xlim=(smallest, 1.0),
                ylim=(0.0, 1.02),
                title=f"{len(comparison.transfers)} cells: {name}",
            )
            axes.set(
                xlabel="relative error of the throughput, at most", ylabel="share of the cells"
            )
        legend_below(canvas, axes, columns=3)

    return Figure(
        id="A1",
        title="How far the formulas are from the simulation",
        caption="Distribution of the relative errors; errors below a millionth are drawn as such. "
        "Not in the paper.",
        columns=columns,
        draw=draw,
        width=9.0,
    )


def _open_settings() -> Table:
    rows = committed("obata2000")
    columns: Columns = {
        "ns-2's timer (ms)": [row.setting["simulated_timer_ms"] for row in rows],
        "d of the formula (ms)": [row.setting["formula_timer_ms"] for row in rows],
        "KByte (bytes)": [row.setting["kbyte"] for row in rows],
        "window in segments, rounded": [row.setting["window"] for row in rows],
        "file": [row.setting["file"] for row in rows],
        "cells": [int(row.measured["cells"]) for row in rows],
        "within 2% of the value": [int(row.measured["within_2_percent"]) for row in rows],
        "median error (%)": [round(100.0 * row.measured["median_error"], 2) for row in rows],
        "within 2% of the axis": [int(row.measured["within_2_percent_of_axis"]) for row in rows],
        "windows in order, figure 5": [int(row.measured["delay_order_windows"]) for row in rows],
        "windows in order, figure 6": [
            int(row.measured["bandwidth_order_windows"]) for row in rows
        ],
    }
    return Table(
        id="A2",
        title="What the paper leaves open about its simulations",
        caption="The printed formula against the simulation in figures 5 and 6. The run uses "
        "ns-2's default timer of 100 ms, d = 200 ms, KByte = 1024, windows rounded down as ns-2 "
        "does, and the file in bytes. Not in the paper.",
        columns=columns,
    )


_CORRECTED: dict[str, Any] = {"linestyle": "--", "linewidth": 1.0}
_CONNECTION: dict[str, Any] = {
    "label": "simulation, 60 s",
    "color": COLOURS[2],
    "markerfacecolor": "none",
    "markersize": 9,
}
_EXISTING: dict[str, dict[str, str]] = {
    "published": {
        "label": "no maximum window",
        "color": COLOURS[6],
        "linestyle": ":",
    },
    "windowed": {
        "label": "cycle up to the window",
        "color": COLOURS[6],
        "linestyle": "-.",
    },
}


def _line(network: Network, windows: Sequence[int]) -> list[Transfer]:
    first = Transfer(network=network, window_segments=1, file_bytes=cells.FILE_KBYTES * 1024)
    return [replace(first, window_segments=window) for window in windows]


def _kbytes(transfers: Sequence[Transfer]) -> Floats:
    segments = np.array([each.window_segments for each in transfers], dtype=np.float64)
    return segments * cells.SEGMENT_BYTES / 1024.0


def _window_axis(axes: Axes, ticks: Sequence[int]) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xticks(list(ticks), labels=[str(each) for each in ticks])
    axes.set_xticks([], minor=True)
    axes.set(xlabel="maximum window size, whole segments (KByte)", ylim=(0.0, None))


def _explain(axes: Axes, styles: Mapping[str, Mapping[str, Any]]) -> None:
    """Put line styles into the legend, apart from the colours."""
    for label, style in styles.items():
        axes.plot([], [], color="grey", label=label, **style)
