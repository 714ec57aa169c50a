"""The figure of a fit: the simulation of the fitted scenario beside the measurement."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.plot.style import COLOURS, new_axes, new_figure, save_png, save_svg
from bentpipe.plot.thin import thin_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bentpipe.fit import Fit
    from bentpipe.results import RunResult

_MEASURED: Final = COLOURS[0]
_SIMULATED: Final = COLOURS[1]
_HEIGHT: Final = 7.6


def write_fit_plot(fit: Fit, result: RunResult, path: Path) -> None:
    """Draw bytes and round trips over time, and the distribution of round trips, as SVG or PNG."""
    figure = new_figure(partial(_draw, fit=fit, result=result), height=_HEIGHT)
    if path.suffix == ".png":
        save_png(figure, path)
    else:
        save_svg(figure, path)


def _draw(figure: Figure, *, fit: Fit, result: RunResult) -> None:
    sent, trips, shares = new_axes(figure, rows=3)
    flow = result.summary.flows[0].name
    transfer = fit.path.transfer
    delivered = result.series.get(f"{flow}.{fit.progress_series}")
    measured_rtt = result.series.get(f"{flow}.measured_rtt")
    pings = [each for each in fit.path.delays if each.way == "both" and len(each.delay_s) > 1]
    if transfer is not None:
        sent.plot(
            *thin_line(transfer.time_s, transfer.delivered_bytes / 1e6),
            color=_MEASURED,
            label="measured",
        )
    if delivered is not None and len(delivered.times_s):
        x, y = thin_line(delivered.times_s, np.asarray(delivered.values) / 1e6)
        sent.plot(x, y, "--", color=_SIMULATED, label="simulated")
    if transfer is not None and len(transfer.rtt_s):
        _round_trips(trips, shares, transfer.rtt_time_s, transfer.rtt_s, is_measured=True)
    elif pings:
        _round_trips(trips, shares, pings[0].time_s, pings[0].delay_s, is_measured=True)
    if measured_rtt is not None and len(measured_rtt.times_s):
        times, values = np.asarray(measured_rtt.times_s), np.asarray(measured_rtt.values)
        known = np.isfinite(values)
        _round_trips(trips, shares, times[known], values[known], is_measured=False)
    sent.set(
        title=f"{fit.name}: the measurement, and the fitted scenario",
        ylabel=f"{fit.progress_series} (MB)",
        xlabel="time (s)",
    )
    trips.set(ylabel="round trip (ms)", xlabel="time (s)")
    shares.set(ylabel="share of round trips", xlabel="round trip up to (ms)", ylim=(0.0, 1.02))
    for axes in (sent, trips):
        axes.set(xlim=(0.0, None), ylim=(0.0, None))
    for axes in (sent, trips, shares):
        if axes.get_legend_handles_labels()[1]:
            axes.legend()


def _round_trips(
    trips: Axes, shares: Axes, times: np.ndarray, values: np.ndarray, *, is_measured: bool
) -> None:
    colour, style = (_MEASURED, "-") if is_measured else (_SIMULATED, "--")
    label = "measured" if is_measured else "simulated"
    trips.plot(*thin_line(times, values * 1e3), style, color=colour, label=label)
    if len(values):
        ordered = np.sort(values) * 1e3
        part = np.arange(1, len(ordered) + 1) / len(ordered)
        shares.plot(*thin_line(ordered, part), style, color=colour, label=label)
