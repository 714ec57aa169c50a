"""Rates of both directions, from trains of packets while a queue is not empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.fit.estimate import bootstrap, ratio

if TYPE_CHECKING:
    from bentpipe.fit.connection import Floats, Ints
    from bentpipe.fit.passages import Passages

_LEAST_TRAINS: Final = 3
_LEAST_PAIRS: Final = 10
# Trains within this share of the median are usual.
_USUAL: Final = 0.1
# Acknowledgments in a train at least, if their own link limits them.
_LIMITED_REPORTS: Final = 30
# Share of acknowledgments that release data at most, if their link is full.
_MOST_RELEASED: Final = 0.8
FULL_PACKET_BITS: Final = 12000.0
# Width of a cluster of rates, as a share.
_CLUSTER: Final = 0.03
# Acknowledgments that are needed to tell which direction limits their rate.
_LEAST_GAPS: Final = 20


@dataclass(frozen=True, kw_only=True)
class RateEstimate:
    """A rate with its interval, and how it was found."""

    value: float
    low: float
    high: float
    trains: int
    # Whether packets waited, so that nothing else limited the rate.
    is_saturated: bool
    method: str


def saturated_rate(
    passages: Passages, *, noise_s: float = 0.0, return_limited: bool = False
) -> RateEstimate | None:
    """Return the rate of the direction of the data, or None if the data do not show it.

    Trains while packets waited have the rate of the link. If there are none, packets that left the
    sender back to back arrive at the distance that the link gives them: the highest cluster of the
    rates between neighbours. `return_limited`: deliveries are seen at the rate of acknowledgments,
    so that only long trains of the same rate show that of the link.
    """
    every = np.ones(len(passages.length), dtype=bool)
    if return_limited:
        return _same(passages.trains(every, seen_each=_LIMITED_REPORTS))
    trains = passages.trains(every)
    rough = _back_to_back(passages.gaps())
    if rough is None and not len(trains):
        return None
    highest = rough.value if rough else float(np.quantile(trains[:, 0] / trains[:, 1], 0.75))
    waiting_s = max(3 * FULL_PACKET_BITS / highest, 3 * noise_s)
    with np.errstate(invalid="ignore"):
        waits = passages.queued_s > waiting_s
    return _same(passages.trains(waits)) or rough


def _same(trains: Floats) -> RateEstimate | None:
    """Return the rate of trains while packets waited, if most have the same rate."""
    if len(trains) < _LEAST_TRAINS:
        return None
    rates = trains[:, 0] / trains[:, 1]
    # Outages and hosts that were busy make single trains slower or faster.
    usual = trains[np.abs(rates / np.median(rates) - 1) < _USUAL]
    if len(usual) < max(_LEAST_TRAINS, 0.6 * len(trains)):
        return None
    value, low, high = bootstrap(usual, ratio)
    return RateEstimate(
        value=value,
        low=low,
        high=high,
        trains=len(usual),
        is_saturated=True,
        method=f"{len(usual)} packet trains while packets waited; bootstrap",
    )


def _back_to_back(gaps: Floats) -> RateEstimate | None:
    """Return the highest cluster of the rates between neighbours."""
    with np.errstate(invalid="ignore", divide="ignore"):
        rates = gaps[:, 0] / gaps[:, 1]
    known = np.isfinite(rates) & (rates > 0)
    if known.sum() < _LEAST_PAIRS:
        return None
    ordered = np.sort(rates[known])
    ends = np.searchsorted(ordered, ordered * (1 + _CLUSTER), side="right")
    members = ends - np.arange(len(ordered))
    # The highest of the clusters that have a fifth of the largest one's members.
    large = np.flatnonzero(members >= max(_LEAST_PAIRS, 0.2 * members.max()))
    if not len(large):
        return None
    first = int(large[-1])
    centre = float(np.median(ordered[first : ends[first]]))
    # Neighbours of neighbours have the same rate: several packets in a row.
    inside = known & (np.abs(rates / centre - 1) < _CLUSTER)
    in_a_row = inside & (np.roll(inside, 1) | np.roll(inside, -1))
    if in_a_row.sum() < _LEAST_PAIRS:
        return None
    value, low, high = bootstrap(gaps[in_a_row], ratio)
    return RateEstimate(
        value=value,
        low=low,
        high=high,
        trains=int(in_a_row.sum()),
        is_saturated=False,
        method=f"distance of {int(in_a_row.sum())} packets that were sent back to back; bootstrap",
    )


@dataclass(frozen=True, kw_only=True)
class ReturnLoad:
    """Load of the acknowledgments' direction, by their spacing."""

    # Whether acknowledgments come at the rate of their own link, not of the data.
    is_limited: bool
    rate: RateEstimate | None
    # The highest rate that was seen at least.
    at_least_bps: float
    # Typical queuing time of acknowledgments; nan if it is unknown.
    queued_s: float = float("nan")


def return_load(
    times: Floats, lengths: Ints, reported_bytes: Ints, waits: np.ndarray
) -> ReturnLoad:
    """Tell from acknowledgments at the sender whether their own link limits their rate.

    While packets wait, the gap before an acknowledgment is proportional to the bytes that it
    reports if the link of the data is full, and to its own length if the return link is full.
    """
    if len(times) < _LEAST_GAPS:
        return ReturnLoad(is_limited=False, rate=None, at_least_bps=0.0)
    gaps = np.diff(times)
    own = lengths[1:] * 8.0
    data = reported_bytes[1:] * 8.0
    span = 8
    cumulative = np.concatenate([[0.0], np.cumsum(own)])
    spans = times[span:] - times[:-span]
    carried = cumulative[span:] - cumulative[:-span]
    carried = carried[: len(spans)]
    positive = spans > 0
    at_least = float(np.median(carried[positive] / spans[positive])) if positive.any() else 0.0
    eligible = waits[1:] & waits[:-1] & (gaps > 0)
    if eligible.sum() < _LEAST_GAPS:
        return ReturnLoad(is_limited=False, rate=None, at_least_bps=at_least)
    by_own = _spread(gaps[eligible] / own[eligible])
    new = eligible & (data > 0)
    by_data = _spread(gaps[new] / data[new]) if new.sum() >= _LEAST_GAPS else np.inf
    varied = float(np.mean(data[eligible] != np.median(data[eligible])))
    is_limited = by_own < 0.5 * by_data and varied > 0.05 and by_own < 0.1
    if not is_limited:
        return ReturnLoad(is_limited=False, rate=None, at_least_bps=at_least)
    typical = float(np.median(gaps[eligible] / own[eligible]))
    inside = eligible & (np.abs(gaps / own / typical - 1) < 0.25)
    samples = np.column_stack([own[inside], gaps[inside]])
    value, low, high = bootstrap(samples, ratio)
    return ReturnLoad(
        is_limited=True,
        rate=RateEstimate(
            value=value,
            low=low,
            high=high,
            trains=int(inside.sum()),
            is_saturated=True,
            method=f"spacing of {int(inside.sum())} acknowledgments; bootstrap",
        ),
        at_least_bps=at_least,
    )


def _spread(values: Floats) -> float:
    """Return the relative spread: half the distance of the quartiles over the median."""
    low, middle, high = np.quantile(values, [0.1, 0.5, 0.9])
    return float((high - low) / 2 / middle) if middle > 0 else np.inf


def released_load(
    released_s: Floats,
    rtt_s: Floats,
    ack_bits: Floats,
    stamps: int,
    *,
    tick_s: float,
    mean_bps: float,
) -> ReturnLoad:
    """Tell from data at the receiver whether the link of the acknowledgments limits their rate.

    Each acknowledgment that arrives releases data that echo its timestamp. If the link of the
    acknowledgments is full, many never arrive (`stamps`: distinct timestamps sent), and the others
    arrive at the distance of their transmission time.
    """
    unloaded = ReturnLoad(is_limited=False, rate=None, at_least_bps=mean_bps)
    if len(released_s) < _LEAST_GAPS or len(released_s) > _MOST_RELEASED * stamps:
        return unloaded
    gaps = np.diff(released_s)
    own = ack_bits[1:]
    positive = gaps > 0
    if positive.sum() < _LEAST_GAPS:
        return unloaded
    per_bit = gaps[positive] / own[positive]
    # Most gaps are of one acknowledgment; the resolution of timestamps adds noise.
    noise = tick_s / float(np.median(own)) / float(np.median(per_bit))
    low, high = np.quantile(per_bit, [0.25, 0.75])
    if (high - low) / 2 / np.median(per_bit) > 0.05 + noise or noise > _USUAL * 3:
        return unloaded
    inside = np.abs(per_bit / np.median(per_bit) - 1) < 0.25 + noise
    samples = np.column_stack([own[positive][inside], gaps[positive][inside]])
    value, least, most = bootstrap(samples, ratio)
    return ReturnLoad(
        is_limited=True,
        rate=RateEstimate(
            value=value,
            low=least,
            high=most,
            trains=len(samples),
            is_saturated=True,
            method=f"distance of the data that {len(samples)} acknowledgments released; bootstrap",
        ),
        at_least_bps=value,
        queued_s=float(np.median(rtt_s - np.min(rtt_s))),
    )
