"""What formulas make of capacity on demand: how much comes at most, and how soon."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bentpipe.prediction.changes import Table


def most_bps(settings: Table) -> float:
    """Return the rate that a direction is ever granted, bit/s; infinite where all of it may be.

    Without volume-based and free capacity that is what is constant, and the most that it asks for
    by rate.
    """
    access = settings["access"]
    if access is None or access["volume_based"] or access["free"]:
        return math.inf
    return float((access["constant_bps"] or 0) + (access["rate_based_bps"] or 0))


def least_wait_s(settings: Table) -> float:
    """Return how long a packet waits for its grant at the least, seconds.

    Where all is asked for by volume, no byte goes before the frame that its own request is for: so
    many frames after the one in which it was asked for. A constant or a free part may be there at
    once, and who asks by rate asks for what has not come yet.
    """
    access = settings["access"]
    if access is None or access["free"] or access["constant_bps"] or access["rate_based_bps"]:
        return 0.0
    return float(access["granted_after_frames"] * access["frame_s"])
