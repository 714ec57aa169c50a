"""Cost in time and memory by the number of users who share a satellite link.

    python3 benches/users.py [--runs 5] [--table FILE] [--figure FILE.svg]

The script runs scenarios/users.toml with 100 to 10,000 users, behind one drop-tail queue and behind
a fair queue. Each case is a whole process, and the cases take turns. The result of a case is the
least processor time of its runs (user and system), since the least is what the work takes even on a
busy machine, and the peak memory. The figure needs bentpipe's Python package for its style.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
WHOLE_RUN = ROOT / "target" / "release" / "whole-run"
SCENARIO = HERE / "scenarios" / "users.toml"
USERS = (100, 300, 1_000, 3_000, 10_000)
QUEUES = ("drop-tail", "fair")


@dataclass
class Cost:
    """Least cost of one case."""

    queue: str
    users: int
    hops: int = 0
    seconds: float = float("inf")
    peak_mib: float = float("inf")

    @property
    def hops_per_s(self) -> float:
        """Return packet-hops per second of processor time."""
        return self.hops / self.seconds


def run(cost: Cost) -> None:
    """Run one case once."""
    command = [
        str(WHOLE_RUN),
        str(SCENARIO),
        f"hosts.user.count={cost.users}",
        f"links.satellite.queue.kind={cost.queue}",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        output = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    hops = re.search(r"packet_hops (\d+)", output)
    if process.returncode != 0 or hops is None:
        sys.exit(f"{' '.join(command)}: {output}")
    cost.hops = int(hops[1])
    cost.seconds = min(cost.seconds, usage.ru_utime + usage.ru_stime)
    cost.peak_mib = min(cost.peak_mib, usage.ru_maxrss / 1024)


def table_of(costs: list[Cost]) -> str:
    """Return the costs as a table in Markdown."""
    lines = [
        "| users | queue | packet-hops | seconds | million hops a second | memory |",
        "|---|---|---|---|---|---|",
    ]
    lines += [
        f"| {cost.users:,} | {cost.queue} | {cost.hops / 1e6:.1f} million | {cost.seconds:.2f}"
        f" | {cost.hops_per_s / 1e6:.1f} | {cost.peak_mib:.0f} MiB |"
        for cost in costs
    ]
    return "\n".join(lines) + "\n"


def draw(figure: Figure, costs: list[Cost]) -> None:
    """Draw time per packet-hop and memory against users."""
    from bentpipe.plot.style import COLOURS, MARKERS, new_axes

    time, memory = new_axes(figure, columns=2)
    for number, queue in enumerate(QUEUES):
        of_queue = [cost for cost in costs if cost.queue == queue]
        users = [cost.users for cost in of_queue]
        look = {"color": COLOURS[number], "marker": MARKERS[number], "label": queue}
        time.plot(users, [1e9 / cost.hops_per_s for cost in of_queue], **look)
        memory.plot(users, [cost.peak_mib for cost in of_queue], **look)
    time.set(title="processor time per packet-hop", ylabel="ns", ylim=(0, None))
    memory.set(title="peak memory", ylabel="MiB", ylim=(0, None))
    for axes in (time, memory):
        axes.set(xlabel="users", xscale="log")
        axes.set_xticks(USERS, [f"{users:,}" for users in USERS])
        axes.minorticks_off()
    time.legend()


def main() -> None:
    """Measure all cases and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=5, help="of each case")
    parser.add_argument("--table", type=Path, help="the costs as a table in Markdown")
    parser.add_argument("--figure", type=Path, help="the costs as a figure (SVG)")
    arguments = parser.parse_args()
    if not WHOLE_RUN.exists():
        sys.exit(f"{WHOLE_RUN.relative_to(ROOT)} is missing: run `make bench`")
    costs = [Cost(queue, users) for queue in QUEUES for users in USERS]
    for _ in range(arguments.runs):
        for cost in costs:
            run(cost)
    table = table_of(costs)
    print(table, end="")
    if arguments.table is not None:
        arguments.table.write_text(table)
    if arguments.figure is not None:
        from bentpipe.plot.style import write_svg

        write_svg(lambda figure: draw(figure, costs), arguments.figure, width=8.4, height=3.6)


if __name__ == "__main__":
    main()
