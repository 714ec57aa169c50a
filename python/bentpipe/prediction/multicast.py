"""Flows to groups: datagrams without replies, with independent losses at each member."""

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
# The most turns that are evaluated; a datagram lost in all of them counts as lost for good.
_TURNS: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class Carousel:
    """A carousel's files at a member of a group, with independent losses.

    `goodput_bps` counts new bytes. `whole` is the share of files that become complete, and
    `time_s` their average time from a file's start, or None if no file becomes complete.
    """

    goodput_bps: float
    whole: float
    time_s: float | None


@dataclass(frozen=True, kw_only=True)
class Completion:
    """Share of files that are complete at a time after a file's start.

    Both are arrays with one value for each datagram of each turn.
    """

    times_s: NDArray[np.float64]
    shares: NDArray[np.float64]


def completion(
    app: Mapping[str, Any], *, route: Sequence[Direction], header_bytes: int
) -> Completion:
    """Evaluate how a carousel's files become complete over a route with independent losses.

    A datagram with loss probability p has arrived after t turns with probability 1 - p^t. When the
    n-th of k datagrams arrives in turn t, the first n have had t turns and the others t - 1. The
    file is complete by then with probability (1 - p^t)^n (1 - p^(t-1))^(k-n).

    Parameters
    ----------
    app
        A carousel of a resolved scenario.
    route
        The directions on the way to the member.
    header_bytes
        Bytes of the IP and UDP headers.
    """
    size, part = app["size_bytes"], app["datagram_bytes"]
    packet_bytes = min(size, part) + header_bytes
    lost = _lost(route, packet_bytes)
    turns = np.arange(1, min(app["turns"], _TURNS) + 1, dtype=float)[:, np.newaxis]
    numbers = np.arange(1, math.ceil(size / part) + 1, dtype=float)
    with np.errstate(divide="ignore"):
        now, before = (np.log1p(-np.power(lost, count)) for count in (turns, turns - 1.0))
    left = numbers[-1] - numbers
    # 0 to the power of 0 is 1.
    logarithm = numbers * now
    logarithm[:, :-1] += left[:-1] * before
    sent_s = 8.0 * (part * (numbers - 1.0) + size * (turns - 1.0)) / app["rate_bps"]
    way_s = sum(each.delay_s + each.packet_time_s(packet_bytes) for each in route)
    return Completion(times_s=(way_s + sent_s).ravel(), shares=np.exp(logarithm).ravel())


def carousel(app: Mapping[str, Any], *, route: Sequence[Direction], header_bytes: int) -> Carousel:
    """Return the goodput, the share of complete files and their time, from `completion`."""
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
