"""Standing queues that transfers keep filled, and the rate of a window behind them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bentpipe.kinds import window_rule
from bentpipe.prediction.acks import PRODUCTS_IN_FLIGHT

if TYPE_CHECKING:
    from bentpipe.prediction.network import Direction
    from bentpipe.prediction.paths import FlowPath

# Share of the window that remains after a loss by a rule without a known one: Reno's (RFC 5681).
_HALF: Final = 0.5
# BBRMinPipeCwnd: the fewest segments that BBR has in flight.
_LEAST_IN_FLIGHT: Final = 4.0
# Rates converge from below within a few rounds.
_ROUNDS: Final = 200
_MET: Final = 1e-6


@dataclass(frozen=True, kw_only=True)
class Filler:
    """A transfer that fills a queue, and its rate."""

    path: FlowPath
    rate_bps: float
    round_trip_s: float


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A queue that is never empty: its average number of packets, and a packet's time.

    `busy` is the share of the time in which the direction sends packets of these transfers.
    """

    direction: Direction
    packets: float
    packet_s: float
    busy: float
    counts_packets: bool


def standing(direction: Direction, fillers: Sequence[Filler], *, busy: float) -> Standing | None:
    """Return the queue that these transfers keep in front of a direction; None if there is none.

    A window above the bandwidth-delay product queues. It grows until the queue overflows. A loss
    then reduces it to a share, and its average is in the middle. Of several transfers, one at a
    time has the loss.
    """
    if not fillers or direction.manages_queue:
        return None
    packet_bytes = max(each.path.packet_bytes for each in fillers)
    packet_s = direction.packet_time_s(packet_bytes)
    most = direction.buffer_segments(packet_bytes)
    # In packets: the bandwidth-delay product, and the sum of the windows.
    pipe = sum(each.rate_bps * each.round_trip_s / _bits(each) for each in fillers)
    windows = sum(_window(each, alone=len(fillers) == 1) for each in fillers)
    kept = sum(_kept(each, pipe, most) for each in fillers) / len(fillers)
    full = pipe + most
    if windows > full:
        windows = full * (1.0 - (1.0 - kept) / 2.0 / len(fillers))
    packets = windows - pipe
    if not math.isfinite(packets) or packets <= 0.0 or packet_s <= 0.0:
        return None
    return Standing(
        direction=direction,
        packets=packets,
        packet_s=packet_s,
        busy=busy,
        counts_packets=direction.queue_packets is not None,
    )


def _bits(filler: Filler) -> float:
    return 8.0 * filler.path.segment_bytes


def _window(filler: Filler, *, alone: bool) -> float:
    path = filler.path
    if not path.measures_its_rate:
        return path.window_segments
    # A single BBR flow paces at its measured rate and builds no queue. Each of several flows
    # overestimates its rate and has the most in flight that BBR allows (R. Ware and others,
    # Modeling BBR's Interactions with Loss-Based Congestion Control, IMC 2019).
    product = filler.rate_bps * filler.round_trip_s / _bits(filler)
    in_flight = product if alone else PRODUCTS_IN_FLIGHT * product
    return min(path.window_segments, max(_LEAST_IN_FLIGHT, in_flight))


def _kept(filler: Filler, pipe: float, most: float) -> float:
    rule = window_rule(filler.path.congestion_control)
    if rule.keeps_product:
        return pipe / (pipe + most) if math.isfinite(most) else _HALF
    return _HALF if rule.kept_after_loss is None else rule.kept_after_loss


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A transfer with its window, and the queues on its path in both directions.

    `acks_s` is the time that its ACKs take of each queue's direction, per bit of payload.
    """

    window_bits: float
    round_trip_s: float
    queues: tuple[str, ...]
    acks_s: Mapping[str, float]
    segments_bits: float


def behind_queues(
    waiting: Mapping[int, Waiting], queues: Mapping[str, Standing], most_bps: Mapping[int, float]
) -> dict[int, float]:
    """Return the rates of windows behind queues, bit/s: one window a round trip with its waits.

    ACKs also take places in a queue with a limit in packets: the more ACKs, the shorter the wait.
    """
    rates = dict.fromkeys(waiting, 0.0)
    for _ in range(_ROUNDS):
        taken = dict.fromkeys(queues, 0.0)
        acks_per_s = dict.fromkeys(queues, 0.0)
        for number, each in waiting.items():
            for name, per_bit_s in each.acks_s.items():
                taken[name] += rates[number] * per_bit_s
                acks_per_s[name] += rates[number] / each.segments_bits
        waits = {
            name: _wait_s(queue, taken[name], acks_per_s[name]) for name, queue in queues.items()
        }
        found = {
            number: min(
                most_bps[number],
                each.window_bits / (each.round_trip_s + sum(waits[name] for name in each.queues)),
            )
            for number, each in waiting.items()
        }
        met = all(math.isclose(found[each], rates[each], rel_tol=_MET) for each in found)
        rates = found
        if met:
            break
    return rates


def _wait_s(queue: Standing, taken: float, acks_per_s: float) -> float:
    if not queue.counts_packets:
        return queue.packets * queue.packet_s / max(queue.busy, _MET)
    # Data gets the time that ACKs leave, and at least half of it.
    data_per_s = max(queue.busy - taken, queue.busy / 2.0, _MET) / queue.packet_s
    return queue.packets / (data_per_s + acks_per_s)
