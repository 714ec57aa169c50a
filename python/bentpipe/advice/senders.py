"""Remedies at the TCPs that carry data: windows, buffers, slow start, loss recovery."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from bentpipe.advice.network import BOTH_ROLES, Network, Role, TcpLocation
from bentpipe.advice.remedy import Remedy
from bentpipe.kinds import window_rules

# Initial window of current senders (RFC 6928 section 2).
_USUAL_INITIAL_WINDOW: Final = 10
_LARGER_INITIAL_WINDOWS: Final = (10, 32)
_SACK: Final = frozenset({"sack", "fack"})


def settings_at(
    network: Network,
    end: Role,
    key: str,
    value: str,
    *,
    at: TcpLocation = "hosts",
    where: Callable[[Mapping[str, Any]], bool],
) -> tuple[tuple[str, str], ...]:
    """Return the settings that give a key of `tcp` a new value at these ends."""
    return tuple(
        (f"{tcp}.{key}", value) for tcp, now in network.tcp_tables(end, at).items() if where(now)
    )


def tcp_remedies(network: Network) -> Iterator[Remedy]:
    """Yield the settings of the TCPs that carry data: the hosts', and those of split gateways.

    Behind split gateways, the gateways' TCP crosses the long link.
    """
    for kind in (_buffers, _window_rules, _initial_window, _slow_start, _recovery):
        yield from kind(network, "hosts")
        for remedy in kind(network, "gateways"):
            if remedy.settings:
                yield replace(
                    remedy,
                    kind=f"{remedy.kind} at gateways",
                    name=f"{remedy.name} at {' and '.join(_gateways_of(remedy, network))}",
                )


def _gateways_of(remedy: Remedy, network: Network) -> list[str]:
    """Return the gateways that a remedy changes, in the file's order."""
    told = {key.split(".")[1] for key, _ in remedy.settings}
    return [name for name in network.gateways() if name in told]


def _buffers(network: Network, at: TcpLocation) -> Iterator[Remedy]:
    """Yield buffers of two bandwidth-delay products: one in flight, one for repairing a loss."""
    needed = 2.0 * network.product_bytes()
    size = 1 << max(16, math.ceil(math.log2(max(needed, 1.0))))
    text = f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
    receive = settings_at(
        network,
        "receiver",
        "receive_buffer",
        text,
        at=at,
        where=lambda tcp: tcp["receive_buffer_bytes"] < size,
    )
    send = settings_at(
        network,
        "sender",
        "send_buffer",
        text,
        at=at,
        where=lambda tcp: tcp["send_buffer_bytes"] < size,
    )
    why = "a window of two bandwidth-delay products"
    both = receive + send
    ends = "buffers" if receive and send else "receive buffer" if receive else "send buffer"
    # Without scaling, a window is a 16-bit number (RFC 9293 section 3.1).
    scaled = tuple(
        setting
        for end in BOTH_ROLES
        for setting in settings_at(
            network,
            end,
            "window_scaling",
            "true",
            at=at,
            where=lambda tcp: not tcp["window_scaling"],
        )
        if size >= 1 << 16
    )
    name = f"window scaling, {text}" if scaled else f"{ends} of {text}"
    yield Remedy(kind="buffers", name=name, why=why, settings=scaled + both)


def _window_rules(network: Network, at: TcpLocation) -> Iterator[Remedy]:
    used = {tcp["congestion_control"] for tcp in network.tcp_tables("sender", at).values()}
    rules = window_rules()
    # A rule with two names appears once, under its later, more specific name.
    names = {rules[name].kind: name for name in network.names["congestion-controls"]}
    for rule in names.values():
        if used == {rule}:
            continue
        settings = settings_at(
            network,
            "sender",
            "congestion_control",
            rule,
            at=at,
            where=lambda tcp, rule=rule: tcp["congestion_control"] != rule,  # type: ignore[misc]
        )
        if rules[rule].needs_capacity:
            capacities = network.capacities_bps(at)
            settings += tuple(
                (f"{key}.channel_capacity", f"{capacities[key] / 1e3:.0f} kbit/s")
                for key, tcp in network.tcp_tables("sender", at).items()
                if tcp["channel_capacity_bps"] is None
            )
        yield Remedy(
            kind="window rule",
            family=rules[rule].family,
            name=rule,
            why=f"another window rule at the {'sender' if at == 'hosts' else 'gateways'}",
            settings=settings,
        )


def _initial_window(network: Network, at: TcpLocation) -> Iterator[Remedy]:
    for segments in _LARGER_INITIAL_WINDOWS:
        settings = settings_at(
            network,
            "sender",
            "initial_window",
            f"{segments} segments",
            at=at,
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


def _slow_start(network: Network, at: TcpLocation) -> Iterator[Remedy]:
    for kind in ("byte-counting", "hystart++"):
        settings = settings_at(
            network,
            "sender",
            "slow_start",
            kind,
            at=at,
            where=lambda tcp, kind=kind: tcp["slow_start"] != kind,  # type: ignore[misc]
        )
        yield Remedy(
            kind="slow start",
            name=f"slow start {kind}",
            why="another growth and end of slow start",
            settings=settings,
        )


def _recovery(network: Network, at: TcpLocation) -> Iterator[Remedy]:
    sender = settings_at(
        network, "sender", "recovery", "sack", at=at, where=lambda tcp: tcp["recovery"] not in _SACK
    )
    negotiated = tuple(
        setting
        for end in BOTH_ROLES
        for setting in settings_at(
            network, end, "sack", "true", at=at, where=lambda tcp: not tcp["sack"]
        )
    )
    yield Remedy(
        kind="loss recovery",
        name="SACK",
        why="several losses of a window are repaired in one round trip",
        settings=negotiated + sender,
    )
