"""Remedies for QUIC: flow-control windows, acknowledgments, window rules, saved paths.

QUIC's packets are encrypted from end to end: gateways cannot split its connections, and ACK methods
cannot read its acknowledgments. Only its hosts can change something.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from bentpipe.advice.network import BOTH_ROLES, Network, Role, round_trip_s
from bentpipe.advice.remedy import Remedy
from bentpipe.kinds import window_rules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bentpipe.prediction.paths import FlowPath

# Payload of a packet of full size.
_PAYLOAD: Final = 1452
# Packets after which the sender asks for an acknowledgment, in place of every second one.
_ACK_THRESHOLD: Final = 9
_QUINN_RULES: Final = ("quinn-cubic", "quinn-new-reno")
# Window rule that starts from a saved path; those of quinn do not.
_RESUMING_RULE: Final = "cubic"
# Defaults of a host without a `quic` table.
_DEFAULTS: Final = {
    "congestion_control": _QUINN_RULES[0],
    "stream_window_bytes": 1_250_000,
    "send_window_bytes": 10_000_000,
    "ack_threshold": None,
}


def quic_remedies(network: Network) -> Iterator[Remedy]:
    """Yield the settings of the hosts of QUIC flows."""
    paths = [path for path in network.paths if network.is_quic(path)]
    if paths:
        for kind in (_windows, _acknowledgments, _rules, _saved_path):
            yield from kind(network, paths)


def _hosts(
    network: Network, paths: list[FlowPath], end: Role
) -> dict[str, tuple[Mapping[str, Any], FlowPath]]:
    """Return the QUIC settings of the hosts at one end, with a path of each, by their tables."""
    found: dict[str, FlowPath] = {}
    for path in paths:
        for role in BOTH_ROLES if path.two_way else (end,):
            found.setdefault(getattr(path, role), path)
    nodes = {node["name"]: node for node in network.resolved["nodes"]}
    return {
        f"hosts.{network.table_of(name)}": (_DEFAULTS | (nodes[name].get("quic") or {}), path)
        for name, path in found.items()
    }


def _capacity(path: FlowPath) -> int:
    """Return the bytes that a path and the queue before its bottleneck hold."""
    product = path.down_bottleneck.rate_bps * round_trip_s(path) / 8.0
    queue = path.buffer_segments if math.isfinite(path.buffer_segments) else 0.0
    return max(16_384, round(product + queue * _PAYLOAD))


def _windows(network: Network, paths: list[FlowPath]) -> Iterator[Remedy]:
    settings = []
    for end, key in (("receiver", "stream_window"), ("sender", "send_window")):
        role: Role = "receiver" if end == "receiver" else "sender"
        for host, (now, path) in _hosts(network, paths, role).items():
            size = _capacity(path)
            limits = now[f"{key}_bytes"] < size
            # A window far above the path makes more gaps than quinn's receiver keeps.
            exceeds = key == "stream_window" and now[f"{key}_bytes"] > 2 * size
            if limits or exceeds:
                settings.append((f"{host}.quic.{key}", f"{size} B"))
    yield Remedy(
        kind="QUIC windows",
        name="QUIC windows of what path and queue hold",
        why="a stream sends at most one flow-control window per round trip",
        settings=tuple(settings),
    )


def _acknowledgments(network: Network, paths: list[FlowPath]) -> Iterator[Remedy]:
    settings = [
        (f"{host}.quic.ack_threshold", str(_ACK_THRESHOLD))
        for host, (now, _) in _hosts(network, paths, "sender").items()
        if now["ack_threshold"] is None
    ]
    yield Remedy(
        kind="QUIC acknowledgments",
        name=f"QUIC acknowledgment after {_ACK_THRESHOLD} packets",
        why="fewer acknowledgments on the return link; no ACK method can read those of QUIC",
        settings=tuple(settings),
    )


def _rules(network: Network, paths: list[FlowPath]) -> Iterator[Remedy]:
    rules = window_rules()
    names = {rules[name].kind: name for name in network.names["congestion-controls"]}
    hosts = _hosts(network, paths, "sender")
    for rule in (*_QUINN_RULES, *names.values()):
        settings = [
            (f"{host}.quic.congestion_control", rule)
            for host, (now, _) in hosts.items()
            if now["congestion_control"] != rule
        ]
        if settings and rule in rules and rules[rule].needs_capacity:
            settings += [
                (
                    f"{host}.tcp.channel_capacity",
                    f"{path.down_bottleneck.rate_bps / 1e3:.0f} kbit/s",
                )
                for host, (_, path) in hosts.items()
            ]
        yield Remedy(
            kind="QUIC window rule",
            family=rules[rule].family if rule in rules else rule,
            name=f"{rule} for QUIC",
            why="another window rule at the sender",
            settings=tuple(settings),
        )


def _saved_path(network: Network, paths: list[FlowPath]) -> Iterator[Remedy]:
    settings = []
    for host, (now, path) in _hosts(network, paths, "sender").items():
        saved = f'{{ window = "{_capacity(path)} B", rtt = "{round_trip_s(path) * 1e3:.0f} ms" }}'
        settings.append((f"{host}.resume", saved))
        if now["congestion_control"] in _QUINN_RULES:
            settings.append((f"{host}.quic.congestion_control", _RESUMING_RULE))
    yield Remedy(
        kind="saved path",
        name="QUIC from a saved path",
        why="careful resume (RFC 9959) on a path that the sender knows",
        settings=tuple(settings),
    )
