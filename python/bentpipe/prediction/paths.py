"""From a resolved scenario to the asymmetric path of one flow.

The models have one downlink and one uplink. A route of several links becomes one link. Its slowest
link sets the rate. Every other link adds its propagation delay and the time of a packet (store and
forward).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from bentpipe.kinds import applications, gateway_kind, window_rule
from bentpipe.prediction.changes import shares
from bentpipe.prediction.data_direction import Datagrams, data_direction, datagrams
from bentpipe.prediction.hybrid import LARGEST_UNSCALED_WINDOW, Window, hybrid_windows
from bentpipe.prediction.network import Direction, directions, sharing_flows
from bentpipe.prediction.pages import WebPage
from bentpipe.prediction.predictions import BOTH_WAYS
from bentpipe.prediction.quantities import in_base_unit

if TYPE_CHECKING:
    from bentpipe.model import AsymmetricPath
    from bentpipe.prediction.changes import Table

# IP and TCP without options; RFC 7323 appendix A: 10 bytes of timestamps, padded to 12.
_HEADER_BYTES = {"v4": 40, "v6": 60}
_TIMESTAMP_BYTES = 12
# IP header, and UDP or ICMP header.
_DATAGRAM_HEADER_BYTES = {"v4": 28, "v6": 48}


@dataclass(frozen=True, kw_only=True)
class FlowPath:
    """The inputs of the models for one flow. Its data takes the downlink."""

    flow: str
    # Sender and receiver of the data, and whether both ends do both.
    sender: str
    receiver: str
    two_way: bool
    # Whether TCP carries it.
    over_tcp: bool
    # The packets of an application with packets of one size. A segment is then such a packet, and
    # replies have the same length.
    datagrams: Datagrams | None
    downlink: tuple[Direction, ...]
    uplink: tuple[Direction, ...]
    segment_bytes: int
    header_bytes: int
    window_segments: int
    # Before it is rounded down to whole segments.
    window_bytes: int
    # The most that is ever in flight. It is larger where the send buffer grows as Linux's: a write
    # that finds room for one byte of it may fill the whole receive window (`tcp_sendmsg`).
    largest_window_bytes: int
    initial_window_segments: int
    # 0 and 1 if every segment is acknowledged at once.
    delayed_ack_s: float
    segments_per_ack: int
    # b of the formulas: in congestion avoidance the window grows by 1/b segments a round trip. It
    # is 1 where acknowledged bytes count (RFC 3465).
    avoidance_segments_per_ack: int
    # Number of ACKs at the start that are not delayed, or "auto".
    quick_acks: int | str
    minimum_rto_s: float
    initial_rto_s: float
    # None: until the end of the run.
    transfer_bytes: int | None
    application: str
    # Number of directions in which it always has data to send. The models are of one.
    greedy_ways: int
    # Gateways on the way that end the connection or change its packets.
    intervening: tuple[str, ...]
    # Number of other flows that use one of the same directions, and the name if there is one.
    sharing: int
    shares_with: str | None
    congestion_control: str
    # Hybla's RTT0; None with another rule, or another response to losses.
    hybla_reference_rtt_s: float | None
    initial_threshold_segments: float
    # Whether an ACK in slow start adds the acknowledged bytes to the window, not one segment.
    counts_bytes: bool
    slow_start: str
    # From the flow's start to the end of the run, and the whole run.
    duration_s: float
    run_s: float
    # The parts of a connection that gateways split, in the order of the data.
    parts: tuple[FlowPath, ...] = ()
    # The windows that bound a flow for whose host a hybrid gateway answers, in place of the host's.
    windows: tuple[Window, ...] = ()
    # The first hybrid gateway with a timer instead of a TCP towards the host: its name, and the
    # timer in seconds if it is fixed.
    by_timer: tuple[str, float | None] | None = None
    # The sender's pacing rate, payload alone; None if none is set.
    pacing_bps: float | None = None
    # The longest time of a processor for a data segment.
    processing_s: float = 0.0
    # The time of each processor for a segment with its ACKs, or for a packet with its reply.
    processors: tuple[tuple[str, float], ...] = ()
    # Whether the window grows in slow start although the sender does not use it (no RFC 7661).
    grows_if_unused: bool = False
    # The pages of a browser.
    page: WebPage | None = None
    # Whether it sends during the whole run, so that averages over the run are limits for it.
    all_the_run: bool = False

    @property
    def one_transfer(self) -> bool:
        """Whether it is one bulk transfer one way."""
        return self.greedy_ways == 1

    @property
    def likeness(self) -> Hashable:
        """All inputs of the formulas, without names: equal for flows with equal predictions."""
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        for name in ("flow", "sender", "receiver"):
            del own[name]
        changes = any(each.states for each in (*self.downlink, *self.uplink))
        if not changes and (self.transfer_bytes is not None or not self.one_transfer):
            # The end of the run counts for transfers without a size, and on paths that change.
            del own["duration_s"], own["run_s"]
        own["parts"] = tuple(part.likeness for part in self.parts)
        own["shares_with"] = self.shares_with is not None
        own["processors"] = tuple(time_s for _, time_s in self.processors)
        for key in ("downlink", "uplink"):
            own[key] = tuple(replace(each, name="", to="", carrier="") for each in own[key])
        return tuple(own.items())

    @property
    def processing_with_acks_s(self) -> float:
        """The longest time of a processor for a data segment with its ACKs."""
        return max((time_s for _, time_s in self.processors), default=0.0)

    @property
    def compresses_downlink(self) -> bool:
        """Whether a link compresses the headers of data packets."""
        return any(each.compresses for each in self.downlink)

    @property
    def compresses_uplink(self) -> bool:
        """Whether a link compresses the headers of ACKs."""
        return any(each.compresses for each in self.uplink)

    @property
    def measures_its_rate(self) -> bool:
        """Whether the window follows the measured delivery rate, not losses alone."""
        return window_rule(self.congestion_control).measures_rate

    @property
    def thins_acks(self) -> bool:
        """Whether the uplink removes ACKs."""
        return any(each.thins_acks for each in self.uplink)

    @property
    def changed_acks(self) -> str:
        """The first link that removes or shortens ACKs, and the method; empty if there is none."""
        return next((f"{on.name}: {on.changes_acks}" for on in self.uplink if on.changes_acks), "")

    @property
    def not_plain(self) -> str:
        """The first link that does more than to carry packets at one rate, and what it does."""
        links = (*self.downlink, *self.uplink)
        return next((f"{each.name} has {each.ignored[0]}" for each in links if each.ignored), "")

    @property
    def on_demand(self) -> str:
        """The first direction on which packets wait for grants; empty if there is none."""
        return next((on.name for on in (*self.downlink, *self.uplink) if on.on_demand), "")

    @property
    def propagation_down_s(self) -> float:
        """The downlink's propagation delay alone, seconds."""
        return sum(each.delay_s for each in self.downlink)

    @property
    def packet_bytes(self) -> int:
        """Bytes of a full segment with its headers."""
        return self.segment_bytes + self.header_bytes

    @property
    def down_bottleneck(self) -> Direction:
        """The downlink's slowest direction."""
        return _slowest(self.downlink, self.packet_bytes)

    @property
    def answer_bytes(self) -> int:
        """Bytes of a reply: an ACK, or a packet of the same length."""
        return self.header_bytes if self.datagrams is None else self.packet_bytes

    def answer_time_s(self, direction: Direction) -> float:
        """Seconds that a reply occupies a direction."""
        if self.datagrams is None:
            return direction.ack_time_s(self.header_bytes)
        return direction.packet_time_s(self.packet_bytes)

    @property
    def up_bottleneck(self) -> Direction:
        """The uplink's slowest direction."""
        return max(self.uplink, key=self.answer_time_s)

    @property
    def down_delay_s(self) -> float:
        """Delay of the downlink without its bottleneck's transmission, seconds."""
        return _delay(self.downlink, self.packet_bytes)

    @property
    def up_delay_s(self) -> float:
        """Delay of the uplink without its bottleneck's transmission, seconds."""
        times_s = [self.answer_time_s(each) for each in self.uplink]
        return sum(each.delay_s for each in self.uplink) + sum(times_s) - max(times_s)

    @property
    def loss_rate(self) -> float:
        """Probability that a data segment is lost to errors."""
        return _loss(self.downlink, self.packet_bytes)

    @property
    def loss_event_rate(self) -> float:
        """Probability that a data segment begins a loss event; see `Direction.loss_event_rate`."""
        rates = [each.loss_event_rate(self.packet_bytes) for each in self.downlink]
        lost = 1.0 - math.prod(1.0 - each for each in rates)
        return lost if lost > 0 else sum(rates)

    @property
    def ack_loss_rate(self) -> float:
        """Probability that an ACK is lost to errors."""
        return _loss(self.uplink, self.header_bytes)

    @property
    def has_losses(self) -> bool:
        """Whether data segments are lost to errors, random or listed."""
        return self.loss_rate > 0 or any(each.listed_losses for each in self.downlink)

    @property
    def buffer_segments(self) -> float:
        """Full segments that the queue of the downlink's bottleneck holds."""
        return self.down_bottleneck.buffer_segments(self.packet_bytes)

    @property
    def changes(self) -> bool:
        """Whether a rate or a delay of the path changes with time."""
        return any(
            each.most_rate_bps != each.rate_bps or each.least_delay_s != each.delay_s
            for each in (*self.downlink, *self.uplink)
        )

    @property
    def largest_window_segments(self) -> int:
        """The most segments that are ever in flight."""
        return max(self.window_segments, self.largest_window_bytes // self.segment_bytes)

    def states(self) -> list[tuple[float, FlowPath | None]]:
        """Return the path as it is in each state of its links, with the share of the flow's time.

        The path is None where a link is in an outage. A path that does not change has one state.
        """
        route = (*self.downlink, *self.uplink)
        begins_s = self.run_s - self.duration_s
        found: list[tuple[float, FlowPath | None]] = []
        joint = shares([each.states for each in route], from_s=begins_s, until_s=self.run_s)
        for share, states in joint:
            if any(state is not None and state.away for state in states):
                found.append((share, None))
                continue
            now = [each.in_state(state) for each, state in zip(route, states, strict=True)]
            split = len(self.downlink)
            path = replace(self, downlink=tuple(now[:split]), uplink=tuple(now[split:]))
            found.append((share, path))
        return found

    def asymmetric(self) -> AsymmetricPath:
        """Return the path as the models take it."""
        from bentpipe.model import AsymmetricPath

        # The bytes that frames and tunnels add count as redundancy in the models.
        down, up = self.down_bottleneck, self.up_bottleneck
        framed_down = down.air_bytes(self.packet_bytes) / self.packet_bytes
        answer_bits = self.answer_time_s(up) * up.rate_bps
        return AsymmetricPath(
            downlink_rate_bps=down.rate_bps,
            uplink_rate_bps=up.rate_bps * 8.0 * self.answer_bytes / answer_bits,
            downlink_delay_s=self.down_delay_s,
            uplink_delay_s=self.up_delay_s,
            segment_payload_bytes=self.segment_bytes,
            header_bytes=self.header_bytes,
            ack_bytes=self.answer_bytes,
            redundancy=down.redundancy * framed_down,
        )


@dataclass(frozen=True, kw_only=True)
class _Surroundings:
    """Inputs that the path of a flow and those of its parts share.

    `ip`: "v4" or "v6". For the others, see `FlowPath`.
    """

    nodes: Mapping[str, Table]
    sharing: int
    shares_with: str | None
    duration_s: float
    run_s: float
    ip: str


def flow_paths(resolved: Table) -> list[FlowPath]:
    """Return the path of every flow of a resolved scenario (`Scenario.resolved`) with two ends."""
    nodes = {node["name"]: node for node in resolved["nodes"]}
    known = directions(resolved["links"], duration_s=resolved["duration_s"])
    ends: dict[tuple[str, str], list[str]] = {}
    routes: dict[tuple[str, str], tuple[list[Direction], list[Direction]]] = {}
    for flow in resolved["flows"]:
        pair = (flow["from"], flow["to"])
        if flow["channel"] is not None:
            # The flows to the members of a group are one flow.
            pair = (flow["from"], f"channel {flow['channel']}")
            if pair in ends:
                continue
        ends.setdefault(pair, []).append(flow["name"])
        if pair not in routes:
            there, back = flow["route"]["forward"], flow["route"]["return"]
            routes[pair] = ([known[name] for name in there], [known[name] for name in back])
    sharing = sharing_flows(ends, routes)
    paths = []
    for flow in resolved["flows"]:
        if flow["channel"] is not None:
            continue
        pair = (flow["from"], flow["to"])
        count, other = sharing[pair]
        if other == flow["name"]:
            # `sharing_flows` names one of two flows with the same ends: here, the other one.
            other = next((name for name in ends[pair] if name != flow["name"]), None)
        downlink, uplink = routes[pair]
        duration_s = resolved["duration_s"] - flow["start_s"]
        if data_direction(flow["app"]).from_server:
            # The models need the sender in "from".
            downlink, uplink = uplink, downlink
            pair = pair[::-1]
            flow = {**flow, "from": pair[0], "to": pair[1]}
        splits = _split_at(flow, nodes, downlink, uplink)
        around = _Surroundings(
            nodes=nodes,
            sharing=count,
            shares_with=other,
            duration_s=duration_s,
            run_s=resolved["duration_s"],
            ip=resolved["ip"],
        )
        path = _flow_path(flow, _ends(nodes, pair, downlink), downlink, uplink, around)
        if splits:
            path = replace(path, parts=_parts(flow, splits, downlink, uplink, around))
        else:
            windows = hybrid_windows(
                flow,
                nodes,
                downlink,
                uplink,
                packet_bytes=path.packet_bytes,
                segment_bytes=path.segment_bytes,
            )
            timers = [
                (name, nodes[name]["retransmission_timeout_s"])
                for name in path.intervening
                if nodes[name]["tcp"] is None
            ]
            path = replace(path, windows=windows, by_timer=timers[0] if timers else None)
        paths.append(path)
    return paths


# The port on which the simulator's hosts listen.
_PORT = 5001


def _split_at(
    flow: Table,
    nodes: Mapping[str, Table],
    downlink: Sequence[Direction],
    uplink: Sequence[Direction],
) -> list[str]:
    """Return the gateways that split a flow's connection: data and ACKs pass them."""
    both = {each.to for each in uplink}

    def belongs(named: Table | None, *, otherwise: bool) -> bool:
        if named is None:
            return otherwise
        ports, hosts = named["ports"], named["hosts"]
        return (ports is None or any(low <= _PORT <= high for low, high in ports)) and (
            hosts is None or flow["from"] in hosts or flow["to"] in hosts
        )

    return [
        each.to
        for each in downlink
        if each.to in both
        and gateway_kind(nodes[each.to]["kind"]).ends_connections
        and belongs(nodes[each.to]["only"], otherwise=True)
        and not belongs(nodes[each.to]["except"], otherwise=False)
    ]


def _ends(
    nodes: Mapping[str, Table], ends: tuple[str, str], downlink: Sequence[Direction]
) -> tuple[Table, Table]:
    """Return the TCP settings at both ends of a route; a gateway's depend on the link."""

    def tcp(name: str, direction: Direction) -> Table:
        node = nodes[name]
        if not gateway_kind(node["kind"]).ends_connections:
            found: Table = node["tcp"]
        else:
            link = direction.name.rpartition(".")[0]
            found = node["tcp" if link == node["facing"] else "host_tcp"]
        return found

    return tcp(ends[0], downlink[0]), tcp(ends[1], downlink[-1])


def _parts(
    flow: Table,
    splits: Sequence[str],
    downlink: Sequence[Direction],
    uplink: Sequence[Direction],
    around: _Surroundings,
) -> tuple[FlowPath, ...]:
    parts = []
    # The nodes that data and ACKs pass, in order; direction n leads from node n to the next.
    data = [flow["from"], *(each.to for each in downlink)]
    acks = [flow["to"], *(each.to for each in uplink)]
    for source, end in itertools.pairwise([flow["from"], *splits, flow["to"]]):
        down = downlink[data.index(source) : data.index(end)]
        up = uplink[acks.index(end) : acks.index(source)]
        ends = _ends(around.nodes, (source, end), down)
        parts.append(_flow_path({**flow, "name": f"{source} to {end}"}, ends, down, up, around))
    return tuple(parts)


def _flow_path(
    flow: Table,
    ends: tuple[Table, Table],
    downlink: Sequence[Direction],
    uplink: Sequence[Direction],
    around: _Surroundings,
) -> FlowPath:
    sender, receiver = ends
    nodes, ip = around.nodes, around.ip
    segment_bytes = min(sender["mss_bytes"], receiver["mss_bytes"])
    timestamps = sender["timestamps"] and receiver["timestamps"]
    header_bytes = _HEADER_BYTES[ip] + (_TIMESTAMP_BYTES if timestamps else 0)
    # The result of path MTU discovery.
    mtu_bytes = min(direction.mtu_bytes for direction in downlink)
    segment_bytes = int(min(segment_bytes, mtu_bytes - header_bytes))
    way = data_direction(flow["app"])
    own = datagrams(flow["app"])
    if own is not None and not way.two_way:
        # A datagram in fragments would be several packets, each with its header.
        fits = own.payload_bytes + _DATAGRAM_HEADER_BYTES[ip] <= mtu_bytes
        own = own if fits else None
    if own is not None:
        segment_bytes, header_bytes = own.payload_bytes, _DATAGRAM_HEADER_BYTES[ip]
    # Replies for each packet.
    answers = 1.0 if receiver["delayed_ack_s"] is None else 0.5
    if not way.over_tcp:
        answers = 1.0 if way.two_way else 0.0
    processing_s, processors = _processing(flow, nodes, downlink, uplink, answers)
    window_bytes = min(sender["send_buffer_bytes"], receiver["receive_buffer_bytes"])
    if not (sender["window_scaling"] and receiver["window_scaling"]):
        window_bytes = min(window_bytes, LARGEST_UNSCALED_WINDOW)
    largest_window_bytes = window_bytes
    if sender["send_memory_bytes"] is not None:
        largest_window_bytes = receiver["receive_buffer_bytes"]
        if not (sender["window_scaling"] and receiver["window_scaling"]):
            largest_window_bytes = min(largest_window_bytes, LARGEST_UNSCALED_WINDOW)
    threshold_bytes = sender["initial_slow_start_threshold_bytes"]
    delayed_ack_s = receiver["delayed_ack_s"]
    segments_per_ack = 1 if delayed_ack_s is None else int(receiver["ack_every"])
    counts_bytes_in_avoidance = sender["congestion_avoidance"] == "byte-counting"
    application = _application(flow["app"])
    greedy_ways = _greedy_ways(application)
    return FlowPath(
        flow=flow["name"],
        sender=flow["from"],
        receiver=flow["to"],
        two_way=way.two_way,
        over_tcp=way.over_tcp,
        datagrams=own,
        downlink=tuple(downlink),
        uplink=tuple(uplink),
        segment_bytes=segment_bytes,
        header_bytes=header_bytes,
        window_segments=max(1, window_bytes // segment_bytes),
        window_bytes=window_bytes,
        largest_window_bytes=largest_window_bytes,
        initial_window_segments=sender["initial_window_segments"],
        delayed_ack_s=0.0 if delayed_ack_s is None else delayed_ack_s,
        segments_per_ack=segments_per_ack,
        avoidance_segments_per_ack=1 if counts_bytes_in_avoidance else segments_per_ack,
        quick_acks=receiver["quick_acks"],
        minimum_rto_s=sender["minimum_rto_s"],
        initial_rto_s=sender["initial_rto_s"],
        # The size of an echo source is a packet's.
        transfer_bytes=None if own is not None else flow["app"].get("size_bytes"),
        application=application,
        greedy_ways=greedy_ways,
        # A split gateway that does not split this flow is a router for it.
        intervening=tuple(
            each.to for each in downlink if gateway_kind(nodes[each.to]["kind"]).acknowledges
        ),
        sharing=around.sharing,
        shares_with=around.shares_with,
        congestion_control=sender["congestion_control"],
        hybla_reference_rtt_s=_hybla_reference_rtt_s(sender),
        initial_threshold_segments=(
            math.inf if threshold_bytes is None else threshold_bytes / segment_bytes
        ),
        counts_bytes=sender["slow_start"] != "standard",
        slow_start=sender["slow_start"],
        duration_s=around.duration_s,
        run_s=around.run_s,
        pacing_bps=in_base_unit(sender["pacing"]),
        processing_s=processing_s,
        processors=processors,
        grows_if_unused=not sender["window_validation"],
        page=WebPage.of(flow["app"]),
        all_the_run=(
            flow["start_s"] == 0.0 and greedy_ways == 1 and flow["app"].get("size_bytes") is None
        ),
    )


def _processing(
    flow: Table,
    nodes: Mapping[str, Table],
    downlink: Sequence[Direction],
    uplink: Sequence[Direction],
    answers: float,
) -> tuple[float, tuple[tuple[str, float], ...]]:
    """Return the longest time of a processor for a data segment, and each one's with replies.

    A gateway's processor serves packets that arrive; a host's also those that leave.
    """
    times_s: dict[str, float] = {}
    with_acks_s: dict[str, float] = {}

    def serve(name: str, share: float, times: dict[str, float]) -> None:
        processing = nodes[name].get("processing")
        if processing is not None:
            times[name] = times.get(name, 0.0) + share * processing["time_s"]

    for way, end, share in ((downlink, "from", 1.0), (uplink, "to", answers)):
        leaves = [flow[end]] if nodes[flow[end]]["kind"] == "host" else []
        for name in (*leaves, *(each.to for each in way)):
            serve(name, share, with_acks_s)
            if way is downlink:
                serve(name, share, times_s)
    return max(times_s.values(), default=0.0), tuple(with_acks_s.items())


def _hybla_reference_rtt_s(tcp: Table) -> float | None:
    """Return RTT0 if the sender is Hybla as in its paper, where a loss halves the window."""
    if window_rule(tcp["congestion_control"]).loss_law != "hybla":
        return None
    if tcp["hybla"]["after_loss"] != "half":
        return None
    return float(tcp["hybla"]["reference_rtt_s"])


def _application(app: Table) -> str:
    """Return what a flow does; the application alone if it does so once and one way."""
    kind = str(app["kind"])
    if app.get("direction") == "both":
        return kind + BOTH_WAYS
    if app.get("transfers", 1) != 1:
        return f"{app['transfers']} {kind} transfers"
    return kind


def _greedy_ways(application: str) -> int:
    """Return the number of directions in which an application always has data to send."""
    kind = applications().get(application.removesuffix(BOTH_WAYS))
    if kind is None or not kind.keeps_sending:
        return 0
    return 2 if application.endswith(BOTH_WAYS) else 1


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
