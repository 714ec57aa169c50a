"""Equal shares of links, carriers and processors that several transfers use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from bentpipe.prediction.acks import uplink_acks_bps
from bentpipe.prediction.fluid import Transfer, while_they_last
from bentpipe.prediction.loads import FOR_EVER, Loads, overloads
from bentpipe.prediction.max_min_fairness import levels
from bentpipe.prediction.standing_queues import Filler, Standing, Waiting, behind_queues, standing

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bentpipe.prediction.paths import FlowPath
    from bentpipe.prediction.predictions import FlowPrediction


def sharing_estimates(
    paths: Sequence[FlowPath], predictions: Mapping[str, FlowPrediction]
) -> dict[str, dict[str, float]]:
    """Return the estimates of transfers that share resources, bit/s, by flow and name.

    `window, behind queues`: a window a round trip that includes the queues that others keep full.
    `fair share`: the share of a link or a processor that other flows leave.

    Shares are max-min fair (Bertsekas and Gallager, Data Networks, section 6.5.2). All users of a
    full resource get the same. Users with a lower limit elsewhere leave the rest to the others. A
    transfer takes its share only between its start and its end. Calls, echoes and UDP packets are
    served first, at their own rates; pages and the like take nothing. In a run, window rules,
    round trips and queues decide which transfer gets more.

    ACKs take their part of the return link. They do not slow down when it is full, so that data
    gets the rest. Beside data, the ACKs of a transfer get at most the share of one data transfer,
    and then limit their own transfer.

    Parameters
    ----------
    paths
        Each flow's path.
    predictions
        The prediction for each flow alone; it wants its lowest limit or estimate.
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
    overloaded = overloads(paths)
    # Data gets nothing on a link that traffic of a fixed rate fills.
    starved = np.array([any(each.name in overloaded for each in way.downlink) for way in ways])
    wanted[starved] = 0.0
    round_trips_s = _round_trips_s(ways, predictions)
    loads = Loads.of(ways, paths, wanted, round_trips_s, overloaded)
    for number, rate_bps in _behind_queues(ways, loads, wanted, predictions).items():
        # The queue matters only if its limit is below the flow's other limits.
        if rate_bps < wanted[number]:
            found[ways[number].flow] = {"window, behind queues": _digits(rate_bps)}
            wanted[number] = rate_bps
    goodputs, held_back = while_they_last(transfers, lambda here: loads.rates(wanted, here))
    shares: dict[str, float] = {}
    for each, goodput in zip(transfers, goodputs, strict=True):
        # Both directions count where both ends send.
        shares[each.flow] = shares.get(each.flow, 0.0) + float(goodput)
    for each, is_held in zip(transfers, held_back | starved, strict=True):
        if is_held:
            found.setdefault(each.flow, {})["fair share"] = _digits(shares[each.flow])
    return found


def _round_trips_s(
    ways: Sequence[FlowPath], predictions: Mapping[str, FlowPrediction]
) -> list[tuple[float, ...]]:
    """Return the round trips of each way's parts, or of the way where it has none."""
    found = []
    for path in ways:
        known = predictions[path.flow]
        by_name = {part.name: part.round_trip_s for part in (*known.parts, known)}
        # In the other direction, the parts have the reverse order.
        found.append(tuple(by_name[part.flow] for part in path.parts or (path,)))
    return found


def _digits(rate_bps: float) -> float:
    """Round to nine digits, so that like flows have equal values."""
    return float(f"{rate_bps:.9g}")


def _behind_queues(
    ways: Sequence[FlowPath],
    loads: Loads,
    wanted: NDArray[np.float64],
    predictions: Mapping[str, FlowPrediction],
) -> dict[int, float]:
    """Return the window limits of transfers that wait in the queues of others, by index."""
    uses = loads.uses
    rates, allowed = levels(uses, free=loads.free, wanted=wanted)
    busy = np.bincount(
        uses.resource, weights=uses.cost * rates[uses.user], minlength=len(loads.free)
    )
    fillers: dict[str, dict[int, Filler]] = {}
    for place in np.flatnonzero(~loads.by_acks & (allowed <= rates[uses.user])).tolist():
        number, name = int(uses.user[place]), loads.names[uses.resource[place]]
        # A transfer with a size may have ended, and a split path has a window for each part.
        if ways[number].transfer_bytes is None and not ways[number].parts:
            fillers.setdefault(name, {})[number] = Filler(
                path=ways[number],
                rate_bps=float(rates[number]),
                round_trip_s=predictions[ways[number].flow].round_trip_s,
            )
    share = dict(zip(loads.names, busy.tolist(), strict=True))
    queues: dict[str, Standing | None] = {}
    waiting: dict[int, Waiting] = {}
    for number, path in enumerate(ways):
        window_bps = predictions[path.flow].limits_bps.get("window")
        if window_bps is None or path.parts:
            continue
        met = []
        for direction in (*path.downlink, *path.uplink):
            name = direction.name
            filling = fillers.get(name)
            # A transfer that fills the queue itself is limited by the link, not by the wait.
            if filling is None or number in filling:
                continue
            if name not in queues:
                queues[name] = standing(direction, [*filling.values()], busy=share.get(name, 1.0))
            if queues[name] is not None:
                met.append(direction)
        if not met:
            continue
        bits = 8.0 * path.segment_bytes * path.segments_per_ack
        waiting[number] = Waiting(
            window_bits=8.0 * path.window_bytes,
            round_trip_s=8.0 * path.largest_window_bytes / window_bps,
            queues=tuple(each.name for each in met),
            acks_s={
                each.name: path.answer_time_s(each) / bits
                for each in met
                if each in path.uplink and not each.thins_acks
            },
            segments_bits=bits,
        )
    most = {number: float(wanted[number]) for number in waiting}
    there = {name: queue for name, queue in queues.items() if queue is not None}
    return behind_queues(waiting, there, most)


def _ways(path: FlowPath) -> Iterator[FlowPath]:
    """Yield a transfer's path, and the reverse path if both ends send."""
    if path.greedy_ways:
        yield path
    if path.greedy_ways > 1:
        yield _reversed(path)


def _reversed(path: FlowPath) -> FlowPath:
    parts = tuple(_reversed(part) for part in reversed(path.parts))
    return replace(path, downlink=path.uplink, uplink=path.downlink, parts=parts)


def _wanted(path: FlowPath, prediction: FlowPrediction) -> float:
    """Return the rate of a transfer alone while it lasts, bit/s; of one direction if two-way."""
    # Slow start makes a transfer longer, but does not reduce the share that it takes.
    limits = prediction.rates_bps
    limits.pop("transfer size", None)
    if path.one_transfer:
        return min(limits.values())
    slowest_s = max(each.packet_time_s(path.packet_bytes) for each in path.downlink)
    return min(8.0 * path.segment_bytes / min(slowest_s, FOR_EVER), uplink_acks_bps(path))
