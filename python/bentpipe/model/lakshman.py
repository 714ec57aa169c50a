"""The existing formula that obata2000 compares with: the average over one congestion-window cycle.

[4] T. V. Lakshman, U. Madhow, B. Suter, "Window-based Error Recovery and Flow Control with a Slow
Acknowledgement Channel: a Study of TCP/IP Performance", INFOCOM 1997, pp. 1199-1209.
[8] T. V. Lakshman, U. Madhow, "The Performance of TCP/IP for Networks with High Bandwidth-Delay
Products and Random Loss", IEEE/ACM ToN 5(3), 1997, pp. 336-350.

The window grows until the downlink's buffer overflows at W_max = mu T + B, halves, and grows again
(Reno). The symbols are:

* `mu`: the bottleneck's rate in segments per second.
* `T` = tau + 1/mu: the unloaded round trip.
* `B`: the buffer in segments.
* `n`: the segments that one ACK covers.

In congestion avoidance every ACK adds 1/W to the window. Therefore:

* W < mu T: the pipe is not full, RTT = T, and dW/dt = 1 / (n T).
* W >= mu T: the queue grows, RTT = W / mu, and dW/dt = mu / (n W).

The throughput is (1 / cycle) times the integral of W(t) / RTT(t) (obata2000 section 3.1). Both
integrals are elementary. With beta = B / (mu T) <= 1 they give
throughput = mu * (3/4) (1 + beta)^2 / (1 + beta + beta^2).
That is 3/4 of the link without a buffer, and all of it with one bandwidth-delay product. The factor
n cancels in the average and stays in the cycle's length.

Sources of each statement
-------------------------
The published abstract of [4] defines the normalised asymmetry k. It is the ratio of an ACK's
transmission time on the reverse path to a data packet's on the forward path. Throughput is derived
from buffers, round-trip times and k, with three modes of operation. The abstract of [8] gives the
setting (bandwidth-delay product against buffering, Tahoe and Reno). The average of W/RTT over one
regular cycle is from obata2000 section 3.1. The full texts were not at hand.

The differential equations are the standard fluid form of Reno's rules, and the closed form was
derived from them here. No equation number of [4] or [8] is claimed. The three modes are not
distinguished: this is the one in which the forward buffer holds a burst of k segments.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._arrays import FloatArray, at_least, common_shape, non_negative

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .path import AsymmetricPath


@dataclass(frozen=True, kw_only=True, eq=False)
class LakshmanPrediction:
    """One regular cycle of the congestion window; all arrays have the broadcast shape.

    Attributes
    ----------
    throughput_bps : ndarray of float
        Average over the cycle, application bits per second; never above the path's capacity.
    maximum_window_segments : ndarray of float
        Window at which the cycle ends, segments.
    cycle_time_s : ndarray of float
        Length of the cycle, seconds.
    cycle_segments : ndarray of float
        Segments sent in it.
    """

    throughput_bps: FloatArray
    maximum_window_segments: FloatArray
    cycle_time_s: FloatArray
    cycle_segments: FloatArray


def throughput(
    *,
    path: AsymmetricPath,
    buffer_segments: ArrayLike,
    segments_per_ack: ArrayLike = 1.0,
    maximum_window_segments: ArrayLike = np.inf,
    ack_queue_unlimited: bool = False,
) -> LakshmanPrediction:
    """Average over one cycle of the window between W_max / 2 and W_max.

    Parameters
    ----------
    path : AsymmetricPath
    buffer_segments : array_like
        B, segments that wait in front of the downlink before one is dropped. At least 0.
    segments_per_ack : array_like, default 1
        Segments per ACK at the client, at least 1; 2 with delayed ACKs.
    maximum_window_segments : array_like, default inf
        Upper end of the cycle where something ends it below mu T + B, segments, at least 1.
        [4] and [8] have no such limit; obata2000 plots the formula over the maximum window.
    ack_queue_unlimited : bool, default False
        The behaviour of a slow uplink (k above `segments_per_ack`). False, as in [4]: its queue
        drops ACKs, the remaining ones cover k segments each, and the downlink can still be
        filled, though the window grows more slowly. True: no ACK is lost, and the ACK rate
        bounds mu.

    Returns
    -------
    LakshmanPrediction

    Notes
    -----
    Valid for long transfers whose only losses are overflows, one per cycle, repaired without a
    timeout; a buffer of at least k segments. For a transfer that ends inside its first slow start
    it means nothing, as obata2000 points out.
    """
    buffer = non_negative("buffer_segments", buffer_segments)
    per_ack = at_least("segments_per_ack", segments_per_ack, 1.0)
    limit = at_least("maximum_window_segments", maximum_window_segments, 1.0)
    shape = common_shape(
        {
            "path": np.empty(path.shape),
            "buffer_segments": buffer,
            "segments_per_ack": per_ack,
            "maximum_window_segments": limit,
        }
    )
    if ack_queue_unlimited:
        segment_s = np.maximum(path.packet_time_s, path.ack_time_s / per_ack)
        covered = per_ack
    else:
        segment_s = path.packet_time_s
        covered = np.maximum(per_ack, path.asymmetry)
    rate = 1.0 / segment_s
    round_trip = path.propagation_s + path.ack_time_s + segment_s
    pipe = rate * round_trip  # mu T
    top = np.minimum(pipe + buffer, limit)
    bottom = top / 2.0

    knee = np.clip(pipe, bottom, top)
    filling_s = covered * round_trip * (knee - bottom)
    queueing_s = covered * (top**2 - knee**2) / (2.0 * rate)
    segments = covered * (top**2 - bottom**2) / 2.0
    cycle_s = filling_s + queueing_s
    payload_bps = segments / cycle_s * path.payload_bits
    return LakshmanPrediction(
        throughput_bps=_full(np.minimum(payload_bps, path.capacity_bps), shape),
        maximum_window_segments=_full(top, shape),
        cycle_time_s=_full(cycle_s, shape),
        cycle_segments=_full(segments, shape),
    )


def _full(array: FloatArray, shape: tuple[int, ...]) -> FloatArray:
    return np.array(np.broadcast_to(array, shape))
