"""Small figures of a report: a measure along a variation, in the colours of the page."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from bentpipe.plot.style import COLOURS, MARKERS, new_figure, rate_scale, save_svg
from bentpipe.report.inline_svg import inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bentpipe.scenario_report.evidence import Sensitivity
    from bentpipe.scenario_report.measures import Key, MeasureRange

# Inches.
_WIDTH: Final = 3.1
_HEIGHT: Final = 2.3
# Scales of opinion scores: the least and the greatest.
_SCORES: Final = {"MOS": (1.0, 4.5), "video MOS": (1.0, 5.0)}
# Milliseconds that read better as seconds.
_SECONDS_FROM_MS: Final = 1e3
# Colours of the page by those of matplotlib, which they replace in figures.
_COLOURS: Final = {
    "#000000": "currentColor",
    "#ffffff": "none",
    "#dddddd": "var(--grid)",
    **{colour.lower(): f"var(--c{place})" for place, colour in enumerate(COLOURS[:6])},
}


@dataclass(frozen=True, kw_only=True)
class Curve:
    """A measure along a variation: positions, ranges over the seeds, and the present position."""

    label: str
    places: Sequence[float]
    ranges: Sequence[MeasureRange]
    present: float | None


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A figure of one measure along one variation, with a curve for each scenario."""

    title: str
    x_label: str
    ticks: tuple[str, ...]
    key: Key
    unit: str
    curves: tuple[Curve, ...]


def panel_of(named: Sequence[tuple[str, Sensitivity]], key: Key) -> Panel | None:
    """Return the figure of a measure along the variations of scenarios; None without values."""
    curves = []
    # The places of losses, which may be zero, are even; all scenarios have the same ones.
    losses = sorted(
        {each.value.number: each.value.words for _, one in named for each in one.points}.items()
    )
    kind = named[0][1].variation.kind
    scale, unit = _x_scale(kind, max((number for number, _ in losses), default=0.0))
    for label, sensitivity in named:
        places, ranges, present = [], [], None
        for point in sensitivity.points:
            measure = point.measure(key)
            if measure is None:
                continue
            number = point.value.number
            place = (
                float([each for each, _ in losses].index(number))
                if kind == "losses"
                else number / scale
            )
            places.append(place)
            ranges.append(measure)
            if point.value.is_present:
                present = place
        if len(places) > 1:
            curves.append(Curve(label=label, places=places, ranges=ranges, present=present))
    if not curves:
        return None
    table, what = key
    variation = named[0][1].variation
    return Panel(
        title=f"{table}: {what}",
        x_label=f"{variation.subject} ({unit})" if unit else variation.subject,
        ticks=tuple(words for _, words in losses) if kind == "losses" else (),
        key=key,
        unit=curves[0].ranges[0].own.unit,
        curves=tuple(curves),
    )


def _x_scale(kind: str, highest: float) -> tuple[float, str]:
    """Return what to divide the values of a variation by, and their unit then."""
    match kind:
        case "rate":
            return rate_scale(highest)
        case "delay":
            return 1e-3, "ms"
        case _:
            return 1.0, ""


def panel_svg(panel: Panel, *, name: str) -> str:
    """Return a panel as an element of the page; `name` begins its identifiers."""
    figure = new_figure(partial(_draw, panel=panel), width=_WIDTH, height=_HEIGHT)
    written = io.StringIO()
    save_svg(figure, written)
    svg = inline_svg(written.getvalue(), name=name, title=f"{panel.title}, by {panel.x_label}")
    for colour, of_page in _COLOURS.items():
        svg = svg.replace(colour, of_page)
    return svg


def _draw(figure: Figure, *, panel: Panel) -> None:
    axes = figure.subplots()
    highest = max(each.range.most for curve in panel.curves for each in curve.ranges)
    scale, unit = _y_scale(panel.unit, highest)
    for place, curve in enumerate(panel.curves):
        colour, marker = COLOURS[place % 6], MARKERS[place % len(MARKERS)]
        medians = [each.range.median / scale for each in curve.ranges]
        least = [each.range.least / scale for each in curve.ranges]
        most = [each.range.most / scale for each in curve.ranges]
        axes.plot(curve.places, medians, color=colour, marker=marker, markersize=4)
        axes.fill_between(curve.places, least, most, color=colour, alpha=0.2, linewidth=0)
        if curve.present is not None:
            now = medians[list(curve.places).index(curve.present)]
            axes.plot(
                [curve.present], [now], marker="o", markersize=11, color=colour, fillstyle="none"
            )
            if len(panel.curves) == 1:
                axes.axvline(curve.present, color=colour, linestyle=":", linewidth=1.0)
    if panel.ticks:
        axes.set_xticks(range(len(panel.ticks)), panel.ticks)
    bounds = _SCORES.get(panel.key[1])
    if bounds is not None:
        axes.set_ylim(*bounds)
    else:
        axes.set_ylim(0.0, 1.1 * highest / scale if highest > 0.0 else 1.0)
    axes.set_title(panel.title, fontsize=10)
    axes.set_xlabel(panel.x_label, fontsize=9)
    axes.set_ylabel(unit or "score", fontsize=9)
    axes.tick_params(labelsize=9)


def _y_scale(unit: str, highest: float) -> tuple[float, str]:
    if unit == "bit/s":
        return rate_scale(highest)
    if unit == "ms" and highest >= _SECONDS_FROM_MS:
        return 1e3, "s"
    return 1.0, unit
