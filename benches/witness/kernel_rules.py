"""The window rules in the kernel, as BPF programs, beside `profile = "linux"`: docs/kernel.md.

24 cells: three rules, each with {80, 560 ms round trip} x {queue of half, two bandwidth-delay
products} x {no loss, one packet in ten thousand lost}, at 5, 20 or 50 Mbit/s, 30 s each. With
losses, the mean of eight seeds. Real time, as root: an hour in one process. Results are kept, one
line per run: an interrupted measurement can be resumed.

* `python benches/witness/kernel_rules.py RESULTS.jsonl [--processes 3]` measures what is missing.
* `python benches/witness/kernel_rules.py RESULTS.jsonl --table` prints the table as Markdown.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

import bentpipe

RULES = ("hybla", "enhanced-hybla", "westwood")
ROUND_TRIPS_MS = (80, 560)
QUEUES = (0.5, 2.0)
LOSSES = (0.0, 1e-4)
# The rates of the eight cells of each rule, in Mbit/s.
RATES_MBPS = (5, 20, 50, 20, 20, 50, 5, 50)
DURATION_S = 30
SEEDS = 8
SEGMENT_B = 1448
PACKET_B = 1500
# Allowed differences from the kernel's goodput, without and with losses.
BOUNDS = {False: 0.02, True: 0.05}
# A run in which the machine was too busy is repeated.
ATTEMPTS = 3


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One connection over one link."""

    rule: str
    rate_mbps: int
    round_trip_ms: int
    queue: float
    loss: float
    duration_s: int = DURATION_S

    @property
    def pipe_packets(self) -> int:
        """The bandwidth-delay product."""
        return round(self.rate_mbps * 1e6 * self.round_trip_ms / 1e3 / 8 / PACKET_B)

    @property
    def seeds(self) -> range:
        """Several seeds where something is random."""
        return range(1, SEEDS + 1 if self.loss else 2)


def cells() -> Iterator[Cell]:
    """Return all cells."""
    for rule in RULES:
        paths = itertools.product(ROUND_TRIPS_MS, QUEUES, LOSSES)
        for rate, (trip, queue, loss) in zip(RATES_MBPS, paths, strict=True):
            yield Cell(rule=rule, rate_mbps=rate, round_trip_ms=trip, queue=queue, loss=loss)


def scenario(cell: Cell) -> dict[str, Any]:
    """Return a cell's network."""
    packets = max(4, round(cell.queue * cell.pipe_packets))
    forward: dict[str, Any] = {
        "rate": f"{cell.rate_mbps} Mbit/s",
        "delay": f"{cell.round_trip_ms / 2:g} ms",
        "queue": {"kind": "drop-tail", "limit": f"{packets} packets"},
    }
    back = {"rate": forward["rate"], "delay": forward["delay"]}
    if cell.loss:
        forward["errors"] = {"packet_loss_rate": cell.loss}
    sender: dict[str, Any] = {
        "profile": "linux",
        "congestion_control": cell.rule,
        "send_buffer": "64 MiB",
    }
    if "hybla" in cell.rule:
        # Without a threshold, the first acknowledgment at 560 ms opens the window by 2^22 segments.
        sender["initial_slow_start_threshold"] = f"{cell.pipe_packets} segments"
    if cell.rule == "enhanced-hybla":
        # The paper compares it with the payload that arrives.
        sender["channel_capacity"] = f"{cell.rate_mbps * SEGMENT_B / PACKET_B:.3f} Mbit/s"
    return {
        "name": "kernel-rules",
        "duration": f"{cell.duration_s} s",
        "randomness": {"host_timing": False},
        "hosts": {
            "server": {"tcp": sender},
            "client": {"tcp": {"profile": "linux", "receive_buffer": "32 MiB"}},
        },
        "links": {
            "satellite": {"between": ["server", "client"], "forward": forward, "return": back}
        },
        "flows": {"download": {"from": "server", "to": "client", "app": {"kind": "bulk"}}},
    }


def measure(cell: Cell, seed: int) -> dict[str, Any]:
    """Emulate and simulate one cell with one seed."""
    network = scenario(cell)
    for _ in range(ATTEMPTS):
        emulated = bentpipe.emulate(network, seed=seed)
        if not emulated.too_late:
            break
    simulated = bentpipe.run(network, seed=seed)
    return {
        "cell": [cell.rule, cell.rate_mbps, cell.round_trip_ms, cell.queue, cell.loss],
        "seed": seed,
        "emulated_bps": emulated.flow().goodput_bps,
        "simulated_bps": simulated.flow().goodput_bps,
        "retransmitted": [
            emulated.flow().segments_retransmitted,
            simulated.flow().segments_retransmitted,
        ],
        "too_late": emulated.too_late,
        "late_p999_ms": emulated.late_ms.p999,
    }


def main() -> None:
    """Measure the missing runs, or print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--table", action="store_true")
    arguments = parser.parse_args()
    path: Path = arguments.results
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    done = [json.loads(line) for line in lines]
    if arguments.table:
        print(table(done))
        return
    known = {(*each["cell"], each["seed"]) for each in done}
    wanted = [
        (cell, seed)
        # Cells with a single run come first.
        for cell in sorted(cells(), key=lambda cell: cell.loss)
        for seed in cell.seeds
        if (cell.rule, cell.rate_mbps, cell.round_trip_ms, cell.queue, cell.loss, seed) not in known
    ]
    with ProcessPoolExecutor(arguments.processes) as pool:
        for finished in as_completed([pool.submit(measure, *each) for each in wanted]):
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(finished.result()) + "\n")


def table(done: list[dict[str, Any]]) -> str:
    """Return the table with one row per cell."""
    rows = [
        (
            "| rule | rate | round trip | queue | losses | kernel | simulated | difference | "
            "retransmitted: kernel, simulated | |"
        ),
        "|---|---|---|---|---|---:|---:|---:|---:|---|",
    ]
    for cell in cells():
        key = [cell.rule, cell.rate_mbps, cell.round_trip_ms, cell.queue, cell.loss]
        runs = [each for each in done if each["cell"] == key]
        if not runs:
            continue
        real = mean(each["emulated_bps"] for each in runs)
        ours = mean(each["simulated_bps"] for each in runs)
        again = [mean(each["retransmitted"][n] for each in runs) for n in (0, 1)]
        share = ours / real - 1
        verdict = "" if abs(share) <= BOUNDS[bool(cell.loss)] else "outside"
        late = " (late)" if any(each["too_late"] for each in runs) else ""
        rows.append(
            f"| {cell.rule} | {cell.rate_mbps} Mbit/s | {cell.round_trip_ms} ms | {cell.queue:g} "
            f"| {cell.loss:g} | {real / 1e6:.3f} | {ours / 1e6:.3f} | {share:+.1%} "
            f"| {again[0]:.0f}, {again[1]:.0f} | {verdict}{late} |"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    main()
