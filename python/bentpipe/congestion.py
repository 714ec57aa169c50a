"""Congestion controls of your own, written in Python.

Register a class with `on_ack` and `on_congestion` under a name. A scenario file then uses that
name like a built-in one::

    @bentpipe.congestion_control("mine")
    class Mine:
        def on_ack(self, window, ack): ...
        def on_congestion(self, window, event, flight_size, now_s): ...

The callbacks are called during a run, with the GIL held: a run takes about four times as long.
An exception that a callback raises ends the run.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

from bentpipe.errors import RequestError

if TYPE_CHECKING:
    from bentpipe._native import Ack, Window

Event = Literal["loss", "ecn", "timeout"]


class CongestionControl(Protocol):
    """The callbacks of a congestion control; one instance is made for each connection.

    The class is called without arguments. It may have more callbacks, each called at the point
    where the simulator calls its built-in rules:

    `on_established(window, rtt_s, now_s)`
        `window` is the initial one; `rtt_s` is the round trip of the handshake, or None.
    `on_delivery(window, ack)`
        Called for every acknowledgment of newly delivered data. Duplicate acknowledgments and loss
        recovery are included.
    `slow_start_growth(window, counted, ack)`
        Returns the bytes to grow by in slow start, which would grow by `counted`.
    `on_application_limited()`
        The sender has sent all available data and could have sent more.
    `on_recovery_exit(window, now_s)`
        Loss recovery is over.
    `on_spurious(window, before)`
        The last congestion event was spurious; `before` is the window before it. Without this
        callback, the window is restored.
    `pacing_rate(window)`
        Returns the pacing rate in bit/s, or None. Called whenever segments may leave, unless the
        host's `pacing` is "off"; with "auto", None means that pacing is off at present.
    `owns_slow_start`
        True: `on_ack` is called in slow start, too.
    """

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Grow the window by an acknowledgment in congestion avoidance, outside recovery.

        `ack.acknowledged` is the number of newly acknowledged bytes.
        """

    def on_congestion(self, window: Window, event: Event, flight_size: int, now_s: float) -> None:
        """Set the threshold, and the window for the recovery that follows.

        `flight_size` is RFC 5681's: bytes outstanding.
        """


_Rule = TypeVar("_Rule", bound=CongestionControl)
_REQUIRED = ("on_ack", "on_congestion")
# Names as scenario files allow them.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

_classes: dict[str, type[CongestionControl]] = {}


def congestion_control(name: str) -> Callable[[type[_Rule]], type[_Rule]]:
    """Register a class as the congestion control of this name, for every run from now on.

    A name that is registered already gets the new class.

    Raises
    ------
    RequestError
        The name is malformed or that of a built-in control, or the class lacks a callback.
    """
    from bentpipe import _native

    if not _NAME.fullmatch(name):
        raise RequestError(
            f'congestion control {name!r}: expected a name of letters, digits, "-" and "_" '
            "(at most 64)"
        )
    if name in _native.lists()["congestion-controls"]:
        raise RequestError(f"congestion control {name!r}: expected another name, this is built in")

    def register(rule: type[_Rule]) -> type[_Rule]:
        missing = [each for each in _REQUIRED if not callable(getattr(rule, each, None))]
        if not isinstance(rule, type) or missing:
            raise RequestError(
                f"congestion control {name!r}: expected a class with {' and '.join(_REQUIRED)}"
            )
        _classes[name] = rule
        return rule

    return register


def registered() -> list[tuple[str, type[CongestionControl]]]:
    """Return the registered names and classes."""
    return list(_classes.items())
