"""Remedies for flows of different kinds that share a link: fair queues, priorities, pacing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from bentpipe.advice.links import fair_queues, queue_settings
from bentpipe.advice.remedy import Remedy
from bentpipe.kinds import queues, with_role

if TYPE_CHECKING:
    from bentpipe.advice.network import Network
    from bentpipe.prediction.network import Direction
    from bentpipe.prediction.paths import FlowPath

# Applications that send at a fixed pace, and those that take the remaining capacity.
_CALLS: Final = with_role("call")
_REAL_TIME: Final = with_role("call", "real-time")
_BACKGROUND: Final = with_role("background")
# Pairs of directions that are tried at most; those with the most flows come first.
_MOST_PAIRS: Final = 2
# Pacing rates of bulk transfers, as shares of the bottleneck.
_PACED_SHARES: Final = (0.2, 0.1)


def traffic_remedies(network: Network) -> Iterator[Remedy]:
    """Yield queues in both directions together, traffic classes, and paced bulk transfers."""
    for ways in _shared_ways(network):
        yield from fair_queues(network, ways)
        yield from _classes(network, [way for way, _ in ways])
    yield from _pacing(network)


def _shared_ways(network: Network) -> Iterator[Sequence[tuple[Direction, FlowPath]]]:
    """Yield the bottlenecks of flows in both directions, where data shares them with other flows.

    Each comes with a path that gives the round trip and packet size for its queue. If only one
    direction has shared data, it is yielded alone.
    """
    shared = network.data_bottlenecks()
    by_name: dict[str, Direction] = {}
    ways: Counter[tuple[str, ...]] = Counter()
    for path in network.paths:
        both = (path.down_bottleneck, path.up_bottleneck)
        by_name |= {each.name: each for each in both}
        found = {each.name for each in both if each.name in shared}
        if path.sharing and found:
            ways[tuple(name for name in shared if name in found)] += 1
    for names, _ in ways.most_common(_MOST_PAIRS):
        yield [(by_name[name], shared[name]) for name in names]


def _classes(network: Network, ways: Sequence[Direction]) -> Iterator[Remedy]:
    """Yield priority for calls, priority for all real-time traffic, and the lowest for bulk."""
    if "priority" not in network.names["queues"]:
        return
    if any(queues()[network.settings_of(way)["queue"]["kind"]].has_classes for way in ways):
        return
    names = {way.name for way in ways}
    kinds = [
        network.kinds_of(path.flow)
        for path in network.paths
        if names & {path.down_bottleneck.name, path.up_bottleneck.name}
    ]
    every = frozenset[str]().union(*kinds)
    at = " and ".join(way.name for way in ways)
    for name, applications, order, title, why in (
        (
            "calls",
            _CALLS,
            '"calls", "others"',
            "priority for calls",
            "calls are sent before other packets",
        ),
        (
            "real-time",
            _REAL_TIME,
            '"real-time", "others"',
            "priority for calls and packets",
            "real-time packets are sent before others",
        ),
        (
            "background",
            _BACKGROUND,
            '"others", "background"',
            "lowest priority for bulk",
            "bulk transfers use the remaining capacity",
        ),
    ):
        members = [each for each in applications if each in every]
        if not members or every.issubset(members) or name in network.resolved["classes"]:
            continue
        if name == "real-time" and set(members) <= set(_CALLS):
            continue
        listed = ", ".join(f'"{each}"' for each in members)
        queue = f'{{ kind = "priority", classes = [{order}] }}'
        yield Remedy(
            kind="queue",
            family=f"classes, {at}",
            name=f"{title} at {at}",
            why=why,
            settings=(
                (f"classes.{name}", f"{{ applications = [{listed}] }}"),
                *queue_settings(network, [(way, queue) for way in ways]),
            ),
        )


def _pacing(network: Network) -> Iterator[Remedy]:
    """Yield pacing for hosts that send only bulk data beside flows of other kinds."""
    kinds: dict[str, set[str]] = {}
    for path in network.paths:
        for host in (path.sender, path.receiver) if path.two_way else (path.sender,):
            kinds.setdefault(network.table_of(host), set()).update(network.kinds_of(path.flow))
    beside = {
        path.down_bottleneck.name
        for path in network.paths
        if not network.kinds_of(path.flow) <= set(_BACKGROUND)
    } | {path.up_bottleneck.name for path in network.paths if path.two_way}
    senders: dict[str, list[FlowPath]] = {}
    for path in network.paths:
        table = network.table_of(path.sender)
        if path.over_tcp and kinds[table] <= set(_BACKGROUND) and path.pacing_bps is None:
            senders.setdefault(table, []).append(path)
    for table, paths in senders.items():
        if not any(path.sharing and path.down_bottleneck.name in beside for path in paths):
            continue
        rate_bps = min(path.down_bottleneck.rate_bps for path in paths)
        for share in _PACED_SHARES:
            # Pacing applies to each flow of a host.
            kbps = round(share * rate_bps / len(paths) / 1e3)
            if kbps > 0:
                yield Remedy(
                    kind="pacing",
                    family=table,
                    name=f"{table} paced at {kbps} kbit/s",
                    why=f"bulk transfers leave the others {1.0 - share:.0%} of the link",
                    settings=((f"hosts.{table}.tcp.pacing", f"{kbps} kbit/s"),),
                )
