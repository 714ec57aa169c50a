"""The independent witness of congestion control: Linux's own, over our link, in real time.

One connection from kernel to kernel, in two network namespaces, through `bentpipe-live
witness`: the rate, delay and drop-tail queue of the simulator's link, by the wall clock. The
same scenario is then simulated. As a script, plays the grid (congestion controls x round
trips), prints the table, and writes the record and the figure::

    cargo build --release -p bentpipe-live
    python3 benches/witness/linux.py [--cell cubic-100 ...] [--captures DIR]

`--simulate-only` keeps the record of Linux and simulates anew. As a module, it is what a test
compares bentpipe with: `obstacle`, `measure`, `simulate`, `recorded`, `Cell`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_suffix(".json")
FIGURE = ROOT / "docs" / "images" / "linux.svg"
# What `cargo test` has built will do, too: ten Mbit/s are little.
BUILDS = [ROOT / "target" / build / "bentpipe-live" for build in ("release", "debug")]
PROGRAM = Path(
    os.environ.get("BENTPIPE_LIVE", next((path for path in BUILDS if path.exists()), BUILDS[0]))
)

CONGESTION_CONTROLS = ("reno", "cubic", "bbr")
ROUND_TRIPS_MS = (100, 600)
INTERVAL_S = 0.1
# Linux's receiver acknowledges every segment while its window opens (tcp_grow_window sets
# `quick`), which with these buffers takes so many: the captures of cubic-100 and cubic-600.
QUICK_ACKS = 742
# A goodput closer than this counts as the same.
TOLERANCE = 0.10


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One connection over one link; `queue_packets` is one bandwidth-delay product."""

    congestion_control: str
    round_trip_ms: int
    rate_bps: int = 10_000_000
    mtu_bytes: int = 1500
    duration_s: int = 30

    @property
    def name(self) -> str:
        """Return a name such as "cubic-100"."""
        return f"{self.congestion_control}-{self.round_trip_ms}"

    @property
    def queue_packets(self) -> int:
        """Return what may wait: one bandwidth-delay product of full packets."""
        return self.rate_bps * self.round_trip_ms // 1000 // 8 // self.mtu_bytes


CELLS = tuple(
    Cell(congestion_control=control, round_trip_ms=round_trip_ms)
    for round_trip_ms in ROUND_TRIPS_MS
    for control in CONGESTION_CONTROLS
)


def obstacle() -> str | None:
    """Return why Linux can't be measured here, if it can't."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "not root"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun cannot be opened"
    return None


def measure(cell: Cell, *, program: Path = PROGRAM, captures: Path | None = None) -> dict[str, Any]:
    """Let the kernel send over our link, and return what `bentpipe-live witness` says.

    Where it can, it runs at a real-time priority: it needs little of the processor, but at
    once.

    Raises
    ------
    RuntimeError
        It failed.
    """
    command = [
        *(["chrt", "--fifo", "10"] if shutil.which("chrt") else []),
        str(program),
        "witness",
        *("--congestion-control", cell.congestion_control),
        *("--rate", str(cell.rate_bps)),
        *("--delay", str(cell.round_trip_ms // 2)),
        *("--queue", str(cell.queue_packets)),
        *("--mtu", str(cell.mtu_bytes)),
        *("--seconds", str(cell.duration_s)),
        *(["--capture", str(captures / cell.name)] if captures else []),
    ]
    finished = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=cell.duration_s + 60
    )
    if finished.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {finished.stderr.strip()}")
    report: dict[str, Any] = json.loads(finished.stdout)
    return report


def scenario_text(cell: Cell) -> str:
    """Return the same network and the same settings as a scenario file."""
    control = "bbr1" if cell.congestion_control == "bbr" else cell.congestion_control
    return f"""
name = "linux-{cell.name}"
description = "What Linux was measured over: docs/linux.md"
duration = "{cell.duration_s} s"
seed = 1
[hosts.sender.tcp]
profile = "linux"
congestion_control = "{control}"
send_buffer = "64 MiB"          # never the limit, as there
[hosts.receiver.tcp]
profile = "linux"
receive_buffer = "32 MiB"
quick_acks = {QUICK_ACKS}                # until its window has opened, as there
[links.path]
between = ["sender", "receiver"]
rate = "{cell.rate_bps} bit/s"
delay = "{cell.round_trip_ms // 2} ms"
queue = {{ kind = "drop-tail", limit = "{cell.queue_packets} packets" }}
[flows.download]
from = "sender"
to = "receiver"
app = {{ kind = "bulk" }}
[probes]
series = ["download.goodput", "download.congestion_window", "path.forward.queue"]
interval = "{round(INTERVAL_S * 1000)} ms"
"""


def simulate(cell: Cell) -> dict[str, Any]:
    """Simulate the cell; `received` is as `measure` has it, bytes by each interval's end."""
    import bentpipe
    from bentpipe.scenario import Scenario

    scenario = Scenario(path=Path(f"{cell.name}.toml"), text=scenario_text(cell))
    result = bentpipe.run(scenario)
    goodput = result.series["download.goodput"]
    # Each value is the average since the record before; the first is of the instant 0.
    received = np.cumsum(goodput.values * np.diff(goodput.times_s, prepend=0.0) / 8)[1:]
    link = next(link for link in result.summary.links if link.name == "path.forward")
    return {
        "received": [round(value) for value in received],
        "dropped": link.packets_dropped,
        "queue_max_packets": link.queue_max_packets,
    }


def goodput_bps(received: Sequence[float], cell: Cell) -> float:
    """Return bits delivered over the whole duration."""
    return float(8 * received[-1] / cell.duration_s)


def recorded(path: Path = RECORD) -> dict[str, Any]:
    """Return the record, by cells' names; empty if there is none."""
    if not path.exists():
        return {}
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def difference(ours: Sequence[float], theirs: Sequence[float], cell: Cell) -> float:
    """Return (simulated - Linux) / Linux, of the goodputs."""
    linux = goodput_bps(theirs, cell)
    return (goodput_bps(ours, cell) - linux) / linux


def draw(record: Mapping[str, Any], path: Path) -> None:
    """Write the figure: bytes over time, Linux and simulated, one panel a cell."""
    from bentpipe.plot.style import COLOURS, write_svg

    def panels(figure: Any) -> None:
        axes = figure.subplots(len(ROUND_TRIPS_MS), len(CONGESTION_CONTROLS), sharex=True)
        for cell, axis in zip(CELLS, axes.flat, strict=True):
            entry = record[cell.name]
            times_s = INTERVAL_S * np.arange(1, len(entry["linux"]["received"]) + 1)
            for key, label, colour, style in (
                ("linux", "Linux", COLOURS[1], "-"),
                ("simulated", "simulated", COLOURS[0], "--"),
            ):
                megabytes = np.asarray(entry[key]["received"]) / 1e6
                axis.plot(times_s, megabytes, style, color=colour, label=label)
            axis.set_title(f"{cell.congestion_control}, {cell.round_trip_ms} ms")
            axis.set_xlim(0, cell.duration_s)
            axis.set_ylim(0, cell.rate_bps * cell.duration_s / 8e6)
        for axis in axes[-1]:
            axis.set_xlabel("time (s)")
        for axis in axes[:, 0]:
            axis.set_ylabel("received (MB)")
        axes[0, 0].legend(loc="upper left")

    write_svg(panels, path, width=8.4, height=5.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the grid, print the table, write the record and the figure."""
    parser = argparse.ArgumentParser(description="Linux's congestion control beside ours")
    parser.add_argument("--cell", action="append", help="only this one, such as cubic-100")
    parser.add_argument("--captures", type=Path, help="pcapng files of both ends go there")
    parser.add_argument("--simulate-only", action="store_true", help="keep the record of Linux")
    chosen = parser.parse_args(arguments)
    reason = obstacle()
    if reason and not chosen.simulate_only:
        print(f"linux.py: {reason}", file=sys.stderr)
        return 2
    record = recorded()
    for cell in CELLS:
        if chosen.cell and cell.name not in chosen.cell:
            continue
        entry = record.setdefault(cell.name, {})
        entry["cell"] = asdict(cell) | {"queue_packets": cell.queue_packets}
        if not chosen.simulate_only:
            entry["linux"] = measure(cell, captures=chosen.captures)
        entry["simulated"] = simulate(cell)
        print(row(cell, entry), flush=True)
    ordered = {cell.name: record[cell.name] for cell in CELLS if cell.name in record}
    text = "{\n" + ",\n".join(
        f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in ordered.items()
    )
    RECORD.write_text(text + "\n}\n", encoding="utf-8")
    if len(ordered) == len(CELLS):
        draw(ordered, FIGURE)
    return 0


def row(cell: Cell, entry: Mapping[str, Any]) -> str:
    """Return a line of the table."""
    linux, ours = entry["linux"], entry["simulated"]
    half, most, latest = linux["lateness_us"]
    relative = difference(ours["received"], linux["received"], cell)
    return (
        f"{cell.name:10} Linux {goodput_bps(linux['received'], cell) / 1e6:5.2f} Mbit/s, "
        f"simulated {goodput_bps(ours['received'], cell) / 1e6:5.2f} Mbit/s, {relative:+6.1%}; "
        f"dropped {linux['dropped']} and {ours['dropped']}; "
        f"relay late by {half:.0f}, {most:.0f}, {latest:.0f} us"
    )


if __name__ == "__main__":
    sys.exit(main())
