"""The independent witness of vanzara2014: its network, simulated with ns-2's TCP-Linux.

As a script, simulates the grid (bit error rates x congestion controls x seeds), prints the table
and writes it. Cells in the file are not simulated again::

    python3 benches/witness/vanzara2014.py [--out benches/witness/vanzara2014.json]

As a module, provides `simulate`, `recorded` and `compare` for tests of bentpipe. The function
`simulate` takes any `Cell`.

The ns-2 script of the transfer is `vanzara2014.tcl`. The differences of TCP-Linux from bentpipe and
from Linux are listed in `linux_tcp.md`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import ns2

SCRIPT = Path(__file__).with_suffix(".tcl")
RECORD = Path(__file__).with_suffix(".json")

# vanzara2014, section IV.A.
RATE_BPS = 100e6
ROUND_TRIP_S = 0.6
MSS_BYTES = 1448
HEADER_BYTES = 52
DURATION_S = 600.0
# One bandwidth-delay product: 100 Mbit/s x 600 ms / 1500 B.
PIPE_SEGMENTS = 5000

CONGESTION_CONTROLS = ("hybla", "westwood", "reno", "cubic")
BIT_ERROR_RATES = (0.0, 1e-8, 1e-7, 1e-6, 1e-5)
SEEDS = (1, 2, 3, 4, 5)


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One bulk transfer, without the seed of its errors.

    Rates are in bit/s, times in seconds, sizes in bytes. A data packet has `mss_bytes +
    header_bytes` on the wire. The queue limit includes the packet in transmission. An
    `initial_slow_start_threshold` of 0 segments means none. A `delayed_ack_s` of 0 acknowledges
    every packet. The congestion window grows up to `window_segments`; nothing else limits it.
    """

    congestion_control: str
    bit_error_rate: float
    initial_slow_start_threshold: int = 0
    rate_bps: float = RATE_BPS
    round_trip_s: float = ROUND_TRIP_S
    duration_s: float = DURATION_S
    mss_bytes: int = MSS_BYTES
    header_bytes: int = HEADER_BYTES
    queue_packets: int = 20_000
    window_segments: int = 65_535
    initial_window: int = 10
    delayed_ack_s: float = 0.0
    minimum_rto_s: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of a cell and a seed in ns-2.

    The list `delivered_packets` has the packets delivered in order since the start, every
    `interval_s`; the last entry is for the end.
    """

    interval_s: float
    delivered_packets: tuple[int, ...]
    retransmissions: int
    timeouts: int
    recoveries: int
    queue_drops: int
    error_drops: int

    def goodput_bps(self, cell: Cell) -> float:
        """Return application bits delivered over the cell's duration."""
        return self.curve_bps(cell)[-1][1]

    def curve_bps(self, cell: Cell) -> list[tuple[float, float]]:
        """Return (time in s, goodput from 0 to then in bit/s), as in figures 2-6."""
        times_s = [self.interval_s * (i + 1) for i in range(len(self.delivered_packets))]
        return [
            (time_s, 8 * cell.mss_bytes * packets / time_s)
            for time_s, packets in zip(times_s, self.delivered_packets, strict=True)
        ]


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Our goodputs and ns-2's in bit/s, each over seeds.

    The value `relative_difference` is (our mean - ns-2's) / ns-2's. The flag `overlap` says whether
    the two ranges intersect.
    """

    our_mean_bps: float
    witness_mean_bps: float
    relative_difference: float
    overlap: bool


def simulate(cell: Cell, *, seed: int = 1, interval_s: float = 10.0) -> Outcome:
    """Run one transfer in ns-2.

    Parameters
    ----------
    cell
        The network and the transfer.
    seed
        The random stream of the losses, from 1 on.
    interval_s
        Interval at which delivered packets are counted; a divisor of the duration.

    Raises
    ------
    RuntimeError
        If ns-2 failed.
    """
    options: dict[str, object] = {
        "congestion_control": cell.congestion_control,
        "bit_error_rate": cell.bit_error_rate,
        "seed": seed,
        "slow_start_threshold": cell.initial_slow_start_threshold,
        "rate_bps": cell.rate_bps,
        "round_trip_s": cell.round_trip_s,
        "duration_s": cell.duration_s,
        "report_every_s": interval_s,
        "mss": cell.mss_bytes,
        "header_bytes": cell.header_bytes,
        "queue_packets": cell.queue_packets,
        "window_segments": cell.window_segments,
        "initial_window": cell.initial_window,
        "delayed_ack_s": cell.delayed_ack_s,
        "min_rto_s": cell.minimum_rto_s,
    }
    # TCP-Linux prints lines of its own in between.
    lines = [line.split() for line in ns2.run(SCRIPT, options).splitlines()]
    delivered = tuple(int(words[3]) for words in lines if words[:1] == ["time_s"])
    final = next((words[1:] for words in lines if words[:1] == ["final"]), None)
    if final is None:
        raise RuntimeError(f"ns-2 said nothing of {cell}, seed {seed}")
    printed = dict(zip(final[::2], map(int, final[1::2]), strict=True))
    return Outcome(
        interval_s=interval_s,
        delivered_packets=delivered,
        retransmissions=printed["retransmissions"],
        timeouts=printed["timeouts"],
        recoveries=printed["recoveries"],
        queue_drops=printed["queue_drops"],
        error_drops=printed["error_drops"],
    )


def grid() -> Iterator[tuple[Cell, int]]:
    """Yield the recorded cells, each with a seed; a single seed if nothing is random.

    Hybla starts with a threshold of one bandwidth-delay product. The others are run with that
    threshold and without one.
    """
    for congestion_control in CONGESTION_CONTROLS:
        for threshold in (PIPE_SEGMENTS,) if congestion_control == "hybla" else (0, PIPE_SEGMENTS):
            for bit_error_rate in BIT_ERROR_RATES:
                cell = Cell(
                    congestion_control=congestion_control,
                    bit_error_rate=bit_error_rate,
                    initial_slow_start_threshold=threshold,
                )
                for seed in SEEDS if bit_error_rate > 0 else SEEDS[:1]:
                    yield cell, seed


def recorded(path: Path = RECORD) -> dict[Cell, dict[int, Outcome]]:
    """Return the recorded outcomes by cell and seed; empty without a file."""
    outcomes: dict[Cell, dict[int, Outcome]] = {}
    if not path.exists():
        return outcomes
    cell_keys = {field.name for field in fields(Cell)}
    for row in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        cell = Cell(**{key: row[key] for key in cell_keys})
        row["delivered_packets"] = tuple(row["delivered_packets"])
        outcome = Outcome(**{field.name: row[field.name] for field in fields(Outcome)})
        outcomes.setdefault(cell, {})[row["seed"]] = outcome
    return outcomes


def compare(
    ours: Mapping[Cell, Sequence[float]],
    witness: Mapping[Cell, Mapping[int, Outcome]] | None = None,
) -> dict[Cell, Comparison]:
    """Compare our goodputs with ns-2's.

    Parameters
    ----------
    ours
        Goodputs in bit/s over the cell's duration, one for each of our seeds, by cell. Seeds are
        not paired, since the random streams differ.
    witness
        Known outcomes of ns-2 by cell and seed, such as `recorded()`. Other cells are
        simulated with `SEEDS`.
    """
    known = witness or {}
    comparisons = {}
    for cell, our_bps in ours.items():
        outcomes = known.get(cell) or {
            seed: simulate(cell, seed=seed)
            for seed in (SEEDS if cell.bit_error_rate > 0 else SEEDS[:1])
        }
        their_bps = [outcome.goodput_bps(cell) for outcome in outcomes.values()]
        our_mean = statistics.fmean(our_bps)
        their_mean = statistics.fmean(their_bps)
        comparisons[cell] = Comparison(
            our_mean_bps=our_mean,
            witness_mean_bps=their_mean,
            relative_difference=(our_mean - their_mean) / their_mean,
            overlap=min(our_bps) <= max(their_bps) and min(their_bps) <= max(our_bps),
        )
    return comparisons


def _write(path: Path, outcomes: Mapping[Cell, Mapping[int, Outcome]]) -> None:
    """Write the outcomes, one line per cell and seed, for readable diffs."""
    rows = [
        json.dumps(asdict(cell) | {"seed": seed} | asdict(outcome))
        for cell, by_seed in outcomes.items()
        for seed, outcome in by_seed.items()
    ]
    head = f'"witness": "ns-2", "version": {json.dumps(ns2.version())}'
    path.write_text(f'{{{head}, "cells": [\n' + ",\n".join(rows) + "\n]}\n", encoding="utf-8")


def _print_table(outcomes: Mapping[Cell, Mapping[int, Outcome]]) -> None:
    """Print a line per cell: goodput in Mbit/s at the end, and means of the counts."""
    columns = "{:>9} {:>9} {:>6} {:>8} {:>8} {:>8} {:>8} {:>9} {:>8}"
    print(
        columns.format(
            *("control", "threshold", "BER", "mean", "least", "most", "at 100 s"),
            *("retrans", "timeouts"),
        )
    )
    for cell, by_seed in outcomes.items():
        goodputs = [outcome.goodput_bps(cell) / 1e6 for outcome in by_seed.values()]
        early = [
            dict(outcome.curve_bps(cell)).get(100.0, float("nan")) / 1e6
            for outcome in by_seed.values()
        ]
        retransmissions = [outcome.retransmissions for outcome in by_seed.values()]
        timeouts = [outcome.timeouts for outcome in by_seed.values()]
        print(
            columns.format(
                cell.congestion_control,
                cell.initial_slow_start_threshold or "none",
                f"{cell.bit_error_rate:g}",
                *(f"{x:.3f}" for x in (statistics.fmean(goodputs), min(goodputs), max(goodputs))),
                f"{statistics.fmean(early):.3f}",
                *(round(statistics.fmean(counts)) for counts in (retransmissions, timeouts)),
            )
        )


def main() -> int:
    """Simulate the missing cells of the grid, print the table, and write it on request."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="keep the results here, as JSON")
    arguments = parser.parse_args()
    if not ns2.available():
        print("ns-2 is not installed (no `ns` on PATH): nothing to run", file=sys.stderr)
        return 1

    known = recorded(arguments.out) if arguments.out else {}
    outcomes: dict[Cell, dict[int, Outcome]] = {}
    for cell, seed in grid():
        outcome = known.get(cell, {}).get(seed) or simulate(cell, seed=seed)
        outcomes.setdefault(cell, {})[seed] = outcome
        if arguments.out:
            # Written after each cell, so that an interrupted run loses nothing.
            _write(arguments.out, known | outcomes)
    _print_table(outcomes)
    return 0


if __name__ == "__main__":
    sys.exit(main())
