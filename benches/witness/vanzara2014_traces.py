"""Packet traces of vanzara2014's transfer: what a sender sends again, and how long it pauses.

`in_ns2` runs a cell in ns-2's TCP-Linux and returns its packets; `summary` evaluates the packets of
either program. `python -m tests.python.test_witness_linux_tcp --traces` prints both for the cells
that lie outside of ns-2's range.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ns2

SCRIPT = Path(__file__).with_name("vanzara2014.tcl")
# Without a timeout, a sender is silent for a round trip at most (0.6 s).
PAUSE_S = 0.9


@dataclass(frozen=True, kw_only=True)
class Packet:
    """A data packet as offered to the link, and whether it arrived."""

    sent_s: float
    sequence: int
    arrived: bool


@dataclass(frozen=True, kw_only=True)
class Summary:
    """What a sender did.

    `lost` excludes packets that may still be on their way at the end. `needless` counts
    retransmissions of data of which a copy had arrived or was to arrive. A pause is a silence of
    more than `PAUSE_S` before a retransmission, which a timeout ends.
    """

    sent: int
    lost: int
    retransmitted: int
    needless: int
    pauses: int
    median_pause_s: float
    paused_s: float

    def __str__(self) -> str:
        return (
            f"{self.sent} sent, {self.lost} lost, {self.retransmitted} retransmitted, "
            f"{self.needless} of them needlessly; {self.pauses} pauses of "
            f"{self.median_pause_s:.2f} s (median), {self.paused_s:.0f} s together"
        )


def in_ns2(cell: Any, *, seed: int, duration_s: float) -> list[Packet]:
    """Return the packets of a cell's transfer in ns-2 (`vanzara2014.Cell`)."""
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "packets.tr"
        ns2.run(
            SCRIPT,
            {
                "congestion_control": cell.congestion_control,
                "bit_error_rate": cell.bit_error_rate,
                "slow_start_threshold": cell.initial_slow_start_threshold,
                "seed": seed,
                "duration_s": duration_s,
                "trace_packets": str(trace),
            },
        )
        lines = [line.split() for line in trace.read_text(encoding="utf-8").splitlines()]
    # Event, time, from, to, kind, size, flags, flow, source, destination, sequence, packet id.
    arrived = {words[11] for words in lines if words[0] == "r"}
    return [
        Packet(sent_s=float(words[1]), sequence=int(words[10]), arrived=words[11] in arrived)
        for words in lines
        if words[0] == "+"
    ]


def matched(
    sent: Sequence[tuple[float, int]], received: Sequence[tuple[float, int]]
) -> list[Packet]:
    """Return packets from lists of (time, sequence) at both ends of a link that keeps the order."""
    packets = []
    at = 0
    for time_s, sequence in sent:
        arrived = at < len(received) and received[at][1] == sequence
        at += arrived
        packets.append(Packet(sent_s=time_s, sequence=sequence, arrived=arrived))
    return packets


def summary(packets: Sequence[Packet]) -> Summary:
    """Evaluate the packets of a transfer."""
    arrived: set[int] = set()
    seen: set[int] = set()
    retransmitted = needless = 0
    pauses = []
    before_s = 0.0
    for packet in packets:
        again = packet.sequence in seen
        retransmitted += again
        needless += again and packet.sequence in arrived
        if again and packet.sent_s - before_s > PAUSE_S:
            pauses.append(packet.sent_s - before_s)
        seen.add(packet.sequence)
        if packet.arrived:
            arrived.add(packet.sequence)
        before_s = packet.sent_s
    pauses.sort()
    last_arrived = max((n for n, packet in enumerate(packets) if packet.arrived), default=0)
    return Summary(
        sent=len(packets),
        lost=sum(not packet.arrived for packet in packets[:last_arrived]),
        retransmitted=retransmitted,
        needless=needless,
        pauses=len(pauses),
        median_pause_s=pauses[len(pauses) // 2] if pauses else 0.0,
        paused_s=sum(pauses),
    )
