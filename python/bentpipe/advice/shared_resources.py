"""Resources other than links: processors, shared carriers, granted capacity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bentpipe.prediction.access import most_bps

if TYPE_CHECKING:
    from bentpipe.advice.network import Network
    from bentpipe.prediction.network import Direction
    from bentpipe.prediction.paths import FlowPath
    from bentpipe.results import RunResult


@dataclass(frozen=True, kw_only=True)
class UsedShare:
    """A resource by its name, and the share of a flow's time for which it was used."""

    name: str
    used: float


class ResourceUse:
    """Use of processors, carriers and granted capacity in a run."""

    def __init__(self, network: Network, result: RunResult) -> None:
        self._network = network
        self._ended_s = float(result.summary.extra.get("ended_s", result.summary.duration_s))
        self._work_s = _work_s(network, result)
        self._taken_s = _taken_s(result)
        self._granted_s = _granted_s(network, result)
        # The number of flows that use each resource.
        self._users: dict[str, int] = {}
        for path in network.paths:
            for name in {*_nodes(path), *_carriers((*path.downlink, *path.uplink))}:
                self._users[name] = self._users.get(name, 0) + 1

    def processor(self, path: FlowPath, busy_s: float) -> UsedShare | None:
        """Return the busiest processor on a flow's path, both directions; None without any."""
        return self._most(_nodes(path), self._work_s, busy_s)

    def carrier(self, way: Iterable[Direction], busy_s: float) -> UsedShare | None:
        """Return the fullest carrier that these directions share with others; None without any."""
        asking = (each for each in way if not self.has_its_own(each))
        return self._most(_carriers(asking), self._taken_s, busy_s)

    def has_its_own(self, direction: Direction) -> bool:
        """Return whether a direction has constant capacity only, whatever its carrier's load is."""
        access = self._network.settings_of(direction)["access"]
        return access is not None and not (
            access["volume_based"] or access["free"] or access["rate_based_bps"]
        )

    def granted_used(self, direction: Direction, busy_s: float) -> float:
        """Return the used share of the greatest capacity that can be granted to a direction.

        That is the constant capacity and the highest rate that it requests. 0 for a direction whose
        capacity has no such bound.
        """
        return min(1.0, self._granted_s.get(direction.name, 0.0) / busy_s)

    def _most(
        self, names: Iterable[str], spent_s: Mapping[str, float], busy_s: float
    ) -> UsedShare | None:
        found = [
            UsedShare(
                name=name,
                # Of a shared resource, the flow's own share is unknown: take the whole run's time.
                used=min(
                    1.0, spent_s[name] / (busy_s if self._users[name] == 1 else self._ended_s)
                ),
            )
            for name in names
            if name in spent_s
        ]
        return max(found, key=lambda each: each.used, default=None)


def _nodes(path: FlowPath) -> list[str]:
    ways = (*path.downlink, *path.uplink)
    return list(dict.fromkeys((path.sender, path.receiver, *(each.to for each in ways))))


def _carriers(way: Iterable[Direction]) -> list[str]:
    return list(dict.fromkeys(each.carrier for each in way if each.carrier))


def _work_s(network: Network, result: RunResult) -> dict[str, float]:
    """Return each node's processing time: for arriving packets at gateways, for all at hosts."""
    came: dict[str, int] = {}
    left: dict[str, int] = {}
    ends = {link["name"]: link["between"] for link in network.resolved["links"]}
    for each in result.summary.links:
        link, _, way = each.name.rpartition(".")
        sender, receiver = ends[link] if way == "forward" else reversed(ends[link])
        # Packets that the queue dropped were processed, too.
        sent = each.packets_delivered + each.packets_lost + each.packets_dropped
        came[receiver] = came.get(receiver, 0) + each.packets_delivered
        left[sender] = left.get(sender, 0) + sent + each.count("acks_removed")
    found = {}
    for node in network.resolved["nodes"]:
        if (processing := node.get("processing")) is not None:
            name = node["name"]
            packets = came.get(name, 0) + (left.get(name, 0) if node["kind"] == "host" else 0)
            found[name] = packets * float(processing["time_s"])
    return found


def _taken_s(result: RunResult) -> dict[str, float]:
    """Return the time of each carrier that its terminals used or reserved, in seconds."""
    found: dict[str, float] = {}
    for each in result.summary.links:
        access = each.access
        if access is None or access.carrier is None:
            continue
        # Free capacity is not reserved, but its use counts.
        taken_bytes = max(access.promised_bytes, access.occupied_bytes)
        seconds = 8.0 * taken_bytes / access.carrier_rate_bps
        found[access.carrier] = found.get(access.carrier, 0.0) + seconds
    return found


def _granted_s(network: Network, result: RunResult) -> dict[str, float]:
    """Return each direction's time for its sent bytes at the highest rate that it is granted."""
    used = {
        each.name: each.access.used_bytes
        for each in result.summary.links
        if each.access is not None
    }
    found = {}
    for link in network.resolved["links"]:
        for way in ("forward", "return"):
            name = f"{link['name']}.{way}"
            if name in used and (rate_bps := most_bps(link[way])) < math.inf:
                found[name] = 8.0 * used[name] / rate_bps if rate_bps > 0.0 else 0.0
    return found
