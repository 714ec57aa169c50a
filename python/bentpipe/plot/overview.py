"""A run in one figure: what the flows got, where packets waited, and where they were lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
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
from bentpipe.plot.style import (
    COLOURS,
    count_on_y,
    draw_steps,
    legend_beside,
    new_figure,
    rate_scale,
    save_svg,
)
from bentpipe.plot.thin import thin_line
from bentpipe.series import outline, parts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bentpipe.results import DirectionResult, Summary
    from bentpipe.series import Series

Probes = Mapping[str, "Series"]

# More lines cannot be told apart.
MOST_LINES: Final = len(COLOURS)
# Fewer packets than this wait behind every transmitter.
SHORTEST_QUEUE: Final = 2
_ROW_HEIGHT: Final = 2.4
_WIDTH: Final = 9.0
# Points: width of a letter in the title and in the legend, of the note, and of numbers and label
# beside the axes; height of the note.
_OF_TITLE: Final = 6.0
_OF_LEGEND: Final = 4.6
_OF_NOTE: Final = 236.0
_BESIDE_AXES: Final = 97.0
_ABOVE_NOTE: Final = 16.0
# A figure starts at the first flow if that starts later than this share of the run.
_LATE: Final = 0.75


def write_overview(series: Probes, summary: Summary, path: Path) -> bool:
    """Write the figure as SVG; false, and no file, if nothing was recorded that it shows."""
    figure = overview_figure(series, summary)
    if figure is None:
        return False
    save_svg(figure, path)
    return True


def overview_figure(series: Probes, summary: Summary) -> Figure | None:
    """Return the figure; None if nothing was recorded that it shows."""
    rows = _rows(series, summary)
    if not rows:
        return None
    height = 0.5 + _ROW_HEIGHT * len(rows)
    title = f"{summary.scenario}, seed {summary.seed}"
    draw = partial(_draw, rows=rows, title=title, shown=shown_s(summary))
    return new_figure(draw, width=_WIDTH, height=height)


def draw_overview(figure: Figure, series: Probes, summary: Summary) -> None:
    """Draw the figure on one of your own."""
    rows = _rows(series, summary)
    _draw(figure, rows=rows, title=summary.scenario, shown=shown_s(summary))


_Row = Callable[["Axes"], None]


def _rows(series: Probes, summary: Summary) -> list[_Row]:
    """Return what draws each row; nothing that would stay empty."""
    begin_s, end_s = shown_s(summary)
    found = [
        _goodput_row(series, summary, begin_s, end_s),
        _queue_row(series, summary, begin_s, end_s),
        _loss_row(series, summary, end_s),
    ]
    return [row for row in found if row is not None]


def _draw(figure: Figure, *, rows: Sequence[_Row], title: str, shown: tuple[float, float]) -> None:
    if not rows:
        return
    all_axes = list(figure.subplots(len(rows), 1, sharex=True, squeeze=False)[:, 0])
    for axes, row in zip(all_axes, rows, strict=True):
        row(axes)
        show_from(axes, *shown)
        legend_beside(axes)
    all_axes[0].set_title(title, pad=None if _has_room(title, all_axes) else _ABOVE_NOTE)
    all_axes[-1].set_xlabel("time (s)")


def _has_room(title: str, all_axes: Sequence[Axes]) -> bool:
    """Whether a title is beside the note above the axes without running into it.

    By what letters of our fonts are wide on average, in points: to measure them takes as long as
    to lay the figure out.
    """
    if not all_axes[0].texts:
        return True
    legends = [legend for axes in all_axes if (legend := axes.get_legend()) is not None]
    lines = [
        line for each in legends for text in each.texts for line in text.get_text().split("\n")
    ]
    widest = max(map(len, lines), default=0)
    axes_width = 72.0 * _WIDTH - _BESIDE_AXES - _OF_LEGEND * widest
    return _OF_TITLE * len(title) + _OF_NOTE < axes_width


def shown_s(summary: Summary, name: str | None = None) -> tuple[float, float]:
    """Return the time that a figure shows: of one flow, or of the run.

    Where the first flow begins late, what is before would leave the rest no room.
    """
    end_s = float(summary.extra.get("ended_s", summary.duration_s))
    starts = [flow.start_s for flow in summary.flows if name in {None, flow.name}]
    # Of a link or a gateway, that of all flows.
    first_s = min(starts or [flow.start_s for flow in summary.flows], default=0.0)
    return (first_s if _LATE * end_s < first_s < end_s else 0.0), end_s


def show_from(axes: Axes, begin_s: float, end_s: float) -> None:
    """Have the axes show a figure's time."""
    if begin_s == 0.0:
        axes.set_xlim(left=0.0)
        return
    margin_s = 0.03 * (end_s - begin_s)
    axes.set_xlim(begin_s - margin_s, end_s + margin_s)


def round_trip_s(summary: Summary, name: str | None = None) -> float:
    """Return the mean round trip of a flow, or the longest of any; 0 if none was measured."""
    means = [
        flow.rtt_ms.mean
        for flow in summary.flows
        if flow.rtt_ms.mean is not None and name in {None, flow.name}
    ]
    return max(means, default=0.0) / 1e3


def _goodput_row(series: Probes, summary: Summary, begin_s: float, end_s: float) -> _Row | None:
    # Of a table with very many flows, what they get together was recorded.
    groups_of = {group.name: group.flows for group in summary.groups if group.flows > 1}
    intervals_s = {
        name: found.interval_s
        for name in (*(flow.name for flow in summary.flows), *groups_of)
        if f"{name}.goodput" in series and (found := extent(parts(series, f"{name}.goodput")))
    }
    together = {name: flows for name, flows in groups_of.items() if name in intervals_s}
    recorded = [flow.name for flow in summary.flows if flow.name in intervals_s]
    known = len(recorded) + sum(together.values())
    if not known or end_s <= 0:
        return None
    interval_s = max(intervals_s.values())
    edges = round_trip_edges(
        end_s, round_trip_s=round_trip_s(summary), interval_s=interval_s, begin_s=begin_s
    )

    def rate(name: str) -> Floats:
        return mean_rate(parts(series, f"{name}.goodput"), edges)

    missing = len(summary.flows) - known
    lines = _few_lines({name: rate(name) for name in recorded}, missing=missing) if recorded else {}
    for name, flows in list(together.items())[: MOST_LINES - len(lines)]:
        lines[f"{name}, {flows:,} together"] = rate(name)
    highest = max(float(each.max()) for each in lines.values())
    scale, unit = rate_scale(highest)
    # A line of zeros is the axis: the legend says that it is there.
    lines = {
        label if each.any() else f"{label}: nothing delivered": each
        for label, each in lines.items()
    }

    def draw(axes: Axes) -> None:
        for (label, values), colour in zip(lines.items(), COLOURS, strict=False):
            draw_steps(axes, values / scale, edges, color=colour, label=label, linewidth=1.4)
        if any(flow.segments_retransmitted for flow in summary.flows):
            # More than the link's rate may then come in one interval.
            note = "in order: what waits for a lost packet counts when that is there"
            at = axes.transAxes
            axes.text(
                1.0,
                1.01,
                note,
                transform=at,
                ha="right",
                va="bottom",
                fontsize="x-small",
                color="0.4",
            )
        axes.set(ylabel=f"goodput ({unit})", ylim=(0.0, None if highest else 1.0))

    return draw


def _few_lines(rates: Mapping[str, Floats], *, missing: int) -> dict[str, Floats]:
    """Return a line for each flow; of too many, one for each group; of still too many, one."""
    if len(rates) <= MOST_LINES and not missing:
        return dict(rates)
    names = list(rates)
    together = groups(names)
    if len(together) > MOST_LINES:
        together = {"flows": list(range(len(names)))}
    lines = {}
    for group, places in together.items():
        total = np.sum([rates[names[place]] for place in places], axis=0)
        label = group if len(places) == 1 else f"{group}, {len(places):,} together"
        lines[label] = total
    if missing:
        lines = {f"{label} (of {len(names) + missing:,})": line for label, line in lines.items()}
    return lines


def _queue_row(series: Probes, summary: Summary, begin_s: float, end_s: float) -> _Row | None:
    peaks = {}
    for name in series:
        direction, _, quantity = name.rpartition(".")
        best = quantity == "queue_max" or (
            quantity == "queue" and f"{direction}.queue_max" not in series
        )
        if best and (known := extent(parts(series, name))) and known.highest >= SHORTEST_QUEUE:
            peaks[direction] = name
    if not peaks or end_s <= 0:
        return None
    edges = bin_edges(end_s, count=300, begin_s=begin_s)
    lines = {}
    dropping = set()
    for group, places in groups([link.name for link in summary.links]).items():
        members = [summary.links[place] for place in places]
        # Not everything of a large group was recorded, and not everything had a queue.
        shown = [peaks[link.name] for link in members if link.name in peaks]
        if not shown:
            continue
        label = group if len(members) == 1 else f"{group}, longest of {len(shown)}"
        if len(shown) < len(members):
            label += f" (of {len(members):,})"
        waited = [extreme_and_mean(parts(series, each), edges)[0] for each in shown]
        lines[label] = np.max(waited, axis=0)
        if any(link.packets_dropped for link in members):
            dropping.add(label)
    most = max((float(each.max()) for each in lines.values()), default=0.0)
    # A short queue beside a long one goes up and down until there is nothing but its colour.
    lines = {
        label: each
        for label, each in lines.items()
        if each.max() >= (0.01 if label in dropping else 0.05) * most
    }
    if not lines:
        return None
    longest = sorted(lines, key=lambda name: -float(lines[name].max()))[:MOST_LINES]

    def draw(axes: Axes) -> None:
        lowest = highest = 0.0
        for name, colour in zip(longest, COLOURS, strict=False):
            values = lines[name]
            draw_steps(axes, values, edges, color=colour, label=name, linewidth=1.4)
            lowest, highest = float(values.max()), max(highest, float(values.max()))
        # A queue of ten beside one of a thousand is a line on the axis.
        if lowest and highest > 30.0 * lowest:
            axes.set_yscale("symlog", linthresh=1.0)
        else:
            count_on_y(axes)
        axes.set(ylabel="longest queue\n(packets)", ylim=(0.0, None))

    return draw


def _loss_row(series: Probes, summary: Summary, end_s: float) -> _Row | None:
    lines = {}
    by_name = {link.name: link for link in summary.links}
    for quantity in ("lost", "dropped"):
        totals = {link.name: int(getattr(link, f"packets_{quantity}")) for link in summary.links}
        known = list(totals)
        for group, places in groups(known).items():
            names = [known[place] for place in places]
            recorded = [name for name in names if f"{name}.{quantity}" in series]
            together = _sum([outline(series, f"{name}.{quantity}") for name in recorded])
            if not len(together[1]) or together[1][-1] <= 0:
                continue
            several, count = "", f"{together[1][-1]:,.0f}"
            if len(recorded) < len(names):
                several = f", {len(recorded)} of {len(names):,}"
                count += f" of {sum(totals[name] for name in names):,}"
            elif len(names) > 1:
                several = f", {len(names)} together"
            said = (
                _lost_to([by_name[name] for name in names])
                if quantity == "lost"
                else "dropped by the queue"
            )
            lines[f"{group}{several}: {said} ({count})"] = together
    if not lines:
        return None
    most = sorted(lines, key=lambda label: -float(lines[label][1][-1]))[:MOST_LINES]

    def draw(axes: Axes) -> None:
        last = [float(lines[label][1][-1]) for label in most]
        for label, colour in zip(most, COLOURS, strict=False):
            times_s, values = lines[label]
            x = np.concatenate([[0.0], times_s, [end_s]])
            y = np.concatenate([[0.0], values, values[-1:]])
            axes.step(*thin_line(x, y), where="post", color=colour, label=label)
        if max(last) > 30.0 * min(last):
            axes.set_yscale("symlog", linthresh=1.0)
        else:
            count_on_y(axes)
        axes.set(ylabel="packets lost\nso far", ylim=(0.0, None))

    return draw


def _lost_to(links: Sequence[DirectionResult]) -> str:
    """Say what packets were lost to, what took the most first."""
    told = {
        "outages": sum(link.count("lost_to_outages") for link in links),
        "changes of the path": sum(link.count("lost_to_changes") for link in links),
    }
    told["errors"] = sum(link.packets_lost for link in links) - sum(told.values())
    causes = sorted((cause for cause in told if told[cause] > 0), key=lambda cause: -told[cause])
    if len(causes) > 1:
        causes = [f"{cause} ({told[cause]:,})" for cause in causes]
    *before, last = causes or ["errors"]
    return f"lost to {', '.join(before)}{' and ' if before else ''}{last}"


def _sum(counts: Sequence[Series]) -> tuple[Floats, Floats]:
    """Add up counts so far: at each time at which one of them was recorded, what all had then."""
    each = [(one.times_s, one.values) for one in counts if len(one.times_s)]
    if not each:
        return np.zeros(0), np.zeros(0)
    times_s = np.unique(np.concatenate([at_s for at_s, _ in each]))
    values = np.zeros(len(times_s))
    for at_s, so_far in each:
        before = np.searchsorted(at_s, times_s, side="right")
        values += np.concatenate([[0.0], so_far])[before]
    return times_s, values
