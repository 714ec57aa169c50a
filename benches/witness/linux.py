"""The independent witness of Linux's TCP: the kernel's, over our link, in real time.

One connection from kernel to kernel, in two network namespaces, through `bentpipe-live
witness`: the rate, delay and drop-tail queue of the simulator's link, by the wall clock. The
same scenario is then simulated. As a script, plays the cells of `linux_cells.py`, prints the
table, and writes the record and the figure::

    cargo build --release -p bentpipe-live
    python3 benches/witness/linux.py [--cell first-cubic ...] [--captures DIR]

`--simulate-only` keeps the record of Linux and simulates anew. `--phases 12` does so with 12 starts
within a millisecond, which a kernel's timestamps count, and prints in how many of them each cell is
within its bounds. `--seeds 20` simulates with 20 seeds, from which hosts draw their timing, and
prints the ranges.

As a module, it is what a test compares bentpipe with: `obstacle`, `measure`, `simulate`,
`recorded`.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from linux_cells import (
    BEYOND,
    BOUNDS,
    CELLS,
    CONGESTION_CONTROLS,
    DROPPED_BEYOND,
    DROPPED_FEW,
    DROPPED_OUTSIDE,
    DROPPED_SHARE,
    OUTSIDE,
    Cell,
)

if TYPE_CHECKING:
    from bentpipe.seed_ranges import Range, SeedRuns

ROOT = Path(__file__).resolve().parents[2]
RECORD = Path(__file__).with_suffix(".json")
FIGURE = ROOT / "docs" / "images" / "linux.svg"
# The debug build of `cargo test` is fast enough for 10 Mbit/s.
BUILDS = [ROOT / "target" / build / "bentpipe-live" for build in ("release", "debug")]
PROGRAM = Path(
    os.environ.get("BENTPIPE_LIVE", next((path for path in BUILDS if path.exists()), BUILDS[0]))
)

INTERVAL_S = 0.1
__all__ = ["BEYOND", "BOUNDS", "CELLS", "DROPPED_BEYOND", "DROPPED_OUTSIDE", "OUTSIDE", "Cell"]


def obstacle() -> str | None:
    """Return the reason if Linux cannot be measured here."""
    if not hasattr(os, "geteuid") or os.geteuid() != 0:
        return "not root"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun cannot be opened"
    return None


def measure(cell: Cell, *, program: Path = PROGRAM, captures: Path | None = None) -> dict[str, Any]:
    """Let the kernel send over our link, and return what `bentpipe-live witness` says.

    If permitted, it runs at real-time priority: it needs little processor time, but without delay.

    Raises
    ------
    RuntimeError
        If it failed.
    """
    command = [
        *(["chrt", "--fifo", "10"] if shutil.which("chrt") else []),
        str(program),
        "witness",
        *("--congestion-control", cell.congestion_control),
        *("--rate", str(cell.rate_bps)),
        *("--return-rate", str(cell.return_rate_bps or cell.rate_bps)),
        *("--delay", str(cell.round_trip_ms // 2)),
        *("--queue", str(cell.queue_packets)),
        *("--return-queue", str(_return_queue(cell))),
        *("--loss", str(cell.loss)),
        *("--seed", str(cell.seed)),
        *("--receive-buffer", cell.buffers[0]),
        *("--send-buffer", cell.buffers[1]),
        *("--mtu", str(cell.mtu_bytes)),
        *("--seconds", str(cell.duration_s)),
        *(["--upload"] if cell.upload else []),
        *(["--capture", str(captures / cell.name)] if captures else []),
    ]
    finished = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=cell.duration_s + 60
    )
    if finished.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {finished.stderr.strip()}")
    report: dict[str, Any] = json.loads(finished.stdout)
    return report


def _return_queue(cell: Cell) -> int:
    if cell.return_queue_packets is None:
        return cell.queue_packets
    return cell.return_queue_packets


def _queue(packets: int) -> str:
    return f'queue = {{ kind = "drop-tail", limit = "{packets} packets" }}'


def _memory(three: str) -> str:
    least, initial, most = three.split()
    return f'{{ minimum = "{least} B", initial = "{initial} B", maximum = "{most} B" }}'


# The upload starts a second later (`bentpipe-live witness --upload`).
_UPLOAD = """
[flows.upload]
from = "receiver"
to = "sender"
start = "1 s"
app = { kind = "bulk" }
"""


def flows(cell: Cell) -> list[str]:
    """Return the names of the cell's flows in the scenario."""
    return ["download", "upload"] if cell.upload else ["download"]


def scenario_text(cell: Cell, *, start_us: int = 0, host_timing: bool = False) -> str:
    """Return the same network and the same settings as a scenario file.

    `start_us`: when the first flow begins, in microseconds. `host_timing`: whether hosts draw their
    timing from the seed, as for a range over seeds.
    """
    control = "bbr1" if cell.congestion_control == "bbr" else cell.congestion_control
    # If both ends send, both have the settings of a sender and of a receiver.
    both = ("", "")
    if cell.upload:
        sends = (
            f'congestion_control = "{control}"\n'
            f"send_memory = {_memory(cell.buffers[1])}\nblocking_writes = true"
        )
        both = (f"receive_memory = {_memory(cell.buffers[0])}", sends)
    errors = f", errors = {{ packet_loss_rate = {cell.loss} }}" if cell.loss else ""
    return f"""
name = "linux-witness"
description = "What Linux was measured over: docs/validation/linux.md"
duration = "{cell.duration_s} s"
seed = {cell.seed}
[randomness]
host_timing = {str(host_timing).lower()}
[hosts.sender.tcp]
profile = "linux"
congestion_control = "{control}"
mss = "{cell.mtu_bytes - 52} B"
send_memory = {_memory(cell.buffers[1])}
blocking_writes = true
{both[0]}
[hosts.receiver.tcp]
profile = "linux"
{both[1]}
mss = "{cell.mtu_bytes - 52} B"
receive_memory = {_memory(cell.buffers[0])}
[links.path]
between = ["sender", "receiver"]
delay = "{cell.round_trip_ms // 2} ms"
forward = {{ rate = "{cell.rate_bps} bit/s", {_queue(cell.queue_packets)}{errors} }}
return = {{ rate = "{cell.return_rate_bps or cell.rate_bps} bit/s", {_queue(_return_queue(cell))} }}
[flows.download]
from = "sender"
to = "receiver"
start = "{start_us} us"
app = {{ kind = "bulk" }}
{_UPLOAD if cell.upload else ""}
[probes]
series = [{", ".join(f'"{flow}.goodput"' for flow in flows(cell))}]
interval = "{round(INTERVAL_S * 1000)} ms"
"""


def simulate(cell: Cell, *, start_us: int = 0) -> dict[str, Any]:
    """Simulate the cell; `received` has the bytes by each interval's end, as in `measure`."""
    import bentpipe
    from bentpipe.scenario import Scenario

    text = scenario_text(cell, start_us=start_us)
    scenario = Scenario(path=Path(f"{cell.name}.toml"), text=text)
    result = bentpipe.run(scenario)
    link = next(link for link in result.summary.links if link.name == "path.forward")
    return {
        "received": _received(result.series["download.goodput"]),
        "uploaded": _received(result.series["upload.goodput"]) if cell.upload else [],
        "dropped": link.packets_dropped,
        "queue_max_packets": link.queue_max_packets,
    }


def over_seeds(cell: Cell, *, seeds: int) -> SeedRuns:
    """Simulate the cell with `seeds` seeds from 1 on, from which hosts draw their timing."""
    from bentpipe.scenario import Scenario
    from bentpipe.seed_ranges import run_seeds

    text = scenario_text(cell, host_timing=True)
    return run_seeds(Scenario(path=Path(f"{cell.name}.toml"), text=text), seeds=seeds, seed=1)


def drops_over_seeds(runs: SeedRuns) -> Range:
    """Return the range of packets that the queue towards the receiver dropped."""
    from bentpipe.seed_ranges import Range

    links = [link for summary in runs.summaries for link in summary.links]
    found = Range.of(link.packets_dropped for link in links if link.name == "path.forward")
    if found is None:
        raise ValueError("a cell has a link towards the receiver")
    return found


def _received(goodput: Any) -> list[int]:
    # Each value is the average since the previous record; the first is for time 0.
    received = np.cumsum(goodput.values * np.diff(goodput.times_s, prepend=0.0) / 8)[1:]
    return [round(value) for value in received]


def goodput_bps(received: Sequence[float], cell: Cell) -> float:
    """Return bits delivered over the whole duration."""
    return float(8 * received[-1] / cell.duration_s)


def recorded(path: Path = RECORD) -> dict[str, Any]:
    """Return Linux's results by cell name; empty if there is no record."""
    if not path.exists():
        return {}
    record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return record


def difference(ours: Sequence[float], theirs: Sequence[float], cell: Cell) -> float:
    """Return the relative difference of goodputs, (simulated - Linux) / Linux."""
    linux = goodput_bps(theirs, cell)
    return (goodput_bps(ours, cell) - linux) / linux


def dropped_alike(ours: int, theirs: int) -> bool:
    """Return whether both drop equally many packets, within the bounds of `linux_cells.py`."""
    return abs(ours - theirs) <= max(DROPPED_SHARE * theirs, DROPPED_FEW)


def lossy_means(cell: Cell, record: Mapping[str, Any]) -> tuple[float, float]:
    """Return the mean goodputs of Linux's seeds and of ours, bit/s, for a cell with losses.

    The seeds and the losses are the same: the link draws them from the same random stream, packet
    by packet, in real and in simulated time.
    """
    seeds = [
        other for other in CELLS if replace(other, seed=cell.seed) == cell and other.name in record
    ]
    of_linux = [goodput_bps(record[each.name]["received"], each) for each in seeds]
    ours = [goodput_bps(simulate(each)["received"], each) for each in seeds]
    return statistics.mean(of_linux), statistics.mean(ours)


def shorten(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return the recorded part of a run: bytes received by the end of each second, and counts."""
    each = round(1 / report["interval_s"])
    return {
        "kernel": report["kernel"],
        "received": report["received"][each - 1 :: each],
        **{key: report[key] for key in ("dropped", "lost", "queue_max_packets", "lateness_us")},
    }


def draw(record: Mapping[str, Any], path: Path) -> None:
    """Write the figure: bytes over time, Linux and simulated, one panel per cell."""
    from bentpipe.plot.style import COLOURS, write_svg

    cells = [cell for cell in CELLS if cell.group == "first"]

    def panels(figure: Any) -> None:
        axes = figure.subplots(2, len(CONGESTION_CONTROLS), sharex=True)
        for cell, axis in zip(cells, axes.flat, strict=True):
            for received, label, colour, style in (
                (record[cell.name]["received"], "Linux", COLOURS[1], "-"),
                (simulate(cell)["received"], "simulated", COLOURS[0], "--"),
            ):
                times_s = np.linspace(0, cell.duration_s, len(received) + 1)[1:]
                megabytes = np.asarray(received) / 1e6
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
    """Measure the cells, print the table, and write the record and the figure."""
    parser = argparse.ArgumentParser(description="Linux's TCP beside ours")
    parser.add_argument("--cell", action="append", help="only those whose names begin so")
    parser.add_argument("--captures", type=Path, help="pcapng files of both ends go there")
    parser.add_argument("--simulate-only", action="store_true", help="keep the record of Linux")
    parser.add_argument("--phases", type=int, help="simulate with so many starts in a millisecond")
    parser.add_argument("--seeds", type=int, help="simulate with the host timing of N seeds")
    chosen = parser.parse_args(arguments)
    if chosen.seeds:
        print_ranges(chosen.seeds, chosen.cell)
        return 0
    if chosen.phases:
        print_phases(chosen.phases, chosen.cell)
        return 0
    reason = obstacle()
    if reason and not chosen.simulate_only:
        print(f"linux.py: {reason}", file=sys.stderr)
        return 2
    record = recorded()
    for cell in selected(chosen.cell):
        if not chosen.simulate_only:
            record[cell.name] = shorten(measure(cell, captures=chosen.captures))
        if cell.name in record:
            print(row(cell, record), flush=True)
    ordered = {cell.name: record[cell.name] for cell in CELLS if cell.name in record}
    text = "{\n" + ",\n".join(
        f" {json.dumps(name)}: {json.dumps(entry)}" for name, entry in ordered.items()
    )
    RECORD.write_text(text + "\n}\n", encoding="utf-8")
    if not chosen.cell:
        draw(ordered, FIGURE)
    return 0


def selected(names: Sequence[str] | None) -> list[Cell]:
    """Return the cells whose names begin with one of these; all by default."""
    return [cell for cell in CELLS if not names or cell.name.startswith(tuple(names))]


def print_phases(phases: int, names: Sequence[str] | None) -> None:
    """Print in how many phases of a millisecond each cell without random losses matches Linux.

    Cells that agree in all phases are only counted. The mean share of all cells is printed, too.
    """
    record = recorded()
    cells = [cell for cell in selected(names) if cell.name in record and not cell.loss]
    shares = []
    for cell in cells:
        linux = record[cell.name]
        runs = [simulate(cell, start_us=1000 * phase // phases) for phase in range(phases)]
        off = [difference(run["received"], linux["received"], cell) for run in runs]
        drops = [run["dropped"] for run in runs]
        within = sum(abs(each) <= BOUNDS[cell.group] for each in off)
        alike = sum(dropped_alike(each, linux["dropped"]) for each in drops)
        shares.append((within / phases, alike / phases))
        if within < phases or alike < phases:
            print(
                f"| {cell.name} | {within} of {phases} | {min(off):+.1%} to {max(off):+.1%} "
                f"| {alike} of {phases} | {linux['dropped']}, {min(drops)} to {max(drops)} |"
            )
    means = [statistics.mean(each) for each in zip(*shares, strict=True)]
    both = sum(share == (1.0, 1.0) for share in shares)
    print(f"{both} of {len(cells)} cells in all phases; {means[0]:.1%} of all runs are within")
    print(f"their bounds, {means[1]:.1%} drop as many packets")


def print_ranges(seeds: int, names: Sequence[str] | None) -> None:
    """Print whether Linux's goodput and drops lie in the range over seeds, cell by cell."""
    record = recorded()
    inside = [0, 0]
    cells = [cell for cell in selected(names) if cell.name in record and not cell.loss]
    for cell in cells:
        linux = record[cell.name]
        runs = over_seeds(cell, seeds=seeds)
        goodput, drops = runs.goodput_bps("download"), drops_over_seeds(runs)
        theirs = goodput_bps(linux["received"], cell)
        within = goodput.contains(theirs, within=BOUNDS[cell.group])
        alike = drops.contains(linux["dropped"], within=DROPPED_SHARE, slack=DROPPED_FEW)
        inside[0] += within
        inside[1] += alike
        stars = ["" if each else " *" for each in (within, alike)]
        print(
            f"| {cell.name} | {theirs / 1e6:.2f}{stars[0]} "
            f"| {goodput.least / 1e6:.2f} to {goodput.most / 1e6:.2f} "
            f"| {linux['dropped']}{stars[1]} | {drops.least:.0f} to {drops.most:.0f} |",
            flush=True,
        )
    print(
        f"of {len(cells)} cells {inside[0]} in the range of goodput, {inside[1]} in that of drops"
    )


def row(cell: Cell, record: Mapping[str, Any]) -> str:
    """Return a line of the table, as docs/validation/linux-cells.md has it."""
    linux = record[cell.name]
    if cell.loss:
        if cell.seed != 1:
            return f"| {cell.name} | {goodput_bps(linux['received'], cell) / 1e6:.3f} | | | |"
        theirs, mean = lossy_means(cell, record)
        return (
            f"| {cell.name} (means) | {theirs / 1e6:.2f} | {mean / 1e6:.2f} "
            f"| {mean / theirs - 1:+.1%} | |"
        )
    ours = simulate(cell)
    relative = difference(ours["received"], linux["received"], cell)
    beyond = " *" if abs(relative) > BOUNDS[cell.group] else ""
    dropped = "" if dropped_alike(ours["dropped"], linux["dropped"]) else " *"
    return (
        f"| {cell.name} | {goodput_bps(linux['received'], cell) / 1e6:.2f} "
        f"| {goodput_bps(ours['received'], cell) / 1e6:.2f} | {relative:+.1%}{beyond} "
        f"| {linux['dropped']}, {ours['dropped']}{dropped} |"
    )


if __name__ == "__main__":
    sys.exit(main())
