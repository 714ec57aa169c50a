"""Instructions per delivered packet: the same on a busy machine as on an idle one.

    python3 benches/work.py [--record]

The script runs the scenarios of compare.py, and some more, shortened, under callgrind (Debian
package valgrind). work.json holds the counts of the last record and its compiler. If a case takes
over 5% more, the script says so and exits with status 1. A change that is meant to cost more has to
record new counts, with the reason in the commit.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WHOLE_RUN = ROOT / "target" / "release" / "whole-run"
RECORD = HERE / "work.json"
TOLERANCE = 0.05

# Scenario and simulated seconds: ten thousand packets or more, so that reading the file counts
# little. The cases beyond those of compare.py cover code that vanzara2014 spends most of its time
# in, and flows with few settings, whose buffers grow.
CASES = {
    "bulk-1": 20,
    "bulk-3": 20,
    "fleet": 20,
    "hybla-0": 20,
    "hybla-1e-6": 60,
    "hybla-1e-5": 120,
    "bbr1": 40,
    "bbr3": 60,
    "overflow": 10,
    "default": 60,
    "linux": 60,
    "grown": 30,
}


@dataclass(frozen=True)
class Work:
    """Counts of one case."""

    case: str
    instructions: int
    delivered: int

    @property
    def per_packet(self) -> float:
        """Return instructions per delivered data packet."""
        return self.instructions / self.delivered


def missing() -> str | None:
    """Return the reason if instructions cannot be counted here."""
    if shutil.which("valgrind") is None:
        return "valgrind is not installed (Debian package valgrind)"
    if not WHOLE_RUN.exists():
        return f"{WHOLE_RUN.relative_to(ROOT)} is missing: run `make bench`"
    sources = [*ROOT.glob("crates/*/src/**/*.rs"), ROOT / "Cargo.lock"]
    if max(each.stat().st_mtime for each in sources) > WHOLE_RUN.stat().st_mtime:
        return f"{WHOLE_RUN.relative_to(ROOT)} is older than its sources: run `make bench`"
    return None


def compiler() -> str:
    """Return the compiler's version, since another compiler generates other instructions."""
    version = subprocess.run(["rustc", "--version"], capture_output=True, text=True, check=True)
    return version.stdout.split()[1]


def count(case: str) -> Work:
    """Run one case under callgrind."""
    with tempfile.TemporaryDirectory() as folder:
        command = [
            "valgrind",
            "--tool=callgrind",
            f"--callgrind-out-file={folder}/callgrind.out",
            str(WHOLE_RUN),
            str(HERE / "scenarios" / f"{case}.toml"),
            f"duration={CASES[case]} s",
        ]
        run = subprocess.run(command, capture_output=True, text=True, check=True)
    collected = re.search(r"Collected : (\d+)", run.stderr)
    delivered = re.search(r"delivered (\d+)", run.stdout)
    if collected is None or delivered is None:
        sys.exit(f"callgrind says nothing of {case}: {run.stdout}{run.stderr}")
    return Work(case, int(collected[1]), int(delivered[1]))


def recorded() -> tuple[str, dict[str, float]]:
    """Return the compiler of the record, and instructions per delivered packet by case."""
    record = json.loads(RECORD.read_text())
    return record["rustc"], record["instructions_per_delivered_packet"]


def main() -> None:
    """Count the instructions of all cases and compare with the record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--record", action="store_true", help="this is what it may take from now on"
    )
    arguments = parser.parse_args()
    reason = missing()
    if reason is not None:
        print(f"skipped: {reason}")
        return
    before = recorded()[1] if RECORD.exists() else {}
    now = {}
    dearer = []
    for case in CASES:
        work = count(case)
        now[case] = round(work.per_packet, 1)
        change = now[case] / before[case] - 1 if case in before else 0.0
        if change > TOLERANCE:
            dearer.append(case)
        print(f"{case:>10}: {now[case]:7.1f} instructions per delivered packet, {change:+.1%}")
    if arguments.record:
        record = {"rustc": compiler(), "instructions_per_delivered_packet": now}
        RECORD.write_text(json.dumps(record, indent=2) + "\n")
    elif dearer:
        sys.exit(f"more than {TOLERANCE:.0%} dearer than work.json: {', '.join(dearer)}")


if __name__ == "__main__":
    main()
