"""Whole runs of bentpipe beside ns-2, on the same machine in the same minutes.

    python3 benches/compare.py [--runs 3] [--json FILE]

Each scenario is run by both, in turn, as whole processes. What is reported is the ratio of
delivered data packets per second of wall time, the median over the pairs, and peak memory. ns-2
runs twice: at its best (packets carry only the headers that TCP uses, which takes a line in the
script that few know of), and as it is out of the box.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WHOLE_RUN = ROOT / "target" / "release" / "whole-run"


@dataclass(frozen=True)
class Case:
    """One scenario, for both."""

    name: str
    scenario: str
    script: str
    options: tuple[str, ...]


CASES = (
    Case("bulk, one link", "bulk-1.toml", "bulk.tcl", ("links", "1")),
    Case("bulk, three links", "bulk-3.toml", "bulk.tcl", ("links", "3")),
    Case("100 NewReno flows", "fleet.toml", "fleet.tcl", ()),
)


@dataclass(frozen=True)
class Measurement:
    """One run of one process."""

    delivered: int
    wall_s: float
    peak_mib: float

    @property
    def rate(self) -> float:
        """Delivered data packets per second of wall time."""
        return self.delivered / self.wall_s


@dataclass(frozen=True)
class Row:
    """One scenario's medians."""

    name: str
    bentpipe_delivered: int
    ns2_delivered: int
    bentpipe_packets_per_s: float
    ns2_packets_per_s: float
    ns2_all_headers_packets_per_s: float
    ratio: float
    ratio_all_headers: float
    bentpipe_peak_mib: float
    ns2_peak_mib: float


def measure(command: list[str]) -> Measurement:
    """Run one process to its end; it prints `delivered N` among its key-value pairs."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - start
    if process.returncode != 0:
        sys.exit(f"{command[0]} failed: {output}")
    words = output.split()
    delivered = int(words[words.index("delivered") + 1])
    return Measurement(delivered=delivered, wall_s=wall_s, peak_mib=usage.ru_maxrss / 1024)


def compare(case: Case, runs: int) -> Row:
    """Run one scenario `runs` times each way, in turn."""
    ours = [str(WHOLE_RUN), str(HERE / "scenarios" / case.scenario)]
    best = ["ns", str(HERE / "witness" / case.script), *case.options]
    stock = [*best, "all_headers", "1"]
    measure(ours)  # the warm-up
    triples = [(measure(ours), measure(best), measure(stock)) for _ in range(runs)]

    def median(values: list[float]) -> float:
        return statistics.median(values)

    return Row(
        name=case.name,
        bentpipe_delivered=triples[0][0].delivered,
        ns2_delivered=triples[0][1].delivered,
        bentpipe_packets_per_s=median([a.rate for a, _, _ in triples]),
        ns2_packets_per_s=median([b.rate for _, b, _ in triples]),
        ns2_all_headers_packets_per_s=median([c.rate for _, _, c in triples]),
        ratio=median([a.rate / b.rate for a, b, _ in triples]),
        ratio_all_headers=median([a.rate / c.rate for a, _, c in triples]),
        bentpipe_peak_mib=median([a.peak_mib for a, _, _ in triples]),
        ns2_peak_mib=median([b.peak_mib for _, b, _ in triples]),
    )


def main() -> None:
    """Compare, and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    if shutil.which("ns") is None:
        print("skipped: ns-2 is not installed (Debian package ns2)")
        return
    if not WHOLE_RUN.exists():
        sys.exit(f"{WHOLE_RUN.relative_to(ROOT)} is missing: run `make bench`")
    rows = []
    print("delivered data packets per second of wall time; ns-2 at its best / out of the box")
    for case in CASES:
        row = compare(case, arguments.runs)
        rows.append(row)
        print(
            f"{row.name:>18}: bentpipe {row.bentpipe_packets_per_s / 1e6:6.2f} M/s"
            f"  ns-2 {row.ns2_packets_per_s / 1e6:5.2f}"
            f" / {row.ns2_all_headers_packets_per_s / 1e6:5.2f} M/s"
            f"  ratio {row.ratio:5.1f} / {row.ratio_all_headers:5.1f}"
            f"  delivered {row.bentpipe_delivered} and {row.ns2_delivered}"
            f"  peak {row.bentpipe_peak_mib:.0f} and {row.ns2_peak_mib:.0f} MiB",
            flush=True,
        )
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
