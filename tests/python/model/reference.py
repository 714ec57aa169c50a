"""A tiny packet-by-packet simulator: the development reference of `delayed_ack`.

One event per packet arrival, serialisation end or timer; nothing in it is per round. It shares no
code with the models. It is not the judge: bentpipe's simulator and ns-2 are.

* Server: Reno without loss and with an infinite initial threshold, so slow start until the
  advertised window: one more segment for every ACK, whatever the ACK covers.
* Links: one packet at a time, first in first out, unlimited queues.
* Client: an ACK for every second segment, or `delayed_ack_s` after the first unacknowledged one.
  With in-order arrivals only, ns-2's DelAck sink and RFC 1122 section 4.2.3.2 agree.

Time is a whole number of femtoseconds, so that simultaneous events are recognised.
`arrival_wins_ties` says which of an arrival and a timer then comes first.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One transfer over one path; defaults are obata2000's table 1."""

    downlink_rate_bps: float
    uplink_rate_bps: float
    downlink_delay_s: float
    uplink_delay_s: float
    transfer_bytes: int
    window_segments: int
    segment_payload_bytes: int = 1448
    header_bytes: int = 52
    ack_bytes: int = 52
    redundancy: float = 1.0
    delayed_ack_s: float = 0.2
    initial_window_segments: int = 1
    counts_segments: bool = False
    arrival_wins_ties: bool = True


FEMTOSECONDS = 10**15


def _ticks(seconds: float) -> int:
    return round(seconds * FEMTOSECONDS)


class _Events:
    """The event queue; events of one instant come by rank, then in the order of scheduling."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, str, int]] = []
        self._order = itertools.count()

    def add(self, time: int, kind: str, value: int, rank: int = 0) -> None:
        heapq.heappush(self._heap, (time, rank, next(self._order), kind, value))

    def pop(self) -> tuple[int, str, int]:
        time, _, _, kind, value = heapq.heappop(self._heap)
        return time, kind, value


class _Link:
    """First in, first out: a packet's bits leave when those of the one before have left."""

    def __init__(self, events: _Events, name: str, delay_s: float) -> None:
        self.events, self.name, self.delay = events, name, _ticks(delay_s)
        self.queue: deque[tuple[int, int]] = deque()
        self.busy = False

    def send(self, now: int, duration: int, value: int) -> None:
        self.queue.append((duration, value))
        self._start(now)

    def on_sent(self, now: int, value: int) -> None:
        self.busy = False
        self.events.add(now + self.delay, f"{self.name} arrival", value)
        self._start(now)

    def _start(self, now: int) -> None:
        if self.queue and not self.busy:
            self.busy = True
            duration, value = self.queue.popleft()
            self.events.add(now + duration, f"{self.name} sent", value)


class _Server:
    def __init__(self, cell: Cell, link: _Link) -> None:
        self.cell, self.link = cell, link
        self.count = math.ceil(cell.transfer_bytes / cell.segment_payload_bytes)
        self.congestion_window = cell.initial_window_segments
        self.acknowledged, self.sent = 0, 0

    def on_ack(self, now: int, number: int) -> None:
        self.congestion_window += number - self.acknowledged if self.cell.counts_segments else 1
        self.acknowledged = number
        self.send_window(now)

    def send_window(self, now: int) -> None:
        window = min(self.congestion_window, self.cell.window_segments)
        while self.sent < min(self.acknowledged + window, self.count):
            self.sent += 1
            self.link.send(now, self._segment_ticks(self.sent), self.sent)

    def _segment_ticks(self, number: int) -> int:
        cell = self.cell
        before = (number - 1) * cell.segment_payload_bytes
        payload = min(cell.segment_payload_bytes, cell.transfer_bytes - before)
        bits = (payload + cell.header_bytes) * 8
        return _ticks(cell.redundancy * bits / cell.downlink_rate_bps)


class _Client:
    def __init__(self, cell: Cell, events: _Events, link: _Link) -> None:
        self.events, self.link = events, link
        self.ack_ticks = _ticks(cell.ack_bytes * 8 / cell.uplink_rate_bps)
        self.timer_ticks = _ticks(cell.delayed_ack_s)
        self.timer_rank = 1 if cell.arrival_wins_ties else -1
        self.received = 0
        self.waiting = False

    def on_segment(self, now: int, number: int) -> None:
        self.received = number
        if self.waiting:
            self._acknowledge(now)
        else:
            self.waiting = True
            self.events.add(now + self.timer_ticks, "timer", number, self.timer_rank)

    def on_timer(self, now: int, number: int) -> None:
        if self.waiting and self.received == number:
            self._acknowledge(now)

    def _acknowledge(self, now: int) -> None:
        self.waiting = False
        self.link.send(now, self.ack_ticks, self.received)


def transfer_time_s(cell: Cell) -> float:
    """Seconds from the start of the first segment to the arrival of the last byte."""
    events = _Events()
    down = _Link(events, "down", cell.downlink_delay_s)
    up = _Link(events, "up", cell.uplink_delay_s)
    server, client = _Server(cell, down), _Client(cell, events, up)
    server.send_window(0)
    while True:
        now, kind, value = events.pop()
        match kind:
            case "down sent":
                down.on_sent(now, value)
            case "up sent":
                up.on_sent(now, value)
            case "up arrival":
                server.on_ack(now, value)
            case "timer":
                client.on_timer(now, value)
            case _:
                client.on_segment(now, value)
                if client.received == server.count:
                    return now / FEMTOSECONDS
