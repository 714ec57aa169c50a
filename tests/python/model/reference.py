"""A tiny packet-by-packet simulator: the development reference of `delayed_ack`.

One event per packet arrival, serialisation end or timer; nothing in it is per round. It shares no
code with the models. It is not the judge: bentpipe's simulator and ns-2 are.

* Server: Reno without loss and with an infinite initial threshold, so slow start until the
  advertised window: one more segment for every ACK, whatever the ACK covers.
* Links: one packet at a time, first in first out, unlimited queues.
* Client: an ACK for every second segment, or `delayed_ack_s` after the first unacknowledged one.
  With in-order arrivals only, ns-2's DelAck sink and RFC 1122 section 4.2.3.2 agree.

Time is a whole number of femtoseconds, so that two events in one instant are seen to be so:
`arrival_wins_ties` says which of an arrival and a timer then comes first.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import deque
from dataclasses import dataclass, field


@dataclass(kw_only=True)
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
    arrival_wins_ties: bool = True


@dataclass
class _Link:
    """First in, first out: a packet leaves when the one before it has left."""

    delay: int
    queue: deque[tuple[int, int]] = field(default_factory=deque)
    busy: bool = False


FEMTOSECONDS = 10**15


def _ticks(seconds: float) -> int:
    return round(seconds * FEMTOSECONDS)


def transfer_time_s(cell: Cell) -> float:
    """Seconds from the start of the first segment to the arrival of the last byte."""
    count = math.ceil(cell.transfer_bytes / cell.segment_payload_bytes)
    last_payload = cell.transfer_bytes - (count - 1) * cell.segment_payload_bytes

    def segment_ticks(number: int) -> int:
        payload = last_payload if number == count else cell.segment_payload_bytes
        bits = (payload + cell.header_bytes) * 8
        return _ticks(cell.redundancy * bits / cell.downlink_rate_bps)

    ack_ticks = _ticks(cell.ack_bytes * 8 / cell.uplink_rate_bps)
    events: list[tuple[int, int, int, str, int]] = []
    order = itertools.count()
    links = {
        "down": _Link(_ticks(cell.downlink_delay_s)),
        "up": _Link(_ticks(cell.uplink_delay_s)),
    }
    timer_rank = 1 if cell.arrival_wins_ties else -1

    def schedule(time: int, kind: str, value: int) -> None:
        rank = timer_rank if kind == "timer" else 0
        heapq.heappush(events, (time, rank, next(order), kind, value))

    def start(name: str, now: int) -> None:
        link = links[name]
        if link.queue and not link.busy:
            link.busy = True
            duration, value = link.queue.popleft()
            schedule(now + duration, f"{name} sent", value)

    def send_window(now: int) -> None:
        nonlocal next_segment
        window = min(congestion_window, cell.window_segments)
        while next_segment <= min(acknowledged + window, count):
            links["down"].queue.append((segment_ticks(next_segment), next_segment))
            next_segment += 1
        start("down", now)

    def send_ack(now: int) -> None:
        nonlocal first_unacknowledged_at
        first_unacknowledged_at = None
        links["up"].queue.append((ack_ticks, received))
        start("up", now)

    congestion_window = cell.initial_window_segments
    acknowledged, received, next_segment = 0, 0, 1
    first_unacknowledged_at: int | None = None
    timer_generation = 0
    send_window(0)
    while events:
        now, _, _, kind, value = heapq.heappop(events)
        if kind.endswith(" sent"):
            name = kind.removesuffix(" sent")
            links[name].busy = False
            schedule(now + links[name].delay, f"{name} arrival", value)
            start(name, now)
        elif kind == "down arrival":
            received = value
            if received == count:
                return now / FEMTOSECONDS
            timer_generation += 1
            if first_unacknowledged_at is None:
                first_unacknowledged_at = now
                schedule(now + _ticks(cell.delayed_ack_s), "timer", timer_generation)
            else:
                send_ack(now)
        elif kind == "timer":
            if value == timer_generation and first_unacknowledged_at is not None:
                send_ack(now)
        else:
            acknowledged = value
            congestion_window += 1
            send_window(now)
    raise AssertionError("the transfer stalled")
