"""Short transfers with loss, slow start and handshake included.

N. Cardwell, S. Savage, T. Anderson, "Modeling TCP Latency", INFOCOM 2000.

The expected time of a transfer of d segments is a sum of five parts:

- The handshake (equation 4).
- The first slow start up to the first loss or the end (5, 11, 15).
- The cost of that loss (16 to 20).
- The rest at the steady-state rate of PFTK (21 to 24).
- The delayed ACK of the first segment.

E[T] = E[L_h] + E[T_ss] + E[T_loss] + E[T_ca] + E[T_delack] (25, with the handshake added).

Equation numbers and forms were compared with a public implementation of the paper; the paper's
text was not at hand.

Deviations: E[d_ss] of equation 5 counts the lost segment too and tends to d + 1 for p -> 0; it is
cut to d. The time is at least transfer_bytes / capacity, a bound that the paper does not have.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._arrays import (
    BITS_PER_BYTE,
    FloatArray,
    at_least,
    non_negative,
    positive,
    probability,
)
from .padhye import backoff_factor, steady_rate, timeout_probability

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .path import AsymmetricPath


@dataclass(frozen=True, kw_only=True, eq=False)
class CardwellPrediction:
    """Expected time of a transfer and its parts; all arrays have the broadcast shape.

    Attributes
    ----------
    transfer_time_s : ndarray of float
        Sum of the parts below, at least transfer_bytes / capacity, seconds.
    throughput_bps : ndarray of float
        Transfer bits over that time, application bits per second.
    handshake_s : ndarray of float
        E[L_h], equation 4; 0 without handshake.
    slow_start_s : ndarray of float
        E[T_ss], equation 15.
    loss_recovery_s : ndarray of float
        E[T_loss], equation 20.
    congestion_avoidance_s : ndarray of float
        E[T_ca], equation 24.
    delayed_ack_s : ndarray of float
        E[T_delack] as given.
    slow_start_segments : ndarray of float
        E[d_ss], equation 5.
    """

    transfer_time_s: FloatArray
    throughput_bps: FloatArray
    handshake_s: FloatArray
    slow_start_s: FloatArray
    loss_recovery_s: FloatArray
    congestion_avoidance_s: FloatArray
    delayed_ack_s: FloatArray
    slow_start_segments: FloatArray


def handshake_s(
    *,
    round_trip_s: ArrayLike,
    forward_loss_rate: ArrayLike,
    reverse_loss_rate: ArrayLike = 0.0,
    syn_timeout_s: ArrayLike = 3.0,
) -> FloatArray:
    """E[L_h], expected time of the three-way handshake, seconds (equation 4).

    RTT + T_s ((1 - p_r) / (1 - 2 p_r) + (1 - p_f) / (1 - 2 p_f) - 2): the SYN's timeout T_s
    doubles with every loss, so the mean is finite only below p = 1/2.

    Parameters
    ----------
    round_trip_s : array_like
        Seconds, above 0.
    forward_loss_rate, reverse_loss_rate : array_like
        p_f and p_r, in [0, 0.5).
    syn_timeout_s : array_like, default 3
        T_s, seconds (RFC 1122's; RFC 6298 has 1).

    Returns
    -------
    ndarray of float
        Broadcast shape.
    """
    rtt = positive("round_trip_s", round_trip_s)
    forward = probability("forward_loss_rate", forward_loss_rate, below=0.5)
    reverse = probability("reverse_loss_rate", reverse_loss_rate, below=0.5)
    timeout = positive("syn_timeout_s", syn_timeout_s)
    # (1 - p) / (1 - 2p) - 1 = p / (1 - 2p)
    lost = reverse / (1.0 - 2.0 * reverse) + forward / (1.0 - 2.0 * forward)
    return np.asarray(rtt + timeout * lost)


def transfer(
    *,
    path: AsymmetricPath,
    transfer_bytes: ArrayLike,
    loss_rate: ArrayLike,
    retransmission_timeout_s: ArrayLike,
    window_segments: ArrayLike = np.inf,
    segments_per_ack: ArrayLike = 2.0,
    slow_start_segments_per_ack: ArrayLike | None = None,
    initial_window_segments: ArrayLike = 1.0,
    delayed_ack_s: ArrayLike = 0.1,
    handshake: bool = True,
    ack_loss_rate: ArrayLike = 0.0,
    syn_timeout_s: ArrayLike = 3.0,
    round_trip_s: ArrayLike | None = None,
) -> CardwellPrediction:
    """Predict the expected time of a transfer with independent losses: equations 4 to 25.

    Parameters
    ----------
    path : AsymmetricPath
    transfer_bytes : array_like
        Application bytes, above 0.
    loss_rate : array_like
        p, loss probability of a segment, in [0, 0.5).
    retransmission_timeout_s : array_like
        T0, seconds, above 0.
    window_segments : array_like, default inf
        W_max, advertised window, segments, at least 1.
    segments_per_ack : array_like, default 2
        b, at least 1. 1 also with delayed ACKs where acknowledged bytes count (RFC 3465).
    slow_start_segments_per_ack : array_like, optional
        b of slow start, which grows by gamma = 1 + 1/b a round, where it is another one.
    initial_window_segments : array_like, default 1
        w_1, segments, at least 1.
    delayed_ack_s : array_like, default 0.1
        E[T_delack], expected wait for the ACK of the first segment, seconds: half of BSD's 200 ms
        heartbeat. The full 0.2 where the timer runs from the segment; 0 for w_1 of 2 or more.
    handshake : bool, default True
        Whether the three-way handshake counts.
    ack_loss_rate : array_like, default 0
        p_r, loss probability on the uplink, in [0, 0.5); matters in the handshake only.
    syn_timeout_s : array_like, default 3
        T_s, seconds.
    round_trip_s : array_like, optional
        RTT, seconds; the path's unloaded round trip when absent.

    Returns
    -------
    CardwellPrediction

    Notes
    -----
    Valid where the window, not the link, sets the pace: rounds last one RTT whatever is in them.
    Expectations are combined as if independent, so the result is an approximation even so.
    """
    rtt = positive("round_trip_s", path.round_trip_or(round_trip_s))
    size = positive("transfer_bytes", transfer_bytes)
    p = probability("loss_rate", loss_rate, below=0.5)
    t0 = positive("retransmission_timeout_s", retransmission_timeout_s)
    w_max = at_least("window_segments", window_segments, 1.0)
    b = at_least("segments_per_ack", segments_per_ack, 1.0)
    b_ss = (
        b
        if slow_start_segments_per_ack is None
        else at_least("slow_start_segments_per_ack", slow_start_segments_per_ack, 1.0)
    )
    w_1 = at_least("initial_window_segments", initial_window_segments, 1.0)
    delack = non_negative("delayed_ack_s", delayed_ack_s)
    if handshake:
        setup = handshake_s(
            round_trip_s=rtt,
            forward_loss_rate=p,
            reverse_loss_rate=ack_loss_rate,
            syn_timeout_s=syn_timeout_s,
        )
    else:
        setup = np.zeros(())
    payload = np.asarray(path.segment_payload_bytes, dtype=np.float64)
    capacity = path.capacity_bps
    rtt, size, p, t0, w_max, b, b_ss, w_1, delack, setup, payload, capacity = np.broadcast_arrays(
        rtt, size, p, t0, w_max, b, b_ss, w_1, delack, setup, payload, capacity
    )
    d = np.ceil(size / payload)
    w_1 = np.minimum(w_1, w_max)

    lossy = p > 0.0
    safe = np.where(lossy, p, 0.25)
    no_loss = np.exp(d * np.log1p(-p))  # (1 - p)^d
    d_ss = (1.0 - no_loss) * (1.0 - safe) / safe + 1.0  # (5)
    d_ss = np.where(lossy, np.minimum(d_ss, d), d)
    gamma = 1.0 + 1.0 / b_ss
    slow_start = rtt * _slow_start_rounds(d_ss=d_ss, w_1=w_1, w_max=w_max, gamma=gamma)
    w_ss = np.minimum(d_ss * (gamma - 1.0) / gamma + w_1 / gamma, w_max)  # (11)

    timeout_s = backoff_factor(loss_rate=safe) * t0 / (1.0 - safe)  # (18), (19)
    q_ss = timeout_probability(loss_rate=safe, window=w_ss)  # (17)
    recovery = (1.0 - no_loss) * (q_ss * timeout_s + (1.0 - q_ss) * rtt)  # (16), (20)

    rate = steady_rate(  # (22), (23)
        loss_rate=safe,
        round_trip_s=rtt,
        retransmission_timeout_s=t0,
        window_segments=w_max,
        segments_per_ack=b,
        delivered=True,
    )
    avoidance = np.where(lossy, (d - d_ss) / rate, 0.0)  # (21), (24)

    bits = size * BITS_PER_BYTE
    expected = setup + slow_start + recovery + avoidance + delack  # (25)
    time = np.maximum(expected, bits / capacity)
    return CardwellPrediction(
        transfer_time_s=time,
        throughput_bps=np.minimum(bits / time, capacity),
        handshake_s=np.array(setup),
        slow_start_s=slow_start,
        loss_recovery_s=recovery,
        congestion_avoidance_s=avoidance,
        delayed_ack_s=np.array(delack),
        slow_start_segments=d_ss,
    )


def _slow_start_rounds(
    *, d_ss: FloatArray, w_1: FloatArray, w_max: FloatArray, gamma: FloatArray
) -> FloatArray:
    """E[T_ss] / RTT (equation 15): a geometric climb, then full windows from W_max on."""
    log_gamma = np.log(gamma)
    free = np.log1p(d_ss * (gamma - 1.0) / w_1) / log_gamma
    window = d_ss * (gamma - 1.0) / gamma + w_1 / gamma
    limited = window > w_max
    cap = np.where(limited, w_max, w_1)
    climbed = (gamma * cap - w_1) / (gamma - 1.0)
    capped = np.log(cap / w_1) / log_gamma + 1.0 + (d_ss - climbed) / cap
    return np.where(limited, capped, free)
