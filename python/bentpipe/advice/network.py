"""A scenario in the form that remedies are derived from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from bentpipe import toml
from bentpipe.advice.remedy import PARTIES, Party
from bentpipe.kinds import gateway_kind
from bentpipe.prediction.paths import FlowPath, flow_paths

if TYPE_CHECKING:
    from bentpipe.prediction.network import Direction
    from bentpipe.scenario import Scenario

# Tables of the file whose keys are names chosen by the user.
_WITH_NAMES: Final = ("hosts", "gateways", "links")

Role = Literal["sender", "receiver"]
BOTH_ROLES: Final[tuple[Role, Role]] = ("sender", "receiver")
# Places of the TCPs that carry a flow's data.
TcpLocation = Literal["hosts", "gateways"]


@dataclass(frozen=True, kw_only=True)
class Network:
    """A scenario in the form that remedies are derived from."""

    resolved: Mapping[str, Any]
    paths: Sequence[FlowPath]
    # Tables of nodes and links in the file: "client" makes client-1, client-2, ...
    tables: frozenset[str]
    # Keys of links that the file or a setting has: "links.satellite.queue", ...
    written: frozenset[str]
    names: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, scenario: Scenario, names: Mapping[str, Sequence[str]]) -> Network:
        """Read a scenario; `names` are the words that its file may use, by kind."""
        resolved = scenario.resolved()
        documents = [toml.read(scenario.content())]
        documents += [_document_of(key, value) for key, value in scenario.settings]
        return cls(
            resolved=resolved,
            paths=flow_paths(resolved),
            tables=frozenset().union(*map(_tables, documents)),
            written=frozenset().union(*map(_link_keys, documents)),
            names=names,
        )

    def table_of(self, name: str) -> str:
        """Return the table of the file that makes a node or link."""
        return name if name in self.tables else name.rpartition("-")[0]

    def tcp_tables(self, end: Role, at: TcpLocation = "hosts") -> dict[str, Mapping[str, Any]]:
        """Return the `tcp` tables of those that send data by TCP, or receive it, by their keys.

        With "gateways", these are the split gateways whose legs over the link that they face carry
        the data.
        """
        return self._hosts(end) if at == "hosts" else self._split_gateways(end)

    def _hosts(self, end: Role) -> dict[str, Mapping[str, Any]]:
        hosts = set()
        for path in self.paths:
            if path.over_tcp:
                hosts.add(getattr(path, end))
                if path.two_way:
                    hosts |= {path.sender, path.receiver}
        nodes = {node["name"]: node for node in self.resolved["nodes"] if node["name"] in hosts}
        return {f"hosts.{self.table_of(name)}.tcp": node["tcp"] for name, node in nodes.items()}

    def _split_gateways(self, end: Role) -> dict[str, Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        for path in self.paths:
            for _, gateway, sends in self.split_gateway_legs(path):
                if path.two_way or sends == (end == "sender"):
                    found[f"gateways.{self.table_of(gateway['name'])}.tcp"] = gateway["tcp"]
        return found

    def split_gateway_legs(
        self, path: FlowPath
    ) -> Iterator[tuple[Direction, Mapping[str, Any], bool]]:
        """Yield the directions on a flow's path that a split gateway at one end faces.

        Each comes with the gateway, and with whether the gateway is the sender on this direction.
        """
        split = {
            node["name"]: node
            for node in self.resolved["nodes"]
            if gateway_kind(node["kind"]).ends_connections
        }
        if not path.over_tcp:
            return
        before = path.sender
        for direction in path.downlink:
            link = direction.name.rpartition(".")[0]
            for name, sends in ((before, True), (direction.to, False)):
                if name in split and split[name]["facing"] == link:
                    yield direction, split[name], sends
            before = direction.to

    def capacities_bps(self, at: TcpLocation = "hosts") -> dict[str, float]:
        """Return the rate of the narrowest bottleneck of each sender's data, by its table's key."""
        found: dict[str, float] = {}

        def note(key: str, rate_bps: float) -> None:
            found[key] = min(rate_bps, found.get(key, math.inf))

        for path in self.paths:
            if at == "gateways":
                for direction, gateway, sends in self.split_gateway_legs(path):
                    if sends or path.two_way:
                        note(f"gateways.{self.table_of(gateway['name'])}.tcp", direction.rate_bps)
                continue
            note(f"hosts.{self.table_of(path.sender)}.tcp", path.down_bottleneck.rate_bps)
            if path.two_way:
                note(f"hosts.{self.table_of(path.receiver)}.tcp", path.up_bottleneck.rate_bps)
        return found

    def who_changes(self, settings: Iterable[tuple[str, str]]) -> tuple[Party, ...]:
        """Return the parties that have to change something for these settings.

        Links and their queues belong to the operator. A host is a server if it sends the data of
        any flow. Where both hosts of a flow send data, the one that accepts the connection is the
        server.
        """
        servers = set()
        asked = {flow["name"]: flow["to"] for flow in self.resolved["flows"]}
        for path in self.paths:
            servers.add(self.table_of(asked[path.flow] if path.two_way else path.sender))
        parties: set[Party] = set()
        for key, _ in settings:
            kind, _, rest = key.partition(".")
            if kind == "hosts":
                parties.add("server" if rest.split(".")[0] in servers else "client")
            else:
                parties.add("gateway" if kind == "gateways" else "operator")
        return tuple(each for each in PARTIES if each in parties)

    def is_quic(self, path: FlowPath) -> bool:
        """Whether a flow's connections are QUIC connections."""
        return path.flow in self._quic

    @cached_property
    def _quic(self) -> frozenset[str]:
        flows = self.resolved["flows"]
        return frozenset(flow["name"] for flow in flows if flow["app"].get("transport") == "quic")

    def kinds_of(self, flow: str) -> frozenset[str]:
        """Return the kinds of a flow's applications, including those of a mix."""
        return self._kinds[flow]

    @cached_property
    def _kinds(self) -> dict[str, frozenset[str]]:
        return {flow["name"]: _kinds(flow["app"]) for flow in self.resolved["flows"]}

    def data_bottlenecks(self) -> dict[str, FlowPath]:
        """Return the bottleneck directions of data that shares them with other flows.

        Each comes with the first path that has it. A call has data in both directions.
        """
        found: dict[str, FlowPath] = {}
        for path in self.paths:
            if path.sharing:
                found.setdefault(path.down_bottleneck.name, path)
        for path in self.paths:
            if path.sharing and path.two_way:
                found.setdefault(path.up_bottleneck.name, path)
        return found

    def gateways(self) -> dict[str, str]:
        """Return the gateways on the flows' paths, and their kinds."""
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
        return max(path.down_bottleneck.rate_bps * round_trip_s(path) / 8.0 for path in self.paths)


def _kinds(app: Mapping[str, Any]) -> frozenset[str]:
    """Return the kind of an application and of its parts."""
    parts = [each for value in app.values() if isinstance(value, list) for each in value]
    nested = [_kinds(each) for each in parts if isinstance(each, Mapping)]
    own = {str(app["kind"])} if "kind" in app else set()
    return frozenset(own.union(*nested))


def _tables(written: Mapping[str, Any]) -> set[str]:
    return {name for kind in _WITH_NAMES for name in written.get(kind, {})}


def _document_of(key: str, value: str) -> dict[str, Any]:
    """Return a setting as a document; `--set` takes values that are not TOML as strings."""
    try:
        return toml.read(f"{key} = {value}")
    except ValueError:
        return toml.read(f'{key} = ""')


def _link_keys(written: Mapping[str, Any]) -> set[str]:
    """Return the keys of links and of their directions in a document."""
    keys: set[str] = set()
    for link, table in written.get("links", {}).items():
        for key, value in table.items():
            keys.add(f"links.{link}.{key}")
            if key in {"forward", "return"} and isinstance(value, Mapping):
                keys |= {f"links.{link}.{key}.{each}" for each in value}
    return keys


def round_trip_s(path: FlowPath) -> float:
    """Return the unloaded round trip of a full segment, in seconds."""
    down, up = path.down_bottleneck, path.up_bottleneck
    sending = down.packet_time_s(path.packet_bytes) + up.packet_time_s(path.header_bytes)
    return path.down_delay_s + path.up_delay_s + sending


def nodes_along(network: Network, way: Iterable[Direction]) -> set[str]:
    """Return the tables of the nodes at both ends of these directions."""
    between = {link["name"]: link["between"] for link in network.resolved["links"]}
    return {
        network.table_of(name)
        for direction in way
        for name in between[direction.name.rpartition(".")[0]]
    }


def one_path_each(paths: Sequence[FlowPath], what: Callable[[FlowPath], str]) -> Iterator[FlowPath]:
    """Yield the first path for each value of `what`."""
    seen: set[str] = set()
    for path in paths:
        if what(path) not in seen:
            seen.add(what(path))
            yield path
