"""Wake-up delays of a kernel, from which `[randomness] host_timing` draws.

Opens connections of Linux's TCP over `bentpipe-live witness`, with captures at both ends, and
measures two delays:

* application: from the acknowledgment that ends the handshake to the first segment with data, which
  the kernel sends when the application has been woken and has written;
* packet: from the arrival of a packet to the next one that the same end sends, by the idle time of
  that end before.

Prints the quantiles that docs/tcp.md records and `crates/host/src/waking.rs` draws from. Quantiles
that fewer than two delays exceed are left out::

    cargo build -p bentpipe-live
    python3 benches/witness/wake_ups.py [--connections 40] [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import struct
import sys
import tempfile
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import linux
import numpy as np
from linux_cells import Cell

# Lower bounds of the classes of idle times, in ms.
IDLE_MS = (0.0, 1.0, 32.0)
QUANTILES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)
# A quantile is supported by at least so many longer delays.
BEYOND = 2
# A packet sent later than this is attributed to a timer.
LONGEST_ANSWER_S = 2e-3
FROM_KERNEL, TO_KERNEL = 0, 1


@dataclass(frozen=True, kw_only=True)
class Packet:
    """One packet of a capture."""

    time_s: float
    interface: int
    payload_bytes: int


def packets(capture: Path) -> Iterator[Packet]:
    """Yield the IPv4 TCP packets of a capture in which each packet is cut after its headers."""
    content = capture.read_bytes()
    at = 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        # An enhanced packet block: interface, time in nanoseconds, captured and original length.
        if kind == 6:
            interface, high, low = struct.unpack_from("<III", content, at + 8)
            headers = content[at + 28 :]
            total = int.from_bytes(headers[2:4], "big")
            internet = 4 * (headers[0] & 15)
            transport = 4 * (headers[internet + 12] >> 4)
            yield Packet(
                time_s=(high << 32 | low) / 1e9,
                interface=interface,
                payload_bytes=total - internet - transport,
            )
        at += length


def application_delay_s(capture: Path) -> float | None:
    """Return the time from the handshake's last packet to the first one with data."""
    sent = [packet for packet in packets(capture) if packet.interface == FROM_KERNEL]
    # The SYN, the acknowledgment, the first segment.
    if len(sent) < 3 or sent[1].payload_bytes or not sent[2].payload_bytes:
        return None
    return sent[2].time_s - sent[1].time_s


def packet_delays_s(capture: Path) -> Iterator[tuple[float, float]]:
    """Yield the idle time before each packet that was answered at once, and the answer's delay."""
    before: Packet | None = None
    idle_s = 0.0
    for packet in packets(capture):
        if before is not None:
            between_s = packet.time_s - before.time_s
            answers = packet.interface == FROM_KERNEL and before.interface == TO_KERNEL
            if answers and between_s < LONGEST_ANSWER_S:
                yield idle_s, between_s
            idle_s = between_s
        before = packet


def measure(connections: int, folder: Path) -> tuple[list[float], list[tuple[float, float]]]:
    """Open that many connections; return the delays of applications and of packets."""
    applications: list[float] = []
    answers: list[tuple[float, float]] = []
    paths = ((8, 120, 80), (10, 280, 116), (20, 60, 100), (4, 560, 186))
    for number in range(connections):
        rate, round_trip_ms, queue = paths[number % len(paths)]
        cell = Cell(
            group=f"wake-{number}",
            congestion_control="cubic",
            rate_bps=rate * 1_000_000,
            round_trip_ms=round_trip_ms,
            queue_packets=queue,
            duration_s=4,
        )
        linux.measure(cell, captures=folder)
        captures = folder / cell.name
        delay_s = application_delay_s(captures / "sender.pcapng")
        if delay_s is not None:
            applications.append(delay_s)
        for end in ("sender", "receiver"):
            answers.extend(packet_delays_s(captures / f"{end}.pcapng"))
    return applications, answers


def row(label: str, delays_s: Sequence[float]) -> str:
    """Return a line of the table: quantiles in microseconds, as far as the sample supports them."""
    count = len(delays_s)
    quantiles = zip(QUANTILES, np.quantile(delays_s, QUANTILES), strict=True)
    values = [
        f"{1e6 * value:.0f}" if round((1 - share) * count, 6) >= BEYOND else "–"
        for share, value in quantiles
    ]
    return f"| {label} | {len(delays_s)} | " + " | ".join(values) + " |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print the tables."""
    parser = argparse.ArgumentParser(description="Measure the wake-up delays of a kernel")
    parser.add_argument("--connections", type=int, default=40)
    parser.add_argument("--keep", type=Path, help="keep the captures there")
    chosen = parser.parse_args(arguments)
    reason = linux.obstacle()
    if reason:
        print(f"wake_ups.py: {reason}", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as temporary:
        folder = chosen.keep or Path(temporary)
        applications, answers = measure(chosen.connections, folder)
    print("| what | delays | " + " | ".join(f"{100 * q:g}%" for q in QUANTILES) + " |")
    print("|---" * (len(QUANTILES) + 2) + "|")
    print(row("application woken", applications))
    by_idle: list[list[float]] = [[] for _ in IDLE_MS]
    for idle_s, delay_s in answers:
        by_idle[bisect_right(IDLE_MS, 1e3 * idle_s) - 1].append(delay_s)
    for least_ms, delays_s in zip(IDLE_MS, by_idle, strict=True):
        # The answer to a packet right after another one may be that to the next.
        if delays_s and least_ms:
            print(row(f"packet after {least_ms:g} ms", delays_s))
    return 0


if __name__ == "__main__":
    sys.exit(main())
