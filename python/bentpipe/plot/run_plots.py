"""The plots of one run, as far as it has the probes for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.groups import groups
from bentpipe.plot.binned import (
    Floats,
    bin_edges,
    extent,
    extreme_and_mean,
    mean_rate,
    round_trip_edges,
)
from bentpipe.plot.overview import (
    SHORTEST_QUEUE,
    round_trip_s,
    show_from,
    shown_s,
    write_overview,
)
from bentpipe.plot.style import (
    COLOURS,
    count_on_y,
    draw_steps,
    legend_below,
    new_axes,
    rate_scale,
    write_svg,
)
from bentpipe.plot.thin import thin_line, thin_points
from bentpipe.series import Subject, parts
from bentpipe.units import format_seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bentpipe.results import RunResult
    from bentpipe.series import Series

# A hundred flows make a hundred times three plots that nobody looks at.
MOST_SUBJECTS: Final = 12

Probes = Mapping[str, "Series"]


def write_run_plots(result: RunResult, folder: Path) -> tuple[list[Path], int]:
    """Write the overview, and every plot that the probes allow, as SVG.

    Returns
    -------
    The files, and the number of flows and link directions that have no plots of their own.
    """
    summary = result.summary
    whole = result.series
    files = []
    overview = folder / "overview.svg"
    if write_overview(whole, summary, overview):
        files.append(overview)
    outlines = result.outlines()
    subjects = _by_subject(outlines)
    drawn = _most_telling(subjects)
    for subject, probes in drawn.items():
        for kind, (needed, _, _) in _KINDS.items():
            if not needed & probes.keys() or not _has_something(kind, probes):
                continue
            # Bins need every sample, one part of the series at a time.
            binned = kind in _BINNED
            shown = Subject(whole, subject, needed & probes.keys()) if binned else probes
            file = folder / f"{subject}.{kind}.svg"
            when = shown_s(summary, subject)
            width_s = round_trip_s(summary, subject)
            draw = partial(
                _draw, kind=kind, subject=subject, probes=shown, when=when, width_s=width_s
            )
            write_svg(draw, file)
            files.append(file)
    recorded = {name.rpartition(".")[0] for name in outlines if name.rpartition(".")[2] in _PLOTTED}
    return files, len(recorded - drawn.keys() - _idle(outlines))


def _most_telling(subjects: Mapping[str, Probes]) -> dict[str, Probes]:
    """Choose the subjects that get plots of their own: all, if there is room for all.

    Otherwise those with something to show: the first of each group that `count` made, then the
    second of each, and so on. A subject in no group comes with the first ones.
    """
    if len(subjects) <= MOST_SUBJECTS:
        return dict(subjects)
    telling = [
        subject
        for subject, probes in subjects.items()
        if any(
            needed & probes.keys() and _has_something(kind, probes)
            for kind, (needed, _, _) in _KINDS.items()
        )
    ]
    places = [
        (turn, place) for members in groups(telling).values() for turn, place in enumerate(members)
    ]
    chosen = sorted(place for _, place in sorted(places)[:MOST_SUBJECTS])
    return {telling[place]: subjects[telling[place]] for place in chosen}


def _has_something(kind: str, probes: Probes) -> bool:
    """Whether the plot would show anything.

    A queue that was always empty has no plot, and neither has a flow without data.
    """
    if kind == "queue":
        return _largest(probes, "queue", "queue_max") >= SHORTEST_QUEUE
    if kind == "goodput":
        return _largest(probes, "goodput") > 0
    if kind in ("granted", "utilization"):
        return _largest(probes, kind) > 0
    if kind == "queue-bytes":
        return _largest(probes, "queue_bytes") > 0
    if kind == "round-trip":
        return _largest(probes, *_ROUND_TRIPS) > 0
    if kind == "time-sequence":
        return _largest(probes, "sent", "retransmitted", "acknowledged", "delivered") > 0
    return True


def _idle(series: Probes) -> set[str]:
    """Return the directions in whose queue nothing ever waited for long."""
    directions: dict[str, dict[str, Series]] = {}
    for name, each in series.items():
        direction, _, quantity = name.rpartition(".")
        if quantity in {"queue", "queue_max"}:
            directions.setdefault(direction, {})[quantity] = each
    return {name for name, probes in directions.items() if not _has_something("queue", probes)}


def _by_subject(series: Probes) -> dict[str, dict[str, Series]]:
    """Group "satellite.forward.queue" under "satellite.forward" as "queue".

    Of a flow of which only the goodput is known, the overview tells.
    """
    subjects: dict[str, dict[str, Series]] = {}
    for name, each in series.items():
        subject, _, quantity = name.rpartition(".")
        if len(each.times_s):
            subjects.setdefault(subject, {})[quantity] = each
    few = len(subjects) <= MOST_SUBJECTS
    return {
        subject: probes
        for subject, probes in subjects.items()
        if _PLOTTED & probes.keys() and (few or probes.keys() - {"goodput"})
    }


def _draw(
    figure: Figure,
    *,
    kind: str,
    subject: str,
    probes: Probes,
    when: tuple[float, float],
    width_s: float,
) -> None:
    _, title, draw = _KINDS[kind]
    (axes,) = new_axes(figure)
    begin_s, _ = when
    if kind == "goodput":
        draw_goodput(axes, probes, width_s=width_s, begin_s=begin_s)
    elif kind == "queue":
        _draw_queue(axes, probes, begin_s=begin_s)
    elif kind == "queue-bytes":
        _draw_queue_bytes(axes, probes, begin_s=begin_s)
    elif kind == "utilization":
        _draw_utilization(axes, probes, begin_s=begin_s)
    else:
        draw(axes, {name: _since(begin_s, each) for name, each in probes.items()})
    # Only a power of ten above the axis can be in the title's way. Matplotlib would measure that,
    # which takes a tenth of a figure's time.
    lowest, highest = axes.get_ylim()
    plain = lowest == 0.0 and 1e-3 < highest < 1e5
    if kind in _OF_ONE_CONNECTION and _several_connections(probes):
        title += ", of whichever connection was opened last"
    axes.set_title(f"{subject}: {title}", y=1.0 if plain else None)
    axes.set_xlabel("time (s)")
    show_from(axes, *when)
    legend_below(figure, axes)


def _several_connections(probes: Probes) -> bool:
    """Whether what is recorded of a stream begins anew: another connection has been opened."""
    places = [probes[each].values for each in ("sent", "acknowledged") if each in probes]
    return any(bool((np.diff(each[~np.isnan(each)]) < 0.0).any()) for each in places)


def _since(begin_s: float, series: Series) -> Series:
    """Return what a series has from then on, and what it had just before."""
    first = max(int(np.searchsorted(series.times_s, begin_s)) - 1, 0)
    return replace(series, times_s=series.times_s[first:], values=series.values[first:])


def draw_time_sequence(
    axes: Axes, probes: Probes, *, names: Mapping[str, str] | None = None
) -> None:
    """Draw what was sent, retransmitted, acknowledged and delivered over time."""
    names = names or {}
    styles = (
        ("sent", COLOURS[0], "-"),
        ("delivered", COLOURS[3], "-"),
        ("acknowledged", COLOURS[2], "--"),
    )
    scale, unit = _byte_scale(_largest(probes, "retransmitted", *(name for name, _, _ in styles)))
    for quantity, colour, style in styles:
        if quantity in probes:
            label = names.get(quantity, quantity)
            _steps(axes, probes[quantity], scale, label=label, color=colour, linestyle=style)
    if "retransmitted" in probes:
        again = probes["retransmitted"]
        x, y = thin_points(again.times_s, again.values / scale)
        label = names.get("retransmitted", "retransmitted")
        axes.plot(x, y, "x", color=COLOURS[1], label=label, zorder=3)
    axes.set(ylabel=f"stream offset ({unit})", ylim=(0.0, None))


def _draw_window(axes: Axes, probes: Probes) -> None:
    largest = _largest(probes, "congestion_window")
    scale, unit = _byte_scale(largest)
    if (window := probes.get("congestion_window")) is not None:
        _steps(axes, window, scale, label="congestion window", color=COLOURS[0])
    if (threshold := probes.get("slow_start_threshold")) is not None:
        values = threshold.values / scale
        # A threshold starts out as good as infinite: it would flatten everything else.
        limit = 2.0 * largest / scale if largest else np.inf
        shown = np.where(values <= limit, values, np.nan)
        axes.step(
            *(threshold.times_s, shown),
            where="post",
            color=COLOURS[1],
            linestyle="--",
            label="slow start threshold",
        )
    axes.set(ylabel=f"window ({unit})", ylim=(0.0, None))


def _draw_gateway(axes: Axes, probes: Probes) -> None:
    """Draw what a gateway holds, what it has promised to take, and its connections' windows."""
    present = [quantity for quantity in _OF_GATEWAYS if quantity in probes]
    # Hybla's slow start opens a window to gigabytes, which would flatten everything else.
    bytes_there = _largest(probes, *(each for each in present if each not in _CONGESTION_WINDOWS))
    limit = 2.0 * bytes_there or np.inf
    scale, unit = _byte_scale(min(limit, _largest(probes, *present)))
    for colour, quantity in zip(cycle(COLOURS), present, strict=False):
        times_s, values = probes[quantity].times_s, probes[quantity].values
        shown = np.where(values <= limit, values, np.nan) / scale
        axes.step(times_s, shown, where="post", color=colour, label=quantity.replace("_", " "))
    # One line has no legend.
    what = f"{present[0].replace('_', ' ')}, " if len(present) == 1 else ""
    axes.set(ylabel=f"{what}all connections together ({unit})", ylim=(0.0, None))


def _draw_queue(axes: Axes, probes: Probes, *, begin_s: float = 0.0) -> None:
    names = [name for name in ("queue_max", "queue") if name in probes]
    known = [each for name in names if (each := extent(parts(probes, name)))]
    edges = bin_edges(max(each.last_s for each in known), begin_s=begin_s)
    if "queue_max" in probes:
        highest, _ = extreme_and_mean(parts(probes, "queue_max"), edges)
        draw_steps(axes, highest, edges, color=COLOURS[1], label="most in each interval")
    if "queue" in probes:
        highest, mean = extreme_and_mean(parts(probes, "queue"), edges)
        if "queue_max" not in probes:
            draw_steps(axes, highest, edges, color=COLOURS[1], label="most of the samples")
        draw_steps(axes, mean, edges, color=COLOURS[0], label="mean of the samples")
    count_on_y(axes)
    axes.set(ylabel=f"queue ({known[0].unit})", ylim=(0.0, None))


def draw_goodput(axes: Axes, probes: Probes, *, width_s: float, begin_s: float = 0.0) -> None:
    """Draw the goodput in bins of a round trip: less shows how a window is spread in one."""
    known = extent(parts(probes, "goodput"))
    if known is None:
        return
    edges = round_trip_edges(
        known.last_s, round_trip_s=width_s, interval_s=known.interval_s, begin_s=begin_s
    )
    rates = mean_rate(parts(probes, "goodput"), edges)
    scale, unit = rate_scale(float(rates.max()))
    draw_steps(axes, rates / scale, edges, color=COLOURS[0], linewidth=1.4)
    width = edges[1] - edges[0]
    axes.set(
        ylabel=f"goodput ({unit}), means over {format_seconds(float(width))}", ylim=(0.0, None)
    )


def _draw_goodput(axes: Axes, probes: Probes) -> None:
    draw_goodput(axes, probes, width_s=0.0)


def _draw_granted(axes: Axes, probes: Probes) -> None:
    granted = probes["granted"]
    scale, unit = rate_scale(_largest(probes, "granted"))
    # Each is the mean of the interval that ends with it.
    times_s, rates = thin_line(granted.times_s, granted.values / scale)
    axes.step(times_s, rates, where="pre", color=COLOURS[0])
    axes.set(ylabel=f"capacity granted ({unit})", ylim=(0.0, None))


def _binned(probes: Probes, quantity: str, begin_s: float) -> tuple[Floats, Floats, Floats] | None:
    """Return the bins that samples fall into, and the highest and mean of each; None of none."""
    known = extent(parts(probes, quantity))
    if known is None:
        return None
    edges = bin_edges(known.last_s, begin_s=begin_s)
    return edges, *extreme_and_mean(parts(probes, quantity), edges)


def _draw_queue_bytes(axes: Axes, probes: Probes, *, begin_s: float = 0.0) -> None:
    binned = _binned(probes, "queue_bytes", begin_s)
    if binned is None:
        return
    edges, highest, mean = binned
    scale, unit = _byte_scale(float(highest.max()))
    draw_steps(axes, highest / scale, edges, color=COLOURS[1], label="most of the samples")
    draw_steps(axes, mean / scale, edges, color=COLOURS[0], label="mean of the samples")
    axes.set(ylabel=f"queue ({unit})", ylim=(0.0, None))


def _draw_utilization(axes: Axes, probes: Probes, *, begin_s: float = 0.0) -> None:
    binned = _binned(probes, "utilization", begin_s)
    if binned is None:
        return
    edges, _, mean = binned
    draw_steps(axes, 100.0 * mean, edges, color=COLOURS[0])
    axes.set(ylabel="time that it transmits (%)", ylim=(0.0, 105.0))


def _draw_round_trips(axes: Axes, probes: Probes) -> None:
    """Draw what the sender measures of round trips, makes of them, and waits at most."""
    styles = zip(_ROUND_TRIPS, COLOURS, ("-", "-", "--", ":"), strict=False)
    measured = _largest(probes, *_ROUND_TRIPS[:2]) or _largest(probes, *_ROUND_TRIPS)
    scale, unit = (1.0, "s") if measured >= 2.0 else (1e-3, "ms")
    present = [each for each in styles if each[0] in probes]
    for quantity, colour, style in present:
        label = quantity.replace("_", " ").replace("rtt", "round trip")
        _steps(axes, probes[quantity], scale, label=label, color=colour, linestyle=style)
    # One line has no legend.
    what = present[0][0].replace("_", " ").replace("rtt", "round trip")
    axes.set_ylabel(f"{what if len(present) == 1 else 'time'} ({unit})")
    # A timeout that is backed off, or that nothing was measured for as yet, would flatten the rest.
    top = 4.0 * measured / scale
    axes.set_ylim(0.0, top if axes.get_ylim()[1] > top else None)


def _largest(probes: Probes, *quantities: str) -> float:
    values = [probes[each].values for each in quantities if each in probes]
    return max((float(each.max()) for each in values if len(each)), default=0.0)


def _byte_scale(largest: float) -> tuple[float, str]:
    return (1e6, "MB") if largest >= 10e6 else (1e3, "kB")


def _steps(
    axes: Axes,
    series: Series,
    scale: float,
    *,
    color: str,
    label: str | None = None,
    linestyle: str = "-",
) -> None:
    x, y = thin_line(series.times_s, series.values / scale)
    axes.step(x, y, where="post", color=color, label=label, linestyle=linestyle)


_ROUND_TRIPS: Final = ("measured_rtt", "smoothed_rtt", "rtt_deviation", "retransmission_timeout")
_CONGESTION_WINDOWS: Final = ("facing_window", "host_window")
# As the scenario names them.
_OF_GATEWAYS: Final = (
    *("buffered", "promised", "facing_window", "host_window", "facing_offered", "host_offered"),
    *("offered_window", "eligible"),
)
_DrawOn = Callable[["Axes", Probes], None]
_KINDS: Final[Mapping[str, tuple[frozenset[str], str, _DrawOn]]] = {
    "time-sequence": (
        frozenset({"sent", "retransmitted", "acknowledged"}),
        "time-sequence graph",
        draw_time_sequence,
    ),
    "congestion-window": (
        frozenset({"congestion_window", "slow_start_threshold"}),
        "congestion window",
        _draw_window,
    ),
    "queue": (frozenset({"queue", "queue_max"}), "packets waiting", _draw_queue),
    "queue-bytes": (frozenset({"queue_bytes"}), "bytes waiting", _draw_queue_bytes),
    "utilization": (frozenset({"utilization"}), "utilization", _draw_utilization),
    "round-trip": (frozenset(_ROUND_TRIPS), "round trips", _draw_round_trips),
    "goodput": (frozenset({"goodput"}), "goodput", _draw_goodput),
    "granted": (frozenset({"granted"}), "capacity on demand", _draw_granted),
    "gateway": (frozenset(_OF_GATEWAYS), "bytes held, and windows", _draw_gateway),
}
_PLOTTED: Final = frozenset[str]().union(*(quantities for quantities, _, _ in _KINDS.values()))
_OF_ONE_CONNECTION: Final = frozenset({"time-sequence"})
_BINNED: Final = frozenset({"goodput", "queue", "queue-bytes", "utilization"})
