"""Distributions of application metrics: page loads, responses, files, mails, calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bentpipe.plot.style import COLOURS, legend_below, log_x_in_seconds, new_axes, write_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bentpipe.results import Summary

# In turn: of two curves on each other, both show.
_STYLES = ("-", "--", "-.", ":")
# Names of times, each with its place in a group's results.
_TIMES = {
    "page load": ("page_load_ms",),
    "first byte": ("first_byte_ms",),
    "response": ("responses", "time_ms"),
    "file": ("files", "time_ms"),
    "mail": ("mails", "time_ms"),
    "echo": ("echoes", "time_ms"),
    "packet delay": ("messages", "delay_ms"),
    "mouth to ear": ("mouth_to_ear_ms",),
    "capture to display": ("video_call_delay_ms",),
    "start-up": ("video", "start_up_ms"),
}

_Curves = dict[str, Sequence[float]]


def write_application_plots(summary: Summary, folder: Path) -> list[Path]:
    """Write figures of times, calls, video calls and what groups got, as far as there are any.

    Returns the files.
    """
    files = []
    times = _curves(summary, _TIMES)
    if times:
        files.append(folder / "times.svg")
        write_svg(partial(_draw, curves=times, title=f"{summary.scenario}: times"), files[-1])
    calls = _curves(summary, {"MOS": ("call_mos",)})
    if calls:
        files.append(folder / "calls.svg")
        draw = partial(_draw, curves=calls, title=f"{summary.scenario}: how calls sound", mos=True)
        write_svg(draw, files[-1])
    views = _curves(summary, {"MOS": ("video_call_mos",)})
    if views:
        files.append(folder / "video-calls.svg")
        title = f"{summary.scenario}: how video calls look"
        write_svg(partial(_draw, curves=views, title=title, mos=True), files[-1])
    received = _curves(summary, {"of what was sent": ("received_percent",)})
    if received:
        files.append(folder / "received.svg")
        write_svg(partial(_draw_received, curves=received, scenario=summary.scenario), files[-1])
    return files


def _draw_received(figure: Figure, *, curves: _Curves, scenario: str) -> None:
    (axes,) = new_axes(figure)
    for index, (label, percentiles) in enumerate(curves.items()):
        colour = COLOURS[index % len(COLOURS)]
        style = _STYLES[index % len(_STYLES)]
        shares = np.linspace(0.0, 100.0, len(percentiles))
        axes.plot(percentiles, shares, style, color=colour, label=label)
    axes.set(
        ylim=(0.0, 100.0),
        xlabel="share of the datagrams that came (%)",
        ylabel="share of the members that got no more (%)",
        title=f"{scenario}: what the members of groups got",
    )
    _name(figure, axes, curves)


def _name(figure: Figure, axes: Axes, curves: _Curves) -> None:
    """Say what each curve is, also of a single one: nothing else does."""
    legend_below(figure, axes, columns=1 if len(curves) == 1 else None)


def _curves(summary: Summary, of: Mapping[str, Sequence[str]]) -> _Curves:
    """Return the percentiles that groups tell, by group and what they are of."""
    curves: _Curves = {}
    for group in summary.groups:
        for what, path in of.items():
            found: Any = group.extra
            for key in path:
                found = (found or {}).get(key)
            if found and found.get("percentiles"):
                curves[f"{group.name}: {what}"] = found["percentiles"]
    return curves


def _draw(figure: Figure, *, curves: _Curves, title: str, mos: bool = False) -> None:
    (axes,) = new_axes(figure)
    shares = np.linspace(0.0, 1.0, 101)
    for index, (label, percentiles) in enumerate(curves.items()):
        values = np.asarray(percentiles) * (1.0 if mos else 1e-3)
        style = _STYLES[index % len(_STYLES)]
        colour = COLOURS[index % len(COLOURS)]
        axes.plot(values, shares, style, color=colour, label=label)
    if mos:
        # Wider than the scale: where all calls are bad, the curve is not on the axis.
        axes.set(xlim=(0.9, 4.6), xlabel="mean opinion score (1 bad, 4.5 best)")
    else:
        everything = np.concatenate([np.asarray(each) for each in curves.values()])
        positive = everything[everything > 0]
        if len(positive) and positive.max() > 20.0 * positive.min():
            log_x_in_seconds(axes, float(positive.min()) * 1e-3, float(positive.max()) * 1e-3)
        else:
            axes.set_xlim(left=0.0)
        axes.set_xlabel("time (s)")
    axes.set(
        ylim=(0.0, 1.0),
        ylabel="share of all that take no longer" if not mos else "share that is no better",
        title=title,
    )
    _name(figure, axes, curves)
