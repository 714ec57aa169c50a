"""The throughput formula of obata2000, as printed: equations 1 to 13.

H. Obata, K. Ishida, J. Funasaka, K. Amano, "TCP Performance Analysis on Asymmetric Networks
Composed of Satellite and Terrestrial Links", ICNP 2000. TCP Reno, no loss, initial window of one
segment, a receiver that acknowledges every second segment or after d = 200 ms.

The transfer is a sequence of sending periods. The n-th sends w(n) segments and lasts
t(n) = max(rtt, a(n), q(n-1)) (equations 1 to 6). These are the round trip, the time that the data
occupies the downlink, and the time that the previous round's ACKs occupy the uplink.

Interpretation of the paper
---------------------------
* MWS, the advertised window, counts in whole segments. Equation 10 with MWS in bytes lets the
  throughput exceed the link's capacity (8 KByte on a 64 kbit/s link would give 68.8 kbit/s).
* Equation 1 would step over the advertised window; the last step is cut to it.
* Equations 9 and 11 charge the last, partial round its payload without headers or redundancy. On
  a path with hardly any delay that alone could beat the link, so the transfer time is never taken
  below transfer_bytes / capacity; `capped` tells where that happened.
* t_rest is zero where the last round is exactly full (text under equations 9 and 11). The formula
  then waits for that round's ACK, which the data does not need: the time is discontinuous there.
* The redundancy alpha stands in equation 5' only, not in the serialisation terms of 3, 4, 9, 11.

The module `delayed_ack` has our corrected formula, without these simplifications.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._arrays import (
    BITS_PER_BYTE,
    BoolArray,
    FloatArray,
    common_shape,
    non_negative,
    positive,
    whole_segments,
)

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .path import AsymmetricPath

DELAYED_ACK_S = 0.2
"""d, seconds: the longest a receiver holds an ACK back (section 3.2, "200msec")."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Obata2000Prediction:
    """Prediction of the formula for one or many transfers, in the broadcast shape.

    Attributes
    ----------
    transfer_time_s : ndarray of float
        T of equation 10 or 12, first segment sent to last byte received, seconds.
    throughput_bps : ndarray of float
        transfer bits over T, application bits per second; never above the path's capacity.
    slow_start_bytes : ndarray of float
        F_slow (equation 7): data of the rounds before the window reaches its maximum. For small
        data, of the full rounds only.
    slow_start_time_s : ndarray of float
        t_slow (equation 8), the sum of those rounds' sending periods, seconds.
    period_s : ndarray of float
        t_max, the sending period at the advertised window, seconds.
    large_data : ndarray of bool
        True where the transfer outlasts slow start (section 3.2), False for section 3.3.
    capped : ndarray of bool
        True where the printed formula beats the link and the link's capacity was used instead.
    """

    transfer_time_s: FloatArray
    throughput_bps: FloatArray
    slow_start_bytes: FloatArray
    slow_start_time_s: FloatArray
    period_s: FloatArray
    large_data: BoolArray
    capped: BoolArray


def window_segments(*, window_bytes: ArrayLike, segment_payload_bytes: ArrayLike) -> FloatArray:
    """Advertised window in whole segments: floor(MWS / d_seg).

    Parameters
    ----------
    window_bytes : array_like
        MWS, bytes; at least one segment.
    segment_payload_bytes : array_like
        d_seg, bytes.

    Returns
    -------
    ndarray of float
        Whole segments, broadcast shape.

    Raises
    ------
    ValueError
        When the window is smaller than one segment.
    """
    window = positive("window_bytes", window_bytes)
    segment = positive("segment_payload_bytes", segment_payload_bytes)
    return whole_segments("window_bytes / segment_payload_bytes", window / segment)


def round_trip_s(
    *,
    path: AsymmetricPath,
    window_segments: ArrayLike,
    delayed_ack_s: ArrayLike = DELAYED_ACK_S,
) -> FloatArray:
    """Round trip of a window: equation 3 for two segments or more, equation 4 for one.

    Parameters
    ----------
    path : AsymmetricPath
    window_segments : array_like
        w, segments; one segment's ACK waits for the timer.
    delayed_ack_s : array_like, default 0.2
        d, seconds.

    Returns
    -------
    ndarray of float
        Seconds, broadcast shape.
    """
    window = whole_segments("window_segments", window_segments)
    timer = non_negative("delayed_ack_s", delayed_ack_s)
    segment_s = path.packet_bits / np.asarray(path.downlink_rate_bps, dtype=np.float64)
    fixed = path.propagation_s + path.ack_time_s
    return np.asarray(fixed + np.where(window >= 2.0, 2.0 * segment_s, segment_s + timer))


def saturation_window_segments(*, path: AsymmetricPath) -> FloatArray:
    """W_sat, the window from which the downlink never idles: equation 13.

    It follows from rtt = a(n), the time that the data occupies the downlink. With redundancy alpha,
    equation (5') replaces (5) for a(n):
    W_sat = Q_sat (tau + d_ack / Q_ter) / (alpha P) + 2 / alpha.

    Returns
    -------
    ndarray of float
        Segments, not rounded; round up to saturate. Assumes rtt binds, that is, an uplink fast
        enough for one ACK every two segments (k <= 2); on a slower one nothing saturates the
        downlink.
    """
    redundancy = np.asarray(path.redundancy, dtype=np.float64)
    pipe_s = path.propagation_s + path.ack_time_s
    return np.asarray(pipe_s / path.packet_time_s + 2.0 / redundancy)


def transfer(
    *,
    path: AsymmetricPath,
    transfer_bytes: ArrayLike,
    window_segments: ArrayLike,
    delayed_ack_s: ArrayLike = DELAYED_ACK_S,
) -> Obata2000Prediction:
    """Time and throughput of a loss-free transfer: equations 1 to 12.

    Vectorised: the loop runs over slow-start rounds (about log_1.5 of the largest window), the
    arrays over cells.

    Parameters
    ----------
    path : AsymmetricPath
    transfer_bytes : array_like
        F, application bytes. Above 0.
    window_segments : array_like
        MWS / d_seg, the advertised window in segments, rounded down. At least 1.
    delayed_ack_s : array_like, default 0.2
        d, seconds.

    Returns
    -------
    Obata2000Prediction

    Notes
    -----
    Valid for: no loss, buffers that hold a whole window, an initial window of one segment.
    """
    size = positive("transfer_bytes", transfer_bytes)
    window = whole_segments("window_segments", window_segments)
    timer = non_negative("delayed_ack_s", delayed_ack_s)
    shape = common_shape(
        {
            "path": np.empty(path.shape),
            "transfer_bytes": size,
            "window_segments": window,
            "delayed_ack_s": timer,
        }
    )
    segment_bytes = np.asarray(path.segment_payload_bytes, dtype=np.float64)
    window = np.broadcast_to(window, shape)
    remaining = np.array(np.broadcast_to(size, shape))

    # Equation 2 for one round; `previous` is w(n-1), 0 before the first.
    def period(w: FloatArray, previous: FloatArray) -> FloatArray:
        rtt = round_trip_s(path=path, window_segments=w, delayed_ack_s=timer)  # (3), (4)
        data = path.packet_time_s * w  # (5), (5')
        acks = path.ack_time_s * np.ceil(previous / 2.0)  # (6)
        return np.maximum(np.maximum(rtt, data), acks)

    slow_time = np.zeros(shape)
    slow_bytes = np.zeros(shape)
    w = np.ones(shape)
    previous = np.zeros(shape)
    while True:
        # A round counts in (7), (8) or (12) if it is below the advertised window and the transfer
        # fills it. A partly filled round is part of t_rest.
        full = (w < window) & (remaining >= w * segment_bytes)
        if not bool(np.any(full)):
            break
        slow_time += np.where(full, period(w, previous), 0.0)
        slow_bytes += np.where(full, w * segment_bytes, 0.0)
        remaining -= np.where(full, w * segment_bytes, 0.0)
        previous = np.where(full, w, previous)
        w = np.where(full, np.minimum(w + np.ceil(w / 2.0), window), w)  # (1), clipped

    t_max = period(window, window)
    large = w >= window
    window_bytes = window * segment_bytes
    rounds = np.where(large, np.floor(remaining / window_bytes), 0.0)
    rest_bytes = np.maximum(remaining - rounds * window_bytes, 0.0)
    rest_time = np.where(  # (9), (11)
        rest_bytes > 0.0,
        rest_bytes * BITS_PER_BYTE / np.asarray(path.downlink_rate_bps)
        + np.asarray(path.downlink_delay_s),
        0.0,
    )
    printed = rounds * t_max + slow_time + rest_time  # (10), (12)
    bits = np.broadcast_to(size, shape) * BITS_PER_BYTE
    floor_time = bits / path.capacity_bps
    capped = printed < floor_time
    time = np.maximum(printed, floor_time)
    throughput = np.minimum(bits / time, path.capacity_bps)
    return Obata2000Prediction(
        transfer_time_s=time,
        throughput_bps=throughput,
        slow_start_bytes=slow_bytes,
        slow_start_time_s=slow_time,
        period_s=np.array(np.broadcast_to(t_max, shape)),
        large_data=large,
        capped=capped,
    )
