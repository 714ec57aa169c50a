"""Estimates with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

# Two-sided 95% quantile of the normal distribution.
Z_95: Final = 1.959964
CONFIDENCE: Final = 0.95
_RESAMPLES: Final = 400
# Samples of a ratio are added up to so many blocks.
_BLOCKS: Final = 1000
# Half-width of every interval of a rate or a delay at least, as a share: clocks of computers are
# wrong by up to 100 parts in a million, and captures have no headers of the link layer.
RESOLUTION: Final = 1e-3

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A quantity with its 95% confidence interval, and where it comes from.

    `key` names the quantity: "forward.rate". `unit` is "bit/s", "s", "B", "packets", "1" or "".
    `low` and `high` are None for settings that were read and not estimated.
    """

    key: str
    value: float | str
    unit: str
    source: str
    method: str
    low: float | None = None
    high: float | None = None
    # Number of samples, which ranks estimates of the same quantity.
    weight: float = 1.0

    def to_data(self) -> dict[str, Any]:
        """Return the estimate as plain data."""
        return {
            "key": self.key,
            "value": self.value,
            "low": self.low,
            "high": self.high,
            "unit": self.unit,
            "source": self.source,
            "method": self.method,
        }


@dataclass(frozen=True, kw_only=True)
class Undetermined:
    """A quantity that the measurements do not determine, and the assumption in its place."""

    key: str
    reason: str
    assumed: str = ""

    def to_data(self) -> dict[str, str]:
        """Return it as plain data."""
        return {"key": self.key, "reason": self.reason, "assumed": self.assumed}


def wilson(hits: float, trials: float) -> tuple[float, float]:
    """Return Wilson's score interval for a share of independent trials (95%)."""
    if trials <= 0:
        return 0.0, 1.0
    share, square = hits / trials, Z_95**2
    centre = (share + square / (2 * trials)) / (1 + square / trials)
    half = Z_95 * math.sqrt(share * (1 - share) / trials + square / (4 * trials**2))
    half /= 1 + square / trials
    low = 0.0 if hits <= 0 else max(0.0, centre - half)
    high = 1.0 if hits >= trials else min(1.0, centre + half)
    return low, high


def bootstrap(
    samples: Floats, statistic: Callable[[Floats], Any], *, resolution: float = RESOLUTION
) -> tuple[float, float, float]:
    """Return a statistic of independent samples, and its 95% percentile bootstrap interval.

    `samples` may have several columns; rows are drawn. `statistic` takes an array with an axis of
    resamples in front. The interval is at least `resolution` wide on both sides, as a share. The
    draws are the same for the same number of samples.
    """
    value = float(statistic(samples[np.newaxis])[0])
    if statistic is ratio and len(samples) > _BLOCKS:
        # Blocks of neighbours, which also keep what neighbours have in common.
        starts = np.linspace(0, len(samples), _BLOCKS, endpoint=False).astype(np.int64)
        samples = np.add.reduceat(samples, starts, axis=0)
    generator = np.random.default_rng(len(samples))
    chunk = max(1, 2_000_000 // max(1, samples.size))
    found: list[Floats] = []
    left = _RESAMPLES
    while left > 0:
        count = min(chunk, left)
        draws = generator.integers(0, len(samples), (count, len(samples)))
        found.append(np.asarray(statistic(samples[draws]), dtype=np.float64))
        left -= count
    low, high = np.quantile(np.concatenate(found), [0.025, 0.975])
    return (
        value,
        min(float(low), value * (1 - resolution)),
        max(float(high), value * (1 + resolution)),
    )


def ratio(samples: Floats) -> Floats:
    """Return the sum of the first column over that of the second, for each resample."""
    totals = samples.sum(axis=1)
    return np.asarray(totals[:, 0] / totals[:, 1])


def median(samples: Floats) -> Floats:
    """Return the median of each resample."""
    return np.asarray(np.median(samples, axis=1))
