"""One figure for each criterion: a panel for each quantity, a line for each condition."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from math import isfinite
from textwrap import fill
from typing import TYPE_CHECKING, Final

from matplotlib.ticker import FuncFormatter, MaxNLocator

from bentpipe.evaluation.verdicts import Judged, Measure, Row, label
from bentpipe.plot.style import COLOURS, MARKERS, legend_below, new_figure, save_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDTH: Final = 7.2
# Inches of a line of a panel, and of what stands around the lines.
_LINE: Final = 0.34
_AROUND: Final = 0.85
_BELOW: Final = 0.45
# A rule's place within a line, in lines.
_SPREAD: Final = 0.62
# Characters of a line above a panel.
_TITLE: Final = 56


def svg_of(judged: Sequence[Judged]) -> str:
    """Return the figure of a criterion as SVG: the same criterion judged for each rule."""
    panels = _panels(judged)
    heights = [len(conditions) * _LINE + _AROUND for _, conditions in panels]
    figure = new_figure(
        partial(_draw, judged, panels, heights), width=_WIDTH, height=sum(heights) + _BELOW
    )
    stream = io.StringIO()
    save_svg(figure, stream)
    return stream.getvalue()


def _panels(judged: Sequence[Judged]) -> list[tuple[Measure, list[str]]]:
    rows = judged[0].rows
    measures = {each.measure.id: each.measure for each in rows}
    return [
        (measure, [each.condition for each in rows if each.measure.id == name])
        for name, measure in measures.items()
    ]


def _draw(
    judged: Sequence[Judged],
    panels: Sequence[tuple[Measure, list[str]]],
    heights: Sequence[float],
    figure: Figure,
) -> None:
    several = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
    for axes, (measure, conditions) in zip(several.flat, panels, strict=True):
        _panel(axes, judged, measure, conditions)
    legend_below(figure, several.flat[0], columns=min(len(judged), 5))


def _panel(
    axes: Axes, judged: Sequence[Judged], measure: Measure, conditions: Sequence[str]
) -> None:
    for number, each in enumerate(judged):
        rows = {row.condition: row for row in each.rows if row.measure.id == measure.id}
        offset = _SPREAD * (number / max(len(judged) - 1, 1) - 0.5)
        places = [place + offset for place in range(len(conditions))]
        _points(axes, [rows[name] for name in conditions], places, number, label(each.rule))
    bound = measure.bound
    if bound is not None:
        axes.axvline(bound, color="#555555", linewidth=1.0, linestyle="--")
        low, high = axes.get_xlim()
        low, high = min(low, bound), max(high, bound)
        good = (bound, high) if measure.at_least is not None else (low, bound)
        axes.axvspan(*good, color="#009E73", alpha=0.08, linewidth=0.0)
        axes.set_xlim(low, high)
    axes.set_yticks(range(len(conditions)), conditions, fontsize=9)
    axes.set_ylim(len(conditions) - 0.5, -0.5)
    axes.grid(visible=False, axis="y")
    for place in range(1, len(conditions)):
        axes.axhline(place - 0.5, color="#DDDDDD", linewidth=0.6)
    axes.set_title(fill(measure.what, _TITLE), fontsize=9.5)
    if measure.percent:
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100.0 * value:.3g}%"))
    elif measure.unit:
        axes.set_xlabel(measure.unit)
    axes.xaxis.set_major_locator(MaxNLocator(8))


def _points(
    axes: Axes, rows: Sequence[Row], places: Sequence[float], number: int, name: str
) -> None:
    """Draw the medians of a rule, with the range over the seeds."""
    colour = COLOURS[number % len(COLOURS)]
    known = [(row, place) for row, place in zip(rows, places, strict=True) if isfinite(row.median)]
    axes.plot(
        [row.median for row, _ in known],
        [place for _, place in known],
        linestyle="none",
        marker=MARKERS[number % len(MARKERS)],
        markersize=7 if number == 0 else 5,
        color=colour,
        markerfacecolor=colour if number == 0 else "white",
        label=name,
        zorder=3,
    )
    for row, place in known:
        values = [each for each in row.values if isfinite(each)]
        axes.plot([min(values), max(values)], [place, place], color=colour, linewidth=1.0)
