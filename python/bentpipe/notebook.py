"""HTML views and figures of results for notebooks."""

from __future__ import annotations

import io
import statistics
from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Final

from bentpipe.groups import apart
from bentpipe.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bentpipe.advice import Advice
    from bentpipe.prediction import Prediction
    from bentpipe.results import DirectionResult, FlowResult, RunResult
    from bentpipe.sweeps import SweepResult


# Rows of a table at most. In longer tables, the members of a `count` group share a row.
_MOST_ROWS: Final = 12
_MOST_POINTS: Final = 60


def text_of(result: RunResult) -> str:
    """Return one line: the scenario, its flows and their outcome."""
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
    """Return flows, groups and links as tables, and the overview figure if probes were recorded."""
    summary = result.summary
    ended_s = summary.extra.get("ended_s", summary.duration_s)
    head = f"{summary.scenario}, seed {summary.seed}: {format_seconds(ended_s)} simulated"
    flows, flow_groups = apart(summary.flows, most=_MOST_ROWS)
    links, link_groups = apart(summary.links, most=_MOST_ROWS)
    tables = [
        _table(_FLOW_HEADINGS, [_flow_cells(flow) for flow in flows], more_at="to_pandas()"),
        _table(
            _FLOW_GROUP_HEADINGS,
            [_flow_group_cells(name, members) for name, members in flow_groups.items()],
        ),
        _table(_LINK_HEADINGS, [_link_cells(link) for link in links], more_at="to_pandas()"),
        _table(
            _LINK_GROUP_HEADINGS,
            [_link_group_cells(name, members) for name, members in link_groups.items()],
        ),
    ]
    figure = _svg(figure_of(result)) if len(result.series) else ""
    return _view(head, *tables, figure)


def html_of_sweep(result: SweepResult) -> str:
    """Return the sweep's points as a table, and its figure if it has one to three axes."""
    from bentpipe.errors import RequestError

    points = result.points()
    axes = list(points[0].labels) if points else []
    rows = []
    for point in points:
        place = [point.labels[name] for name in axes] or [str(point.cells)]
        if point.goodput_bps is None or point.retransmitted is None:
            rows.append((*place, "failed", "", "", ""))
            continue
        goodput = point.goodput_bps
        quartiles = f"{format_rate(goodput.lower)} – {format_rate(goodput.upper)}"
        rows.append(
            (
                *place,
                format_rate(goodput.median),
                quartiles if point.cells > 1 else "",
                f"{point.retransmitted:.2%}",
                f"{point.finished_flows} of {point.flows}",
            )
        )
    headings = (*(axes or ["cells"]), "goodput", "quartiles", "retransmitted", "finished flows")
    table = _table(headings, rows, most=_MOST_POINTS, more_at="table and dataset")
    try:
        plots = any(point.goodput_bps for point in points)
        figure = _svg(result.plot(points=points)) if plots else ""
    except RequestError:
        figure = ""
    return _view(repr(result)[1:-1], table, figure)


def html_of_advice(advice: Advice) -> str:
    """Return the remedies as a table, the best first, and the figure."""
    seeds = f"seed {advice.seed}"
    if len(advice.seeds) > 1:
        seeds = f"seeds {advice.seeds[0]} to {advice.seeds[-1]}"
    head = f"{advice.scenario}, {seeds}: {format_rate(advice.goodput_bps)} as it is"
    rows = [
        (
            each.remedy.name,
            format_rate(each.goodput_bps),
            f"{each.gain - 1.0:+.0%}",
            _limit(each.limits),
            " ".join(f"{key}={value}" for key, value in each.remedy.settings),
        )
        for each in advice.remedies
    ]
    headings = ("remedy", "goodput", "gain", "then limited by", "settings")
    return _view(head, _table(headings, rows, more_at="remedies"), _svg(advice.plot()))


def html_of_prediction(prediction: Prediction) -> str:
    """Return the limits of each flow as a table, and the figure."""
    different = [flow for flow in prediction.flows if flow.like in {"", flow.name}]
    rows = [
        (
            flow.name,
            format_rate(flow.rates_bps[flow.lowest]),
            flow.lowest,
            " → ".join(flow.downlink),
            format_seconds(flow.round_trip_s),
            ", ".join(answer.name for answer in flow.models if answer.applies) or "none",
        )
        for flow in different
    ]
    headings = ("flow", "goodput", "lowest limit", "data", "round trip", "models that apply")
    table = _table(headings, rows, more_at="flows")
    return _view(f"{prediction.scenario}, predicted", table, _svg(prediction.plot()))


def figure_of(result: RunResult) -> Figure:
    """Return the overview as a matplotlib figure.

    Raises
    ------
    ValueError
        No probes were recorded, or none that the figure shows.
    """
    from bentpipe.plot.overview import overview_figure

    figure = overview_figure(result.series, result.summary)
    if figure is None:
        raise ValueError(
            "nothing to plot: this run recorded no goodput, queues or losses "
            "(run with default_probes=True, or name probes in the scenario)"
        )
    return figure


_FLOW_HEADINGS: Final = (
    *("flow", "goodput", "delivered", "outcome", "ended", "retransmitted", "mean RTT"),
    "limited by",
)


def _flow_cells(flow: FlowResult) -> tuple[str, ...]:
    mean = flow.rtt_ms.mean
    return (
        flow.name,
        format_rate(flow.goodput_bps),
        format_bytes(flow.bytes_delivered),
        flow.outcome,
        format_seconds(flow.ended_s),
        f"{flow.segments_retransmitted:,}",
        format_seconds(None if mean is None else mean / 1e3),
        _limit(flow.limits),
    )


_FLOW_GROUP_HEADINGS: Final = (
    *("group", "flows", "goodput: median", "least", "most", "delivered", "outcome"),
    *("retransmitted", "mean RTT"),
)


def _flow_group_cells(name: str, flows: Sequence[FlowResult]) -> tuple[str, ...]:
    goodputs = [flow.goodput_bps for flow in flows]
    outcomes = [flow.outcome for flow in flows]
    means = [flow.rtt_ms.mean for flow in flows if flow.rtt_ms.mean is not None]
    return (
        name,
        f"{len(flows):,}",
        *(format_rate(each) for each in _spread(goodputs)),
        format_bytes(sum(flow.bytes_delivered for flow in flows)),
        ", ".join(f"{outcomes.count(each):,} {each}" for each in dict.fromkeys(outcomes)),
        f"{sum(flow.segments_retransmitted for flow in flows):,}",
        format_seconds(statistics.fmean(means) / 1e3 if means else None),
    )


_LINK_HEADINGS: Final = ("link", "used", "delivered", "lost", "dropped", "longest queue")


def _link_cells(link: DirectionResult) -> tuple[str, ...]:
    return (
        link.name,
        f"{link.utilization:.1%}",
        f"{link.packets_delivered:,}",
        f"{link.packets_lost:,}",
        f"{link.packets_dropped:,}",
        f"{link.queue_max_packets:,} packets",
    )


_LINK_GROUP_HEADINGS: Final = (
    *("group", "links", "used: median", "least", "most", "delivered", "lost", "dropped"),
    "longest queue",
)


def _link_group_cells(name: str, links: Sequence[DirectionResult]) -> tuple[str, ...]:
    return (
        name,
        f"{len(links):,}",
        *(f"{each:.1%}" for each in _spread([link.utilization for link in links])),
        f"{sum(link.packets_delivered for link in links):,}",
        f"{sum(link.packets_lost for link in links):,}",
        f"{sum(link.packets_dropped for link in links):,}",
        f"{max(link.queue_max_packets for link in links):,} packets",
    )


def _spread(values: Sequence[float]) -> tuple[float, float, float]:
    return statistics.median(values), min(values), max(values)


def _limit(limits: Mapping[str, float]) -> str:
    return next((f"{name.replace('_', ' ')} {share:.0%}" for name, share in limits.items()), "–")


def _view(head: str, *parts: str) -> str:
    return f"<div><strong>{escape(head)}</strong>{''.join(parts)}</div>"


def _table(
    headings: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    most: int = _MOST_ROWS,
    more_at: str = "",
) -> str:
    """Return a table of at most `most` rows; `more_at` says where all rows are."""
    if not rows:
        return ""
    shown = rows[:most] if more_at else rows
    head = "".join(f"<th>{escape(each)}</th>" for each in headings)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in shown
    )
    more = len(rows) - len(shown)
    rest = f"<p>and {more:,} more: see {escape(more_at)}</p>" if more else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"


def _svg(figure: Figure) -> str:
    from bentpipe.plot.style import save_svg

    stream = io.StringIO()
    save_svg(figure, stream)
    text = stream.getvalue()
    # An XML declaration is not allowed within HTML.
    return text[text.index("<svg") :]
