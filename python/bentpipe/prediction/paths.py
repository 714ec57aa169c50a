"""From a resolved scenario to the asymmetric path of one flow.

The models know one downlink and one uplink. A route of several links becomes one: its slowest
link sets the rate, every other link adds its propagation delay and the time in which it receives
a whole packet before it sends it on (store and forward).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bentpipe.model import AsymmetricPath

Table = Mapping[str, Any]

# IPv4 and TCP without options; RFC 7323 appendix A: 10 bytes of timestamps, padded to 12.
_HEADER_BYTES = 40
_TIMESTAMP_BYTES = 12
# Without window scaling, the window is a 16-bit number of bytes (RFC 9293 section 3.1).
_LARGEST_UNSCALED_WINDOW = 65_535


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One direction of a link, in base units."""

    name: str
    to: str
    rate_bps: float
    delay_s: float
    redundancy: float
    bit_error_rate: float
    packet_loss_rate: float
    # Which of the two a queue counts in is the scenario's choice; the other is None.
    queue_packets: float | None
    queue_bytes: float | None
    # Packets that are to be lost, by number.
    listed_losses: int
    # What it does that no formula knows of: 'acks "compaction"'.
    ignored: tuple[str, ...] = ()

    def buffer_segments(self, packet_bytes: float) -> float:
        """Full segments that may wait in front of it."""
        if self.queue_packets is not None:
            return self.queue_packets
        return math.inf if self.queue_bytes is None else self.queue_bytes // packet_bytes

    def packet_time_s(self, packet_bytes: float) -> float:
        """Seconds that a packet occupies the direction."""
        return 8.0 * packet_bytes * self.redundancy / self.rate_bps

    def loss_rate(self, packet_bytes: float) -> float:
        """Probability that a packet is lost to errors."""
        # log1p, expm1: a bit error rate of 1e-12 must not vanish.
        bits = math.log1p(-self.bit_error_rate) * 8.0 * packet_bytes
        return -math.expm1(bits + math.log1p(-self.packet_loss_rate))


@dataclass(frozen=True, kw_only=True)
class FlowPath:
    """What the models need to know of one flow."""

    flow: str
    downlink: tuple[Direction, ...]
    uplink: tuple[Direction, ...]
    segment_bytes: int
    header_bytes: int
    window_segments: int
    initial_window_segments: int
    # 0 and 1 where every segment is acknowledged at once.
    delayed_ack_s: float
    segments_per_ack: int
    # How many ACKs at the start aren't delayed.
    quick_acks: int
    minimum_rto_s: float
    # None: until the end of the run.
    transfer_bytes: int | None
    # Gateways on the way that end the connection or change its packets.
    intervening: tuple[str, ...]
    # Other flows that use one of the same directions.
    sharing: tuple[str, ...]
    congestion_control: str
    initial_threshold_segments: float
    # Whether an ACK grows slow start's window by what it acknowledges, not by one segment.
    counts_bytes: bool
    slow_start: str
    duration_s: float

    @property
    def packet_bytes(self) -> int:
        """Bytes of a full segment with its headers."""
        return self.segment_bytes + self.header_bytes

    @property
    def down_bottleneck(self) -> Direction:
        """The downlink's slowest direction."""
        return _slowest(self.downlink, self.packet_bytes)

    @property
    def up_bottleneck(self) -> Direction:
        """The uplink's slowest direction."""
        return _slowest(self.uplink, self.header_bytes)

    @property
    def down_delay_s(self) -> float:
        """Delay of the downlink but for its bottleneck's transmission, seconds."""
        return _delay(self.downlink, self.packet_bytes)

    @property
    def up_delay_s(self) -> float:
        """Delay of the uplink but for its bottleneck's transmission, seconds."""
        return _delay(self.uplink, self.header_bytes)

    @property
    def loss_rate(self) -> float:
        """Probability that a data segment is lost to errors."""
        return _loss(self.downlink, self.packet_bytes)

    @property
    def ack_loss_rate(self) -> float:
        """Probability that an ACK is lost to errors."""
        return _loss(self.uplink, self.header_bytes)

    @property
    def has_losses(self) -> bool:
        """Whether errors take data segments, at random or listed."""
        return self.loss_rate > 0 or any(each.listed_losses for each in self.downlink)

    @property
    def buffer_segments(self) -> float:
        """Full segments that may wait in front of the downlink's bottleneck."""
        return self.down_bottleneck.buffer_segments(self.packet_bytes)

    def asymmetric(self) -> AsymmetricPath:
        """Return the path as the models take it."""
        from bentpipe.model import AsymmetricPath

        return AsymmetricPath(
            downlink_rate_bps=self.down_bottleneck.rate_bps,
            uplink_rate_bps=self.up_bottleneck.rate_bps / self.up_bottleneck.redundancy,
            downlink_delay_s=self.down_delay_s,
            uplink_delay_s=self.up_delay_s,
            segment_payload_bytes=self.segment_bytes,
            header_bytes=self.header_bytes,
            ack_bytes=self.header_bytes,
            redundancy=self.down_bottleneck.redundancy,
        )


def flow_paths(resolved: Table) -> list[FlowPath]:
    """Return the path of every flow of a resolved scenario (`Scenario.resolved`)."""
    network = _network(resolved["links"])
    nodes = {node["name"]: node for node in resolved["nodes"]}
    routes = {
        flow["name"]: (
            _route(network, flow["from"], flow["to"]),
            _route(network, flow["to"], flow["from"]),
        )
        for flow in resolved["flows"]
    }
    return [
        _flow_path(
            flow,
            nodes=nodes,
            downlink=routes[flow["name"]][0],
            uplink=routes[flow["name"]][1],
            sharing=_sharing(flow["name"], routes),
            duration_s=resolved["duration_s"] - flow["start_s"],
        )
        for flow in resolved["flows"]
    ]


def _flow_path(
    flow: Table,
    *,
    nodes: Mapping[str, Table],
    downlink: Sequence[Direction],
    uplink: Sequence[Direction],
    sharing: tuple[str, ...],
    duration_s: float,
) -> FlowPath:
    sender, receiver = (nodes[flow[end]]["tcp"] for end in ("from", "to"))
    segment_bytes = min(sender["mss_bytes"], receiver["mss_bytes"])
    window_bytes = min(sender["send_buffer_bytes"], receiver["receive_buffer_bytes"])
    if not (sender["window_scaling"] and receiver["window_scaling"]):
        window_bytes = min(window_bytes, _LARGEST_UNSCALED_WINDOW)
    timestamps = sender["timestamps"] and receiver["timestamps"]
    threshold_bytes = sender["initial_slow_start_threshold_bytes"]
    delayed_ack_s = receiver["delayed_ack_s"]
    return FlowPath(
        flow=flow["name"],
        downlink=tuple(downlink),
        uplink=tuple(uplink),
        segment_bytes=segment_bytes,
        header_bytes=_HEADER_BYTES + (_TIMESTAMP_BYTES if timestamps else 0),
        window_segments=max(1, window_bytes // segment_bytes),
        initial_window_segments=sender["initial_window_segments"],
        delayed_ack_s=0.0 if delayed_ack_s is None else delayed_ack_s,
        segments_per_ack=1 if delayed_ack_s is None else 2,
        quick_acks=receiver["quick_acks"],
        minimum_rto_s=sender["minimum_rto_s"],
        transfer_bytes=flow["app"]["size_bytes"],
        intervening=tuple(
            each.to for each in downlink if nodes[each.to]["kind"] not in {"host", "router"}
        ),
        sharing=sharing,
        congestion_control=sender["congestion_control"],
        initial_threshold_segments=(
            math.inf if threshold_bytes is None else threshold_bytes / segment_bytes
        ),
        counts_bytes=sender["slow_start"] != "standard",
        slow_start=sender["slow_start"],
        duration_s=duration_s,
    )


def _network(links: Sequence[Table]) -> dict[str, list[Direction]]:
    """Return the directions that leave each node, in the file's order."""
    network: dict[str, list[Direction]] = {}
    for link in links:
        first, second = link["between"]
        for way, source, destination in (("forward", first, second), ("return", second, first)):
            direction = _direction(f"{link['name']}.{way}", destination, link[way])
            network.setdefault(source, []).append(direction)
    return network


def _direction(name: str, destination: str, settings: Table) -> Direction:
    errors, queue = settings["errors"], settings["queue"]
    return Direction(
        name=name,
        to=destination,
        rate_bps=settings["rate_bps"],
        delay_s=settings["delay_s"],
        redundancy=settings["redundancy"],
        bit_error_rate=errors["bit_error_rate"],
        packet_loss_rate=errors["packet_loss_rate"],
        queue_packets=queue["limit_packets"],
        queue_bytes=queue["limit_bytes"],
        listed_losses=len(errors["lost_packets"]),
        ignored=_ignored(settings),
    )


def _ignored(settings: Table) -> tuple[str, ...]:
    """Return what a direction does besides queueing packets in order, losing and delaying them."""
    words = {
        "queue": (settings["queue"]["kind"], "drop-tail"),
        "acks": (settings["acks"]["kind"], "none"),
        "compression": (settings["compression"], "none"),
    }
    named = tuple(f'{key} "{word}"' for key, (word, plain) in words.items() if word != plain)
    return (*named, "tunnel") if settings["tunnel"] else named


def _route(network: Mapping[str, Sequence[Direction]], source: str, end: str) -> list[Direction]:
    """Fewest hops, then least delay, then the link named first: the simulator's rule."""
    waiting: list[tuple[int, float, list[int], str, list[Direction]]] = [(0, 0.0, [], source, [])]
    seen = set()
    while waiting:
        hops, delay_s, order, node, route = heapq.heappop(waiting)
        if node == end:
            return route
        if node in seen:
            continue
        seen.add(node)
        for index, direction in enumerate(network.get(node, ())):
            step = (hops + 1, delay_s + direction.delay_s, [*order, index], direction.to)
            heapq.heappush(waiting, (*step, [*route, direction]))
    raise ValueError(f"no route from {source} to {end}")


def _sharing(
    name: str, routes: Mapping[str, tuple[Sequence[Direction], Sequence[Direction]]]
) -> tuple[str, ...]:
    def used(flow: str) -> set[str]:
        return {direction.name for route in routes[flow] for direction in route}

    own = used(name)
    return tuple(other for other in routes if other != name and own & used(other))


def _slowest(route: Sequence[Direction], packet_bytes: float) -> Direction:
    return max(route, key=lambda direction: direction.packet_time_s(packet_bytes))


def _delay(route: Sequence[Direction], packet_bytes: float) -> float:
    bottleneck = _slowest(route, packet_bytes)
    return sum(
        each.delay_s + (0.0 if each is bottleneck else each.packet_time_s(packet_bytes))
        for each in route
    )


def _loss(route: Sequence[Direction], packet_bytes: float) -> float:
    kept = 1.0
    for each in route:
        kept *= 1.0 - each.loss_rate(packet_bytes)
    lost = 1.0 - kept
    return lost if lost > 0 else sum(each.loss_rate(packet_bytes) for each in route)
