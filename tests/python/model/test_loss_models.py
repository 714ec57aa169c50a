"""Mathis, Padhye, Cardwell, Lakshman: values that can be derived, limits, shapes."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.model import AsymmetricPath, cardwell, cubic, hybla, lakshman, mathis, padhye

PATH = AsymmetricPath(
    downlink_rate_bps=10e6, uplink_rate_bps=1e6, downlink_delay_s=0.25, uplink_delay_s=0.25
)


def test_mathis_constants() -> None:
    """C is sqrt(3/2) with an ACK a segment, sqrt(3/4) with one for two."""
    rate = mathis.segment_rate(round_trip_s=0.1, loss_rate=0.01, segments_per_ack=[1, 2])
    assert rate == pytest.approx([math.sqrt(1.5) / 0.01, math.sqrt(0.75) / 0.01])


def test_padhye_by_hand() -> None:
    """The full model at p = 1/2, b = 1, no window limit: every term a small fraction.

    E[W] = 1 + sqrt(8/3 + 1); below three segments every loss is a timeout, Q = 1, else (24).
    """
    window = 1 + math.sqrt(8 / 3 + 1)
    assert window < 3
    backoff = 1 + 0.5 + 0.5 + 0.5 + 0.5 + 0.5 + 0.5
    expected = (1 + window + 2) / (0.1 * (window / 2 + 1) + 0.3 * backoff / 0.5)
    rate = padhye.send_rate(
        round_trip_s=0.1, loss_rate=0.5, retransmission_timeout_s=0.3, segments_per_ack=1
    )
    assert rate == pytest.approx(expected)


def test_padhye_approximate_by_hand() -> None:
    """p = 0.01, b = 2: sqrt(4p/3) RTT and 3 sqrt(6p/8) p (1 + 32 p^2) T0."""
    loss = 0.2 * math.sqrt(0.04 / 3)
    timeouts = 1.0 * 3 * math.sqrt(0.06 / 8) * 0.01 * 1.0032
    rate = padhye.send_rate(
        round_trip_s=0.2, loss_rate=0.01, retransmission_timeout_s=1.0, form="approximate"
    )
    assert rate == pytest.approx(1 / (loss + timeouts))


@given(p=st.floats(1e-9, 1e-7))
def test_padhye_tends_to_mathis(p: float) -> None:
    """Light loss: timeouts vanish and both forms become sqrt(3 / 2bp) / RTT."""
    arguments = {"round_trip_s": 0.1, "loss_rate": p, "segments_per_ack": 2.0}
    expected = mathis.segment_rate(**arguments)
    forms: list[padhye.Form] = ["full", "approximate", "delivered"]
    for form in forms:
        rate = padhye.send_rate(**arguments, retransmission_timeout_s=0.2, form=form)
        assert rate == pytest.approx(float(expected), rel=0.01)


def test_padhye_without_loss_is_the_window() -> None:
    rates = padhye.send_rate(
        round_trip_s=0.5,
        loss_rate=[0.0, 1e-15, 1e-12],
        retransmission_timeout_s=1.0,
        window_segments=10,
    )
    assert rates == pytest.approx([20.0, 20.0, 20.0], rel=1e-6)


@given(w=st.floats(3.0, 1e6), p=st.floats(1e-15, 0.99))
def test_timeout_probability_tends_to_three_over_w(w: float, p: float) -> None:
    q = float(padhye.timeout_probability(loss_rate=np.array(p), window=np.array(w)))
    assert 0.0 < q <= 1.0
    light = float(padhye.timeout_probability(loss_rate=np.array(1e-14), window=np.array(w)))
    assert light == pytest.approx(min(1.0, 3.0 / w), rel=1e-4)


@given(p=st.floats(1e-6, 0.3), w=st.integers(1, 500))
def test_rates_fall_with_loss_and_rise_with_the_window(p: float, w: int) -> None:
    approximate = padhye.send_rate(
        round_trip_s=0.1,
        loss_rate=[p, p * 1.1, p],
        retransmission_timeout_s=0.4,
        window_segments=[w, w, w + 1],
        form="approximate",
    )
    assert approximate[1] <= approximate[0] <= approximate[2]
    law = mathis.segment_rate(round_trip_s=[0.1, 0.1, 0.2], loss_rate=[p, p * 1.1, p])
    assert law[1] < law[0]
    assert law[2] < law[0]


@given(d=st.integers(1, 3000), w_1=st.integers(1, 10))
def test_cardwell_without_loss_is_deterministic_slow_start(d: int, w_1: int) -> None:
    """RTT log_gamma(d (gamma - 1) / w_1 + 1), gamma = 3/2, then the handshake's RTT."""
    path = AsymmetricPath(
        downlink_rate_bps=1e12, uplink_rate_bps=1e12, downlink_delay_s=0.25, uplink_delay_s=0.25
    )
    expected = 0.5 * math.log(d * 0.5 / w_1 + 1) / math.log(1.5)
    for p in (0.0, 1e-13):
        result = cardwell.transfer(
            path=path,
            transfer_bytes=1448 * d,
            loss_rate=p,
            retransmission_timeout_s=1.0,
            initial_window_segments=w_1,
            round_trip_s=0.5,
        )
        assert result.slow_start_s == pytest.approx(expected, rel=1e-6)
        assert result.transfer_time_s == pytest.approx(expected + 0.5 + 0.1, rel=1e-6)


def test_cardwell_sends_one_full_window_per_round_trip() -> None:
    """Beyond W_max every further W_max segments take one RTT (equation 15)."""
    result = cardwell.transfer(
        path=PATH,
        transfer_bytes=1448.0 * np.array([1000, 1020]),
        loss_rate=0.0,
        retransmission_timeout_s=1.0,
        window_segments=20,
        round_trip_s=0.5,
    )
    assert np.diff(result.slow_start_s) == pytest.approx(0.5)


def test_cardwell_handshake() -> None:
    """Equation 4 at p = 0.1 each way: RTT + 3 (9/8 + 9/8 - 2)."""
    time = cardwell.handshake_s(round_trip_s=0.2, forward_loss_rate=0.1, reverse_loss_rate=0.1)
    assert time == pytest.approx(0.2 + 3 * 0.25)


def test_cardwell_long_transfer_has_the_steady_rate() -> None:
    """The published structure: far beyond slow start, PFTK's rate decides."""
    result = cardwell.transfer(
        path=PATH, transfer_bytes=1448 * 1e6, loss_rate=0.02, retransmission_timeout_s=1.0
    )
    forms: list[padhye.Form] = ["delivered", "full"]
    steady, sent = (
        float(
            padhye.throughput_bps(
                path=PATH, loss_rate=0.02, retransmission_timeout_s=1.0, form=form
            )
        )
        for form in forms
    )
    assert result.throughput_bps == pytest.approx(steady, rel=0.001)
    assert steady < sent


@given(beta=st.floats(0.0, 1.0))
def test_lakshman_closed_form(beta: float) -> None:
    """Three quarters of the link without a buffer, all of it with one bandwidth-delay product."""
    pipe = float(PATH.round_trip_s / PATH.packet_time_s)
    result = lakshman.throughput(path=PATH, buffer_segments=beta * pipe)
    share = 0.75 * (1 + beta) ** 2 / (1 + beta + beta**2)
    assert result.throughput_bps == pytest.approx(share * float(PATH.capacity_bps), rel=1e-9)
    cycle = pipe * float(PATH.round_trip_s) * (1 + beta + beta**2) / 2
    assert result.cycle_time_s == pytest.approx(cycle, rel=1e-9)


def test_lakshman_below_the_pipe_is_three_quarters_of_the_window() -> None:
    result = lakshman.throughput(path=PATH, buffer_segments=50, maximum_window_segments=20)
    expected = 0.75 * 20 * 1448 * 8 / float(PATH.round_trip_s)
    assert result.throughput_bps == pytest.approx(expected)


def test_lakshman_slow_uplink() -> None:
    """Dropped ACKs slow the climb k-fold but not the average; kept ones bound the rate."""
    path = AsymmetricPath(
        downlink_rate_bps=10e6, uplink_rate_bps=50e3, downlink_delay_s=0.1, uplink_delay_s=0.1
    )
    assert float(path.asymmetry) > 6
    pipe = float(path.round_trip_s / path.packet_time_s)
    dropping = lakshman.throughput(path=path, buffer_segments=pipe)
    keeping = lakshman.throughput(path=path, buffer_segments=pipe, ack_queue_unlimited=True)
    assert dropping.throughput_bps == pytest.approx(float(path.capacity_bps))
    per_ack = 1448 * 8 / float(path.ack_time_s)
    assert keeping.throughput_bps == pytest.approx(per_ack)


def test_cardwell_slow_start_growth_is_separate_from_avoidance() -> None:
    """At the same steady rate, a window that doubles a round sends 1000 segments in 10, not 17."""

    def of(per_ack: float | None, loss_rate: float) -> cardwell.CardwellPrediction:
        return cardwell.transfer(
            path=PATH,
            transfer_bytes=1448 * 1000,
            loss_rate=loss_rate,
            retransmission_timeout_s=1.0,
            slow_start_segments_per_ack=per_ack,
        )

    slow, fast = of(None, 0.0).slow_start_s, of(1, 0.0).slow_start_s
    assert float(fast / PATH.round_trip_s) == pytest.approx(math.log2(1001))
    assert float(slow / PATH.round_trip_s) == pytest.approx(math.log(501, 1.5))
    assert of(2, 0.01).transfer_time_s == of(None, 0.01).transfer_time_s
    assert of(1, 0.01).congestion_avoidance_s == of(2, 0.01).congestion_avoidance_s


def test_cubic_has_the_constant_of_rfc_9438_and_renos_region() -> None:
    """1.054 (RTT / p)^(3/4) segments a round trip, or sqrt(3/2p) where that is more."""
    p = np.array([1e-2, 1e-3, 1e-4, 1e-6])
    for rtt in (0.01, 0.1, 0.6):
        concave, reno = 1.054 * (rtt / p) ** 0.75, np.sqrt(1.5 / p)
        window = cubic.segment_rate(round_trip_s=rtt, loss_rate=p) * rtt
        assert window == pytest.approx(np.maximum(concave, reno), rel=1e-3)
    # RFC 9438, table 1: at 0.1 s and 1e-4 losses Reno's window is 120, CUBIC's 187.
    assert float(cubic.segment_rate(round_trip_s=0.1, loss_rate=1e-4)) * 0.1 == pytest.approx(
        187, rel=0.01
    )


def test_hybla_rate_equals_reno_at_the_reference_rtt() -> None:
    near = mathis.segment_rate(round_trip_s=0.025, loss_rate=1e-3, segments_per_ack=1)
    assert hybla.segment_rate(round_trip_s=0.6, loss_rate=1e-3) == pytest.approx(float(near))
    nearer = mathis.segment_rate(round_trip_s=0.01, loss_rate=1e-3, segments_per_ack=1)
    assert hybla.segment_rate(round_trip_s=0.01, loss_rate=1e-3) == pytest.approx(float(nearer))
    far = hybla.segment_rate(round_trip_s=0.6, loss_rate=1e-3, reference_rtt_s=0.05)
    assert far == pytest.approx(float(near) / 2)


def test_light_loss_laws_are_capped_at_the_link_rate() -> None:
    p = np.array([[0.0], [1e-4]])
    for rates in (
        cubic.throughput_bps(path=PATH, loss_rate=p, round_trip_s=np.array([0.1, 0.5])),
        hybla.throughput_bps(path=PATH, loss_rate=p, reference_rtt_s=np.array([0.025, 0.5])),
    ):
        assert rates.shape == (2, 2)
        assert rates[0] == pytest.approx(float(PATH.capacity_bps))
        assert np.all(rates[1] <= rates[0])
    for broken in ({"loss_rate": 1.0}, {"loss_rate": 0.1, "round_trip_s": 0.0}):
        with pytest.raises(ValueError, match=next(reversed(broken))):
            cubic.throughput_bps(path=PATH, **broken)
        with pytest.raises(ValueError, match=next(reversed(broken))):
            hybla.throughput_bps(path=PATH, **broken)
