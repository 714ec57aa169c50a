"""Durations of random transfers over one bottleneck, in ns-2 and in bentpipe.

As a script, `python3 benches/witness/cells.py [--cells N]` prints a table for each loss recovery.
Its columns are the number of cells, the number within 2%, the median difference, the mean, and the
largest. `docs/validation/ns2.md` explains the largest differences.

The option `--shared` prints the tables of `shared.py` instead: several flows, modem returns, Hybla
and Westwood.

As a module, `tests/python/test_witness_cells.py` uses it to check the same cells.

Lost packets are listed by number, so that both programs lose the same ones. If the queue is short,
each program drops packets of its own choice.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ns2
import shared

import bentpipe

SCRIPT = Path(__file__).with_suffix(".tcl")
KINDS = ("loss-free", "listed losses", "short queue")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One transfer. Rates are in bit/s, delays (propagation, one way) and times in seconds.

    The list `lost` has data packets by their order on the bottleneck, from 0. The limit
    `queue_packets` includes the packet in transmission.
    """

    variant: str
    rate_bps: int
    delay_s: float
    back_bps: int
    back_delay_s: float
    delayed_ack_s: float
    window_segments: int
    segments: int
    initial_window: int
    queue_packets: int = ns2.LONG_QUEUE_PACKETS
    lost: tuple[int, ...] = ()
    minimum_rto_s: float = 1.0


def cell(kind: str, number: int) -> Cell:
    """Return a random cell of this kind, always the same for a number."""
    choose = random.Random(f"{kind} {number}").choice
    drawn = Cell(
        variant=choose(list(ns2.RECOVERIES)),
        rate_bps=choose([64_000, 256_000, 1_000_000, 2_000_000, 5_000_000, 10_000_000]),
        delay_s=choose([0.005, 0.05, 0.27, 0.4]),
        back_bps=choose([9_600, 64_000, 256_000, 2_000_000]),
        back_delay_s=choose([0.005, 0.05, 0.27]),
        delayed_ack_s=choose([0, 0.1, 0.2]),
        window_segments=choose([4, 17, 60, 300]),
        segments=choose([50, 300, 1000]),
        initial_window=choose([1, 2, 4, 10]),
    )
    if kind == "listed losses":
        draw = random.Random(f"{kind} {number} lost")
        lost = draw.sample(range(5, drawn.segments - 5), draw.randint(1, 4))
        return replace(drawn, back_bps=max(drawn.back_bps, 64_000), lost=tuple(sorted(lost)))
    if kind == "short queue":
        limit = choose([5, 20, 60])
        return replace(drawn, back_bps=2_000_000, window_segments=1000, queue_packets=limit)
    return drawn


def in_ns2(of: Cell) -> float:
    """Return the seconds in ns-2 from the first data segment sent to the last byte received."""
    options: dict[str, object] = {
        "rate_bps": of.rate_bps,
        "delay_s": of.delay_s,
        "back_bps": of.back_bps,
        "back_delay_s": of.back_delay_s,
        "queue_packets": of.queue_packets,
        "variant": of.variant,
        "delayed_ack_s": of.delayed_ack_s,
        "window_segments": of.window_segments,
        "segments": of.segments,
        "initial_window": of.initial_window,
        # The SYN is the first packet.
        "lost": " ".join(str(number + 1) for number in of.lost),
        "minimum_rto_s": of.minimum_rto_s,
    }
    sent: list[float] = []
    arrived: dict[int, float] = {}
    for line in ns2.run(SCRIPT, options).splitlines():
        event, *fields = line.split()
        if event == "done" or fields[9] == "0":
            continue
        time, come_from, go_to = float(fields[0]), fields[1], fields[2]
        if event == "+" and (come_from, go_to) == ("0", "1"):
            sent.append(time)
        if event == "r" and (come_from, go_to) == ("2", "3"):
            arrived.setdefault(int(fields[9]), time)
    return max(arrived.values()) - sent[0]


def here(of: Cell) -> float:
    """Return the seconds in bentpipe from the first segment sent to the last byte received."""
    tcp = ns2.sender(
        recovery=ns2.RECOVERIES[of.variant],
        initial_window=of.initial_window,
        threshold_segments=of.window_segments,
        minimum_rto_s=of.minimum_rto_s,
    )
    client = ns2.receiver(
        sack=of.variant == "Sack1",
        delayed_ack_s=of.delayed_ack_s,
        window_segments=of.window_segments,
    )
    forward: dict[str, Any] = {
        "rate": f"{of.rate_bps} bit/s",
        "delay": f"{of.delay_s} s",
        # In bentpipe, the limit excludes the packet in transmission.
        "queue": {"limit": f"{of.queue_packets - 1} packets"},
    }
    if of.lost:
        # Numbers start at 1, after the SYN and the handshake's last acknowledgment.
        forward["errors"] = {"lost_packets": [number + 3 for number in of.lost]}
    back = {
        "rate": f"{of.back_bps} bit/s",
        "delay": f"{of.back_delay_s} s",
        "queue": {"limit": f"{ns2.LONG_QUEUE_PACKETS} packets"},
    }
    access = {
        "rate": "100 Mbit/s",
        "delay": "1 ms",
        "queue": {"limit": f"{ns2.LONG_QUEUE_PACKETS} packets"},
    }
    size = f"{of.segments * ns2.SEGMENT_BYTES} B"
    scenario = {
        "name": "cell",
        "duration": "3000 s",
        "hosts": {"server": {"tcp": tcp}, "client": {"tcp": client}},
        "gateways": {"near": {}, "far": {}},
        "links": {
            "access": {"between": ["server", "near"], **access},
            "bottleneck": {"between": ["near", "far"], "forward": forward, "return": back},
            "home": {"between": ["far", "client"], **access},
        },
        "flows": {
            "transfer": {"from": "server", "to": "client", "app": {"kind": "bulk", "size": size}}
        },
    }
    flow = bentpipe.run(scenario).flow()
    if flow.finish_s is None or flow.first_data_s is None:
        raise RuntimeError(f"unfinished after 3000 s: {of}")
    return flow.finish_s - flow.first_data_s


def differences(kind: str, numbers: Iterable[int]) -> list[tuple[Cell, float]]:
    """Return cells and their relative differences in duration, bentpipe's against ns-2's."""
    cells = [cell(kind, number) for number in numbers]
    with ThreadPoolExecutor() as pool:
        references = list(pool.map(in_ns2, cells))
    return [
        (each, here(each) / reference - 1)
        for each, reference in zip(cells, references, strict=True)
    ]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cells", type=int, default=200, help="of each kind")
    parser.add_argument("--shared", action="store_true", help="cells of shared.py")
    asked = parser.parse_args()
    count = asked.cells
    if asked.shared:
        for kind in shared.KINDS:
            for line in shared.table(kind, count):
                print(line, flush=True)
        return
    for kind in KINDS:
        found = differences(kind, range(count))
        for variant in ns2.RECOVERIES:
            of = [each for drawn, each in found if drawn.variant == variant]
            sizes = [abs(each) for each in of]
            near = sum(each <= 0.02 for each in sizes)
            print(
                f"{kind:14} {variant:8} {len(of):4} cells, {near:4} within 2%,"
                f" median {statistics.median(sizes):.2%}, mean {statistics.mean(of):+.2%},"
                f" farthest {max(of, key=abs):+.1%}"
            )


if __name__ == "__main__":
    main()
