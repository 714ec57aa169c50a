"""The limit of a loss-free transfer: window, downlink, the uplink's ACKs, or its size.

Each limit is the goodput that the transfer would have if the other three were absent. The window,
downlink and ACK limits are bounds on the long-run rate. The size limit is the goodput with slow
start alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from ._arrays import (
    BITS_PER_BYTE,
    FloatArray,
    at_least,
    common_shape,
    non_negative,
    positive,
    whole_segments,
)
from .obata2000 import DELAYED_ACK_S

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from .path import AsymmetricPath

NAMES: Final = ("window", "downlink", "uplink ACKs", "transfer size")
"""The values of `Limits.binding`, in the order that breaks ties."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Limits:
    """The four limits, application bits per second, and the lowest; all of the broadcast shape.

    Attributes
    ----------
    window_bps : ndarray of float
        One advertised window a round trip.
    downlink_bps : ndarray of float
        The downlink filled with full segments: Q_sat d_seg / (alpha P).
    uplink_acks_bps : ndarray of float
        `segments_per_ack` segments for every ACK the uplink can carry.
    transfer_size_bps : ndarray of float
        Transfer bits over the round trips that slow start needs to send them, rates and window
        unlimited: what a short transfer can reach at best.
    binding : ndarray of str
        The name of the lowest, one of `NAMES`.
    binding_bps : ndarray of float
        Its value.
    """

    window_bps: FloatArray
    downlink_bps: FloatArray
    uplink_acks_bps: FloatArray
    transfer_size_bps: FloatArray
    binding: NDArray[np.str_]
    binding_bps: FloatArray


def limits(
    *,
    path: AsymmetricPath,
    transfer_bytes: ArrayLike,
    window_segments: ArrayLike,
    delayed_ack_s: ArrayLike = DELAYED_ACK_S,
    segments_per_ack: ArrayLike = 2.0,
    initial_window_segments: ArrayLike = 1.0,
) -> Limits:
    """Evaluate the four limits for a loss-free transfer.

    Parameters
    ----------
    path : AsymmetricPath
    transfer_bytes : array_like
        Application bytes, above 0.
    window_segments : array_like
        Advertised window, segments, rounded down, at least 1.
    delayed_ack_s : array_like, default 0.2
        Longest wait of an ACK, seconds; 0 when every segment is acknowledged at once.
    segments_per_ack : array_like, default 2
        b, at least 1.
    initial_window_segments : array_like, default 1
        Segments sent before the first ACK, at least 1.

    Returns
    -------
    Limits

    Notes
    -----
    The round trip of the window limit is obata2000's equation 3 (b segments arrive before the
    ACK), with the timer instead where that is shorter, or where the window is below b segments.
    An odd window's actual rate lies a little below this limit: see `delayed_ack`.
    """
    size = positive("transfer_bytes", transfer_bytes)
    window = whole_segments("window_segments", window_segments)
    timer = non_negative("delayed_ack_s", delayed_ack_s)
    b = at_least("segments_per_ack", segments_per_ack, 1.0)
    initial = whole_segments("initial_window_segments", initial_window_segments)
    shape = common_shape(
        {
            "path": np.empty(path.shape),
            "transfer_bytes": size,
            "window_segments": window,
            "delayed_ack_s": timer,
            "segments_per_ack": b,
            "initial_window_segments": initial,
        }
    )
    gathering = np.minimum((b - 1.0) * path.packet_time_s, timer)
    ack_wait = np.where(window >= b, gathering, timer)
    window_bps = window * path.payload_bits / (path.round_trip_s + ack_wait)
    acks_bps = b * path.payload_bits / path.ack_time_s

    segments = np.ceil(size / np.asarray(path.segment_payload_bytes, dtype=np.float64))
    rounds, first_waits = _slow_start_rounds(
        segments=np.broadcast_to(segments, shape),
        segments_per_ack=np.broadcast_to(b, shape),
        initial=np.broadcast_to(initial, shape),
    )
    # Only propagation, slow start and the first timer remain; the last round counts one way.
    start_up_s = (
        rounds * path.propagation_s
        + np.where(first_waits, timer, 0.0)
        + np.asarray(path.downlink_delay_s, dtype=np.float64)
    )
    bits = size * BITS_PER_BYTE
    with np.errstate(divide="ignore"):
        size_bps = bits / start_up_s

    values = [
        np.array(np.broadcast_to(value, shape), dtype=np.float64)
        for value in (window_bps, path.capacity_bps, acks_bps, size_bps)
    ]
    stacked = np.stack(values)
    lowest = np.argmin(stacked, axis=0)
    return Limits(
        window_bps=values[0],
        downlink_bps=values[1],
        uplink_acks_bps=values[2],
        transfer_size_bps=values[3],
        binding=np.asarray(np.array(NAMES)[lowest]),
        binding_bps=np.asarray(np.min(stacked, axis=0)),
    )


def _slow_start_rounds(
    *, segments: FloatArray, segments_per_ack: FloatArray, initial: FloatArray
) -> tuple[FloatArray, NDArray[np.bool_]]:
    """Return the round trips before the round that sends the last segment.

    The window grows by w(n+1) = w(n) + ceil(w(n) / b). Also return whether the first round is too
    small for an immediate ACK, and therefore waits for the timer.
    """
    rounds = np.zeros(segments.shape)
    sent = initial.copy()
    w = initial.copy()
    while bool(np.any(more := sent < segments)):
        rounds += more
        w = np.where(more, w + np.ceil(w / segments_per_ack), w)
        sent = sent + np.where(more, w, 0.0)
    return rounds, (initial < segments_per_ack) & (segments > initial)
