"""Fluid model of transfers that start and end: the goodput of each over its own time.

Rates change at once when a transfer starts or ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

# Ends that differ by rounding are simultaneous.
_AT_ONCE: Final = 1e-9
# The most starts and ends that are followed. Transfers that remain then keep their rates.
_MOST_TURNS: Final = 200


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A one-way transfer of a number of bits from its start, or until the end of the run."""

    flow: str
    start_s: float
    duration_s: float
    bits: float


def while_they_last(
    transfers: Sequence[Transfer], rates: Callable[[Bools], tuple[Floats, Bools]]
) -> tuple[Floats, Bools]:
    """Return the goodput of each over its own time, bit/s, and whether others ever limit it.

    Parameters
    ----------
    transfers
        The transfers.
    rates
        Returns the rate of each active transfer, bit/s, and whether others limit it.
    """
    starts = np.array([each.start_s for each in transfers])
    ends = starts + np.array([each.duration_s for each in transfers])
    left = np.array([each.bits for each in transfers])
    got, lasted = np.zeros(len(left)), np.zeros(len(left))
    held_back = np.zeros(len(left), dtype=bool)
    now = float(starts.min())
    for turn in range(_MOST_TURNS):
        here = (starts <= now) & (left > 0.0) & (ends > now)
        to_come = starts[(starts > now) & (ends > now)]
        if not here.any():
            if not len(to_come):
                break
            now = float(to_come.min())
            continue
        rate, held = rates(here)
        held_back |= held
        stays = ends - now
        sends = here & (rate > 0.0)
        np.minimum(stays, np.divide(left, rate, out=stays.copy(), where=sends), out=stays)
        until = now + float(stays[here].min())
        if len(to_come):
            until = min(until, float(to_come.min()))
        step = np.where(here, stays if turn == _MOST_TURNS - 1 else until - now, 0.0)
        got += rate * step
        lasted += step
        left -= rate * step
        left[here & (stays <= (until - now) * (1.0 + _AT_ONCE))] = 0.0
        now = until
    return np.divide(got, lasted, out=np.zeros(len(got)), where=lasted > 0.0), held_back
