"""CUBIC's response to light random loss.

RFC 9438 section 5 (after Ha, Rhee, Xu, "CUBIC: A New TCP-Friendly High-Speed TCP Variant", ACM
SIGOPS Operating Systems Review 42(5), 2008). With one loss in every 1/p segments, at equal
distances, the average window in segments is

    W = (C (3 + beta) / (4 (1 - beta)))^(1/4) (RTT / p)^(3/4)

With C = 0.4 segments per second cubed and beta = 0.7, this is 1.054 (RTT / p)^(3/4). On short paths
or with many losses, Reno's window sqrt(3/2 / p) is larger. Then CUBIC has Reno's window (the
Reno-friendly region, RFC 9438 section 4.3), whose increase and decrease are chosen for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from . import mathis
from ._arrays import FloatArray, positive, probability

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .path import AsymmetricPath

# RFC 9438 sections 4.1.1 and 4.6.
C: Final = 0.4
BETA: Final = 0.7


def segment_rate(*, round_trip_s: ArrayLike, loss_rate: ArrayLike) -> FloatArray:
    """Segments per second; infinite where `loss_rate` is 0.

    Parameters
    ----------
    round_trip_s, loss_rate : array_like
        As in `mathis.segment_rate`.

    Returns
    -------
    ndarray of float
        Broadcast shape. No link in it: see `throughput_bps`.
    """
    rtt = positive("round_trip_s", round_trip_s)
    p = probability("loss_rate", loss_rate)
    factor = (C * (3.0 + BETA) / (4.0 * (1.0 - BETA))) ** 0.25
    with np.errstate(divide="ignore"):
        concave = factor * (rtt / p) ** 0.75 / rtt
    reno = mathis.segment_rate(round_trip_s=rtt, loss_rate=p, segments_per_ack=1.0)
    return np.asarray(np.maximum(concave, reno))


def throughput_bps(
    *,
    path: AsymmetricPath,
    loss_rate: ArrayLike,
    round_trip_s: ArrayLike | None = None,
) -> FloatArray:
    """Application bits per second, at most what the downlink carries.

    Parameters
    ----------
    path : AsymmetricPath
    loss_rate : array_like
        p, in [0, 1).
    round_trip_s : array_like, optional
        As in `mathis.throughput_bps`.

    Returns
    -------
    ndarray of float
        Broadcast shape.

    Notes
    -----
    Valid for long transfers at small p (timeouts are left out), no advertised-window limit, an
    uplink that keeps up with the ACKs. The throughput with random losses is up to a fifth higher
    than with losses at equal distances: long growth gains more than short growth loses.
    """
    rtt = path.round_trip_or(round_trip_s)
    rate = segment_rate(round_trip_s=rtt, loss_rate=loss_rate)
    return path.goodput_bps(rate)
