"""Equations 1 to 13, by hand and by property."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.model import AsymmetricPath, obata2000

from .networks import column, paper_cells, path_of, random_cells
from .reference import transfer_time_s

# Figure 5: 2048 kbit/s and 250 ms down, 64 kbit/s and 125 ms up.
FIGURE_5 = AsymmetricPath(
    downlink_rate_bps=2048e3, uplink_rate_bps=64e3, downlink_delay_s=0.25, uplink_delay_s=0.125
)
P = 1500 * 8 / 2048e3
ACK = 52 * 8 / 64e3


def test_round_trips_are_equations_3_and_4() -> None:
    rtt = obata2000.round_trip_s(path=FIGURE_5, window_segments=[1, 2, 30])
    assert rtt == pytest.approx([0.375 + P + ACK + 0.2, 0.375 + 2 * P + ACK, 0.375 + 2 * P + ACK])


def test_saturation_window_is_equation_13() -> None:
    expected = 2048e3 * (0.25 + 0.125 + 52 * 8 / 64e3) / (1500 * 8) + 2
    assert obata2000.saturation_window_segments(path=FIGURE_5) == pytest.approx(expected)


def test_large_data_by_hand() -> None:
    """Window 8: slow start 1 2 3 5, then eights; equations 7 to 10 written out."""
    full = 0.375 + 2 * P + ACK
    slow_s = (0.375 + P + ACK + 0.2) + 3 * full
    rest_bytes = 1_024_000 - 11 * 1448
    expected = (
        rest_bytes // (8 * 1448) * full + slow_s + rest_bytes % (8 * 1448) * 8 / 2048e3 + 0.25
    )
    result = obata2000.transfer(path=FIGURE_5, transfer_bytes=1_024_000, window_segments=8)
    assert result.transfer_time_s == pytest.approx(expected)
    assert result.slow_start_bytes == 11 * 1448
    assert result.slow_start_time_s == pytest.approx(slow_s)
    assert result.period_s == pytest.approx(full)
    assert result.large_data
    assert result.throughput_bps == pytest.approx(1_024_000 * 8 / expected)


def test_small_data_by_hand() -> None:
    """Four segments: rounds of one and two, then one segment more: equations 11 and 12."""
    result = obata2000.transfer(path=FIGURE_5, transfer_bytes=4 * 1448, window_segments=44)
    expected = (0.375 + P + ACK + 0.2) + (0.375 + 2 * P + ACK) + 1448 * 8 / 2048e3 + 0.25
    assert result.transfer_time_s == pytest.approx(expected)
    assert not result.large_data


def test_slow_uplink_counts_the_previous_rounds_acks() -> None:
    """Equation 6 at 4 kbit/s: 22 segments make 11 ACKs of 104 ms."""
    path = AsymmetricPath(
        downlink_rate_bps=2048e3, uplink_rate_bps=4e3, downlink_delay_s=0.25, uplink_delay_s=0.125
    )
    result = obata2000.transfer(path=path, transfer_bytes=1e6, window_segments=[22, 21])
    assert result.period_s == pytest.approx([11 * 0.104, 11 * 0.104])


def test_redundancy_slows_the_downlink_by_alpha() -> None:
    path = AsymmetricPath(
        downlink_rate_bps=64e3,
        uplink_rate_bps=64e3,
        downlink_delay_s=0.25,
        uplink_delay_s=0.25,
        redundancy=16 / 15,
    )
    result = obata2000.transfer(path=path, transfer_bytes=1_024_000, window_segments=22)
    assert result.period_s == pytest.approx(22 * 16 / 15 * 1500 * 8 / 64e3)
    assert result.throughput_bps < 64e3 * 1448 / (1500 * 16 / 15)


def test_8_kbyte_at_64_kbps_stays_below_the_link() -> None:
    """In bytes instead of segments, the window would give 68.8 kbit/s on this 64 kbit/s link."""
    path = AsymmetricPath(
        downlink_rate_bps=64e3, uplink_rate_bps=64e3, downlink_delay_s=0.25, uplink_delay_s=0.25
    )
    window = obata2000.window_segments(window_bytes=8000, segment_payload_bytes=1448)
    assert window == 5
    result = obata2000.transfer(path=path, transfer_bytes=1_024_000, window_segments=window)
    assert result.throughput_bps < path.capacity_bps


@given(window=st.integers(2, 400), kbits_up=st.integers(1, 500))
def test_small_and_large_data_formulas_agree_at_the_boundary(window: int, kbits_up: int) -> None:
    """Exactly F_slow bytes: both sections of the paper give t_slow; one more adds tau_sat."""
    path = AsymmetricPath(
        downlink_rate_bps=2048e3,
        uplink_rate_bps=kbits_up * 1e3,
        downlink_delay_s=0.25,
        uplink_delay_s=0.125,
    )
    slow = obata2000.transfer(path=path, transfer_bytes=1e9, window_segments=window)
    boundary = float(slow.slow_start_bytes)
    at = obata2000.transfer(path=path, transfer_bytes=boundary, window_segments=window)
    wider = obata2000.transfer(path=path, transfer_bytes=boundary, window_segments=10 * window)
    after = obata2000.transfer(path=path, transfer_bytes=boundary + 1, window_segments=window)
    assert at.transfer_time_s == pytest.approx(float(slow.slow_start_time_s))
    assert wider.transfer_time_s == pytest.approx(float(at.transfer_time_s))
    assert after.transfer_time_s == pytest.approx(float(at.transfer_time_s) + 0.25 + 8 / 2048e3)


@given(window=st.integers(2, 200))
def test_long_run_rate_is_monotonic_in_even_windows(window: int) -> None:
    """Even windows only: equation 6 charges 3 segments two ACKs, so 3 can be slower than 2."""
    windows = np.array([2 * window, 2 * window + 2])
    for uplink_bps in (64e3, 4e3):
        path = AsymmetricPath(
            downlink_rate_bps=2048e3,
            uplink_rate_bps=uplink_bps,
            downlink_delay_s=0.25,
            uplink_delay_s=0.125,
        )
        period = obata2000.transfer(path=path, transfer_bytes=1e6, window_segments=windows).period_s
        rate = windows / period
        assert rate[1] >= rate[0] * (1 - 1e-12)


def test_arrays_and_scalars_agree() -> None:
    cells = random_cells(50, seed=3)
    sizes, windows = column(cells, "transfer_bytes"), column(cells, "window_segments")
    together = obata2000.transfer(
        path=path_of(cells), transfer_bytes=sizes, window_segments=windows
    ).transfer_time_s
    alone = [
        float(
            obata2000.transfer(
                path=path_of([cell]),
                transfer_bytes=cell.transfer_bytes,
                window_segments=cell.window_segments,
            ).transfer_time_s[0]
        )
        for cell in cells
    ]
    assert together.tolist() == alone


def test_formula_error_against_simulation_is_unchanged() -> None:
    """Frozen: the paper calls them completely consistent; odd windows are off by up to 23%."""
    cells = paper_cells()
    predicted = obata2000.transfer(
        path=path_of(cells),
        transfer_bytes=column(cells, "transfer_bytes"),
        window_segments=column(cells, "window_segments"),
    ).throughput_bps
    simulated = np.array([cell.transfer_bytes * 8 / transfer_time_s(cell) for cell in cells])
    error = predicted / simulated - 1
    odd = column(cells, "window_segments") % 2 == 1
    assert np.max(error) == pytest.approx(0.226, abs=0.001)
    assert np.min(error) == pytest.approx(-0.077, abs=0.001)
    assert np.max(np.abs(error[~odd])) == pytest.approx(0.038, abs=0.001)


@pytest.mark.parametrize(
    ("name", "value"),
    [("transfer_bytes", 0), ("window_segments", 0.5), ("delayed_ack_s", -1)],
)
def test_invalid_arguments_are_refused(name: str, value: float) -> None:
    arguments = {"transfer_bytes": 1e6, "window_segments": 4.0, "delayed_ack_s": 0.2} | {
        name: value
    }
    with pytest.raises(ValueError, match=name):
        obata2000.transfer(path=FIGURE_5, **arguments)


def test_path_refuses_mismatched_shapes() -> None:
    with pytest.raises(ValueError, match=r"downlink_rate_bps \(2,\)"):
        AsymmetricPath(
            downlink_rate_bps=[1e6, 2e6],
            uplink_rate_bps=[1e3, 2e3, 3e3],
            downlink_delay_s=0.1,
            uplink_delay_s=0.1,
        )
    with pytest.raises(ValueError, match="redundancy"):
        AsymmetricPath(
            downlink_rate_bps=1e6,
            uplink_rate_bps=1e6,
            downlink_delay_s=0.1,
            uplink_delay_s=0.1,
            redundancy=0.9,
        )
