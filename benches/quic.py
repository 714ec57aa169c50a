"""Packets per second of processor time over QUIC, and memory per connection.

    .venv/bin/python benches/quic.py [--runs 3] [--table FILE]

The script runs scenarios/quic.toml with the installed module: 1 GB on one link, and many clients
with a small answer each, whose connections stay open. Each case is a process of its own, and the
cases take turns. The result of a case is the least processor time of its runs, since the least is
what the work takes even on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

SCENARIO: Final = Path(__file__).resolve().parent / "scenarios" / "quic.toml"
APP: Final = "flows.load.app.transport"
# Each client asks once, and the run ends while the connections are open.
CONNECTIONS: Final = 2_000
OPEN: Final[dict[str, str]] = {
    "duration": "20 s",
    "links.satellite.rate": "1 Gbit/s",
    "flows.load.app": '{ kind = "request-response", response = "5 kB", requests = 2, '
    'pause = "60 s" }',
}


@dataclass
class Case:
    """A case and its least cost."""

    name: str
    settings: dict[str, str]
    packets: int = 0
    seconds: float = float("inf")
    peak_bytes: float = float("inf")


def measure(settings: dict[str, str]) -> None:
    """Run the scenario in this process and print its cost."""
    import bentpipe
    from bentpipe.scenario import Scenario

    scenario = Scenario(path=SCENARIO).with_settings(settings)
    began = time.process_time()
    result = bentpipe.run(scenario, no_probes=True)
    seconds = time.process_time() - began
    links = json.loads(result.summary_json)["links"]
    cost = {
        "packets": sum(link["packets_delivered"] for link in links),
        "seconds": seconds,
        "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(cost))


def run(case: Case) -> None:
    """Run one case once, in a process of its own."""
    command = [sys.executable, __file__, "--measure", json.dumps(case.settings)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    cost = json.loads(output)
    case.packets = cost["packets"]
    case.seconds = min(case.seconds, cost["seconds"])
    case.peak_bytes = min(case.peak_bytes, cost["peak_bytes"])


def main() -> None:
    """Measure all cases and print a table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="of each case")
    parser.add_argument("--table", type=Path, help="the costs as a table in Markdown")
    parser.add_argument("--measure", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure is not None:
        measure(arguments.measure)
        return
    transfers = [
        Case("QUIC, quinn's CUBIC", {}),
        Case("QUIC, CUBIC", {"hosts.server.quic.congestion_control": "cubic"}),
        Case("QUIC, an ACK after 9 packets", {"hosts.server.quic.ack_threshold": "9"}),
        Case("TCP", {APP: "tcp"}),
    ]
    pairs = {
        transport: [
            Case(transport, {**OPEN, APP: transport.lower(), "hosts.client.count": str(count)})
            for count in (1, CONNECTIONS)
        ]
        for transport in ("QUIC", "TCP")
    }
    for _ in range(arguments.runs):
        for case in (*transfers, *pairs["QUIC"], *pairs["TCP"]):
            run(case)
    lines = ["| 1 GB on one link | packets | seconds | packets per second |", "|---|---|---|---|"]
    lines += [
        f"| {case.name} | {case.packets:,} | {case.seconds:.2f}"
        f" | {case.packets / case.seconds:,.0f} |"
        for case in transfers
    ]
    lines += ["", "| open connection, with its hosts | bytes |", "|---|---|"]
    for transport, (few, many) in pairs.items():
        each = (many.peak_bytes - few.peak_bytes) / (CONNECTIONS - 1)
        lines.append(f"| {transport} | {each:,.0f} |")
    print("\n".join(lines))
    if arguments.table is not None:
        arguments.table.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
