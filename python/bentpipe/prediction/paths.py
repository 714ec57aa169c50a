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

from bentpipe import units

if TYPE_CHECKING:
    from bentpipe.model import AsymmetricPath

Table = Mapping[str, Any]

# IPv4 and TCP without options; RFC 7323 appendix A: 10 bytes of timestamps, padded to 12.
_HEADER_BYTES = 40
_TIMESTAMP_BYTES = 12
# Without window scaling, the window is a 16-bit number of bytes (RFC 9293 section 3.1).
_LARGEST_UNSCALED_WINDOW = 65_535
_DEFAULT_PACKET_BYTES = 1500


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
    queue_limit: str
    # Packets that are to be lost, by number.
    listed_losses: int

    def buffer_segments(self, packet_bytes: float) -> float:
        """Full segments that may wait in front of it."""
        number, _, unit = self.queue_limit.partition(" ")
        if unit.startswith("packet"):
            return float(number)
        return units.amount(self.queue_limit) // packet_bytes

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
    window_bytes: float
    initial_window_segments: int
    # 0 and 1 where every segment is acknowledged at once.
    delayed_ack_s: float
    segments_per_ack: int
    minimum_rto_s: float
    # None: until the end of the run.
    transfer_bytes: float | None
    # Gateways on the way that end the connection or change its packets.
    intervening: tuple[str, ...]
    # Other flows that use one of the same directions.
    sharing: tuple[str, ...]
    congestion_control: str
    initial_threshold_segments: float
    # Whether an ACK grows slow start's window by what it acknowledges, not by one segment.
    counts_bytes: bool
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
    """Return the path of every flow of a resolved scenario that is a bulk transfer."""
    network = _network(resolved)
    routes = {
        name: (
            _route(network, flow["from"], flow["to"]),
            _route(network, flow["to"], flow["from"]),
        )
        for name, flow in resolved.get("flows", {}).items()
    }
    return [
        _flow_path(resolved, name, downlink, uplink, _sharing(name, routes))
        for name, (downlink, uplink) in routes.items()
    ]


def _flow_path(
    resolved: Table,
    name: str,
    downlink: Sequence[Direction],
    uplink: Sequence[Direction],
    sharing: tuple[str, ...],
) -> FlowPath:
    flow = resolved["flows"][name]
    sender, receiver = (_tcp(resolved, flow[end]) for end in ("from", "to"))
    timestamps = bool(sender["timestamps"] and receiver["timestamps"])
    segment_bytes = round(min(units.amount(each["mss"]) for each in (sender, receiver)))
    scaling = bool(sender["window_scaling"] and receiver["window_scaling"])
    window = min(
        units.amount(sender["send_buffer"]),
        units.amount(receiver["receive_buffer"]),
        math.inf if scaling else _LARGEST_UNSCALED_WINDOW,
    )
    delayed_ack = receiver["delayed_ack"]
    at_once = delayed_ack == "off"
    gateways = resolved.get("gateways", {})
    return FlowPath(
        flow=name,
        downlink=tuple(downlink),
        uplink=tuple(uplink),
        segment_bytes=segment_bytes,
        header_bytes=_HEADER_BYTES + (_TIMESTAMP_BYTES if timestamps else 0),
        window_segments=max(1, int(window // segment_bytes)),
        window_bytes=window,
        initial_window_segments=int(units.amount(sender["initial_window"], segment_bytes=1.0)),
        delayed_ack_s=0.0 if at_once else units.seconds(delayed_ack),
        segments_per_ack=1 if at_once else 2,
        minimum_rto_s=units.seconds(sender["minimum_rto"]),
        transfer_bytes=_transfer_bytes(flow),
        intervening=tuple(
            each.to
            for each in downlink
            if gateways.get(each.to, {}).get("kind", "router") != "router"
        ),
        sharing=sharing,
        congestion_control=str(sender["congestion_control"]),
        initial_threshold_segments=_threshold(sender, segment_bytes),
        counts_bytes=sender["slow_start"] == "byte-counting",
        duration_s=units.seconds(resolved["duration"]) - units.seconds(flow.get("start", 0.0)),
    )


def _transfer_bytes(flow: Table) -> float | None:
    size = flow.get("app", {}).get("size")
    return None if size is None else units.amount(size)


def _threshold(sender: Table, segment_bytes: int) -> float:
    threshold = sender.get("initial_slow_start_threshold")
    if threshold is None:
        return math.inf
    return units.amount(threshold, segment_bytes=segment_bytes) / segment_bytes


def _tcp(resolved: Table, host: str) -> Table:
    hosts = resolved["hosts"]
    # client-7 is one of `count` clients.
    table = hosts.get(host) or hosts.get(host.rpartition("-")[0]) or {}
    tcp: Table = table.get("tcp", {})
    return tcp


def _network(resolved: Table) -> dict[str, list[Direction]]:
    """Return the directions that leave each node, in the file's order."""
    network: dict[str, list[Direction]] = {}
    for name, link in resolved["links"].items():
        first, second = link["between"]
        ways = (("forward", first, second), ("return", second, first))
        settings = {way: _own(link) | _own(link.get(way) or {}) for way, _, _ in ways}
        round_trip_s = sum(units.seconds(each["delay"]) for each in settings.values())
        for way, source, destination in ways:
            direction = _direction(f"{name}.{way}", destination, settings[way], round_trip_s)
            network.setdefault(source, []).append(direction)
            network.setdefault(destination, [])
    return network


def _own(table: Table) -> dict[str, Any]:
    """Return what a table says, without what it leaves open."""
    return {key: value for key, value in table.items() if value is not None}


def _direction(name: str, destination: str, settings: Table, round_trip_s: float) -> Direction:
    errors = settings.get("errors") or {}
    limit = (settings.get("queue") or {}).get("limit")
    rate_bps = units.bits_per_second(settings["rate"])
    if limit is None:
        # The scenario file's default: a bandwidth-delay product, but at least 100 packets.
        product = rate_bps * round_trip_s / 8.0
        limit = f"{product} B" if product > 100 * _DEFAULT_PACKET_BYTES else "100 packets"
    return Direction(
        name=name,
        to=destination,
        rate_bps=rate_bps,
        delay_s=units.seconds(settings["delay"]),
        redundancy=units.ratio(settings.get("redundancy") or 1.0),
        bit_error_rate=float(errors.get("bit_error_rate") or 0.0),
        packet_loss_rate=float(errors.get("packet_loss_rate") or 0.0),
        queue_limit=str(limit),
        listed_losses=len(errors.get("lost_packets") or ()),
    )


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
