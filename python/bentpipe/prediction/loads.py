"""Loads of transfers on links, carriers and processors, and the capacity left by other traffic."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.kinds import with_role
from bentpipe.prediction.acks import Acks, hold_back
from bentpipe.prediction.max_min_fairness import Uses, levels

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bentpipe.prediction.network import Direction
    from bentpipe.prediction.paths import FlowPath

# Finite substitute for the infinite transmission time of a packet on a direction without a rate.
FOR_EVER: Final = 1e12


@dataclass(frozen=True)
class _Use:
    """Use of a resource by a transfer: seconds of the resource for each bit of payload.

    `acks` is set if the transfer's ACKs use it. On a carrier, a faded terminal gets as much air
    time as the others and sends less in it: `fading` is the factor by which a bit takes longer.
    """

    transfer: int
    name: str
    seconds_per_bit: float
    acks: Acks | None = None
    fading: float = 1.0


@dataclass(frozen=True)
class Loads:
    """Resources that transfers use, the share left to them, and the number of other users."""

    uses: Uses
    by_acks: NDArray[np.bool_]
    names: tuple[str, ...]
    free: NDArray[np.float64]
    others: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        ways: Sequence[FlowPath],
        paths: Sequence[FlowPath],
        wanted: NDArray[np.float64],
        round_trips_s: Sequence[Sequence[float]],
        overloaded: Mapping[str, float],
    ) -> Loads:
        """Return the loads of transfers with the rates that they want.

        `paths` are all paths of the scenario. `round_trips_s` has the round trips of each
        transfer's parts, or its own. `overloaded` is the result of `overloads` for the paths.
        """
        known = zip(ways, round_trips_s, strict=True)
        found = [use for number, each in enumerate(known) for use in _uses_of(number, *each)]
        uses = _that_hold_back(found, overloaded.keys())
        names = dict.fromkeys(each.name for each in uses)
        places = {name: place for place, name in enumerate(names)}
        free, others = _left(places, ways, paths)
        for name, share in overloaded.items():
            # On an overloaded link, calls and ACKs arrive in proportion to their rates, because
            # they do not slow down. Data transfers slow down until they send nothing.
            acks = sum(
                wanted[each.transfer] * each.seconds_per_bit
                for each in uses
                if each.name == name and each.acks is not None
            )
            if name in places:
                free[places[name]] = acks / (acks + share)
        seconds = np.array([each.seconds_per_bit for each in uses])
        resource = np.array([places[each.name] for each in uses], dtype=np.intp)
        by_acks = np.array([each.acks is not None for each in uses])
        fair = seconds / np.array([each.fading for each in uses])
        table = Uses(
            user=np.array([each.transfer for each in uses], dtype=np.intp),
            resource=resource,
            cost=seconds,
            weight=np.where(by_acks, _of_data(fair, resource, by_acks), fair),
        )
        return cls(table, by_acks, tuple(names), free, others)

    def rates(
        self, wanted: NDArray[np.float64], here: NDArray[np.bool_]
    ) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        """Return the rates of the active transfers, and whether others limit them."""
        all_uses = self.uses
        some = here[all_uses.user]
        uses = Uses(
            user=all_uses.user[some],
            resource=all_uses.resource[some],
            cost=all_uses.cost[some],
            weight=all_uses.weight[some],
        )
        rates, allowed = levels(uses, free=self.free, wanted=np.where(here, wanted, 0.0))
        # A transfer that is alone on a link is limited by the link, not by others.
        pairs = np.unique(np.stack((uses.resource, uses.user)), axis=1)
        users = self.others + np.bincount(pairs[0], minlength=len(self.free))
        shared = (allowed <= rates[uses.user]) & (users[uses.resource] > 1)
        held_back = np.zeros(len(here), dtype=bool)
        held_back[uses.user[shared]] = True
        return rates, held_back


def overloads(paths: Sequence[FlowPath]) -> dict[str, float]:
    """Return the directions that traffic of a fixed rate overloads, and the load of each."""
    found: dict[str, float] = {}
    for path in paths:
        for direction, share in offered_shares(path):
            found[direction.name] = found.get(direction.name, 0.0) + share
    return {name: share for name, share in found.items() if share > 1.0}


def _uses_of(transfer: int, path: FlowPath, round_trips_s: Sequence[float]) -> Iterator[_Use]:
    """Yield the uses of a transfer: by its data, by its ACKs, and by both at processors."""
    # Where gateways split the connection, each part has its own segments and ACKs.
    for part, round_trip_s in zip(path.parts or (path,), round_trips_s, strict=True):
        bits = 8.0 * part.segment_bytes
        for direction in part.downlink:
            packet_s = min(direction.packet_time_s(part.packet_bytes), FOR_EVER)
            yield _Use(transfer, direction.name, packet_s / bits)
            if direction.carrier:
                # Each packet also takes a part of the carrier that the terminals share.
                on_carrier_s = direction.carrier_share(packet_s) / bits
                name, fading = _carrier(direction), direction.fading
                yield _Use(transfer, name, on_carrier_s, fading=fading)
        bits *= part.segments_per_ack
        for direction in part.uplink:
            if direction.thins_acks:
                # No formula has the number of ACKs that remain where the link removes ACKs.
                continue
            ack_s = min(part.answer_time_s(direction), FOR_EVER)
            acks = Acks.of(part, direction, time_s=ack_s, round_trip_s=round_trip_s)
            yield _Use(transfer, direction.name, ack_s / bits, acks)
            if direction.carrier and not direction.constant_bps:
                # Constant capacity carries ACKs, and is taken off already, used or not.
                carrier_s = direction.carrier_share(ack_s)
                yield _Use(transfer, _carrier(direction), carrier_s / bits, acks)
    for node, time_s in path.processors:
        # A processor also serves the ACKs that belong to a segment.
        yield _Use(transfer, _processor(node), time_s / (8.0 * path.segment_bytes))


def _that_hold_back(uses: Sequence[_Use], overloaded: Set[str]) -> list[_Use]:
    """Return the uses without those of ACKs whose loss does not limit their transfers.

    ACKs that share a link with data, or an overloaded link, wait and are dropped like the data.
    On a link with ACKs alone, a dropped ACK leaves more segments to the next one.
    """
    with_data = {each.name for each in uses if each.acks is None} | overloaded
    alone: dict[str, list[Acks]] = {}
    for each in uses:
        if each.acks is not None and each.name not in with_data:
            alone.setdefault(each.name, []).append(each.acks)
    dropped = {name for name, acks in alone.items() if not hold_back(acks)}
    return [each for each in uses if each.name not in dropped]


def _of_data(
    seconds: NDArray[np.float64], resource: NDArray[np.intp], by_acks: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return for each use the average use of its resource by data, or its own without data."""
    count = int(resource.max()) + 1
    data = ~by_acks
    total = np.bincount(resource[data], weights=seconds[data], minlength=count)
    number = np.bincount(resource[data], minlength=count)
    mean = np.divide(total, number, out=np.zeros(count), where=number > 0)[resource]
    return np.where(mean > 0.0, mean, seconds)


def _carrier(direction: Direction) -> str:
    """Return a carrier's name among those of links, which have no spaces."""
    return f"carrier {direction.carrier}"


def _processor(node: str) -> str:
    return f"processor {node}"


def _left(
    places: Mapping[str, int], ways: Sequence[FlowPath], paths: Sequence[FlowPath]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return the share of each resource left to transfers, and the number of other users."""
    free = np.ones(len(places))
    others = np.zeros(len(places), dtype=np.intp)

    def take(name: str, share: float, users: int) -> None:
        if name in places:
            free[places[name]] -= share
            others[places[name]] += users

    for path in paths:
        for direction, share in offered_shares(path):
            take(direction.name, share, 1)
        for node, time_s in path.processors if path.datagrams is not None else ():
            take(_processor(node), _packets_per_s(path) * time_s, 1)
    for name, (share, users) in _taken_of_carriers(ways, paths).items():
        take(name, share, users)
    return np.maximum(free, 0.0), others


def _taken_of_carriers(
    ways: Sequence[FlowPath], paths: Sequence[FlowPath]
) -> dict[str, tuple[float, int]]:
    """Return the share of each carrier that transfers do not get, and the number of its users.

    The constant capacity of a terminal is its own, used or not; transfers use their terminal's.
    """
    theirs = {each.name for path in ways for each in path.downlink}
    offered: dict[str, float] = {}
    known: dict[str, Direction] = {}
    for path in paths:
        known |= {each.name: each for each in (*path.downlink, *path.uplink) if each.carrier}
        for direction, taken in offered_shares(path):
            if direction.carrier:
                share = direction.carrier_share(taken)
                offered[direction.name] = offered.get(direction.name, 0.0) + share
    found: dict[str, tuple[float, int]] = {}
    for name, direction in known.items():
        own = direction.constant_share
        share = offered.get(name, 0.0)
        if name not in theirs:
            share = max(share, own)
        taken, others = found.get(_carrier(direction), (0.0, 0))
        found[_carrier(direction)] = (taken + share, others + (1 if share else 0))
    return found


def offered_shares(path: FlowPath) -> Sequence[tuple[Direction, float]]:
    """Return the share of each direction's time that a call or a source of echoes takes."""
    if path.datagrams is None:
        return ()
    per_s = _packets_per_s(path)
    ways = (*path.downlink, *path.uplink) if path.two_way else path.downlink
    return [(each, per_s * each.packet_time_s(path.packet_bytes)) for each in ways]


def _packets_per_s(path: FlowPath) -> float:
    """Return the packets a second in one direction of an application with a fixed rate."""
    if path.datagrams is None:
        return 0.0
    per_s = path.datagrams.offered_bps / (8.0 * path.datagrams.payload_bytes)
    # The goodput of a call counts both directions.
    return per_s / 2.0 if path.application in with_role("call") else per_s
