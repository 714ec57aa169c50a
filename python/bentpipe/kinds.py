"""Properties of window rules, queues, applications and gateways, as their entries declare them.

The entries are in the tables of the engine (see CONTRIBUTING.md). A congestion control of your own
has the properties of no built-in rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, Literal


@dataclass(frozen=True, kw_only=True)
class WindowRule:
    """A window rule.

    `kind`: its name in the engine, which two names of one rule share. `own_slow_start`: it changes
    the growth in slow start. `needs_capacity`: it must be given the rate of the channel.
    `measures_rate`: it paces by the rate that it measures. `kept_after_loss`: the share of the
    window that a loss leaves, None where it is not constant. `keeps_product`: a loss sets the
    window to the measured bandwidth-delay product. `loss_law`: the rule whose law of the goodput
    with random losses applies. `family`: "losses", "hybla" or "bbr". `for_satellites`: advice
    tries it over a satellite link between gateways.
    """

    kind: str
    own_slow_start: bool
    needs_capacity: bool
    measures_rate: bool
    kept_after_loss: float | None
    keeps_product: bool
    loss_law: str | None
    family: str
    for_satellites: bool


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A queue discipline.

    `manages`: it drops or reorders packets before it is full, so that it may be short whatever its
    limit. `has_classes`: it has a queue for each class of traffic.
    """

    manages: bool
    has_classes: bool


@dataclass(frozen=True, kw_only=True)
class Application:
    """An application.

    `from_server`: most of its data comes from the server. `two_way`: both ends send data.
    `datagrams`: it always sends datagrams. A `direction` or `transport` among its settings decides
    instead. `keeps_sending`: it always has data to send. `role`: its place beside others.
    """

    from_server: bool
    two_way: bool
    datagrams: bool
    keeps_sending: bool
    role: Literal["call", "real-time", "background", "other"]


@dataclass(frozen=True, kw_only=True)
class Gateway:
    """A kind of gateway.

    `ends_connections`: each side has its own connection. `acknowledges`: it acknowledges on behalf
    of hosts.
    """

    ends_connections: bool
    acknowledges: bool

    @property
    def acts_on_connections(self) -> bool:
        """Whether it does more than route."""
        return self.ends_connections or self.acknowledges


# A rule of which nothing is known.
_OTHER_RULE: Final = WindowRule(
    kind="",
    own_slow_start=True,
    needs_capacity=False,
    measures_rate=False,
    kept_after_loss=None,
    keeps_product=False,
    loss_law=None,
    family="losses",
    for_satellites=False,
)
# A host: it does nothing for the connections of others.
_NO_GATEWAY: Final = Gateway(ends_connections=False, acknowledges=False)


@cache
def _kinds() -> dict[str, dict[str, dict[str, Any]]]:
    from bentpipe import _native

    read: dict[str, dict[str, dict[str, Any]]] = json.loads(_native.kinds())
    return read


@cache
def window_rules() -> Mapping[str, WindowRule]:
    """Return the built-in window rules by name."""
    return {name: WindowRule(**facts) for name, facts in _kinds()["window_rules"].items()}


def window_rule(name: str) -> WindowRule:
    """Return a window rule's properties."""
    return window_rules().get(name, _OTHER_RULE)


@cache
def queues() -> Mapping[str, Queue]:
    """Return the queue disciplines by name."""
    return {name: Queue(**facts) for name, facts in _kinds()["queues"].items()}


@cache
def applications() -> Mapping[str, Application]:
    """Return the applications by name."""
    return {name: Application(**facts) for name, facts in _kinds()["applications"].items()}


@cache
def gateways() -> Mapping[str, Gateway]:
    """Return the kinds of gateway by name."""
    return {name: Gateway(**facts) for name, facts in _kinds()["gateways"].items()}


def gateway_kind(kind: str) -> Gateway:
    """Return the properties of a node of this kind; a host has those of a router."""
    return gateways().get(kind, _NO_GATEWAY)


def with_role(*roles: str) -> tuple[str, ...]:
    """Return the applications with these roles, role by role."""
    return tuple(
        name for role in roles for name, facts in applications().items() if facts.role == role
    )
