"""Losses: those of a full queue, random ones, and bursts of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.fit.estimate import Z_95, wilson

if TYPE_CHECKING:
    from bentpipe.fit.connection import Bools, Floats
    from bentpipe.fit.passages import Passages

# A packet that found the queue within this share of its longest queuing time found it full.
_FULL: Final = 0.9
# Significance of the test whether losses depend on the queue.
_SIGNIFICANT: Final = 1e-4
# Losses that tell whether they come in bursts.
_LEAST_RUNS: Final = 5
# Bursts that are shorter on average have no effect of their own.
_LEAST_BURST: Final = 1.1


@dataclass(frozen=True, kw_only=True)
class Losses:
    """Losses of a direction, by their cause."""

    # Packets, and random losses among them, while the queue was not full.
    packets: int
    random: int
    # Confidence interval of the loss rate.
    low: float
    high: float
    # Packets lost in a full queue; None where queuing times are unknown.
    queue_drops: int | None
    # Queuing times around those.
    full_s: Floats
    # Mean length of a burst of random losses with its interval; None if they are single.
    mean_burst: tuple[float, float, float] | None
    bursts: int
    # All losses, if the causes cannot be told apart.
    is_mixed: bool

    @property
    def rate(self) -> float:
        """Loss rate while the queue was not full."""
        return self.random / self.packets if self.packets else 0.0


def losses_of(passages: Passages, *, packet_s: float | None) -> Losses:
    """Tell random losses from those of a full queue.

    `packet_s` is the transmission time of a full packet, or None if it is unknown. Losses are those
    of a full queue if packets that found it nearly as long as it ever was were lost significantly
    more often than others (Fisher's exact test, one-sided). Random losses are then counted only
    among the others.
    """
    known = passages.is_known
    lost = passages.is_lost & known
    context = passages.context_s
    if packet_s is None or not len(context) or np.isnan(context).all():
        return _counted(known, lost, full_s=np.zeros(0), drops=None, is_mixed=bool(lost.any()))
    near = _near_full(context, lost, packet_s)
    if near is None:
        return _counted(known, lost, full_s=np.zeros(0), drops=0)
    full = known & near
    drops = lost & full
    return _counted(known & ~near, lost & ~near, full_s=context[drops], drops=int(drops.sum()))


def _near_full(context: Floats, lost: Bools, packet_s: float) -> Bools | None:
    """Return which packets found a full queue, or None if it was never full."""
    if not lost.any():
        return None
    # The longest queuing time of drops; a few samples above it may be disturbed.
    top = float(np.quantile(context[lost], 0.9)) if lost.sum() >= 10 else float(context[lost].max())
    if top < 3 * packet_s:
        return None
    near = context >= min(_FULL * top, top - 2 * packet_s)
    # The losses of a burst are one event.
    event = lost & ~np.concatenate([[False], lost[:-1]])
    table = (
        int((event & near).sum()),
        int((~lost & near).sum()),
        int((event & ~near).sum()),
        int((~lost & ~near).sum()),
    )
    return near if _fisher(*table) < _SIGNIFICANT else None


def _fisher(lost_near: int, kept_near: int, lost_else: int, kept_else: int) -> float:
    """Return the one-sided p-value of Fisher's exact test: losses are more frequent near."""
    near, rest = lost_near + kept_near, lost_else + kept_else
    lost = lost_near + lost_else

    def log_choose(of: int, some: int) -> float:
        return math.lgamma(of + 1) - math.lgamma(some + 1) - math.lgamma(of - some + 1)

    whole = log_choose(near + rest, lost)
    most = min(lost, near)
    terms = [
        math.exp(log_choose(near, hits) + log_choose(rest, lost - hits) - whole)
        for hits in range(max(lost_near, lost - rest), most + 1)
    ]
    return min(1.0, math.fsum(terms))


def count_losses(lost: Bools) -> Losses:
    """Count the losses of probes, which fill no queue, and their bursts."""
    return _counted(np.ones(len(lost), dtype=bool), lost, full_s=np.zeros(0), drops=0)


def _counted(
    eligible: Bools,
    lost: Bools,
    *,
    full_s: Floats,
    drops: int | None,
    is_mixed: bool = False,
) -> Losses:
    """Count the random losses among eligible packets, and their bursts."""
    fates = lost[eligible]
    count, random = len(fates), int(fates.sum())
    starts = int(np.sum(fates[1:] & ~fates[:-1])) + int(count > 0 and fates[0])
    rate = random / count if count else 0.0
    mean_burst, inflation = None, 1.0
    if random > starts and rate < 1:
        mean = random / starts
        # Lengths of bursts are geometric: the logarithm of the mean of n has this standard error.
        factor = math.exp(Z_95 * math.sqrt((1 - 1 / mean) / starts))
        # Independent losses follow each other with the probability `rate`.
        if starts >= _LEAST_RUNS and mean / factor > 1 / (1 - rate) and mean > _LEAST_BURST:
            mean_burst = (mean, max(1.0, mean / factor), mean * factor)
        # Variance of the share of a Markov chain, relative to independent losses.
        correlation = 1 - 1 / mean - (1 / mean) * rate / (1 - rate)
        inflation = max(1.0, (1 + correlation) / (1 - correlation))
    low, high = wilson(random / inflation, count / inflation)
    return Losses(
        packets=count,
        random=random,
        low=low,
        high=high,
        queue_drops=drops,
        full_s=full_s,
        mean_burst=mean_burst,
        bursts=starts,
        is_mixed=is_mixed,
    )
