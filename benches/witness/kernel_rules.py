"""The window rules in the kernel, as BPF programs, beside `profile = "linux"`: docs/kernel.md.

24 cells: three rules, each with {80, 560 ms round trip} x {queue of half, two bandwidth-delay
products} x {no loss, one packet in ten thousand lost}, at 5, 20 or 50 Mbit/s, 30 s each. With
losses, the mean of eight seeds; without, the median of three runs. Real time, as root: an hour and
a quarter in one process. Results are kept, one line per run: an interrupted measurement can be
resumed.

* `python benches/witness/kernel_rules.py RESULTS.jsonl [--processes 3]` measures what is missing.
* `python benches/witness/kernel_rules.py RESULTS.jsonl --table` prints the table as Markdown.
* `python benches/witness/kernel_rules.py RESULTS.jsonl --record` writes the kernel's goodputs to
  a file beside this one, for a test that simulates them anew.
* `python benches/witness/kernel_rules.py RESULTS.jsonl --figures` measures figures 2 to 6 of
  vanzara2014 in the same way, 30 s each, and prints their table: eight minutes.
"""

from __future__ import annotations

import argparse
import itertools
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median
from typing import Any

import bentpipe
from bentpipe.studies.vanzara2014.cells import FIGURES_2_TO_6, Transfer

RECORD = Path(__file__).with_suffix(".json")
RULES = ("hybla", "enhanced-hybla", "westwood")
ROUND_TRIPS_MS = (80, 560)
QUEUES = (0.5, 2.0)
LOSSES = (0.0, 1e-4)
# The rates of the eight cells of each rule, in Mbit/s.
RATES_MBPS = (5, 20, 50, 20, 20, 50, 5, 50)
DURATION_S = 30
SEEDS = 8
# Runs of a cell without losses: the kernel's differ from each other.
REPEATS = 3
SEGMENT_B = 1448
PACKET_B = 1500
# Figures 2 to 6 of vanzara2014: 100 Mbit/s, 600 ms, a queue of 20,000 packets.
STUDY_RATE_MBPS = 100
STUDY_ROUND_TRIP_MS = 600
STUDY_QUEUE_PACKETS = 20_000
# Allowed differences from the kernel's goodput, without and with losses.
BOUNDS = {False: 0.02, True: 0.05}
# The cells beyond their bounds: Westwood+ has two results, according to its first bandwidth sample
# (docs/kernel.md).
BEYOND = (("westwood", 5, 560, 2.0, 0.0), ("westwood", 50, 560, 2.0, 1e-4))
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
        """The runs. Without losses, nothing in the simulation depends on the seed."""
        return range(1, 1 + (SEEDS if self.loss else REPEATS))


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


def key(cell: Cell) -> list[Any]:
    """Return what identifies a cell in results."""
    return [cell.rule, cell.rate_mbps, cell.round_trip_ms, cell.queue, cell.loss]


def middle(cell: Cell, values: Iterable[float]) -> float:
    """Return the value that is compared: the mean over seeds, or the median without losses."""
    return mean(values) if cell.loss else median(values)


def kernel_bps(cell: Cell, done: list[dict[str, Any]]) -> list[float]:
    """Return the kernel's goodputs of a cell, by run."""
    runs = sorted((each for each in done if each["cell"] == key(cell)), key=lambda run: run["seed"])
    return [round(each["emulated_bps"]) for each in runs]


def measure(cell: Cell, seed: int) -> dict[str, Any]:
    """Emulate and simulate one cell with one seed."""
    network = scenario(cell)
    for _ in range(ATTEMPTS):
        emulated = bentpipe.emulate(network, seed=seed)
        if not emulated.too_late:
            break
    simulated = bentpipe.run(network, seed=seed)
    return {
        "cell": key(cell),
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


def figure_scenario(rule: str, bit_error_rate: float) -> dict[str, Any]:
    """Return the network of one of the figures 2 to 6, with the kernel's TCP instead of ns-2's."""
    cell = Cell(
        rule=rule,
        rate_mbps=STUDY_RATE_MBPS,
        round_trip_ms=STUDY_ROUND_TRIP_MS,
        queue=1.0,
        loss=0.0,
    )
    network = scenario(cell)
    forward = network["links"]["satellite"]["forward"]
    forward["queue"]["limit"] = f"{STUDY_QUEUE_PACKETS} packets"
    forward["errors"] = {"bit_error_rate": bit_error_rate}
    # As in the study: the first slow start of each rule ends at the bandwidth-delay product.
    network["hosts"]["server"]["tcp"]["initial_slow_start_threshold"] = (
        f"{cell.pipe_packets} segments"
    )
    return network


def figures_table() -> str:
    """Measure figures 2 to 6, and return their table: Mbit/s over the first 30 s."""
    rows = [
        "| figure | bit errors | rule | study | simulated, Linux | kernel | difference | |",
        "|---|---|---|---:|---:|---:|---:|---|",
    ]
    for (figure, rate), rule in itertools.product(FIGURES_2_TO_6.items(), RULES):
        network = figure_scenario(rule, rate)
        study = Transfer(rule=rule, bit_error_rate=rate).scenario()
        shortened = study.with_settings({"duration": f"{DURATION_S} s"})
        emulated = bentpipe.emulate(network)
        real, ours, of_study = (
            run.flow().goodput_bps / 1e6
            for run in (emulated, bentpipe.run(network), bentpipe.run(shortened))
        )
        share = ours / real - 1 if real else float("nan")
        late = "late" if emulated.too_late else ""
        rows.append(
            f"| {figure} | {rate:g} | {rule} | {of_study:.2f} | {ours:.2f} | {real:.2f} "
            f"| {share:+.1%} | {late} |"
        )
    return "\n".join(rows)


def main() -> None:
    """Measure the missing runs, or print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--figures", action="store_true")
    arguments = parser.parse_args()
    if arguments.figures:
        print(figures_table())
        return
    path: Path = arguments.results
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    done = [json.loads(line) for line in lines]
    if arguments.table:
        print(table(done))
        return
    if arguments.record:
        record = [{"cell": key(cell), "kernel_bps": kernel_bps(cell, done)} for cell in cells()]
        lines = [json.dumps(each) for each in record]
        RECORD.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
        return
    known = {(*each["cell"], each["seed"]) for each in done}
    wanted = [
        (cell, seed)
        # Cells with few runs come first.
        for cell in sorted(cells(), key=lambda cell: cell.loss)
        for seed in cell.seeds
        if (*key(cell), seed) not in known
    ]
    with ProcessPoolExecutor(arguments.processes) as pool:
        for finished in as_completed([pool.submit(measure, *each) for each in wanted]):
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(finished.result()) + "\n")


def table(done: list[dict[str, Any]]) -> str:
    """Return the table with one row per cell."""
    rows = [
        "| rule | rate | round trip | queue | losses | kernel | range | simulated | difference | |",
        "|---|---|---|---|---|---:|---:|---:|---:|---|",
    ]
    for cell in cells():
        runs = [each for each in done if each["cell"] == key(cell)]
        if not runs:
            continue
        each_real = [each["emulated_bps"] / 1e6 for each in runs]
        real = middle(cell, each_real)
        ours = middle(cell, [each["simulated_bps"] / 1e6 for each in runs])
        share = ours / real - 1
        verdict = "" if abs(share) <= BOUNDS[bool(cell.loss)] else "outside"
        if (late := sum(each["too_late"] for each in runs)) > 0:
            verdict += f" ({late} of {len(runs)} late)"
        rows.append(
            f"| {cell.rule} | {cell.rate_mbps} Mbit/s | {cell.round_trip_ms} ms | {cell.queue:g} "
            f"| {cell.loss:g} | {real:.2f} | {min(each_real):.2f} – {max(each_real):.2f} "
            f"| {ours:.2f} | {share:+.1%} | {verdict} |"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    main()
