"""`bentpipe compare`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bentpipe.cli.emulate import become_root
from bentpipe.cli.output import WriteErrors, check_plot, print_json
from bentpipe.cli.progress import run_progress
from bentpipe.cli.run_tables import apart
from bentpipe.cli.source import execute_files, find_scenario, told_apart
from bentpipe.cli.tables import Table
from bentpipe.comparison import ApplicationMetric, Comparison, MetricPair, predicted_goodput
from bentpipe.comparison import compare as compare_scenario
from bentpipe.units import format_rate, format_seconds

if TYPE_CHECKING:
    from bentpipe.prediction.predictions import FlowPrediction


def compare(
    *,
    file: str,
    seed: int | None,
    seeds: int = 10,
    settings: Sequence[str],
    plot: Path | None,
    python: Sequence[Path],
    as_json: bool,
) -> None:
    """Predict, simulate, emulate; print one table."""
    if plot is not None:
        check_plot(plot)
    # It may start this process anew.
    become_root()
    execute_files(python)
    scenario = find_scenario(file, settings)
    with told_apart(scenario, command="compare"), run_progress() as progress:
        comparison = compare_scenario(scenario, seed=seed, seeds=seeds, progress=progress)
    for note in comparison.emulated.notes:
        print(f"bentpipe: {note}", file=sys.stderr)
    errors = WriteErrors()
    if plot is not None:
        from bentpipe.plot.comparison_plot import write_comparison_plot

        with errors.kept(plot):
            write_comparison_plot(comparison, plot)
    if as_json:
        print_json(comparison.to_data())
    else:
        _print(comparison)
        if plot is not None and errors.first is None:
            print(f"\nwrote {plot}")
    errors.raise_first()


def _print(comparison: Comparison) -> None:
    compared = (": emulated", ": difference")
    goodputs = ("goodput: predicted", ": simulated", *compared)
    table = Table(headings=("flow", *goodputs, "time: simulated", *compared))
    flows = zip(
        comparison.predicted.flows,
        comparison.simulated.summary.flows,
        comparison.emulated.summary.flows,
        strict=True,
    )
    differences = comparison.differences
    for predicted, ours, real in flows:
        difference = differences[ours.name]
        table.add(
            ours.name,
            _predicted(predicted),
            format_rate(ours.goodput_bps),
            format_rate(real.goodput_bps),
            _percent(difference.goodput),
            *(
                format_seconds(None if each.finish_s is None else each.finish_s - each.start_s)
                for each in (ours, real)
            ),
            _percent(difference.transfer_time),
        )
    table.print()
    if (ranges := _range_table(comparison)).rows:
        print()
        ranges.print()
    if (told := _application_table(comparison)) is not None:
        print()
        told.print()


def _range_table(comparison: Comparison) -> Table:
    """Return the simulated range of the flows whose goodput differs by much from seed to seed."""
    runs = comparison.over_seeds
    count = 0 if runs is None else len(runs.seeds)
    headings = (f"{count} seeds", "simulated: least", "median", "most", "emulated", "in the range")
    table = Table(headings=headings)
    for name, each in comparison.ranges.items():
        if not each.goodput_bps.is_wide:
            continue
        found = each.goodput_bps
        table.add(
            name,
            *(format_rate(value) for value in (found.least, found.median, found.most)),
            format_rate(each.emulated_bps),
            "yes" if each.contains_emulated else "no",
        )
    return table


def _predicted(flow: FlowPrediction) -> str:
    """Write the predicted goodput: the lowest estimate (≈), or the lowest limit (≤)."""
    estimate = flow.estimates_bps.get(flow.lowest)
    if estimate is not None:
        return f"≈ {format_rate(estimate)}"
    return f"≤ {format_rate(predicted_goodput(flow))}"


def _application_table(comparison: Comparison) -> Table | None:
    """Return the metrics of applications on both clocks, by flow, or by group of many flows."""
    alone, crowds = apart(comparison.simulated.summary.flows, everyone=False)
    differences, groups = comparison.differences, comparison.groups
    told = [(name, each) for name in crowds for each in groups.get(name, ())]
    told += [(flow.name, each) for flow in alone for each in differences[flow.name].application]
    if not told:
        return None
    compared = (": emulated", ": difference")
    quantiles = ("median: simulated", *compared, "95%: simulated", *compared)
    table = Table(headings=("flow", "what", "number: simulated", ": emulated", *quantiles))
    for name, each in told:
        sides = (each.simulated, each.emulated)
        table.add(
            name,
            each.what,
            *(_number(side) for side in sides),
            *_compared(each, "p50"),
            *_compared(each, "p95"),
        )
    return table


def _number(side: ApplicationMetric) -> str:
    return f"{side.count:,}" if side.count == side.begun else f"{side.count:,} of {side.begun:,}"


def _compared(told: MetricPair, quantile: str) -> tuple[str, ...]:
    values = [side.quantiles[quantile] for side in (told.simulated, told.emulated)]
    if told.unit == "ms":
        cells = [format_seconds(None if each is None else each / 1e3) for each in values]
    else:
        cells = ["–" if each is None else f"{each:.2f}" for each in values]
    return *cells, _percent(told.difference[quantile])


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:+.1%}"
