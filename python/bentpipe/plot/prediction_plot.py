"""The figure of a prediction: limits and estimates of each flow, as bars."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from bentpipe.plot.style import COLOURS, new_figure, rate_scale
from bentpipe.units import format_rate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bentpipe.prediction import FlowPrediction, Prediction

_MOST_FLOWS: Final = 4
# Inches: the height of a bar, and of the title and axis of a flow.
_BAR: Final = 0.3
_FLOW: Final = 0.9
# Limits this much above the lowest are drawn cut off: they would leave the others no width.
_CUT_OFF: Final = 5.0


def prediction_figure(prediction: Prediction) -> Figure:
    """Return the figure: one row of bars for each flow, of alike flows for the first."""
    different = [flow for flow in prediction.flows if flow.like in {"", flow.name}]
    shown = different[:_MOST_FLOWS]
    bars = [len(flow.limits_bps) + len(flow.estimates_bps) for flow in shown]
    height = sum(_FLOW + _BAR * each for each in bars)
    left_out = len(different) - len(shown)
    draw = partial(_draw, scenario=prediction.scenario, flows=shown, bars=bars, left_out=left_out)
    return new_figure(draw, height=max(height, 2.0))


def _draw(
    figure: Figure,
    *,
    scenario: str,
    flows: list[FlowPrediction],
    bars: list[int],
    left_out: int,
) -> None:
    ratios = [_FLOW + _BAR * each for each in bars]
    grid = figure.subplots(len(flows), 1, squeeze=False, gridspec_kw={"height_ratios": ratios})
    for axes, flow in zip(grid.flat, flows, strict=True):
        _draw_flow(axes, flow)
        axes.set_title(f"{scenario}, flow {flow.name}: predicted goodput")
    if left_out:
        figure.supxlabel(f"and {left_out:,} more flows", fontsize=9)


def _draw_flow(axes: Axes, flow: FlowPrediction) -> None:
    rates = flow.rates_bps
    names = sorted(rates, key=lambda name: rates[name])
    lowest = rates[flow.lowest]
    scale, unit = rate_scale(lowest)
    end = _CUT_OFF * lowest if lowest > 0.0 else max(rates.values())
    for place, name in enumerate(names):
        is_estimate = name in flow.estimates_bps
        axes.barh(
            place,
            min(rates[name], end) / scale,
            color=COLOURS[0] if name == flow.lowest else "#BBBBBB",
            hatch="//" if is_estimate else None,
            edgecolor="white",
        )
        beyond = " →" if rates[name] > end else ""
        axes.annotate(
            f"{format_rate(rates[name])}{beyond}",
            (min(rates[name], end) / scale, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=9,
        )
    labels = [f"{name} (estimate)" if name in flow.estimates_bps else name for name in names]
    axes.set_yticks(range(len(names)), labels)
    axes.invert_yaxis()
    axes.margins(x=0.2)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel(unit)
