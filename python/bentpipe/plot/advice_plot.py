"""The figure of an advice: what each remedy gives, and what limits the senders then."""

from __future__ import annotations

import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bentpipe.plot.style import COLOURS, new_figure, rate_scale, save_svg

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.figure import Figure

    from bentpipe.advice import Advice

_MOST_ROWS: Final = 14
# Inches: the height of a row, and of a line of a label that needs more than two.
_ROW: Final = 0.32
_LINE: Final = 0.16
# Each limit its colour, whatever else is in the figure; what is nobody's fault is grey.
_LIMITS: Final = {
    "slow_start": ("slow start", COLOURS[4]),
    "congestion_window": ("congestion window", COLOURS[0]),
    "receive_window": ("receive window", COLOURS[1]),
    "send_buffer": ("send buffer", COLOURS[3]),
    "pacing": ("pace", COLOURS[5]),
    "recovery": ("loss recovery", COLOURS[6]),
    "application": ("application", "#BBBBBB"),
}


def write_advice_plot(advice: Advice, path: Path) -> None:
    """Draw an advice and write it as SVG."""
    save_svg(advice_figure(advice), path)


def advice_figure(advice: Advice) -> Figure:
    """Return the figure: the scenario as it is, then the best remedies."""
    rows: list[tuple[str, float, Mapping[str, float]]] = [
        ("as it is", advice.goodput_bps, advice.limits)
    ]
    rows += [
        (each.remedy.name, each.goodput_bps, each.limits)
        for each in advice.remedies[: _MOST_ROWS - 1]
    ]
    lines = max(_broken(name).count("\n") + 1 for name, _, _ in rows)
    height = 1.5 + max(_ROW, lines * _LINE) * len(rows)
    title = f"{advice.scenario}, seed {advice.seed}"
    return new_figure(partial(_draw, rows=rows, title=title), width=9.6, height=height)


def _draw(
    figure: Figure, *, rows: list[tuple[str, float, Mapping[str, float]]], title: str
) -> None:
    rates, shares = figure.subplots(1, 2, sharey=True)
    scale, unit = rate_scale(max(goodput for _, goodput, _ in rows))
    places = range(len(rows))
    colours = ["#888888"] + [COLOURS[0]] * (len(rows) - 1)
    bars = rates.barh(places, [goodput / scale for _, goodput, _ in rows], color=colours)
    rates.bar_label(bars, fmt="%.3g", padding=3, fontsize=9)
    rates.set_xlabel(f"goodput of all flows ({unit})")
    rates.margins(x=0.12)
    rates.set_yticks(places, [_broken(name) for name, _, _ in rows], fontsize=9)
    rates.invert_yaxis()
    rates.grid(visible=False, axis="y")
    # A long name in lines of its own: beside it stands the other title.
    rates.set_title("\n".join(textwrap.wrap(f"{title}: what each remedy gives", 40)))
    begun = [0.0] * len(rows)
    for name, (label, colour) in _LIMITS.items():
        widths = [100.0 * limits.get(name, 0.0) for _, _, limits in rows]
        if any(width >= 0.5 for width in widths):
            shares.barh(places, widths, left=begun, color=colour, label=label)
            begun = [start + width for start, width in zip(begun, widths, strict=True)]
    shares.set(xlim=(0.0, 100.0), xlabel="share of the senders' time (%)")
    shares.grid(visible=False, axis="y")
    shares.set_title("what limits the senders then")
    figure.legend(loc="outside lower center", ncols=7)


def _broken(name: str) -> str:
    return "\n".join(textwrap.wrap(name, 44))
