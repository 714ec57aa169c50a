"""The links of a resolved scenario, and the flows that share them.

Routes are those of the simulator.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bentpipe.kinds import queues
from bentpipe.prediction.access import least_wait_s, most_bps
from bentpipe.prediction.changes import State, Table, averages, best, changing, states
from bentpipe.prediction.framing import framed_bytes

# RFC 2003: an outer IPv4 header.
_TUNNEL_BYTES = 20
# RFC 1144 on SLIP: an IPv4 ACK without options that advances by 256 bytes or more
# (docs/return-link.md), without framing. All other packets have their headers. The byte of SLIP
# is the framing of a link that has none of a serial line.
_PLAIN_HEADER_BYTES = 40
_COMPRESSED_BYTES = 6
_SLIP_BYTES = 1
# A modem's data compression makes 16 bytes of 40 of headers (samaraweera1999, section 3.3).
_MODEM_RATIO = 16 / 40

Route = Sequence["Direction"]
Pair = tuple[str, str]


@dataclass(frozen=True, kw_only=True)
class Direction:
    """One direction of a link, in base units."""

    name: str
    to: str
    rate_bps: float
    # Propagation, and the shortest wait for a grant on capacity on demand.
    delay_s: float
    redundancy: float
    bit_error_rate: float
    packet_loss_rate: float
    # The queue's limit in packets or in bytes; the other is None.
    queue_packets: float | None
    queue_bytes: float | None
    # Packets that a burst of losses takes on average; 1 where losses are independent.
    losses_per_event: float = 1.0
    # Number of packets that the scenario lists as lost.
    listed_losses: int
    # The longest packet that the link takes.
    mtu_bytes: float = math.inf
    # Features that no formula includes, such as 'acks "compaction"'.
    ignored: tuple[str, ...] = ()
    # The highest rate and the least delay; the fields above are averages.
    most_rate_bps: float
    least_delay_s: float
    # Framing of packets: a kind, or a number of bytes.
    framing: str | int = "none"
    # Header that a tunnel adds to each packet; compression of headers, or "none".
    tunnel_bytes: int = 0
    compression: str = "none"
    # The carrier that it shares, the carrier's rate, and its constant capacity in each frame.
    carrier: str = ""
    carrier_rate_bps: float = math.inf
    constant_bps: float = 0.0
    # Rate of a terminal's burst in clear sky, and the average factor by which fading slows it.
    clear_rate_bps: float = math.inf
    fading: float = 1.0
    # Where its rate, delay, losses or outages follow a course: each state, in order of time.
    states: tuple[State, ...] = ()

    @property
    def serial(self) -> bool:
        """Whether the framing is that of a serial line, in place of SLIP's byte."""
        return isinstance(self.framing, int) or self.framing.startswith("ppp")

    @property
    def compresses(self) -> bool:
        """Whether the link compresses headers."""
        return self.compression != "none"

    @property
    def on_demand(self) -> bool:
        """Whether packets wait for a hub's grants."""
        return any(what.startswith("access") for what in self.ignored)

    @property
    def changes_acks(self) -> str:
        """The feature that removes or shortens ACKs; empty where there is none."""
        of_acks = ("acks", "compression")
        return next((what for what in self.ignored if what.startswith(of_acks)), "")

    @property
    def thins_acks(self) -> bool:
        """Whether it removes ACKs: no formula has the number that remains."""
        return any(what.startswith("acks") for what in self.ignored)

    @property
    def manages_queue(self) -> bool:
        """Whether its queue is not drop-tail, so that it may be short whatever its limit."""
        return any(what.startswith("queue") for what in self.ignored)

    def in_state(self, state: State | None) -> Direction:
        """Return the direction as it is in one of its states."""
        if state is None:
            return self
        return replace(
            self,
            rate_bps=min(state.rate_bps, self.most_rate_bps),
            delay_s=state.delay_s,
            bit_error_rate=state.bit_error_rate,
            packet_loss_rate=state.packet_loss_rate,
        )

    def buffer_segments(self, packet_bytes: float) -> float:
        """Full segments that its queue holds."""
        if self.queue_packets is not None:
            return self.queue_packets
        return math.inf if self.queue_bytes is None else self.queue_bytes // packet_bytes

    def air_bytes(self, packet_bytes: float) -> float:
        """Bytes that a packet takes of the rate, redundancy aside."""
        return framed_bytes(self.framing, packet_bytes + self.tunnel_bytes)

    def ack_air_bytes(self, header_bytes: float) -> float:
        """Bytes that an acknowledgment takes of the rate, redundancy aside."""
        if self.compression == "rfc1144":
            is_plain = header_bytes == _PLAIN_HEADER_BYTES
            if self.serial:
                return self.air_bytes(_COMPRESSED_BYTES if is_plain else header_bytes)
            if is_plain:
                return _COMPRESSED_BYTES + _SLIP_BYTES
            return self.air_bytes(header_bytes) + _SLIP_BYTES
        shorter = _MODEM_RATIO if self.compression == "v42bis" else 1.0
        return shorter * self.air_bytes(header_bytes)

    def loss_event_rate(self, packet_bytes: float) -> float:
        """Probability that a packet begins a loss event: the losses of a burst are one event.

        TCP reduces its window once for all losses of a round trip (RFC 5348 section 5.2 counts
        them in this way; RFC 6675 and RFC 8985 repair them together).
        """
        events = replace(self, packet_loss_rate=self.packet_loss_rate / self.losses_per_event)
        return events.loss_rate(packet_bytes)

    def packet_time_s(self, packet_bytes: float) -> float:
        """Seconds that a packet occupies the direction."""
        return 8.0 * self.air_bytes(packet_bytes) * self.redundancy / self.rate_bps

    def ack_time_s(self, header_bytes: float) -> float:
        """Seconds that an acknowledgment occupies the direction."""
        return 8.0 * self.ack_air_bytes(header_bytes) * self.redundancy / self.rate_bps

    def carrier_share(self, time_s: float) -> float:
        """Return the seconds of its carrier that go with `time_s` on the direction.

        A carrier is air time: a faded terminal takes more of it for a byte.
        """
        return time_s * self.rate_bps * self.fading / self.carrier_rate_bps

    @property
    def constant_share(self) -> float:
        """Share of its carrier that is its own in each frame, used or not."""
        return min(self.constant_bps * self.fading, self.clear_rate_bps) / self.carrier_rate_bps

    def least_packet_time_s(self, packet_bytes: float) -> float:
        """Seconds that a packet occupies the direction at its highest rate."""
        return 8.0 * self.air_bytes(packet_bytes) * self.redundancy / self.most_rate_bps

    def loss_rate(self, packet_bytes: float) -> float:
        """Probability that a packet is lost to errors."""
        if self.bit_error_rate >= 1.0 or self.packet_loss_rate >= 1.0:
            return 1.0
        # log1p and expm1 keep a bit error rate of 1e-12, which rounding would remove.
        bits = math.log1p(-self.bit_error_rate) * 8.0 * (packet_bytes + self.tunnel_bytes)
        return -math.expm1(bits + math.log1p(-self.packet_loss_rate))


def directions(links: Sequence[Table], *, duration_s: float) -> dict[str, Direction]:
    """Return every direction of these links by its name, for a run that lasts so long."""
    found = {}
    for link in links:
        mtu_bytes = math.inf if link["fragment"] else link["mtu_bytes"] or math.inf
        first, second = link["between"]
        for way, end in (("forward", second), ("return", first)):
            # A one-way link has one direction.
            if link[way] is not None:
                name = f"{link['name']}.{way}"
                found[name] = _direction(name, end, link[way], mtu_bytes, duration_s=duration_s)
    return found


def sharing_flows(
    flows: Mapping[Pair, Sequence[str]], routes: Mapping[Pair, tuple[Route, Route]]
) -> dict[Pair, tuple[int, str | None]]:
    """Return the number of other flows that share a direction with each pair of nodes.

    `flows` are the names of the flows between two nodes, which also share with each other. Where
    there is exactly one other flow, its name comes with the number.
    """
    over: dict[str, set[Pair]] = {}
    for pair, both in routes.items():
        for direction in (*both[0], *both[1]):
            over.setdefault(direction.name, set()).add(pair)
    total = sum(len(names) for names in flows.values())
    found: dict[Pair, tuple[int, str | None]] = {}
    for pair, both in routes.items():
        # A link that all flows use, such as the one in front of many users, decides it at once.
        widest = max((over[each.name] for route in both for each in route), key=len)
        if len(widest) == len(flows):
            met: set[Pair] = widest
            count = total
        else:
            met = set().union(*(over[each.name] for route in both for each in route))
            count = sum(len(flows[each]) for each in met)
        other = None
        if count == 2:
            names = [name for each in met for name in flows[each]]
            # The other flow has other ends, or the same ones.
            others = [name for name in names if name not in flows[pair]]
            other = others[0] if others else names[0]
        found[pair] = (count - 1, other)
    return found


def _direction(
    name: str,
    destination: str,
    settings: Table,
    mtu_bytes: float,
    *,
    duration_s: float,
) -> Direction:
    errors, queue = settings["errors"], settings["queue"]
    average, (most_rate_bps, least_delay_s) = averages(settings), best(settings)
    access = settings["access"] or {}
    return Direction(
        name=name,
        to=destination,
        rate_bps=min(average.rate_bps, most_bps(settings)),
        delay_s=average.delay_s + least_wait_s(settings),
        redundancy=settings["redundancy"],
        bit_error_rate=average.bit_error_rate,
        packet_loss_rate=average.packet_loss_rate,
        queue_packets=queue["limit_packets"],
        queue_bytes=queue["limit_bytes"],
        losses_per_event=_losses_per_event(settings),
        listed_losses=len(errors["lost_packets"]),
        mtu_bytes=mtu_bytes,
        ignored=_ignored(settings),
        most_rate_bps=min(most_rate_bps, most_bps(settings)),
        least_delay_s=least_delay_s + least_wait_s(settings),
        framing=settings["framing"],
        carrier=access.get("carrier") or "",
        carrier_rate_bps=access.get("carrier_rate_bps") or math.inf,
        constant_bps=float(access.get("constant_bps") or 0.0),
        tunnel_bytes=_TUNNEL_BYTES if settings["tunnel"] else 0,
        compression=settings["compression"],
        clear_rate_bps=settings["rate_bps"],
        fading=max(1.0, settings["rate_bps"] / average.rate_bps),
        states=tuple(
            replace(each, delay_s=each.delay_s + least_wait_s(settings))
            for each in states(settings, duration_s)
        ),
    )


def _losses_per_event(settings: Table) -> float:
    """Return how many packets a burst of losses takes on average (Gilbert and Elliott)."""
    errors, changes = settings["errors"], settings["changes"]
    burst_packets = errors["mean_burst_packets"]
    changed = changes is not None and changes["losses"] is not None
    if burst_packets is None or errors["loss_between_bursts"] or changed:
        return 1.0
    lost_in_burst = errors["loss_in_burst"]
    return max(1.0, float(burst_packets) * (1.0 if lost_in_burst is None else lost_in_burst))


def _ignored(settings: Table) -> tuple[str, ...]:
    """Return the features of a direction beyond a drop-tail queue, losses and a delay."""
    queue = settings["queue"]["kind"]
    words = {
        "queue": (queue, "" if queues()[queue].manages else queue),
        "acks": (settings["acks"]["kind"], "none"),
        "compression": (settings["compression"], "none"),
        "access": ("continuous" if settings["access"] is None else "on-demand", "continuous"),
    }
    named = tuple(f'{key} "{word}"' for key, (word, plain) in words.items() if word != plain)
    in_bursts = settings["errors"]["mean_burst_packets"] is not None
    bursts = ("losses in bursts",) if in_bursts else ()
    return (*named, *bursts, *changing(settings))
