"""The inverse-square-root law of TCP throughput under light loss.

M. Mathis, J. Semke, J. Mahdavi, T. Ott, "The Macroscopic Behavior of the TCP Congestion Avoidance
Algorithm", ACM CCR 27(3), 1997, equation 3 and table 1 (text not at hand; cited from common use).

Periodic loss of one segment in 1/p, window cycling between W/2 and W without timeouts:
BW = MSS / RTT * C / sqrt(p), with C = sqrt(3/2) when every segment is acknowledged and
sqrt(3/4) when every second one is; together C = sqrt(3 / (2 b)).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ._arrays import FloatArray, at_least, positive, probability

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .path import AsymmetricPath


def segment_rate(
    *,
    round_trip_s: ArrayLike,
    loss_rate: ArrayLike,
    segments_per_ack: ArrayLike = 2.0,
) -> FloatArray:
    """Segments per second, sqrt(3 / (2 b p)) / RTT; infinite where `loss_rate` is 0.

    Parameters
    ----------
    round_trip_s : array_like
        RTT, seconds, above 0.
    loss_rate : array_like
        p, congestion signals per segment, in [0, 1).
    segments_per_ack : array_like, default 2
        b, at least 1.

    Returns
    -------
    ndarray of float
        Broadcast shape. No link in it: see `throughput_bps`.
    """
    rtt = positive("round_trip_s", round_trip_s)
    p = probability("loss_rate", loss_rate)
    b = at_least("segments_per_ack", segments_per_ack, 1.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.sqrt(3.0 / (2.0 * b * p)) / rtt)


def throughput_bps(
    *,
    path: AsymmetricPath,
    loss_rate: ArrayLike,
    segments_per_ack: ArrayLike = 2.0,
    round_trip_s: ArrayLike | None = None,
) -> FloatArray:
    """Application bits per second, at most what the downlink carries.

    Parameters
    ----------
    path : AsymmetricPath
    loss_rate : array_like
        p, in [0, 1).
    segments_per_ack : array_like, default 2
        b, at least 1.
    round_trip_s : array_like, optional
        RTT, seconds; the path's unloaded round trip when absent.

    Returns
    -------
    ndarray of float
        Broadcast shape.

    Notes
    -----
    Valid for long transfers at small p (below about 0.02: above it timeouts, which the law leaves
    out, dominate), no advertised-window limit, an uplink that keeps up with the ACKs.
    """
    rtt = path.round_trip_or(round_trip_s)
    rate = segment_rate(round_trip_s=rtt, loss_rate=loss_rate, segments_per_ack=segments_per_ack)
    return path.goodput_bps(rate)
