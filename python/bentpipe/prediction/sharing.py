"""What each of several transfers gets of what they share, if all get the same."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.prediction.acks import Acks, hold_back, uplink_acks_bps
from bentpipe.prediction.fluid import Transfer, while_they_last
from bentpipe.prediction.levels import Uses, levels
from bentpipe.prediction.standing import Filler, Standing, Waiting, behind_queues, standing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bentpipe.prediction.answers import FlowPrediction
    from bentpipe.prediction.network import Direction
    from bentpipe.prediction.paths import FlowPath

# A packet's seconds where a direction has no rate at all: as good as never, and finite.
_FOR_EVER: Final = 1e12
# What sends as fast as it may, one way, or both.
_ONE_WAY: Final = "bulk"
_BOTH_WAYS: Final = "bulk both ways"


@dataclass(frozen=True)
class _Use:
    """That a transfer occupies something for so many seconds with each bit of its payload.

    `acks` where it is its acknowledgments that do. Of a carrier, which is time on the air, who has
    faded gets as much as others, and sends less in it: `fading` is how much longer a bit takes.
    """

    transfer: int
    name: str
    seconds_per_bit: float
    acks: Acks | None = None
    fading: float = 1.0


def sharing_estimates(
    paths: Sequence[FlowPath], predictions: Mapping[str, FlowPrediction]
) -> dict[str, dict[str, float]]:
    """Return what others leave to transfers, bit/s, by flow and name of the estimate.

    `window, behind queues`: a window a round trip in which it waits in queues that others keep
    full. `fair share`: what a shared link or processor, or what is with others on it, leaves.

    Max-min fairness (Bertsekas and Gallager, Data Networks, section 6.5.2): of what is full, all
    get the same, but for those that their own limits or something else hold back; these leave the
    rest to others. Who is not there yet, or has ended, leaves all to the others. What calls and
    echoes offer is taken off first, and what packets by UDP do; pages and the like take nothing.
    Window rules, round trips and queues decide who gets more than another.

    Acknowledgments take their part of the way back. They don't slow down where it is full, as data
    does, so that data has what they leave; but beside data they get no more of its time than one
    transfer that sends there, and then it is they that hold their own transfer back.

    Parameters
    ----------
    paths
        Each flow's path.
    predictions
        What is known of each by itself: its lowest limit or estimate is as much as it wants.
    """
    ways = [way for path in paths if path.over_tcp for way in _ways(path)]
    if not ways:
        return {}
    found: dict[str, dict[str, float]] = {}
    end_s = max(path.duration_s for path in paths)
    transfers = [
        Transfer(
            flow=path.flow,
            start_s=end_s - path.duration_s,
            duration_s=path.duration_s,
            bits=math.inf if path.transfer_bytes is None else 8.0 * path.transfer_bytes,
        )
        for path in ways
    ]
    wanted = np.array([_wanted(path, predictions[path.flow]) for path in ways])
    starved = _starved(ways, paths)
    wanted[starved] = 0.0
    loads = _Loads.of(ways, paths, wanted)
    for number, rate_bps in _behind_queues(ways, loads, wanted, predictions).items():
        found[ways[number].flow] = {"window, behind queues": _digits(rate_bps)}
        wanted[number] = min(wanted[number], rate_bps)
    goodputs, held_back = while_they_last(transfers, lambda here: loads.rates(wanted, here))
    shares: dict[str, float] = {}
    for each, goodput in zip(transfers, goodputs, strict=True):
        # Both ways count where both send.
        shares[each.flow] = shares.get(each.flow, 0.0) + float(goodput)
    for each, is_held in zip(transfers, held_back | starved, strict=True):
        if is_held:
            found.setdefault(each.flow, {})["fair share"] = _digits(shares[each.flow])
    return found


def _starved(ways: Sequence[FlowPath], paths: Sequence[FlowPath]) -> NDArray[np.bool_]:
    """Return whose data has a link on its way that what is offered fills by itself."""
    full = {name for name, share in _offered_by_name(paths).items() if share > 1.0}
    found = [any(each.name in full for each in path.downlink) for path in ways]
    return np.array(found, dtype=bool)


def _offered_by_name(paths: Sequence[FlowPath]) -> dict[str, float]:
    """Return which share of each direction's time is offered by who sends at a rate of its own."""
    found: dict[str, float] = {}
    for path in paths:
        for direction, share in _offered(path):
            found[direction.name] = found.get(direction.name, 0.0) + share
    return found


def _digits(rate_bps: float) -> float:
    """Round, so that those that are alike have the same, to the digit."""
    return float(f"{rate_bps:.9g}")


def _behind_queues(
    ways: Sequence[FlowPath],
    loads: _Loads,
    wanted: NDArray[np.float64],
    predictions: Mapping[str, FlowPrediction],
) -> dict[int, float]:
    """Return what a window comes to of those that wait in queues of others, by their places."""
    uses = loads.uses
    rates, allowed = levels(uses, free=loads.free, wanted=wanted)
    busy = np.bincount(
        uses.resource, weights=uses.cost * rates[uses.user], minlength=len(loads.free)
    )
    fillers: dict[str, list[tuple[int, Filler]]] = {}
    for place in np.flatnonzero(~loads.by_acks & (allowed <= rates[uses.user])).tolist():
        number, name = int(uses.user[place]), loads.names[uses.resource[place]]
        # Who ends may have ended, and who splits the way has a window for each part.
        if ways[number].transfer_bytes is None and not ways[number].parts:
            filler = Filler(path=ways[number], rate_bps=float(rates[number]))
            fillers.setdefault(name, []).append((number, filler))
    share = dict(zip(loads.names, busy.tolist(), strict=True))
    # Of two users, or of one and those whose acknowledgments pass.
    queues: dict[str, Standing] = {}
    waiting: dict[int, Waiting] = {}
    for number, path in enumerate(ways):
        window_bps = predictions[path.flow].limits_bps.get("window")
        if window_bps is None or path.parts:
            continue
        met = []
        for direction in (*path.downlink, *path.uplink):
            others = [each for other, each in fillers.get(direction.name, ()) if other != number]
            if len(others) < len(fillers.get(direction.name, ())):
                # It fills that queue itself, and waits as long as it does.
                continue
            if direction.name not in queues:
                queue = standing(direction, others, busy=share.get(direction.name, 1.0))
                if queue is None:
                    continue
                queues[direction.name] = queue
            met.append(direction)
        if not met:
            continue
        bits = 8.0 * path.segment_bytes * path.segments_per_ack
        waiting[number] = Waiting(
            window_bits=8.0 * path.window_bytes,
            round_trip_s=8.0 * path.window_bytes / window_bps,
            queues=tuple(each.name for each in met),
            acks_s={
                each.name: path.answer_time_s(each) / bits
                for each in met
                if each in path.uplink and not each.thins_acks
            },
            segments_bits=bits,
        )
    most = {number: float(wanted[number]) for number in waiting}
    return behind_queues(waiting, queues, most)


def _ways(path: FlowPath) -> Iterator[FlowPath]:
    """Yield a transfer's path; two, where both ends send."""
    if path.application in (_ONE_WAY, _BOTH_WAYS):
        yield path
    if path.application == _BOTH_WAYS:
        yield _reversed(path)


def _reversed(path: FlowPath) -> FlowPath:
    parts = tuple(_reversed(part) for part in reversed(path.parts))
    return replace(path, downlink=path.uplink, uplink=path.downlink, parts=parts)


@dataclass(frozen=True)
class _Loads:
    """What transfers use, how much of it is left to them, and how many others have the rest."""

    uses: Uses
    by_acks: NDArray[np.bool_]
    names: tuple[str, ...]
    free: NDArray[np.float64]
    others: NDArray[np.intp]

    @classmethod
    def of(
        cls, ways: Sequence[FlowPath], paths: Sequence[FlowPath], wanted: NDArray[np.float64]
    ) -> _Loads:
        """Return the loads of transfers that want so much, of all of a scenario's paths."""
        overloaded = {name: share for name, share in _offered_by_name(paths).items() if share > 1.0}
        found = [use for each in enumerate(ways) for use in _uses_of(*each)]
        uses = _that_hold_back(found, overloaded.keys())
        names = dict.fromkeys(each.name for each in uses)
        places = {name: place for place, name in enumerate(names)}
        free, others = _left(places, ways, paths)
        for name, share in overloaded.items():
            # What doesn't slow down gets through as it comes: calls, and acknowledgments, too. Data
            # does, to nothing.
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
        """Return the rates of those that are here, and whether others hold them back."""
        all_uses = self.uses
        some = here[all_uses.user]
        uses = Uses(
            user=all_uses.user[some],
            resource=all_uses.resource[some],
            cost=all_uses.cost[some],
            weight=all_uses.weight[some],
        )
        rates, allowed = levels(uses, free=self.free, wanted=np.where(here, wanted, 0.0))
        # A transfer alone on a link is held back by the link, and by nobody.
        pairs = np.unique(np.stack((uses.resource, uses.user)), axis=1)
        users = self.others + np.bincount(pairs[0], minlength=len(self.free))
        shared = (allowed <= rates[uses.user]) & (users[uses.resource] > 1)
        held_back = np.zeros(len(here), dtype=bool)
        held_back[uses.user[shared]] = True
        return rates, held_back


def _uses_of(transfer: int, path: FlowPath) -> Iterator[_Use]:
    """Yield what a transfer occupies: its data, its acknowledgments, and both at processors."""
    # Where gateways split the connection, each part has segments and acknowledgments of its own.
    for part in path.parts or (path,):
        bits = 8.0 * part.segment_bytes
        for direction in part.downlink:
            packet_s = min(direction.packet_time_s(part.packet_bytes), _FOR_EVER)
            yield _Use(transfer, direction.name, packet_s / bits)
            if direction.carrier:
                # Of what all send on a carrier together, each packet takes a part, too.
                on_carrier_s = direction.carrier_share(packet_s) / bits
                name, fading = _carrier(direction), direction.fading
                yield _Use(transfer, name, on_carrier_s, fading=fading)
        bits *= part.segments_per_ack
        for direction in part.uplink:
            if direction.thins_acks:
                # How many are left where those that wait are thinned out, nobody knows: the fewer,
                # the less there is left for them.
                continue
            ack_s = min(part.answer_time_s(direction), _FOR_EVER)
            acks = Acks.of(part, direction, ack_s)
            yield _Use(transfer, direction.name, ack_s / bits, acks)
            if direction.carrier and not direction.constant_bps:
                # (They are what constant capacity is for, and that is taken off, used or not.)
                carrier_s = direction.carrier_share(ack_s)
                yield _Use(transfer, _carrier(direction), carrier_s / bits, acks)
    for node, time_s in path.processors:
        # With the ACKs that go with a segment: it serves these, too.
        yield _Use(transfer, _processor(node), time_s / (8.0 * path.segment_bytes))


def _that_hold_back(uses: Sequence[_Use], overloaded: Set[str]) -> list[_Use]:
    """Return the uses without those by acknowledgments that may as well be dropped.

    Behind data, or where more is offered than a link carries, they wait and are dropped with it.
    Among themselves, those that a full queue drops leave more to those that get through.
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
    """Return, for each use, what data takes on average of the same; its own where there is none."""
    count = int(resource.max()) + 1
    data = ~by_acks
    total = np.bincount(resource[data], weights=seconds[data], minlength=count)
    number = np.bincount(resource[data], minlength=count)
    mean = np.divide(total, number, out=np.zeros(count), where=number > 0)[resource]
    return np.where(mean > 0.0, mean, seconds)


def _carrier(direction: Direction) -> str:
    """Return what a carrier is called beside links, whose names have no space."""
    return f"carrier {direction.carrier}"


def _processor(node: str) -> str:
    return f"processor {node}"


def _left(
    places: Mapping[str, int], ways: Sequence[FlowPath], paths: Sequence[FlowPath]
) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
    """Return which share of each thing's time is left to transfers, and how many have the rest."""
    free = np.ones(len(places))
    others = np.zeros(len(places), dtype=np.intp)

    def take(name: str, share: float, users: int) -> None:
        if name in places:
            free[places[name]] -= share
            others[places[name]] += users

    for path in paths:
        for direction, share in _offered(path):
            take(direction.name, share, 1)
        for node, time_s in path.processors if path.datagrams is not None else ():
            take(_processor(node), _packets_per_s(path) * time_s, 1)
    for name, (share, users) in _taken_of_carriers(ways, paths).items():
        take(name, share, users)
    return np.maximum(free, 0.0), others


def _taken_of_carriers(
    ways: Sequence[FlowPath], paths: Sequence[FlowPath]
) -> dict[str, tuple[float, int]]:
    """Return which share of each carrier transfers don't get, and how many have it.

    What a terminal has in each frame without asking is its own, used or not; transfers use theirs.
    """
    theirs = {each.name for path in ways for each in path.downlink}
    offered: dict[str, float] = {}
    known: dict[str, Direction] = {}
    for path in paths:
        known |= {each.name: each for each in (*path.downlink, *path.uplink) if each.carrier}
        for direction, taken in _offered(path):
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


def _wanted(path: FlowPath, prediction: FlowPrediction) -> float:
    """Return what a transfer would get by itself while it lasts, bit/s; of both ways, one's."""
    # How long slow start takes is part of a transfer's time, not of what it takes of a link then.
    limits = {**prediction.limits_bps, **prediction.estimates_bps}
    limits.pop("transfer size", None)
    if path.application == _ONE_WAY:
        return min(limits.values())
    slowest_s = max(each.packet_time_s(path.packet_bytes) for each in path.downlink)
    return min(8.0 * path.segment_bytes / min(slowest_s, _FOR_EVER), uplink_acks_bps(path))


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
