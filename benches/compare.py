"""Speed of bentpipe compared to ns-2 and ns-3, in whole runs on the same machine at the same time.

    python3 benches/compare.py [--runs 3] [--json FILE] [--table FILE]

Each program runs each scenario, in turn, as a whole process. Runs are long enough that starting
takes less than 1% of the time; a line on stderr reports exceptions. The result is the ratio of
delivered data packets per second of processor time, as the median over the pairs, and peak memory.
Each program has one thread, so that processor time equals wall time on an idle machine; on a busy
machine, wall time says nothing.

ns-2 runs twice: at its best and as installed. At its best, packets carry only the headers that TCP
uses, which needs a little-known line in the script. ns-3 is so slow that it simulates less time. It
runs once, by wall time, for the scenarios that it can run (witness/ns3.py lists the exceptions).
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "witness"))

import ns3  # noqa: E402  (a sibling script, not a package)

Program = Literal["ns3_bulk", "ns3_fleet"]
ROOT = HERE.parent
WHOLE_RUN = ROOT / "target" / "release" / "whole-run"


@dataclass(frozen=True)
class Case:
    """One scenario for all programs, with its simulated seconds."""

    name: str
    scenario: str
    duration_s: int
    script: str
    options: tuple[str, ...]
    has_all_headers: bool = True
    ns3: tuple[Program, dict[str, float]] | None = None


# Largest share of a run's processor time that starting may take.
STARTING = 0.01

HYBLA = ("slow_start_threshold", "5000", "report_every_s", "100", "bit_error_rate")
CASES = (
    Case("bulk, one link", "bulk-1.toml", 3000, "bulk.tcl", ("links", "1")),
    Case("bulk, three links", "bulk-3.toml", 1500, "bulk.tcl", ("links", "3")),
    Case(
        "100 NewReno flows",
        "fleet.toml",
        800,
        "fleet.tcl",
        (),
        ns3=("ns3_fleet", {"duration_s": 30}),
    ),
    Case(
        "Hybla, no errors",
        "hybla-0.toml",
        2400,
        "vanzara2014.tcl",
        (*HYBLA, "0"),
        has_all_headers=False,
        ns3=("ns3_bulk", {"duration_s": 30}),
    ),
    Case(
        "Hybla, BER 1e-6",
        "hybla-1e-6.toml",
        48_000,
        "vanzara2014.tcl",
        (*HYBLA, "1e-6"),
        has_all_headers=False,
        ns3=("ns3_bulk", {"duration_s": 600, "bit_error_rate": 1e-6}),
    ),
    Case(
        "Hybla, BER 1e-5",
        "hybla-1e-5.toml",
        200_000,
        "vanzara2014.tcl",
        (*HYBLA, "1e-5"),
        has_all_headers=False,
    ),
)


@dataclass(frozen=True)
class Measurement:
    """One run of one process."""

    delivered: int
    processor_s: float
    peak_mib: float

    @property
    def rate(self) -> float:
        """Return delivered data packets per second of processor time."""
        return self.delivered / self.processor_s


@dataclass(frozen=True)
class Row:
    """Medians of one scenario."""

    name: str
    bentpipe_delivered: int
    ns2_delivered: int
    bentpipe_packets_per_s: float
    ns2_packets_per_s: float
    ns2_all_headers_packets_per_s: float | None
    ns3_packets_per_s: float | None
    ratio: float
    ratio_all_headers: float | None
    ratio_ns3: float | None
    bentpipe_peak_mib: float
    ns2_peak_mib: float
    # Share of processor time that starting takes, the larger of bentpipe's and ns-2's.
    starting: float


def measure(command: list[str]) -> Measurement:
    """Run one process to its end. It prints `delivered N` among its key-value pairs."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed: {output}")
    words = output.split()
    key = "delivered" if "delivered" in words else "delivered_packets"
    # ns-2 may report more than once; the last report is the total.
    position = len(words) - 1 - words[::-1].index(key)
    return Measurement(
        delivered=int(words[position + 1]),
        processor_s=usage.ru_utime + usage.ru_stime,
        peak_mib=usage.ru_maxrss / 1024,
    )


def starts() -> tuple[Measurement, Measurement]:
    """Run both programs for a simulated millisecond, to measure their start."""
    ours = [str(WHOLE_RUN), str(HERE / "scenarios" / "bulk-1.toml"), "duration=1 ms"]
    theirs = ["ns", str(HERE / "witness" / "bulk.tcl"), "links", "1", "duration_s", "0.001"]
    return measure(ours), measure(theirs)


def compare(case: Case, runs: int, programs: dict[Program, Path]) -> Row:
    """Run one scenario `runs` times with each program, in turn."""
    scenario = str(HERE / "scenarios" / case.scenario)
    script = str(HERE / "witness" / case.script)
    ours = [str(WHOLE_RUN), scenario, f"duration={case.duration_s} s"]
    best = ["ns", script, *case.options, "duration_s", str(case.duration_s)]
    stock = [*best, "all_headers", "1"]
    measure(ours)  # the warm-up
    pairs = [(measure(ours), measure(best)) for _ in range(runs)]
    # The largest share over the runs of each pair.
    starting = max(
        start.processor_s / run.processor_s
        for pair in pairs
        for start, run in zip(starts(), pair, strict=True)
    )
    if starting > STARTING:
        print(f"{case.name}: starting is {starting:.1%} of a run", file=sys.stderr)
    rate = statistics.median(a.rate for a, _ in pairs)
    stock_rate = measure(stock).rate if case.has_all_headers else None
    ns3_rate = None
    if case.ns3 is not None and case.ns3[0] in programs:
        program, options = case.ns3
        run = ns3.run(program, executable=programs[program], limit_s=900.0, **options)
        ns3_rate = run.delivered / run.wall_s
    return Row(
        name=case.name,
        bentpipe_delivered=pairs[0][0].delivered,
        ns2_delivered=pairs[0][1].delivered,
        bentpipe_packets_per_s=rate,
        ns2_packets_per_s=statistics.median(b.rate for _, b in pairs),
        ns2_all_headers_packets_per_s=stock_rate,
        ns3_packets_per_s=ns3_rate,
        ratio=statistics.median(a.rate / b.rate for a, b in pairs),
        ratio_all_headers=rate / stock_rate if stock_rate else None,
        ratio_ns3=rate / ns3_rate if ns3_rate else None,
        bentpipe_peak_mib=statistics.median(a.peak_mib for a, _ in pairs),
        ns2_peak_mib=statistics.median(b.peak_mib for _, b in pairs),
        starting=starting,
    )


def line_of(row: Row) -> str:
    """Return one row as a line of the table."""

    def against(what: str, rate: float | None, ratio: float | None) -> str:
        if rate is None or ratio is None:
            return f"{what} -"
        return f"{what} {rate / 1e6:.3g} M/s ({ratio:.3g}x)"

    return (
        f"{row.name:>18}: bentpipe {row.bentpipe_packets_per_s / 1e6:5.2f} M/s;"
        f" {against('ns-2', row.ns2_packets_per_s, row.ratio)};"
        f" {against('as installed', row.ns2_all_headers_packets_per_s, row.ratio_all_headers)};"
        f" {against('ns-3', row.ns3_packets_per_s, row.ratio_ns3)};"
        f" delivered {row.bentpipe_delivered} and {row.ns2_delivered};"
        f" peak {row.bentpipe_peak_mib:.0f} and {row.ns2_peak_mib:.0f} MiB"
    )


def table_of(rows: list[Row]) -> str:
    """Return the rows as a table in Markdown."""

    def cell(ratio: float | None) -> str:
        return "-" if ratio is None else f"{ratio:.1f}" if ratio < 10 else f"{ratio:.0f}"

    lines = [
        "| scenario | packets a second | ns-2 at best | ns-2 as installed | ns-3 | peak memory |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {row.name} | {row.bentpipe_packets_per_s / 1e6:.2f} million | {cell(row.ratio)}"
        f" | {cell(row.ratio_all_headers)} | {cell(row.ratio_ns3)}"
        f" | {row.bentpipe_peak_mib:.0f} MiB, {row.ns2_peak_mib:.0f} MiB |"
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Compare the programs and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--table", type=Path, help="the rows as a table in Markdown")
    arguments = parser.parse_args()
    if shutil.which("ns") is None:
        print("skipped: ns-2 is not installed (Debian package ns2)")
        return
    if not WHOLE_RUN.exists():
        sys.exit(f"{WHOLE_RUN.relative_to(ROOT)} is missing: run `make bench`")
    rows = []
    print("delivered data packets per second of processor time")
    with tempfile.TemporaryDirectory() as folder:
        programs: dict[Program, Path] = {}
        if ns3.available():
            programs = {each: ns3.build(each, Path(folder)) for each in ns3.PROGRAMS}
        else:
            print("skipped: ns-3 is not installed (Debian package libns3-dev)")
        for case in CASES:
            row = compare(case, arguments.runs, programs)
            rows.append(row)
            print(line_of(row), flush=True)
    if arguments.table:
        arguments.table.write_text(table_of(rows))
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
