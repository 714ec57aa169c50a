"""No prediction exceeds the link, for any input; and what `limits` says of a transfer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.model import (
    AsymmetricPath,
    cardwell,
    delayed_ack,
    lakshman,
    limits,
    mathis,
    obata2000,
    padhye,
)

from .networks import any_path, column, losses, path_of, random_cells, sizes, windows

timers = st.sampled_from([0.0, 0.04, 0.2, 5.0])


@given(path=any_path(), size=sizes, window=windows, timer=timers)
def test_obata2000_stays_below_the_link(
    path: AsymmetricPath, size: int, window: int, timer: float
) -> None:
    result = obata2000.transfer(
        path=path, transfer_bytes=size, window_segments=window, delayed_ack_s=timer
    )
    assert 0 < result.throughput_bps <= path.capacity_bps
    assert np.isfinite(result.transfer_time_s)


@given(path=any_path(), size=st.integers(1, 1_000_000), window=st.integers(1, 200), timer=timers)
def test_delayed_ack_stays_below_the_link(
    path: AsymmetricPath, size: int, window: int, timer: float
) -> None:
    segments = np.ceil(size / np.asarray(path.segment_payload_bytes))
    size = int(size if segments < 20_000 else 20_000)
    result = delayed_ack.transfer(
        path=path, transfer_bytes=size, window_segments=window, delayed_ack_s=timer
    )
    assert 0 < result.throughput_bps <= path.capacity_bps
    assert np.isfinite(result.transfer_time_s)


@given(
    path=any_path(),
    size=sizes,
    window=windows,
    p=losses,
    timeout=st.floats(1e-3, 100.0),
    b=st.floats(1.0, 8.0),
    rtt=st.one_of(st.none(), st.floats(1e-6, 1e3)),
)
def test_loss_models_stay_below_the_link(
    path: AsymmetricPath,
    size: int,
    window: int,
    p: float,
    timeout: float,
    b: float,
    rtt: float | None,
) -> None:
    rates = [mathis.throughput_bps(path=path, loss_rate=p, segments_per_ack=b, round_trip_s=rtt)]
    forms: list[padhye.Form] = ["full", "approximate", "delivered"]
    rates += [
        padhye.throughput_bps(
            path=path,
            loss_rate=p,
            retransmission_timeout_s=timeout,
            window_segments=window,
            segments_per_ack=b,
            round_trip_s=rtt,
            form=form,
        )
        for form in forms
    ]
    rates.append(
        cardwell.transfer(
            path=path,
            transfer_bytes=size,
            loss_rate=p,
            retransmission_timeout_s=timeout,
            window_segments=window,
            segments_per_ack=b,
            round_trip_s=rtt,
        ).throughput_bps
    )
    rates += [
        lakshman.throughput(
            path=path,
            buffer_segments=window,
            segments_per_ack=b,
            ack_queue_unlimited=unlimited,
        ).throughput_bps
        for unlimited in (False, True)
    ]
    for rate in rates:
        assert 0 < rate <= path.capacity_bps


@given(path=any_path(), size=sizes, window=windows, timer=timers)
def test_lowest_limit_is_named(path: AsymmetricPath, size: int, window: int, timer: float) -> None:
    result = limits(path=path, transfer_bytes=size, window_segments=window, delayed_ack_s=timer)
    by_name = {
        "window": result.window_bps,
        "downlink": result.downlink_bps,
        "uplink ACKs": result.uplink_acks_bps,
        "transfer size": result.transfer_size_bps,
    }
    assert by_name[str(result.binding)] == result.binding_bps
    assert result.binding_bps == min(by_name.values())


@pytest.mark.parametrize(
    ("uplink_bps", "window", "size", "expected"),
    [
        (64e3, 11, 1_024_000, "window"),
        (64e3, 500, 100_000_000, "downlink"),
        (4e3, 132, 1_024_000, "uplink ACKs"),
        (64e3, 132, 20_000, "transfer size"),
    ],
)
def test_lowest_limit_of_figures_5_and_6(
    uplink_bps: float, window: int, size: int, expected: str
) -> None:
    path = AsymmetricPath(
        downlink_rate_bps=2048e3,
        uplink_rate_bps=uplink_bps,
        downlink_delay_s=0.25,
        uplink_delay_s=0.125,
    )
    result = limits(path=path, transfer_bytes=size, window_segments=window)
    assert result.binding == expected


def test_transfers_stay_within_window_downlink_and_ack_limits() -> None:
    """The three rate limits bound the exact recurrence.

    Give or take the initial round: a window that is sent before any ACK has been paid for.
    """
    cells = random_cells(300, seed=5)
    path = path_of(cells)
    size, window = column(cells, "transfer_bytes"), column(cells, "window_segments")
    exact = delayed_ack.transfer(path=path, transfer_bytes=size, window_segments=window)
    bounds = limits(path=path, transfer_bytes=size, window_segments=window)
    cyclic = exact.cycle_rounds > 0
    rate = np.where(
        cyclic,
        exact.cycle_segments * path.payload_bits / exact.cycle_time_s,
        0.0,
    )
    for bound in (bounds.window_bps, bounds.downlink_bps, bounds.uplink_acks_bps):
        assert np.all(rate <= bound * (1 + 1e-9))
    assert np.all(exact.throughput_bps <= bounds.downlink_bps)
