"""`bentpipe run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bentpipe.cli.output import made_folder, print_json
from bentpipe.results import RunResult
from bentpipe.results import run as simulate
from bentpipe.scenario import Scenario, parse_settings

if TYPE_CHECKING:
    from bentpipe.results import Summary


def run(
    *,
    file: str,
    seed: int | None,
    settings: Sequence[str],
    out: Path | None,
    pcap: Sequence[str],
    as_json: bool,
) -> None:
    """Simulate, write what was asked for, print the summary."""
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
        print("wrote " + ", ".join(str(path) for path in written))


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
    from rich.table import Table

    from bentpipe.cli.output import console
    from bentpipe.units import format_bytes, format_rate, format_seconds

    print(
        f"{summary.scenario}: {format_seconds(summary.duration_s)} simulated in "
        f"{format_seconds(summary.wall_s)}, {summary.packet_hops:,} packet-hops, "
        f"seed {summary.seed}"
    )
    flows = Table(title="Flows", title_justify="left")
    flows.add_column("flow")
    for heading in (
        *("delivered", "start", "finish", "goodput", "segments sent", "retransmitted"),
        *("timeouts", "fast recoveries", "round trip: min", "mean", "95%", "max"),
    ):
        flows.add_column(heading, justify="right")
    for flow in summary.flows:
        round_trips = (flow.rtt_ms.min, flow.rtt_ms.mean, flow.rtt_ms.p95, flow.rtt_ms.max)
        flows.add_row(
            flow.name,
            format_bytes(flow.bytes_delivered),
            format_seconds(flow.start_s),
            "unfinished" if flow.finish_s is None else format_seconds(flow.finish_s),
            format_rate(flow.goodput_bps),
            f"{flow.segments_sent:,}",
            f"{flow.segments_retransmitted:,}",
            f"{flow.timeouts:,}",
            f"{flow.fast_recoveries:,}",
            *(format_seconds(None if time is None else time / 1e3) for time in round_trips),
        )
    links = Table(title="Links", title_justify="left")
    links.add_column("direction")
    for heading in (
        *("utilization", "packets delivered", "lost", "dropped"),
        *("longest queue", "in bytes"),
    ):
        links.add_column(heading, justify="right")
    for link in summary.links:
        links.add_row(
            link.name,
            f"{link.utilization:.1%}",
            f"{link.packets_delivered:,}",
            f"{link.packets_lost:,}",
            f"{link.packets_dropped:,}",
            f"{link.queue_max_packets:,} packets",
            format_bytes(link.queue_max_bytes),
        )
    for table in (flows, links):
        if table.row_count:
            console().print(table)
