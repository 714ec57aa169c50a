"""`bentpipe compare`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bentpipe.cli.emulate import become_root
from bentpipe.cli.output import check_plot, print_json
from bentpipe.cli.progress import run_progress
from bentpipe.cli.source import find_scenario, told_apart
from bentpipe.cli.tables import Table
from bentpipe.comparison import Comparison, predicted_goodput
from bentpipe.comparison import compare as compare_scenario
from bentpipe.units import format_rate, format_seconds


def compare(
    *,
    file: str,
    seed: int | None,
    settings: Sequence[str],
    plot: Path | None,
    as_json: bool,
) -> None:
    """Predict, simulate, emulate; print one table."""
    if plot is not None:
        check_plot(plot)
    scenario = find_scenario(file, settings)
    become_root()
    with told_apart(scenario, command="compare"), run_progress() as progress:
        comparison = compare_scenario(scenario, seed=seed, progress=progress)
    for note in comparison.emulated.notes:
        print(f"bentpipe: {note}", file=sys.stderr)
    if plot is not None:
        from bentpipe.plot.comparison_plot import write_comparison_plot

        write_comparison_plot(comparison, plot)
    if as_json:
        print_json(comparison.to_data())
        return
    _print(comparison)
    if plot is not None:
        print(f"\nwrote {plot}")


def _print(comparison: Comparison) -> None:
    goodputs = ("predicted", "simulated", "emulated", "difference")
    times = ("simulated", "emulated", "difference")
    table = Table(headings=("flow", "goodput:", *goodputs, "time:", *times))
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
            "",
            f"≤ {format_rate(predicted_goodput(predicted))}",
            format_rate(ours.goodput_bps),
            format_rate(real.goodput_bps),
            _percent(difference.goodput),
            "",
            *(
                format_seconds(None if each.finish_s is None else each.finish_s - each.start_s)
                for each in (ours, real)
            ),
            _percent(difference.transfer_time),
        )
    table.print()


def _percent(share: float | None) -> str:
    return "–" if share is None else f"{share:+.1%}"
