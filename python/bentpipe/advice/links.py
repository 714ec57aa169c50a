"""Remedies at links: acknowledgments, queues, and packet sizes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bentpipe.advice.network import BOTH_ROLES, Network, one_path_each, round_trip_s
from bentpipe.advice.remedy import Remedy
from bentpipe.advice.senders import settings_at
from bentpipe.kinds import queues

if TYPE_CHECKING:
    from bentpipe.prediction.network import Direction
    from bentpipe.prediction.paths import FlowPath

_USUAL_MSS: Final = 1448
# MTU of Ethernet, and of its jumbo frames. Headers without options (RFC 9293 section 3.1), and the
# timestamps option (RFC 7323 section 3.2).
_USUAL_MTU: Final = 1500
_JUMBO_MTU: Final = 9000
_HEADERS: Final = 40
_TIMESTAMPS: Final = 12


def link_remedies(network: Network) -> Iterator[Remedy]:
    """Yield the remedies at links."""
    for kind in (_acknowledgments, _queues, _segments, _mtus):
        yield from kind(network)


def _acknowledgments(network: Network) -> Iterator[Remedy]:
    """Yield methods that reduce acknowledgments on the narrowest link of their path."""
    delayed = settings_at(
        network, "receiver", "delayed_ack", "40 ms", where=lambda tcp: tcp["delayed_ack_s"] is None
    )
    yield Remedy(
        kind="delayed ACKs",
        name="delayed ACKs",
        why="half as many acknowledgments",
        settings=delayed,
    )
    # QUIC's acknowledgments are encrypted.
    readable = [path for path in network.paths if not network.is_quic(path)]
    for path in one_path_each(readable, lambda path: path.up_bottleneck.name):
        narrow = path.up_bottleneck
        # Acknowledgments need no help on a link that is as fast as the data's.
        if narrow.rate_bps >= path.down_bottleneck.rate_bps:
            continue
        key = network.key_of(narrow)
        here = network.settings_of(narrow)
        for method in network.names["ack-methods"]:
            # The methods remove packets from the queue, which must be a drop-tail queue.
            if queues()[here["queue"]["kind"]].manages:
                continue
            # Reconstruction restores acknowledgments that another method has removed.
            if method in {"none", "reconstruction", here["acks"]["kind"]}:
                continue
            # Compaction needs a tunnel, whose headers RFC 1144 cannot compress.
            hidden = method == "compaction" and here["compression"] == "rfc1144"
            plain = ((f"{key}.compression", "none"),) if hidden else ()
            yield Remedy(
                kind="ACK method",
                family=narrow.name,
                name=f"ACK {method} on {narrow.name}",
                why="fewer acknowledgments on the narrow return link",
                settings=((f"{key}.acks", f'{{ kind = "{method}" }}'), *plain),
            )
        tunnel = here["tunnel"] or here["acks"]["kind"] == "compaction"
        if here["compression"] == "none" and not tunnel:
            yield Remedy(
                kind="header compression",
                family=narrow.name,
                name=f"RFC 1144 on {narrow.name}",
                why="shorter acknowledgments on the narrow return link",
                settings=((f"{key}.compression", "rfc1144"),),
            )


def _queues(network: Network) -> Iterator[Remedy]:
    for path in one_path_each(network.paths, lambda path: path.down_bottleneck.name):
        narrow = path.down_bottleneck
        packets = _product_packets(narrow, path)
        for name, limit in (("", packets), ("half ", max(10, packets // 2))):
            if round(path.buffer_segments) != limit:
                yield Remedy(
                    kind="queue",
                    family=f"length, {narrow.name}",
                    name=f"queue of {limit} packets at {narrow.name}",
                    why=f"{name}a bandwidth-delay product",
                    settings=queue_settings(
                        network,
                        [(narrow, f'{{ kind = "drop-tail", limit = "{limit} packets" }}')],
                    ),
                )
        if path.sharing:
            yield from fair_queues(network, [(narrow, path)])


def fair_queues(network: Network, ways: Sequence[tuple[Direction, FlowPath]]) -> Iterator[Remedy]:
    """Yield fair queues, applied at all of these directions together.

    The path beside each direction gives the round trip and packet size for the length of its queue.
    """
    at = " and ".join(way.name for way, _ in ways)
    one = len(ways) == 1
    if "fair" in network.names["queues"]:
        yield Remedy(
            kind="queue",
            family=f"turns, {at}",
            name=f"fair queue{'' if one else 's'} at {at}",
            why="flows that share the link do not delay each other",
            settings=queue_settings(
                network,
                [
                    (way, f'{{ kind = "fair", limit = "{_product_packets(way, path)} packets" }}')
                    for way, path in ways
                ],
            ),
        )
    if "fq-codel" in network.names["queues"]:
        yield Remedy(
            kind="queue",
            family=f"turns, {at}",
            name=f"FQ-CoDel at {at}",
            why="flows that share the link do not delay each other, and queues stay short",
            settings=queue_settings(network, [(way, _fq_codel(way, path)) for way, path in ways]),
        )


def queue_settings(
    network: Network, queues: Sequence[tuple[Direction, str]]
) -> tuple[tuple[str, str], ...]:
    """Return the settings of queues at these directions.

    A queue of the whole link in the file must remain in use: it is an error if both directions
    have their own. If one direction has its own, the other gets its new queue by the link's key.
    """
    own = {key for key in network.written if key.endswith(("forward.queue", "return.queue"))}
    settings = []
    for way, queue in queues:
        key = f"{network.key_of(way)}.queue"
        link = network.key_of(way).rpartition(".")[0]
        shared = f"{link}.queue"
        own.add(key)
        both = {f"{link}.forward.queue", f"{link}.return.queue"} <= own
        if both and shared in network.written and key not in network.written:
            key = shared
        settings.append((key, queue))
    return tuple(settings)


def _fq_codel(way: Direction, path: FlowPath) -> str:
    """Return an FQ-CoDel queue for a path's round trip.

    The interval is one round trip, and the target a twentieth of it (RFC 8289 sections 4.3 and
    4.4).
    The target is at least the transmission time of a packet (RFC 8290 section 5.2.1).
    """
    packet_ms = math.ceil(path.packet_bytes * 8.0 / way.rate_bps * 1000.0)
    interval_ms = max(100, math.ceil(round_trip_s(path) * 1000.0), 2 * packet_ms)
    target_ms = max(math.ceil(interval_ms / 20), packet_ms)
    bounds = f'target = "{target_ms} ms", interval = "{interval_ms} ms"'
    return f'{{ kind = "fq-codel", limit = "{_product_packets(way, path)} packets", {bounds} }}'


def _product_packets(way: Direction, path: FlowPath) -> int:
    """Return the product of this direction's rate and the path's round trip, in packets."""
    product = way.rate_bps * round_trip_s(path) / 8.0
    return max(10, round(product / path.packet_bytes))


def _segments(network: Network) -> Iterator[Remedy]:
    yield _segments_of(
        network,
        _USUAL_MSS,
        where=lambda mss: mss < _USUAL_MSS,
        why="fewer headers, and a window that grows faster",
    )
    # A host that knows a smaller MTU may announce a smaller MSS (RFC 9293 section 3.7.1).
    narrow = _narrow_mtus(network)
    if narrow:
        fitting = min(mtu for _, mtu in narrow) - _HEADERS - _TIMESTAMPS
        yield _segments_of(
            network,
            fitting,
            where=lambda mss: mss > fitting,
            why="no packet exceeds the smallest MTU on the path",
        )
    elif any(path.loss_rate == 0.0 for path in network.paths):
        jumbo = _JUMBO_MTU - _HEADERS - _TIMESTAMPS
        longer = _segments_of(
            network,
            jumbo,
            where=lambda mss: mss < jumbo,
            why=f"fewer, longer packets, where every link takes {_JUMBO_MTU} B",
        )
        yield replace(longer, every_network=True)


def _segments_of(network: Network, size: int, *, where: Callable[[int], bool], why: str) -> Remedy:
    settings = tuple(
        setting
        for end in BOTH_ROLES
        for setting in settings_at(
            network, end, "mss", f"{size} B", where=lambda tcp: where(tcp["mss_bytes"])
        )
    )
    return Remedy(kind="segment size", name=f"segments of {size} B", why=why, settings=settings)


def _narrow_mtus(network: Network) -> list[tuple[str, int]]:
    """Return the tables of links that do not take full segments, and their MTUs."""
    narrow = {}
    for path in network.paths:
        for direction in path.downlink:
            if direction.mtu_bytes < _full_packet_bytes(network, path):
                link = direction.name.rpartition(".")[0]
                narrow[network.table_of(link)] = int(direction.mtu_bytes)
    return list(narrow.items())


def _full_packet_bytes(network: Network, path: FlowPath) -> int:
    """Return the length of a packet with the largest segment that both ends accept."""
    largest = (
        max((tcp["mss_bytes"] for tcp in network.tcp_tables(end).values()), default=_USUAL_MSS)
        for end in BOTH_ROLES
    )
    return int(min(largest)) + path.header_bytes


def _mtus(network: Network) -> Iterator[Remedy]:
    """Yield larger MTUs of links, and path MTU discovery at hosts."""
    narrow = _narrow_mtus(network)
    if not narrow:
        return
    size = max(_USUAL_MTU, *(_full_packet_bytes(network, path) for path in network.paths))
    yield Remedy(
        kind="MTU",
        name=f"MTU of {size} B on {', '.join(table for table, _ in narrow)}",
        why="no segment exceeds the MTU of a link, and fewer headers",
        settings=tuple((f"links.{table}.mtu", f"{size} B") for table, _ in narrow),
    )
    for rule, why in (
        ("black-hole", "detects routers that drop long packets without an ICMP message"),
        ("search", "finds the path MTU by acknowledged probes"),
    ):
        settings = tuple(
            setting
            for end in BOTH_ROLES
            for setting in settings_at(
                network,
                end,
                "path_mtu_discovery",
                rule,
                where=lambda tcp, rule=rule: (  # type: ignore[misc]
                    tcp["path_mtu_discovery"] not in {rule, "search"}
                ),
            )
        )
        yield Remedy(
            kind="path MTU discovery", name=f"MTU discovery: {rule}", why=why, settings=settings
        )
