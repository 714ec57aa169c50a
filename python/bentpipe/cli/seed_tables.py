"""Tables of the results of several seeds: the median and the range of each flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from bentpipe.application_metrics import opinion_scores_of, times_of
from bentpipe.cli.run_tables import apart
from bentpipe.cli.tables import Table
from bentpipe.seed_ranges import Range
from bentpipe.units import format_rate, format_seconds

if TYPE_CHECKING:
    from bentpipe.results import FlowResult, GroupResult
    from bentpipe.seed_ranges import SeedRuns

_Record = TypeVar("_Record", "FlowResult", "GroupResult")

_RANGE = ("median", "least", "most")


def print_seeds(runs: SeedRuns, *, everyone: bool = False) -> None:
    """Print the tables. With `everyone`, every flow has a row; else numbered flows share one."""
    summaries = runs.summaries
    first = summaries[0]
    last_seed = runs.seeds[-1]
    print(
        f"{first.scenario}: {format_seconds(first.duration_s)}, {len(runs.seeds)} seeds "
        f"from {runs.seeds[0]} to {last_seed}"
    )
    print()
    flows, crowds = apart(first.flows, everyone=everyone)
    table = Table(
        headings=("flow", "goodput: median", *_RANGE[1:], "finished", "time: median", *_RANGE[1:])
    )
    names = [flow.name for flow in flows]
    alone = {name: [_named(each.flows, name) for each in summaries] for name in names}
    for name, members in alone.items():
        finished = sum(flow.outcome == "finished" for flow in members)
        times = (
            None if each.finish_s is None else each.finish_s - each.start_s for each in members
        )
        table.add(
            name,
            *_cells((each.goodput_bps for each in members), format_rate),
            f"{finished} of {len(members)}",
            *_cells(times, format_seconds),
        )
    together = {name: [_named(each.groups, name) for each in summaries] for name in crowds}
    for name, groups in together.items():
        shares = [each.outcomes.get("finished", 0) for each in groups]
        least, most = min(shares), max(shares)
        table.add(
            f"{name} (together)",
            *_cells((each.goodput_bps for each in groups), format_rate),
            f"{least} to {most} of {groups[0].flows}",
            *("–" for _ in _RANGE),
        )
    table.print()
    told = [(name, [each.extra for each in groups]) for name, groups in together.items()]
    told += [(name, [each.extra for each in members]) for name, members in alone.items()]
    applications = _application_table(told)
    if applications.rows:
        print()
        applications.print()


def _named(records: Sequence[_Record], name: str) -> _Record:
    return next(each for each in records if each.name == name)


def _cells(values: Iterable[float | None], write: Callable[[float], str]) -> tuple[str, ...]:
    found = Range.of(values)
    if found is None:
        return tuple("–" for _ in _RANGE)
    return tuple(write(each) for each in (found.median, found.least, found.most))


def _application_table(told: Sequence[tuple[str, Sequence[Any]]]) -> Table:
    """Return the application metrics: ranges of the runs' medians and of their 95% quantiles."""
    table = Table(
        headings=("flow", "what", "median: median", *_RANGE[1:], "95%: median", *_RANGE[1:])
    )
    for name, runs in told:
        by_what: dict[str, list[Any]] = {}
        for extra in runs:
            for what, _, times in times_of(extra):
                by_what.setdefault(what, []).append(times)
        for what, each in by_what.items():
            cells = [_milliseconds(each, quantile) for quantile in ("p50", "p95")]
            table.add(name, what, *cells[0], *cells[1])
        by_what = {}
        for extra in runs:
            for what, _, scores in opinion_scores_of(extra):
                by_what.setdefault(what, []).append(scores)
        for what, each in by_what.items():
            cells = [_scores(each, quantile) for quantile in ("p50", "p95")]
            table.add(name, what, *cells[0], *cells[1])
    return table


def _milliseconds(times: Sequence[Any], quantile: str) -> tuple[str, ...]:
    values = (each.get(quantile) for each in times)
    return _cells((None if each is None else each / 1e3 for each in values), format_seconds)


def _scores(scores: Sequence[Any], quantile: str) -> tuple[str, ...]:
    return _cells((each.get(quantile) for each in scores), "{:.2f}".format)
