"""Samples put together: what a rate was, or a queue came to, in each stretch of time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# More than that a figure's width doesn't show.
MOST_BINS = 400
# Of rates: windows arrive in bursts, and a bin may have one burst more or less than the next. The
# fewer round trips a bin has, the more that shows.
MOST_RATE_BINS = 120


def bin_edges(end_s: float, *, count: int = MOST_BINS) -> Floats:
    """Return the edges of equal bins from 0 to `end_s`."""
    return np.linspace(0.0, end_s, count + 1)


def round_trip_edges(end_s: float, *, round_trip_s: float, interval_s: float) -> Floats:
    """Return the edges of bins of whole round trips, or of sampling intervals if those are longer.

    As many bins as a figure can show, the last one cut off at the end.
    """
    least_s = max(round_trip_s, interval_s, end_s / 10_000)
    width_s = least_s * np.ceil(end_s / MOST_RATE_BINS / least_s)
    edges = np.arange(0.0, end_s, width_s)
    # A short last bin would show a burst, or none, as a rate.
    if end_s - edges[-1] < 0.5 * width_s and len(edges) > 1:
        edges = edges[:-1]
    return np.append(edges, end_s)


def mean_rate(times_s: Floats, values: Floats, edges: Floats) -> Floats:
    """Return the mean of a rate in each bin.

    `values` are means since the sample before, as the simulator records them: the bins' means hold
    exactly what was delivered.
    """
    delivered = np.concatenate([[0.0], np.cumsum(values * np.diff(times_s, prepend=0.0))])
    at_edges = np.interp(edges, np.concatenate([[0.0], times_s]), delivered)
    means: Floats = np.diff(at_edges) / np.diff(edges)
    return means


def extreme_and_mean(times_s: Floats, values: Floats, edges: Floats) -> tuple[Floats, Floats]:
    """Return the highest sample of each bin and the mean of its samples.

    A bin without a sample has what the one before ended with.
    """
    highest = np.zeros(len(edges) - 1)
    means = np.zeros(len(edges) - 1)
    # A sample tells of the time before it: one at an edge belongs to the bin that ends there.
    first = np.searchsorted(times_s, edges[:-1], side="right")
    last = np.searchsorted(times_s, edges[1:], side="right")
    held = 0.0
    for place, (begin, end) in enumerate(zip(first, last, strict=True)):
        if end > begin:
            highest[place] = values[begin:end].max()
            means[place] = values[begin:end].mean()
            held = float(values[end - 1])
        else:
            highest[place] = means[place] = held
    return highest, means
