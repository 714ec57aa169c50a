"""What each of several transfers gets of what they share, if all get the same."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bentpipe.prediction.answers import FlowPrediction
    from bentpipe.prediction.network import Direction
    from bentpipe.prediction.paths import FlowPath

# Directions and demands that differ by rounding are met together.
_ALIKE: Final = 1e-9
# A packet's seconds where a direction has no rate at all: as good as never, and finite.
_FOR_EVER: Final = 1e12
# What a transfer is called that sends as fast as it may, one way.
_ELASTIC: Final = "bulk"


@dataclass(frozen=True)
class _Entry:
    """That a flow occupies a direction for so many seconds with each bit of its payload."""

    flow: int
    direction: int
    seconds_per_bit: float


def fair_shares(
    paths: Sequence[FlowPath], predictions: Mapping[str, FlowPrediction]
) -> dict[str, float]:
    """Return the goodput of transfers that a shared link or processor limits, bit/s, by flow.

    Max-min fairness (Bertsekas and Gallager, Data Networks, section 6.5.2): all grow alike until a
    link is full, or their own limits hold them back; the others go on. What calls and echoes offer
    is taken off first, and what packets by UDP do; ACKs take of processors, and nothing of links;
    pages and the like take nothing. Window rules, round trips and queues decide who gets more than
    another.

    Parameters
    ----------
    paths
        Each flow's path.
    predictions
        What is known of each by itself: its lowest limit or estimate is as much as it wants.
    """
    if len(paths) < 2:
        return {}
    elastic = [path for path in paths if path.application == _ELASTIC and path.over_tcp]
    shares, full = _water_filling(elastic, paths, predictions)
    return {
        path.flow: float(share)
        for path, share, is_full in zip(elastic, shares, full, strict=True)
        if is_full
    }


def _water_filling(
    elastic: Sequence[FlowPath],
    paths: Sequence[FlowPath],
    predictions: Mapping[str, FlowPrediction],
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return each transfer's share, and whether a shared link is what holds it back."""
    indices: dict[str, int] = {}

    def index_of(name: str) -> int:
        return indices.setdefault(name, len(indices))

    def entry(number: int, path: FlowPath, name: str, packet_s: float) -> _Entry:
        return _Entry(number, index_of(name), min(packet_s, _FOR_EVER) / (8.0 * path.segment_bytes))

    entries = []
    for number, path in enumerate(elastic):
        for direction in path.downlink:
            packet_s = direction.packet_time_s(path.packet_bytes)
            entries.append(entry(number, path, direction.name, packet_s))
            if direction.carrier:
                # Of what all send on a carrier together, each packet takes a part, too.
                packet_s = _on_carrier_s(direction, packet_s)
                entries.append(entry(number, path, _carrier(direction), packet_s))
        for name, time_s in path.processors:
            # With the ACKs that go with a segment: it serves these, too.
            entries.append(entry(number, path, _processor(name), time_s))
    free = np.ones(len(indices))
    users = np.bincount([each.direction for each in entries], minlength=len(indices))
    for path in paths:
        for direction, taken in _offered(path):
            if direction.name in indices:
                free[indices[direction.name]] -= taken
                users[indices[direction.name]] += 1
        for node, time_s in path.processors if path.datagrams is not None else ():
            if (name := _processor(node)) in indices:
                free[indices[name]] -= _packets_per_s(path) * time_s
                users[indices[name]] += 1
    for name, (taken, others) in _taken_of_carriers(elastic, paths).items():
        if name in indices:
            free[indices[name]] -= taken
            users[indices[name]] += others
    free = np.maximum(free, 0.0)
    flows = np.array([each.flow for each in entries], dtype=np.intp)
    links = np.array([each.direction for each in entries], dtype=np.intp)
    seconds = np.array([each.seconds_per_bit for each in entries])
    wanted = np.array([_wanted(predictions[path.flow]) for path in elastic])
    grows = np.ones(len(elastic), dtype=bool)
    held_back = np.zeros(len(elastic), dtype=bool)
    shares = np.zeros(len(elastic))
    level = 0.0
    while grows.any():
        load = np.bincount(links, weights=seconds * grows[flows], minlength=len(indices))
        room = np.divide(free, load, out=np.full(len(indices), math.inf), where=load > 0.0)
        step = min(float(room.min()), float((wanted[grows] - level).min()))
        step = max(step, 0.0)
        level += step
        free = np.maximum(free - step * load, 0.0)
        is_full = (load > 0.0) & (room <= step * (1.0 + _ALIKE))
        at_full = np.zeros(len(elastic), dtype=bool)
        at_full[flows[is_full[links] & (users[links] > 1)]] = True
        stops = at_full.copy()
        stops[flows[is_full[links]]] = True
        stops |= wanted <= level * (1.0 + _ALIKE)
        stops &= grows
        if not stops.any():
            # Rounding left a sliver of room.
            break
        shares[stops] = level
        held_back |= stops & at_full
        grows &= ~stops
    return shares, held_back


def _carrier(direction: Direction) -> str:
    """Return what a carrier is called beside links, whose names have no space."""
    return f"carrier {direction.carrier}"


def _processor(node: str) -> str:
    return f"processor {node}"


def _on_carrier_s(direction: Direction, packet_s: float) -> float:
    """Return which part of a second's carrier a packet takes that takes so long on a direction."""
    return packet_s * direction.rate_bps / direction.carrier_rate_bps


def _taken_of_carriers(
    elastic: Sequence[FlowPath], paths: Sequence[FlowPath]
) -> dict[str, tuple[float, int]]:
    """Return which share of each carrier transfers don't get, and how many have it.

    What a terminal has in each frame without asking is its own, used or not; transfers use theirs.
    """
    theirs = {each.name for path in elastic for each in path.downlink}
    offered: dict[str, float] = {}
    known: dict[str, Direction] = {}
    for path in paths:
        known |= {each.name: each for each in (*path.downlink, *path.uplink) if each.carrier}
        for direction, taken in _offered(path):
            if direction.carrier:
                share = _on_carrier_s(direction, taken)
                offered[direction.name] = offered.get(direction.name, 0.0) + share
    found: dict[str, tuple[float, int]] = {}
    for name, direction in known.items():
        own = direction.constant_bps / direction.carrier_rate_bps
        share = offered.get(name, 0.0)
        if name not in theirs:
            share = max(share, own)
        taken, others = found.get(_carrier(direction), (0.0, 0))
        found[_carrier(direction)] = (taken + share, others + (1 if share else 0))
    return found


def _wanted(prediction: FlowPrediction) -> float:
    """Return what a transfer would get by itself while it lasts, bit/s."""
    # How long slow start takes is part of a transfer's time, not of what it takes of a link then.
    limits = {**prediction.limits_bps, **prediction.estimates_bps}
    limits.pop("transfer size", None)
    return min(limits.values())


def _offered(path: FlowPath) -> Sequence[tuple[Direction, float]]:
    """Return which share of each direction's time a call or a source of echoes takes."""
    if path.datagrams is None:
        return ()
    per_s = _packets_per_s(path)
    ways = (*path.downlink, *path.uplink) if path.two_way else path.downlink
    return [(each, per_s * each.packet_time_s(path.packet_bytes)) for each in ways]


def _packets_per_s(path: FlowPath) -> float:
    """Return how many packets a second go one way of what sends at a rate of its own."""
    if path.datagrams is None:
        return 0.0
    per_s = path.datagrams.offered_bps / (8.0 * path.datagrams.payload_bytes)
    # Both talk, and both are a call's goodput.
    return per_s / 2.0 if path.application == "voice" else per_s
