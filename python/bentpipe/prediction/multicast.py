"""What can be said of flows to groups: datagrams without answers, lost to each by itself."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bentpipe.prediction.network import Direction

# IP and UDP.
HEADER_BYTES: Final = {"v4": 28, "v6": 48}
# Turns that are looked at: what is lost more often never comes.
_TURNS: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class Carousel:
    """What a member of a group gets of a carousel's files, where losses are independent.

    `goodput_bps` is of new bytes, `whole` the share of files that become whole, `time_s` how long
    these take on average, from a file's start; None where none does.
    """

    goodput_bps: float
    whole: float
    time_s: float | None


@dataclass(frozen=True, kw_only=True)
class Completion:
    """When a member has a file: which share of all is whole so long after the file's start.

    Both are arrays, one value for each datagram of each turn.
    """

    times_s: NDArray[np.float64]
    shares: NDArray[np.float64]


def completion(
    app: Mapping[str, Any], *, route: Sequence[Direction], header_bytes: int
) -> Completion:
    """Evaluate how a carousel's files become whole over a route, where losses are independent.

    A datagram that is lost with probability p is there after t turns with 1 - p^t. When the n-th of
    k arrives in turn t, the first n have had t turns, and the others t - 1: the file is whole by
    then with (1 - p^t)^n (1 - p^(t-1))^(k-n).

    Parameters
    ----------
    app
        A carousel of a resolved scenario.
    route
        The directions on the way to the member.
    header_bytes
        IP's and UDP's header.
    """
    size, part = app["size_bytes"], app["datagram_bytes"]
    packet_bytes = min(size, part) + header_bytes
    lost = _lost(route, packet_bytes)
    turns = np.arange(1, min(app["turns"], _TURNS) + 1, dtype=float)[:, np.newaxis]
    numbers = np.arange(1, math.ceil(size / part) + 1, dtype=float)
    with np.errstate(divide="ignore"):
        now, before = (np.log1p(-np.power(lost, count)) for count in (turns, turns - 1.0))
    left = numbers[-1] - numbers
    # Nothing to the power of nothing is one.
    logarithm = numbers * now
    logarithm[:, :-1] += left[:-1] * before
    sent_s = 8.0 * (part * (numbers - 1.0) + size * (turns - 1.0)) / app["rate_bps"]
    way_s = sum(each.delay_s + each.packet_time_s(packet_bytes) for each in route)
    return Completion(times_s=(way_s + sent_s).ravel(), shares=np.exp(logarithm).ravel())


def carousel(app: Mapping[str, Any], *, route: Sequence[Direction], header_bytes: int) -> Carousel:
    """Return what `completion` comes to."""
    done = completion(app, route=route, header_bytes=header_bytes)
    whole = float(done.shares[-1])
    grown = np.diff(done.shares, prepend=0.0)
    lost = _lost(route, min(app["size_bytes"], app["datagram_bytes"]) + header_bytes)
    fresh = 1.0 - lost ** app["turns"]
    return Carousel(
        goodput_bps=8.0 * app["size_bytes"] * fresh / app["interval_s"],
        whole=whole,
        time_s=float((grown * done.times_s).sum()) / whole if whole > 0.0 else None,
    )


def _lost(route: Sequence[Direction], packet_bytes: float) -> float:
    return 1.0 - math.prod(1.0 - each.loss_rate(packet_bytes) for each in route)
