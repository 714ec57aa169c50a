"""The changes that might help a network: what an engineer would try, one after the other.

Each is a few settings of the scenario file. Which ones are worth simulating follows from the
scenario alone; whether they help, only the simulation tells.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from bentpipe import _native
from bentpipe.prediction.paths import FlowPath, flow_paths

if TYPE_CHECKING:
    from bentpipe.prediction.network import Direction
    from bentpipe.scenario import Scenario

# A link on which no congestion control needs help has a shorter delay than this, one way.
_LONG_DELAY_S: Final = 0.1
# RFC 6928: what today's senders begin with.
_USUAL_INITIAL_WINDOW: Final = 10
_LARGER_INITIAL_WINDOWS: Final = (10, 32)
_USUAL_MSS: Final = 1448
# What Ethernet takes, and what its jumbo frames do; headers without options (RFC 9293), and
# timestamps (RFC 7323).
_USUAL_MTU: Final = 1500
_JUMBO_MTU: Final = 9000
_HEADERS: Final = 40
_TIMESTAMPS: Final = 12
# Tables of the file whose keys are names of one's own.
_WITH_NAMES: Final = ("hosts", "gateways", "links")
_SACK: Final = frozenset({"sack", "fack"})

End = Literal["sender", "receiver"]
_BOTH_ENDS: Final[tuple[End, End]] = ("sender", "receiver")


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A change to a scenario: `settings` are pairs of a key and its value, as `--set` has them.

    Of remedies of the same `kind`, one can be applied at a time.
    """

    kind: str
    name: str
    why: str
    settings: tuple[tuple[str, str], ...]

    def and_also(self, other: Remedy) -> Remedy:
        """Return both changes as one."""
        return Remedy(
            kind=f"{self.kind}, {other.kind}",
            name=f"{self.name} + {other.name}",
            why=self.why,
            settings=self.settings + other.settings,
        )


@dataclass(frozen=True, kw_only=True)
class Network:
    """A scenario as the remedies look at it."""

    resolved: Mapping[str, Any]
    paths: Sequence[FlowPath]
    # The tables of the file that nodes come from: "client" makes client-1, client-2, ...
    tables: frozenset[str]
    names: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, scenario: Scenario, names: Mapping[str, Sequence[str]]) -> Network:
        """Look at a scenario; `names` are the words that its file may use, by kind."""
        resolved = scenario.resolved()
        text = scenario.text if scenario.text is not None else scenario.path.read_text("utf-8")
        tables = _tables(tomllib.loads(text))
        for key, value in scenario.settings:
            kind, _, rest = key.partition(".")
            if rest:
                tables.add(rest.split(".")[0])
            elif kind in _WITH_NAMES:
                tables |= _tables(tomllib.loads(f"{kind} = {value}"))
        return cls(
            resolved=resolved,
            paths=flow_paths(resolved),
            tables=frozenset(tables),
            names=names,
        )

    def table_of(self, name: str) -> str:
        """Return the table that a node or link is made by."""
        return name if name in self.tables else name.rpartition("-")[0]

    def ends(self, end: End) -> dict[str, Mapping[str, Any]]:
        """Return the TCP settings of the hosts that send data by TCP, or receive it."""
        hosts = set()
        for path in self.paths:
            if path.over_tcp:
                hosts.add(getattr(path, end))
                if path.two_way:
                    hosts |= {path.sender, path.receiver}
        nodes = {node["name"]: node for node in self.resolved["nodes"] if node["name"] in hosts}
        return {self.table_of(name): node["tcp"] for name, node in nodes.items()}

    def capacities_bps(self) -> dict[str, float]:
        """Return the rate of the narrowest bottleneck of each host's data, wherever that goes."""
        found: dict[str, float] = {}
        for path in self.paths:
            ways = [(path.sender, path.down_bottleneck)]
            if path.two_way:
                ways.append((path.receiver, path.up_bottleneck))
            for host, bottleneck in ways:
                table = self.table_of(host)
                found[table] = min(bottleneck.rate_bps, found.get(table, math.inf))
        return found

    def gateways(self) -> dict[str, str]:
        """Return the gateways on the way of the flows, and their kinds."""
        passed = {direction.to for path in self.paths for direction in path.downlink}
        return {
            self.table_of(node["name"]): node["kind"]
            for node in self.resolved["nodes"]
            if node["name"] in passed and node["kind"] != "host"
        }

    def key_of(self, direction: Direction) -> str:
        """Return the key of a direction of a link: `links.satellite.forward`."""
        link, _, way = direction.name.rpartition(".")
        return f"links.{self.table_of(link)}.{way}"

    def settings_of(self, direction: Direction) -> Mapping[str, Any]:
        """Return the settings of a direction of a link."""
        name, _, way = direction.name.rpartition(".")
        links = {link["name"]: link for link in self.resolved["links"]}
        settings: Mapping[str, Any] = links[name][way]
        return settings

    def product_bytes(self) -> float:
        """Return the largest bandwidth-delay product of any flow's path, in bytes."""
        return max(path.down_bottleneck.rate_bps * _round_trip_s(path) / 8.0 for path in self.paths)


def _tables(written: Mapping[str, Any]) -> set[str]:
    return {name for kind in _WITH_NAMES for name in written.get(kind, {})}


def remedies(network: Network) -> list[Remedy]:
    """Return the changes that may help, each kind's after each other."""
    if not network.paths:
        # Of what is sent to groups, nothing here is about.
        return []
    made: list[Remedy] = []
    for kind in _KINDS:
        for offered in kind(network):
            # A host that sends and receives was found at both ends.
            remedy = replace(offered, settings=tuple(dict.fromkeys(offered.settings)))
            if remedy.settings and remedy.settings not in [each.settings for each in made]:
                made.append(remedy)
    return made


def _round_trip_s(path: FlowPath) -> float:
    down, up = path.down_bottleneck, path.up_bottleneck
    sending = down.packet_time_s(path.packet_bytes) + up.packet_time_s(path.header_bytes)
    return path.down_delay_s + path.up_delay_s + sending


def _settings_at(
    network: Network, end: End, key: str, value: str, *, where: Callable[[Mapping[str, Any]], bool]
) -> tuple[tuple[str, str], ...]:
    return tuple(
        (f"hosts.{host}.tcp.{key}", value) for host, tcp in network.ends(end).items() if where(tcp)
    )


def _buffers(network: Network) -> Iterator[Remedy]:
    """Windows of two products: one that is under way, one while a loss is repaired."""
    needed = 2.0 * network.product_bytes()
    size = 1 << max(16, math.ceil(math.log2(max(needed, 1.0))))
    text = f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
    receive = _settings_at(
        network,
        "receiver",
        "receive_buffer",
        text,
        where=lambda tcp: tcp["receive_buffer_bytes"] < size,
    )
    send = _settings_at(
        network, "sender", "send_buffer", text, where=lambda tcp: tcp["send_buffer_bytes"] < size
    )
    why = "a window of two bandwidth-delay products"
    both = receive + send
    ends = "buffers" if receive and send else "receive buffer" if receive else "send buffer"
    # RFC 9293 section 3.1: without scaling, a window is a 16-bit number.
    scaled = tuple(
        setting
        for end in _BOTH_ENDS
        for setting in _settings_at(
            network, end, "window_scaling", "true", where=lambda tcp: not tcp["window_scaling"]
        )
        if size >= 1 << 16
    )
    name = f"window scaling, {text}" if scaled else f"{ends} of {text}"
    yield Remedy(kind="buffers", name=name, why=why, settings=scaled + both)


def _window_rules(network: Network) -> Iterator[Remedy]:
    used = {tcp["congestion_control"] for tcp in network.ends("sender").values()}
    rules = _native.window_rules()
    # Of a rule with two names, the later one tells it from others.
    names = {rules[name][0]: name for name in network.names["congestion-controls"]}
    for rule in names.values():
        if used == {rule}:
            continue
        settings = _settings_at(
            network,
            "sender",
            "congestion_control",
            rule,
            where=lambda tcp, rule=rule: tcp["congestion_control"] != rule,  # type: ignore[misc]
        )
        _, _, needs_capacity = rules[rule]
        if needs_capacity:
            capacities = network.capacities_bps()
            settings += tuple(
                (f"hosts.{host}.tcp.channel_capacity", f"{capacities[host] / 1e3:.0f} kbit/s")
                for host, tcp in network.ends("sender").items()
                if tcp["channel_capacity_bps"] is None
            )
        yield Remedy(
            kind="window rule",
            name=rule,
            why="another window rule at the sender",
            settings=settings,
        )


def _initial_window(network: Network) -> Iterator[Remedy]:
    for segments in _LARGER_INITIAL_WINDOWS:
        settings = _settings_at(
            network,
            "sender",
            "initial_window",
            f"{segments} segments",
            where=lambda tcp, n=segments: tcp["initial_window_segments"] < n,  # type: ignore[misc]
        )
        why = "fewer round trips of slow start"
        if segments > _USUAL_INITIAL_WINDOW:
            why += "; more than the Internet allows"
        yield Remedy(
            kind="initial window",
            name=f"initial window of {segments}",
            why=why,
            settings=settings,
        )


def _slow_start(network: Network) -> Iterator[Remedy]:
    for kind in ("byte-counting", "hystart++"):
        settings = _settings_at(
            network,
            "sender",
            "slow_start",
            kind,
            where=lambda tcp, kind=kind: tcp["slow_start"] != kind,  # type: ignore[misc]
        )
        yield Remedy(
            kind="slow start",
            name=f"slow start {kind}",
            why="when slow start ends, and how fast it is until then",
            settings=settings,
        )


def _recovery(network: Network) -> Iterator[Remedy]:
    sender = _settings_at(
        network, "sender", "recovery", "sack", where=lambda tcp: tcp["recovery"] not in _SACK
    )
    negotiated = tuple(
        setting
        for end in _BOTH_ENDS
        for setting in _settings_at(network, end, "sack", "true", where=lambda tcp: not tcp["sack"])
    )
    yield Remedy(
        kind="loss recovery",
        name="SACK",
        why="several losses of a window are repaired in one round trip",
        settings=negotiated + sender,
    )


def _acknowledgments(network: Network) -> Iterator[Remedy]:
    """Fewer acknowledgments on the narrowest link that they cross."""
    delayed = _settings_at(
        network, "receiver", "delayed_ack", "40 ms", where=lambda tcp: tcp["delayed_ack_s"] is None
    )
    yield Remedy(
        kind="delayed ACKs",
        name="delayed ACKs",
        why="half as many acknowledgments",
        settings=delayed,
    )
    for path in _unlike(network.paths, lambda path: path.up_bottleneck.name):
        narrow = path.up_bottleneck
        # Acknowledgments are no burden where there is as much room as for data.
        if narrow.rate_bps >= path.down_bottleneck.rate_bps:
            continue
        key = network.key_of(narrow)
        here = network.settings_of(narrow)
        for method in network.names["ack-methods"]:
            # The methods remove from the queue themselves, which has to be a plain one.
            if here["queue"]["kind"] != "drop-tail":
                continue
            # Reconstruction restores what another box has removed.
            if method in {"none", "reconstruction", here["acks"]["kind"]}:
                continue
            # Compaction needs a tunnel, in which RFC 1144 sees no headers.
            hidden = method == "compaction" and here["compression"] == "rfc1144"
            plain = ((f"{key}.compression", "none"),) if hidden else ()
            yield Remedy(
                kind="ACK method",
                name=f"ACK {method} on {narrow.name}",
                why="fewer acknowledgments on the narrow return link",
                settings=((f"{key}.acks", f'{{ kind = "{method}" }}'), *plain),
            )
        tunnel = here["tunnel"] or here["acks"]["kind"] == "compaction"
        if here["compression"] == "none" and not tunnel:
            yield Remedy(
                kind="header compression",
                name=f"RFC 1144 on {narrow.name}",
                why="shorter acknowledgments on the narrow return link",
                settings=((f"{key}.compression", "rfc1144"),),
            )


def _queues(network: Network) -> Iterator[Remedy]:
    for path in _unlike(network.paths, lambda path: path.down_bottleneck.name):
        narrow = path.down_bottleneck
        key = f"{network.key_of(narrow)}.queue"
        product = narrow.rate_bps * _round_trip_s(path) / 8.0
        packets = max(10, round(product / path.packet_bytes))
        for name, limit in (("", packets), ("half ", max(10, packets // 2))):
            if round(path.buffer_segments) != limit:
                yield Remedy(
                    kind="queue",
                    name=f"queue of {limit} packets at {narrow.name}",
                    why=f"{name}a bandwidth-delay product",
                    settings=((key, f'{{ kind = "drop-tail", limit = "{limit} packets" }}'),),
                )
        if "fair" in network.names["queues"] and path.sharing:
            yield Remedy(
                kind="queue",
                name=f"fair queue at {narrow.name}",
                why="flows that share the link don't wait for each other",
                settings=((key, f'{{ kind = "fair", limit = "{packets} packets" }}'),),
            )


def _segments(network: Network) -> Iterator[Remedy]:
    yield _segments_of(
        network,
        _USUAL_MSS,
        where=lambda mss: mss < _USUAL_MSS,
        why="fewer headers, and a window that grows faster",
    )
    # RFC 9293 section 3.7.1: what a host that knows better may announce.
    narrow = _narrow_mtus(network)
    if narrow:
        fitting = min(mtu for _, mtu in narrow) - _HEADERS - _TIMESTAMPS
        yield _segments_of(
            network,
            fitting,
            where=lambda mss: mss > fitting,
            why="no packet is longer than the shortest MTU on the way: nothing to find out",
        )
    elif any(path.loss_rate == 0.0 for path in network.paths):
        jumbo = _JUMBO_MTU - _HEADERS - _TIMESTAMPS
        yield _segments_of(
            network,
            jumbo,
            where=lambda mss: mss < jumbo,
            why=f"fewer, longer packets, where every link takes {_JUMBO_MTU} B",
        )


def _segments_of(network: Network, size: int, *, where: Callable[[int], bool], why: str) -> Remedy:
    settings = tuple(
        setting
        for end in _BOTH_ENDS
        for setting in _settings_at(
            network, end, "mss", f"{size} B", where=lambda tcp: where(tcp["mss_bytes"])
        )
    )
    return Remedy(kind="segment size", name=f"segments of {size} B", why=why, settings=settings)


def _narrow_mtus(network: Network) -> list[tuple[str, int]]:
    """Return the tables of the links on the way that don't take full segments, and their MTUs."""
    narrow = {}
    for path in network.paths:
        for direction in path.downlink:
            if direction.mtu_bytes < _full_packet_bytes(network, path):
                link = direction.name.rpartition(".")[0]
                narrow[network.table_of(link)] = int(direction.mtu_bytes)
    return list(narrow.items())


def _full_packet_bytes(network: Network, path: FlowPath) -> int:
    """Return how long a packet is that carries all that both ends are ready for."""
    largest = (
        max((tcp["mss_bytes"] for tcp in network.ends(end).values()), default=_USUAL_MSS)
        for end in _BOTH_ENDS
    )
    return int(min(largest)) + path.header_bytes


def _mtus(network: Network) -> Iterator[Remedy]:
    """Links that take longer packets, or hosts that find out how long they may be."""
    narrow = _narrow_mtus(network)
    if not narrow:
        return
    size = max(_USUAL_MTU, *(_full_packet_bytes(network, path) for path in network.paths))
    yield Remedy(
        kind="MTU",
        name=f"MTU of {size} B on {', '.join(table for table, _ in narrow)}",
        why="no segment is too long for a link: nothing to find out, and fewer headers",
        settings=tuple((f"links.{table}.mtu", f"{size} B") for table, _ in narrow),
    )
    for rule, why in (
        ("black-hole", "routers that say nothing of long packets are found out"),
        ("search", "what the path takes is found out from segments that are answered"),
    ):
        settings = tuple(
            setting
            for end in _BOTH_ENDS
            for setting in _settings_at(
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


def _gateways(network: Network) -> Iterator[Remedy]:
    """Gateways at the ends of the longest link, where this version has them.

    What is set of a router that a gateway has no use for (`icmp`) can't be unset.
    """
    path = max(network.paths, key=_round_trip_s)
    silent = {node["name"] for node in network.resolved["nodes"] if node.get("icmp") is False}
    plain = [
        name
        for name, kind in network.gateways().items()
        if kind == "router" and name not in map(network.table_of, silent)
    ]
    longest = max(path.downlink, key=lambda direction: direction.delay_s)
    if longest.delay_s < _LONG_DELAY_S:
        return
    link = longest.name.rpartition(".")[0]
    made = next(each for each in network.resolved["links"] if each["name"] == link)
    ends = [name for name in map(network.table_of, made["between"]) if name in plain]
    facing = network.table_of(link)
    back = _passed(network, path.uplink)
    for kind, at in (("split", ends), ("split", ends[:1]), ("hybrid", ends[:1])):
        if kind == "split" and (made["far_ends"] is not None or not back.issuperset(at)):
            # A split connection has one gateway across, and both of its directions pass.
            continue
        if kind in network.names["gateways"] and at:
            yield Remedy(
                kind="gateway",
                name=f"{kind} at {' and '.join(at)}",
                why=f"the long delay of {link} is the gateway's business",
                settings=tuple(
                    setting
                    for name in at
                    for setting in (
                        (f"gateways.{name}.kind", kind),
                        (f"gateways.{name}.facing", facing),
                    )
                ),
            )


def _gateways_recovery(network: Network) -> Iterator[Remedy]:
    """Let a hybrid gateway send again as a TCP does.

    A fixed timer that is shorter than the round trip lets everything go again for want of an answer
    that can't have come yet; once that fills the channel, it doesn't end.
    """
    for name in (name for name, kind in network.gateways().items() if kind == "hybrid"):
        made = next(
            node for node in network.resolved["nodes"] if network.table_of(node["name"]) == name
        )
        if made["tcp"] is None:
            yield Remedy(
                kind="gateway's recovery",
                name=f"TCP at {name}",
                why="it sends again by SACK and round trips, not by a fixed timer",
                settings=((f"gateways.{name}.tcp", "{}"),),
            )


def _passed(network: Network, way: Iterable[Direction]) -> set[str]:
    """Return the tables of the nodes between which these directions lead."""
    between = {link["name"]: link["between"] for link in network.resolved["links"]}
    return {
        network.table_of(name)
        for direction in way
        for name in between[direction.name.rpartition(".")[0]]
    }


def _unlike(paths: Sequence[FlowPath], what: Callable[[FlowPath], str]) -> Iterator[FlowPath]:
    """Yield one path of those that have the same."""
    seen: set[str] = set()
    for path in paths:
        if what(path) not in seen:
            seen.add(what(path))
            yield path


_KINDS: Final[tuple[Callable[[Network], Iterator[Remedy]], ...]] = (
    _buffers,
    _window_rules,
    _initial_window,
    _slow_start,
    _recovery,
    _acknowledgments,
    _queues,
    _segments,
    _mtus,
    _gateways,
    _gateways_recovery,
)
