"""Simulated against emulated: the grid of docs/emulation.md.

Reno, CUBIC and BBR over {10, 50 Mbit/s} x {100, 600 ms round trip} x {no loss, one packet in a
thousand lost, 64 kbit/s back}, 20 s each. Where something is random, the mean of five seeds. Real
time: half an hour. Results are kept, one line per cell: an interrupted grid can be resumed.

* `python benches/witness/grid.py RESULTS.jsonl` measures the cells that are missing.
* `python benches/witness/grid.py RESULTS.jsonl --table` prints the table as Markdown.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from statistics import mean
from typing import Any

import bentpipe

RATES = ("10 Mbit/s", "50 Mbit/s")
ROUND_TRIPS_MS = (100, 600)
KINDS = ("no loss", "loss 1e-3", "64 kbit/s back")
CONTROLS = ("reno", "cubic", "bbr")
SEEDS = 5
DURATION_S = 20
# Allowed deviations from the kernel's goodput, without and with random loss.
TOLERANCES = {"no loss": 0.05, "loss 1e-3": 0.15, "64 kbit/s back": 0.05}


def scenario(control: str, rate: str, round_trip_ms: int, kind: str) -> dict[str, Any]:
    """Return one cell's network: one flow over one link, buffers that never limit."""
    forward: dict[str, Any] = {"rate": rate, "delay": f"{round_trip_ms // 2} ms"}
    back = dict(forward)
    if kind == "loss 1e-3":
        forward["errors"] = {"packet_loss_rate": 1e-3}
    if kind == "64 kbit/s back":
        back["rate"] = "64 kbit/s"
    return {
        "name": "grid",
        "duration": f"{DURATION_S} s",
        # The figures in docs/emulation.md are single results.
        "randomness": {"host_timing": False},
        "hosts": {
            "server": {
                "tcp": {
                    "profile": "linux",
                    "congestion_control": control,
                    "send_buffer": "64 MiB",
                }
            },
            "client": {"tcp": {"profile": "linux", "receive_buffer": "32 MiB"}},
        },
        "links": {
            "satellite": {"between": ["server", "client"], "forward": forward, "return": back}
        },
        "flows": {"download": {"from": "server", "to": "client", "app": {"kind": "bulk"}}},
    }


def measure(cell: tuple[str, str, int, str]) -> dict[str, Any]:
    """Emulate and simulate one cell."""
    seeds = range(1, SEEDS + 1) if cell[3] == "loss 1e-3" else (1,)
    network = scenario(*cell)
    real, ours, late = [], [], []
    for seed in seeds:
        emulated = bentpipe.emulate(network, seed=seed)
        real.append(emulated.flow().goodput_bps)
        late.append(emulated.late_ms.p999)
        ours.append(bentpipe.run(network, seed=seed).flow().goodput_bps)
    return {"cell": cell, "emulated_bps": real, "simulated_bps": ours, "late_p999_ms": late}


def main() -> None:
    """Measure the missing cells, or print the table."""
    path = Path(sys.argv[1])
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    done = [json.loads(line) for line in lines]
    if "--table" in sys.argv:
        print(table(done))
        return
    known = {tuple(each["cell"]) for each in done}
    # Cells with a single run come first, so that an interrupted grid covers every rule.
    kinds = sorted(KINDS, key=lambda kind: kind == "loss 1e-3")
    for kind, trip, rate, control in itertools.product(kinds, ROUND_TRIPS_MS, RATES, CONTROLS):
        cell = (control, rate, trip, kind)
        if cell not in known:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(measure(cell)) + "\n")


def table(done: list[dict[str, Any]]) -> str:
    """Return the table with one row per cell."""
    rows = [
        "| rule | rate | round trip | path | kernel | simulated | difference | |",
        "|---|---|---|---|---:|---:|---:|---|",
    ]
    for each in sorted(done, key=lambda each: (KINDS.index(each["cell"][3]), each["cell"])):
        control, rate, trip, kind = each["cell"]
        real, ours = mean(each["emulated_bps"]), mean(each["simulated_bps"])
        share = ours / real - 1 if real else float("nan")
        verdict = "" if abs(share) <= TOLERANCES[kind] else "outside"
        rows.append(
            f"| {control} | {rate} | {trip} ms | {kind} | {real / 1e6:.3f} Mbit/s "
            f"| {ours / 1e6:.3f} Mbit/s | {share:+.1%} | {verdict} |"
        )
    return "\n".join(rows)


if __name__ == "__main__":
    main()
