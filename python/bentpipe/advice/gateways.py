"""Remedies by gateways: new ones, and loss recovery of hybrid gateways."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from bentpipe.advice.network import Network, nodes_along, round_trip_s
from bentpipe.advice.remedy import Remedy
from bentpipe.kinds import gateway_kind, gateways, window_rules

# Shortest one-way delay of a link for which gateways are tried.
_LONG_DELAY_S: Final = 0.1


def gateway_remedies(network: Network) -> Iterator[Remedy]:
    """Yield new gateways, and loss recovery for hybrid gateways that have only a timer."""
    for kind in (_gateways, _gateways_recovery):
        yield from kind(network)


def _gateways(network: Network) -> Iterator[Remedy]:
    """Yield gateways at the ends of the longest link, if the engine has such gateways.

    Routers with `icmp = false` are left out: a gateway does not accept this key, and a setting
    cannot remove it.
    """
    # Gateways cannot split QUIC, nor acknowledge in its place.
    path = max(
        (path for path in network.paths if not network.is_quic(path)),
        key=round_trip_s,
        default=None,
    )
    if path is None:
        return
    silent = {node["name"] for node in network.resolved["nodes"] if node.get("icmp") is False}
    plain = [
        name
        for name, kind in network.gateways().items()
        if not gateway_kind(kind).acts_on_connections and name not in map(network.table_of, silent)
    ]
    longest = max(path.downlink, key=lambda direction: direction.delay_s)
    if longest.delay_s < _LONG_DELAY_S:
        return
    link = longest.name.rpartition(".")[0]
    made = next(each for each in network.resolved["links"] if each["name"] == link)
    ends = [name for name in map(network.table_of, made["between"]) if name in plain]
    facing = network.table_of(link)
    back = nodes_along(network, path.uplink)
    for kind, at in _places(ends):
        splits = gateway_kind(kind).ends_connections
        if splits and (made["far_ends"] is not None or not back.issuperset(at)):
            # A split connection has one gateway at each end, and both of its directions pass
            # through it.
            continue
        if kind not in network.names["gateways"] or not at:
            continue
        name = f"{kind} at {' and '.join(at)}"
        why = f"gateways hide the long delay of {link} from the hosts"
        plain_ones = tuple(
            setting
            for each in at
            for setting in (
                (f"gateways.{each}.kind", kind),
                (f"gateways.{each}.facing", facing),
            )
        )
        yield Remedy(kind="gateway", family=name, name=name, why=why, settings=plain_ones)
        for rule in _satellite_rules(network) if splits else ():
            rules = tuple((f"gateways.{each}.tcp.congestion_control", rule) for each in at)
            yield Remedy(
                kind="gateway",
                family=name,
                name=f"{name}, {rule} over {link}",
                why=f"{why}, with a window rule for long round trips",
                settings=plain_ones + rules,
            )


def _places(ends: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Yield kinds of gateway and where they stand: a split connection may have two gateways."""
    for kind, facts in gateways().items():
        if facts.ends_connections:
            yield kind, ends
        if facts.acts_on_connections:
            yield kind, ends[:1]


def _satellite_rules(network: Network) -> list[str]:
    """Return the window rules for the satellite side of gateways, each under its first name."""
    rules = window_rules()
    names: dict[str, str] = {}
    for name in network.names["congestion-controls"]:
        if name in rules and rules[name].for_satellites:
            names.setdefault(rules[name].kind, name)
    return list(names.values())


def _gateways_recovery(network: Network) -> Iterator[Remedy]:
    """Yield TCP's loss recovery for hybrid gateways.

    A fixed timer that is shorter than the round trip retransmits everything before an
    acknowledgment can arrive. Once the retransmissions fill the channel, this does not end.
    """
    for name in (
        name for name, kind in network.gateways().items() if gateway_kind(kind).acknowledges
    ):
        made = next(
            node for node in network.resolved["nodes"] if network.table_of(node["name"]) == name
        )
        if made["tcp"] is None:
            yield Remedy(
                kind="gateway's recovery",
                name=f"TCP at {name}",
                why="retransmissions by SACK and round trips instead of a fixed timer",
                settings=((f"gateways.{name}.tcp", "{}"),),
            )
