"""Congestion controls of your own, written in Python.

A class with `on_ack` and `on_congestion`, registered under a name that a scenario file then uses
like a built-in one::

    @bentpipe.congestion_control("mine")
    class Mine:
        def on_ack(self, window, ack): ...
        def on_congestion(self, window, event, flight_size, now_s): ...

It is called in the middle of a run, with the GIL held: a run takes about four times as long.
What it raises ends the run.
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
    """What a class must have; one instance is made, without arguments, for each connection.

    It may have more, each called where the simulator's own rules are:

    `on_established(window, rtt_s, now_s)`
        `window` is the initial one; `rtt_s` is what the handshake measured, or None.
    `on_delivery(window, ack)`
        Every acknowledgment of something delivered, also a duplicate, also in loss recovery.
    `slow_start_growth(window, counted, ack)`
        Returns the bytes to grow by in slow start, which would grow by `counted`.
    `on_application_limited()`
        Nothing kept the sender from sending but that there was nothing to send.
    `on_recovery_exit(window, now_s)`
        Loss recovery is over.
    `on_spurious(window, before)`
        The last event was none; `before` is the window before it. Without it, the window is
        restored.
    `pacing_rate(window)`
        Returns bit/s to pace at, or None. Asked whenever segments may leave, unless the host's
        `pacing` is "off"; with "auto", None means that nothing is paced now.
    `owns_slow_start`
        True: `on_ack` is called in slow start, too.
    """

    def on_ack(self, window: Window, ack: Ack) -> None:
        """Grow: `ack.acknowledged` bytes are new, in congestion avoidance, outside recovery."""

    def on_congestion(self, window: Window, event: Event, flight_size: int, now_s: float) -> None:
        """Set the threshold, and the window for the recovery that follows.

        `flight_size` is RFC 5681's: bytes outstanding.
        """


_Rule = TypeVar("_Rule", bound=CongestionControl)
_REQUIRED = ("on_ack", "on_congestion")
# As the scenario file has names.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

_classes: dict[str, type[CongestionControl]] = {}


def congestion_control(name: str) -> Callable[[type[_Rule]], type[_Rule]]:
    """Register a class as the congestion control of this name, for every run from now on.

    A name that is registered already gets the new class.

    Raises
    ------
    RequestError
        The name is not one, or is a built-in control's, or the class lacks a callback.
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
