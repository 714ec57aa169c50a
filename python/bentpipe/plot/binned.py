"""Samples put together: what a rate was, or a queue came to, in each stretch of time.

A series comes part by part (`bentpipe.series.parts`), so that a file of any length is drawn in the
memory that one of its row groups takes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from bentpipe.series import Series

Floats = NDArray[np.float64]

# More than that a figure's width doesn't show.
MOST_BINS = 400
# Of rates: windows arrive in bursts, and a bin may have one burst more or less than the next. The
# fewer round trips a bin has, the more that shows.
MOST_RATE_BINS = 120
# Fewer would hide what happened when: behind a queue of half a minute, a round trip is half of a
# run.
FEWEST_RATE_BINS = 20


def bin_edges(end_s: float, *, count: int = MOST_BINS, begin_s: float = 0.0) -> Floats:
    """Return the edges of equal bins from `begin_s` to `end_s`; from 0 if that is no sooner."""
    return np.linspace(begin_s if begin_s < end_s else 0.0, end_s, count + 1)


def round_trip_edges(
    end_s: float, *, round_trip_s: float, interval_s: float, begin_s: float = 0.0
) -> Floats:
    """Return the edges of bins of whole round trips, or of sampling intervals if those are longer.

    As many bins as a figure can show, the last one cut off at the end. Where a round trip takes
    long beside the run, bins are shorter, so that there are some. They begin at `begin_s`, or at 0
    if that is no sooner than the end.
    """
    begin_s = begin_s if begin_s < end_s else 0.0
    lasts_s = end_s - begin_s
    round_trip_s = min(round_trip_s, lasts_s / FEWEST_RATE_BINS)
    least_s = max(round_trip_s, interval_s, lasts_s / 10_000)
    width_s = least_s * np.ceil(lasts_s / MOST_RATE_BINS / least_s)
    edges = np.arange(begin_s, end_s, width_s)
    # A short last bin would show a burst, or none, as a rate.
    if end_s - edges[-1] < 0.5 * width_s and len(edges) > 1:
        edges = edges[:-1]
    return np.append(edges, end_s)


@dataclass(frozen=True, kw_only=True)
class Extent:
    """Extent of a series, from which its bins are chosen."""

    last_s: float
    # How often it was sampled: the median, of parts their medians'.
    interval_s: float
    highest: float
    unit: str


def extent(parts: Iterable[Series]) -> Extent | None:
    """Return a series' extent; None if nothing was recorded."""
    last_s, highest, unit = 0.0, -np.inf, ""
    intervals = []
    for part in parts:
        intervals.append(np.median(np.diff(part.times_s, prepend=last_s)))
        last_s = float(part.times_s[-1])
        highest = max(highest, float(part.values.max()))
        unit = part.unit
    if not intervals:
        return None
    middle = float(np.median(intervals))
    return Extent(last_s=last_s, interval_s=middle, highest=highest, unit=unit)


def mean_rate(parts: Iterable[Series], edges: Floats) -> Floats:
    """Return the mean of a rate in each bin.

    The values are means since the sample before, as the simulator records them: the bins' means
    hold exactly what was delivered.
    """
    delivered = np.zeros(len(edges))
    before_s = before = 0.0
    for part in parts:
        times_s = np.concatenate([[before_s], part.times_s])
        amounts = before + np.concatenate([[0.0], np.cumsum(part.values * np.diff(times_s))])
        inside = (edges > before_s) & (edges <= times_s[-1])
        delivered[inside] = np.interp(edges[inside], times_s, amounts)
        before_s, before = float(times_s[-1]), float(amounts[-1])
    delivered[edges > before_s] = before
    means: Floats = np.diff(delivered) / np.diff(edges)
    return means


def extreme_and_mean(parts: Iterable[Series], edges: Floats) -> tuple[Floats, Floats]:
    """Return the highest sample of each bin and the mean of its samples.

    A bin without a sample has what the one before ended with.
    """
    bins = len(edges) - 1
    highest = np.full(bins, -np.inf)
    sums, counts, last = np.zeros(bins), np.zeros(bins), np.zeros(bins)
    for part in parts:
        # A sample tells of the time before it: one at an edge belongs to the bin that ends there.
        cuts = np.searchsorted(part.times_s, edges, side="right")
        for place, (begin, end) in enumerate(pairwise(cuts)):
            if end > begin:
                samples = part.values[begin:end]
                highest[place] = max(highest[place], samples.max())
                sums[place] += samples.sum()
                counts[place] += end - begin
                last[place] = samples[-1]
    means = sums / np.maximum(counts, 1.0)
    held = 0.0
    for place in range(bins):
        if counts[place]:
            held = last[place]
        else:
            highest[place] = means[place] = held
    return highest, means
