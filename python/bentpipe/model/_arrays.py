"""Checked conversion of arguments to float arrays, shared by every model."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from collections.abc import Mapping

FloatArray: TypeAlias = NDArray[np.float64]
IntArray: TypeAlias = NDArray[np.int64]
BoolArray: TypeAlias = NDArray[np.bool_]

BITS_PER_BYTE = 8.0


def positive(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as a float array whose every element is finite and above zero.

    Raises
    ------
    ValueError
        Naming the argument, when an element is not finite or not above zero.
    """
    array = np.asarray(value, dtype=np.float64)
    if not bool(np.all(np.isfinite(array) & (array > 0.0))):
        raise ValueError(f"{name} must be finite and greater than 0, got {value!r}")
    return array


def non_negative(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` as a float array whose every element is finite and at least zero.

    Raises
    ------
    ValueError
        Naming the argument, when an element is not finite or below zero.
    """
    array = np.asarray(value, dtype=np.float64)
    if not bool(np.all(np.isfinite(array) & (array >= 0.0))):
        raise ValueError(f"{name} must be finite and at least 0, got {value!r}")
    return array


def at_least(name: str, value: ArrayLike, minimum: float) -> FloatArray:
    """Return `value` as a float array whose every element is at least `minimum`; inf passes.

    Raises
    ------
    ValueError
        Naming the argument, when an element is below `minimum` or not a number.
    """
    array = np.asarray(value, dtype=np.float64)
    if not bool(np.all(array >= minimum)):
        raise ValueError(f"{name} must be at least {minimum:g}, got {value!r}")
    return array


def probability(name: str, value: ArrayLike, *, below: float = 1.0) -> FloatArray:
    """Return `value` as a float array of probabilities in [0, `below`).

    Raises
    ------
    ValueError
        Naming the argument, when an element lies outside the interval.
    """
    array = np.asarray(value, dtype=np.float64)
    if not bool(np.all((array >= 0.0) & (array < below))):
        raise ValueError(f"{name} must lie in [0, {below:g}), got {value!r}")
    return array


def whole_segments(name: str, value: ArrayLike) -> FloatArray:
    """Return `value` rounded down to whole segments, as floats; at least one each.

    A sender never splits a segment to fill the last part of a window (silly-window
    avoidance, RFC 1122 section 4.2.3.4), so 5.5 segments of window carry 5.

    Raises
    ------
    ValueError
        Naming the argument, when an element is below one segment or not finite.
    """
    array = np.floor(np.asarray(value, dtype=np.float64))
    if not bool(np.all(np.isfinite(array) & (array >= 1.0))):
        raise ValueError(f"{name} must be at least one whole segment, got {value!r}")
    return array


def common_shape(arrays: Mapping[str, FloatArray]) -> tuple[int, ...]:
    """Return the shape to which all the arrays broadcast.

    Raises
    ------
    ValueError
        Listing every name and shape, when they do not broadcast together.
    """
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"these shapes do not broadcast together: {shapes}") from None
