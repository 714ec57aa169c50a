"""Capacity on demand in formulas: the highest granted rate, and the shortest wait for a grant."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bentpipe.prediction.changes import Table


def most_bps(settings: Table) -> float:
    """Return the highest rate that a direction is ever granted, bit/s.

    Without volume-based and free capacity, that is the constant rate and the largest request by
    rate. With either of these the whole link may be granted, and the result is infinite.
    """
    access = settings["access"]
    if access is None or access["volume_based"] or access["free"]:
        return math.inf
    return float((access["constant_bps"] or 0) + (access["rate_based_bps"] or 0))


def least_wait_s(settings: Table) -> float:
    """Return the shortest time that a packet waits for its grant, seconds.

    With requests by volume alone, a byte waits for the frame that its own request is for. That is
    a fixed number of frames after the request. Constant and free capacity may be available at
    once, and requests by rate are made in advance.
    """
    access = settings["access"]
    if access is None or access["free"] or access["constant_bps"] or access["rate_based_bps"]:
        return 0.0
    return float(access["granted_after_frames"] * access["frame_s"])
