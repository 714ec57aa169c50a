"""What a notebook shows of a result: tables and the overview."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from bentpipe.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bentpipe.results import FlowResult, RunResult

# A notebook that scrolls for a screen is no summary.
_MOST_ROWS: Final = 12


def text_of(result: RunResult) -> str:
    """Return one line: what ran, what came of it."""
    summary = result.summary
    flows = summary.flows
    ended_s = summary.extra.get("ended_s", summary.duration_s)
    said = f"{len(flows):,} flows"
    if len(flows) == 1:
        said = f"{flows[0].name} {flows[0].outcome} at {format_rate(flows[0].goodput_bps)}"
    return (
        f"<RunResult {summary.scenario}, seed {summary.seed}: {said}, "
        f"{format_seconds(ended_s)} simulated>"
    )


def html_of(result: RunResult) -> str:
    """Return the flows and links as tables, and the overview if probes were recorded."""
    summary = result.summary
    ended_s = summary.extra.get("ended_s", summary.duration_s)
    head = f"{summary.scenario}, seed {summary.seed}: {format_seconds(ended_s)} simulated"
    flows = _table(
        (
            "flow",
            "goodput",
            "delivered",
            "outcome",
            "ended",
            "sent again",
            "mean RTT",
            "limited by",
        ),
        [_flow_cells(flow) for flow in summary.flows[:_MOST_ROWS]],
        more=len(summary.flows) - _MOST_ROWS,
    )
    links = _table(
        ("link", "used", "delivered", "lost", "dropped", "longest queue"),
        [
            (
                link.name,
                f"{link.utilization:.1%}",
                f"{link.packets_delivered:,}",
                f"{link.packets_lost:,}",
                f"{link.packets_dropped:,}",
                f"{link.queue_max_packets:,} packets",
            )
            for link in summary.links[:_MOST_ROWS]
        ],
        more=len(summary.links) - _MOST_ROWS,
    )
    return f"<div><strong>{escape(head)}</strong>{flows}{links}{_svg(result)}</div>"


def _flow_cells(flow: FlowResult) -> tuple[str, ...]:
    limit = next(
        (f"{name.replace('_', ' ')} {share:.0%}" for name, share in flow.limits.items()), "–"
    )
    mean = flow.rtt_ms.mean
    return (
        flow.name,
        format_rate(flow.goodput_bps),
        format_bytes(flow.bytes_delivered),
        flow.outcome,
        format_seconds(flow.ended_s),
        f"{flow.segments_retransmitted:,}",
        format_seconds(None if mean is None else mean / 1e3),
        limit,
    )


def _table(headings: Sequence[str], rows: Sequence[Sequence[str]], *, more: int) -> str:
    if not rows:
        return ""
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    rest = f"<p>and {more:,} more: to_pandas() has all</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _svg(result: RunResult) -> str:
    if not len(result.series):
        return ""
    stream = io.StringIO()
    from bentpipe.plot.style import save_svg

    save_svg(figure_of(result), stream)
    text = stream.getvalue()
    # Within HTML there is no XML declaration.
    return text[text.index("<svg") :]


def figure_of(result: RunResult) -> Figure:
    """Return the overview as a matplotlib figure.

    Raises
    ------
    ValueError
        No probes were recorded, or nothing that the figure shows.
    """
    from bentpipe.plot.overview import overview_figure

    figure = overview_figure(result.series, result.summary)
    if figure is None:
        raise ValueError(
            "nothing to plot: this run recorded no goodput, queues or losses "
            "(run with default_probes=True, or name probes in the scenario)"
        )
    return figure
