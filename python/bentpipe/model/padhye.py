"""PFTK: throughput of a long Reno transfer with fast retransmit and timeouts.

J. Padhye, V. Firoiu, D. Towsley, J. Kurose, "Modeling TCP Throughput: A Simple Model and its
Empirical Validation", SIGCOMM 1998; journal version IEEE/ACM ToN 8(2), 2000.

Rounds of one RTT; losses are correlated within a round and independent between rounds. Symbols:
p loss indication rate, b segments per ACK, T0 first retransmission timeout, W_m advertised window.
Equation numbers are the journal's, as usually cited; its text was not at hand. The approximate
form agrees with RFC 3448 section 3.1 where its min(1, 3 sqrt(3bp/8)) is below 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from ._arrays import FloatArray, at_least, positive, probability

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .path import AsymmetricPath

Form: TypeAlias = Literal["full", "approximate", "delivered"]
"""B(p), equation 32; B(p), equation 33; T(p), what arrives of B(p)'s segments."""


def expected_window(*, loss_rate: FloatArray, segments_per_ack: FloatArray) -> FloatArray:
    """E[W_u], mean window at a loss indication without advertised limit, segments (equation 13).

    Infinite where `loss_rate` is 0. Shared with Cardwell et al. (their equation 23).
    """
    p, b = loss_rate, segments_per_ack
    c = (2.0 + b) / (3.0 * b)
    with np.errstate(divide="ignore"):
        return np.asarray(c + np.sqrt(8.0 * (1.0 - p) / (3.0 * b * p) + c * c))


def timeout_probability(*, loss_rate: FloatArray, window: FloatArray) -> FloatArray:
    """Q(p, w), probability that a loss indication in a window of w is a timeout (equation 24).

    min(1, (1 - q^3) (1 + q^3 (1 - q^(w-3))) / (1 - q^w)) with q = 1 - p. For p = 0 its limit,
    min(1, 3 / w). Fewer than three segments cannot raise three duplicate ACKs: 1.
    """
    # 1 - q^n through expm1 and log1p: at p = 1e-12 the plain form has no digits left.
    log_q = np.log1p(-loss_rate)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        lost_3 = -np.expm1(3.0 * log_q)
        lost_w = -np.expm1(window * log_q)
        lost_after_3 = -np.expm1((window - 3.0) * log_q)
        q_hat = lost_3 * (1.0 + np.exp(3.0 * log_q) * lost_after_3) / lost_w
    limit = 3.0 / window
    q_hat = np.where(lost_w > 0.0, q_hat, limit)
    return np.where(window <= 3.0, 1.0, np.minimum(1.0, q_hat))


def backoff_factor(*, loss_rate: FloatArray) -> FloatArray:
    """f(p) = 1 + p + 2p^2 + 4p^3 + 8p^4 + 16p^5 + 32p^6, exponential backoff to 64 T0 (eq 29)."""
    p = loss_rate
    terms = [2.0 ** max(k - 1, 0) * p**k for k in range(7)]
    return np.asarray(sum(terms), dtype=np.float64)


def send_rate(
    *,
    round_trip_s: ArrayLike,
    loss_rate: ArrayLike,
    retransmission_timeout_s: ArrayLike,
    window_segments: ArrayLike = np.inf,
    segments_per_ack: ArrayLike = 2.0,
    form: Form = "full",
) -> FloatArray:
    """Segments per second: the full model (32), the approximate one (33), or what arrives.

    Parameters
    ----------
    round_trip_s : array_like
        RTT, seconds, above 0.
    loss_rate : array_like
        p, loss indications per segment sent, in [0, 1).
    retransmission_timeout_s : array_like
        T0, seconds, above 0.
    window_segments : array_like, default inf
        W_m, segments, at least 1.
    segments_per_ack : array_like, default 2
        b, at least 1.
    form : {"full", "approximate", "delivered"}
        Equation 32, equation 33, or 32 with only what arrives: T(p).

    Returns
    -------
    ndarray of float
        Broadcast shape; W_m / RTT where `loss_rate` is 0. No link in it: see `throughput_bps`.

    Notes
    -----
    B(p) counts every segment sent, lost ones and repeats too; "delivered" does not. The forms other
    than the approximate one have a small step where E[W_u] crosses W_m.
    """
    rtt = positive("round_trip_s", round_trip_s)
    p = probability("loss_rate", loss_rate)
    t0 = positive("retransmission_timeout_s", retransmission_timeout_s)
    limit = at_least("window_segments", window_segments, 1.0)
    b = at_least("segments_per_ack", segments_per_ack, 1.0)
    if form == "approximate":
        loss_cost = rtt * np.sqrt(2.0 * b * p / 3.0)
        timeouts = t0 * np.minimum(1.0, 3.0 * np.sqrt(3.0 * b * p / 8.0)) * p * (1 + 32.0 * p * p)
        with np.errstate(divide="ignore"):
            return np.minimum(limit / rtt, 1.0 / (loss_cost + timeouts))  # (33)
    if form not in ("full", "delivered"):
        raise ValueError(f'form must be "full", "approximate" or "delivered", got {form!r}')

    p, rtt, t0, limit, b = np.broadcast_arrays(p, rtt, t0, limit, b)
    safe = np.where(p > 0.0, p, 0.5)
    rate = steady_rate(
        loss_rate=safe,
        round_trip_s=rtt,
        retransmission_timeout_s=t0,
        window_segments=limit,
        segments_per_ack=b,
        delivered=form == "delivered",
    )
    return np.where(p > 0.0, rate, limit / rtt)


def steady_rate(
    *,
    loss_rate: FloatArray,
    round_trip_s: FloatArray,
    retransmission_timeout_s: FloatArray,
    window_segments: FloatArray,
    segments_per_ack: FloatArray,
    delivered: bool,
) -> FloatArray:
    """B(p) of equation 32, or the rate T(p) at which segments arrive; unchecked, loss above 0.

    T(p) is what Cardwell et al. use (their equation 22). Between a loss and its detection a
    window's worth is sent, of which half arrives: W becomes W/2, Q/(1-p) becomes Q.
    """
    p, b = loss_rate, segments_per_ack
    free = expected_window(loss_rate=p, segments_per_ack=b)
    limited = free >= window_segments
    window = np.where(limited, window_segments, free)
    q_hat = timeout_probability(loss_rate=p, window=window)
    after_loss = window / 2.0 + q_hat if delivered else window + q_hat / (1.0 - p)
    rounds = np.where(
        limited, b / 8.0 * window + (1.0 - p) / (p * window) + 2.0, b / 2.0 * window + 1.0
    )
    backoff_s = backoff_factor(loss_rate=p) * retransmission_timeout_s / (1.0 - p)
    return ((1.0 - p) / p + after_loss) / (round_trip_s * rounds + q_hat * backoff_s)


def throughput_bps(
    *,
    path: AsymmetricPath,
    loss_rate: ArrayLike,
    retransmission_timeout_s: ArrayLike,
    window_segments: ArrayLike = np.inf,
    segments_per_ack: ArrayLike = 2.0,
    round_trip_s: ArrayLike | None = None,
    form: Form = "full",
) -> FloatArray:
    """Application bits per second of a long transfer, at most what the downlink carries.

    Parameters
    ----------
    path : AsymmetricPath
    loss_rate, retransmission_timeout_s, window_segments, segments_per_ack, form
        As in `send_rate`.
    round_trip_s : array_like, optional
        As in `mathis.throughput_bps`.

    Returns
    -------
    ndarray of float
        Broadcast shape.

    Notes
    -----
    Valid for long transfers (start-up ignored), 0 <= p < 1, measured by the authors to p of about
    0.3; RTT independent of the window (not so where the flow fills the downlink itself), an
    uplink that keeps up with the ACKs.
    """
    rate = send_rate(
        round_trip_s=path.round_trip_or(round_trip_s),
        loss_rate=loss_rate,
        retransmission_timeout_s=retransmission_timeout_s,
        window_segments=window_segments,
        segments_per_ack=segments_per_ack,
        form=form,
    )
    return path.goodput_bps(rate)
