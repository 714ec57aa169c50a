"""Hybla's response to light random loss: that of Reno on a path with Hybla's reference round trip.

C. Caini, R. Firrincieli, "TCP Hybla: a TCP enhancement for heterogeneous networks", Int. J.
Satellite Communications and Networking 22(5), 2004. In congestion avoidance, every acknowledged
segment adds rho^2 / W to the window W, with rho = max(RTT / RTT0, 1). A loss halves the window.
This is Reno's law with rho^2 instead of 1: W = rho sqrt(3 / (2 b p)). One window is sent per round
trip, so that the rate is that of Reno over RTT0, or over RTT where that is shorter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from . import mathis
from ._arrays import FloatArray, positive

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .path import AsymmetricPath


def segment_rate(
    *,
    round_trip_s: ArrayLike,
    loss_rate: ArrayLike,
    reference_rtt_s: ArrayLike = 0.025,
    segments_per_ack: ArrayLike = 1.0,
) -> FloatArray:
    """Segments per second, sqrt(3 / (2 b p)) / min(RTT, RTT0); infinite where `loss_rate` is 0.

    Parameters
    ----------
    round_trip_s, loss_rate : array_like
        As in `mathis.segment_rate`.
    reference_rtt_s : array_like, default 0.025
        RTT0, seconds, above 0.
    segments_per_ack : array_like, default 1
        b, at least 1; 1 also with delayed ACKs where acknowledged segments count, as in Linux.

    Returns
    -------
    ndarray of float
        Broadcast shape. No link in it: see `throughput_bps`.
    """
    rtt = positive("round_trip_s", round_trip_s)
    reference = positive("reference_rtt_s", reference_rtt_s)
    return mathis.segment_rate(
        round_trip_s=np.minimum(rtt, reference),
        loss_rate=loss_rate,
        segments_per_ack=segments_per_ack,
    )


def throughput_bps(
    *,
    path: AsymmetricPath,
    loss_rate: ArrayLike,
    reference_rtt_s: ArrayLike = 0.025,
    segments_per_ack: ArrayLike = 1.0,
    round_trip_s: ArrayLike | None = None,
) -> FloatArray:
    """Application bits per second, at most what the downlink carries.

    Parameters
    ----------
    path : AsymmetricPath
    loss_rate, reference_rtt_s, segments_per_ack
        As in `segment_rate`.
    round_trip_s : array_like, optional
        As in `mathis.throughput_bps`.

    Returns
    -------
    ndarray of float
        Broadcast shape.

    Notes
    -----
    Valid for long transfers at small p: timeouts are left out. The window has no advertised limit,
    and the uplink carries the ACKs. The queue holds the bursts of rho^2 more segments a round trip.
    """
    rate = segment_rate(
        round_trip_s=path.round_trip_or(round_trip_s),
        loss_rate=loss_rate,
        reference_rtt_s=reference_rtt_s,
        segments_per_ack=segments_per_ack,
    )
    return path.goodput_bps(rate)
