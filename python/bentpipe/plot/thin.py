"""Fewer points that look the same: a plot is a thousand or so points wide."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def thin_line(x: Floats, y: Floats, *, columns: int = 1500) -> tuple[Floats, Floats]:
    """Keep each column's first, lowest, highest and last point of a line; `x` ascends."""
    if len(x) <= 4 * columns:
        return x, y
    column = _bins(x, columns)
    starts = np.flatnonzero(np.diff(column, prepend=-1))
    ends = np.append(starts[1:], len(x)) - 1
    # Sorted by column, then by height: a column's first and last are its lowest and highest.
    by_height = np.lexsort((y, column))
    keep = np.unique(np.concatenate([starts, ends, by_height[starts], by_height[ends]]))
    return x[keep], y[keep]


def thin_points(
    x: Floats, y: Floats, *, columns: int = 600, rows: int = 400
) -> tuple[Floats, Floats]:
    """Keep one point of those that would be drawn on top of each other."""
    if len(x) <= columns:
        return x, y
    cell = _bins(x, columns) * rows + _bins(y, rows)
    keep = np.sort(np.unique(cell, return_index=True)[1])
    return x[keep], y[keep]


def _bins(values: Floats, count: int) -> NDArray[np.int64]:
    low, high = float(values.min()), float(values.max())
    if high <= low:
        return np.zeros(len(values), dtype=np.int64)
    scaled = (values - low) * (count / (high - low))
    return np.minimum(scaled.astype(np.int64), count - 1)
