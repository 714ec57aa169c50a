"""Changing paths, simulated and with the kernel: the table of docs/changing-paths.md.

    python benches/witness/paths.py [--runs 3]

One flow runs for 12 s over 5 Mbit/s and 50 ms each way, for each of six changes of the link. It
runs `--runs` times in `emulate` and once in simulation. Root is needed; a run of all changes takes
a minute and a half of real time.
"""

from __future__ import annotations

import argparse
from typing import Any

import bentpipe

DURATION_S = 12
# Changes of the link, by their name in the table.
CHANGES: dict[str, dict[str, Any]] = {
    "rate 5, 2, 8 and 4 Mbit/s, delay 50, 80 and 50 ms (`schedule`)": {
        "forward": {
            "schedule": [
                {"at": "3 s", "rate": "2 Mbit/s"},
                {"at": "6 s", "rate": "8 Mbit/s", "delay": "80 ms"},
                {"at": "9 s", "rate": "4 Mbit/s", "delay": "50 ms"},
            ]
        }
    },
    "1 s away, all lost": {"outages": [{"at": "5 s", "lasts": "1 s"}]},
    "0.3 s away, all held": {
        "outages": [{"at": "5 s", "lasts": "300 ms", "sending": "held", "in_flight": "held"}]
    },
    "a packet in a thousand corrupted": {"forward": {"corruption": 0.001}},
    "a packet in a hundred doubled": {"forward": {"duplication": 0.01}},
    "rate 5, 2 and 8 Mbit/s, corruption, 0.5 s away": {
        "forward": {
            "schedule": [{"at": "3 s", "rate": "2 Mbit/s"}, {"at": "6 s", "rate": "8 Mbit/s"}],
            "corruption": 0.001,
        },
        "outages": [{"at": "8 s", "lasts": "500 ms"}],
    },
}


def scenario(changes: dict[str, Any]) -> dict[str, Any]:
    """Return a scenario of one flow over a link with these changes."""
    linux = {"tcp": {"profile": "linux"}}
    return {
        "name": "changes",
        "duration": f"{DURATION_S} s",
        "hosts": {"server": linux, "client": linux},
        "links": {
            "path": {
                "between": ["server", "client"],
                "rate": "5 Mbit/s",
                "delay": "50 ms",
                **changes,
            }
        },
        "flows": {"download": {"from": "server", "to": "client", "app": {"kind": "bulk"}}},
    }


def row(what: str, runs: int) -> str:
    """Measure one change, and return its line of the table."""
    network = scenario(CHANGES[what])
    ours = bentpipe.run(network).flow().bytes_delivered
    kernel = [bentpipe.emulate(network).flow().bytes_delivered for _ in range(runs)]
    megabytes = ", ".join(f"{each / 1e6:.2f}" for each in kernel)
    differences = ", ".join(f"{ours / each - 1:+.1%}" for each in kernel)
    return f"| {what} | {ours / 1e6:.2f} MB | {megabytes} MB | {differences} |"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=3, help="of the kernel's, for each")
    asked = parser.parse_args()
    for what in CHANGES:
        print(row(what, asked.runs), flush=True)


if __name__ == "__main__":
    main()
