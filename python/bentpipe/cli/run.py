"""`bentpipe run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bentpipe.cli.output import console, made_folder, new_table, print_json
from bentpipe.errors import RequestError
from bentpipe.results import RunResult
from bentpipe.results import run as simulate
from bentpipe.scenario import Scenario, parse_settings
from bentpipe.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from rich.table import Table

    from bentpipe.results import DirectionResult, FlowResult, Summary

# Flows beside each other; more than that go below each other.
MOST_COLUMNS = 4


def run(
    *,
    file: str,
    seed: int | None,
    settings: Sequence[str],
    out: Path | None,
    pcap: Sequence[str],
    python: Sequence[Path],
    as_json: bool,
) -> None:
    """Simulate, write what was asked for, print the summary."""
    for path in python:
        execute_file(path)
    scenario = Scenario.find(file).with_settings(parse_settings(settings))
    # Before the run: nobody should wait for a result that has no place to go.
    folder = made_folder(out) if out is not None else None
    captures = [(link, (folder or Path()) / f"{link}.pcapng") for link in pcap]
    result = simulate(scenario, seed=seed, pcap=captures, default_probes=folder is not None)

    written = [path for _, path in captures]
    if folder is not None:
        written = _write(result, folder) + written
    if as_json:
        print_json(result.summary_json)
        return
    print_summary(result.summary)
    if written:
        print("wrote")
        for path in written:
            print(f"  {path}")


def execute_file(path: Path) -> None:
    """Run a Python file for what it registers."""
    import runpy

    try:
        runpy.run_path(str(path))
    except (OSError, RequestError):
        raise
    except Exception as error:
        raise RequestError(f"--python {path}: {type(error).__name__}: {error}") from error


def _write(result: RunResult, folder: Path) -> list[Path]:
    from bentpipe.plot import write_run_plots

    summary = folder / "summary.json"
    summary.write_text(result.summary_json.rstrip() + "\n", encoding="utf-8")
    probes = folder / "probes.parquet"
    result.write_parquet(probes)
    plots, left_out = write_run_plots(result.series, folder)
    if left_out:
        print(
            f"bentpipe: no plots of {left_out} more flows and links; the samples are in {probes}",
            file=sys.stderr,
        )
    return [summary, probes, *plots]


def print_summary(summary: Summary) -> None:
    """Print the tables that a person reads."""
    ended_s = summary.extra.get("ended_s", summary.duration_s)
    print(
        f"{summary.scenario}: {format_seconds(ended_s)} simulated in "
        f"{format_seconds(summary.wall_s)}, {summary.packet_hops:,} packet-hops, "
        f"seed {summary.seed}"
    )
    if summary.flows:
        console().print(_flow_table(summary.flows))
    if summary.links:
        console().print(_link_table(summary.links))


def _flow_table(flows: Sequence[FlowResult]) -> Table:
    """Return a few flows as columns, which fit a terminal; many as rows."""
    cells = [_flow_cells(flow) for flow in flows]
    if len(flows) <= MOST_COLUMNS:
        table = new_table("flow", *(flow.name for flow in flows))
        for quantity in cells[0]:
            table.add_row(quantity, *(each[quantity] for each in cells))
        return table
    table = new_table("flow", *cells[0])
    for flow, each in zip(flows, cells, strict=True):
        table.add_row(flow.name, *each.values())
    return table


def _flow_cells(flow: FlowResult) -> dict[str, str]:
    rtt = flow.rtt_ms
    round_trips = [None if each is None else each / 1e3 for each in (rtt.min, rtt.mean, rtt.p95)]
    shortest, mean, p95 = (format_seconds(each) for each in round_trips)
    return {
        "delivered": format_bytes(flow.bytes_delivered),
        "start": format_seconds(flow.start_s),
        "outcome": flow.outcome,
        "ended": "–" if flow.ended_s is None else format_seconds(flow.ended_s),
        "goodput": format_rate(flow.goodput_bps),
        "segments sent": f"{flow.segments_sent:,}",
        "retransmitted": f"{flow.segments_retransmitted:,}",
        "timeouts": f"{flow.timeouts:,}",
        "fast recoveries": f"{flow.fast_recoveries:,}",
        "shortest round trip": shortest,
        "mean": mean,
        "95%": p95,
    }


def _link_table(links: Sequence[DirectionResult]) -> Table:
    table = new_table("link", "used", "delivered", "lost", "dropped", "longest queue")
    for link in links:
        queue = f"{link.queue_max_packets:,} packets, {format_bytes(link.queue_max_bytes)}"
        table.add_row(
            link.name,
            f"{link.utilization:.1%}",
            f"{link.packets_delivered:,}",
            f"{link.packets_lost:,}",
            f"{link.packets_dropped:,}",
            queue if link.queue_max_packets else "none",
        )
    return table
