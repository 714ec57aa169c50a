"""Networks for the tests: the paper's cells, random ones, and hypothesis strategies."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from bentpipe.model import AsymmetricPath, obata2000

from .reference import Cell

# obata2000, section 4.2 and the captions of figures 5 and 6.
UPLINKS = [(64e3, 0.25), (64e3, 0.125), (64e3, 0.025), (64e3, 0.03), (16e3, 0.125), (4e3, 0.125)]
WINDOWS_KBYTE = [4, 8, 16, 32, 64, 128, 192]
RANDOM_SEED = 20001116


def paper_cells() -> list[Cell]:
    """Every cell of figures 5 and 6, KByte as 1000 and as 1024 bytes, and W_sat up and down."""
    cells = []
    for kbyte in (1000, 1024):
        for uplink_bps, uplink_delay_s in UPLINKS:
            path = AsymmetricPath(
                downlink_rate_bps=2048e3,
                uplink_rate_bps=uplink_bps,
                downlink_delay_s=0.25,
                uplink_delay_s=uplink_delay_s,
            )
            saturation = float(obata2000.saturation_window_segments(path=path))
            windows = [size * kbyte // 1448 for size in WINDOWS_KBYTE]
            windows += [math.floor(saturation), math.ceil(saturation)]
            cells += [
                Cell(
                    downlink_rate_bps=2048e3,
                    uplink_rate_bps=uplink_bps,
                    downlink_delay_s=0.25,
                    uplink_delay_s=uplink_delay_s,
                    transfer_bytes=1024 * kbyte,
                    window_segments=window,
                )
                for window in windows
            ]
    return cells


def random_cells(count: int, seed: int = RANDOM_SEED) -> list[Cell]:
    """Asymmetric networks over three decades of rates and sizes, two of delays."""
    draw = random.Random(seed)

    def decades(low: float, high: float) -> float:
        return math.exp(draw.uniform(math.log(low), math.log(high)))

    return [
        Cell(
            downlink_rate_bps=decades(64e3, 50e6),
            uplink_rate_bps=decades(4e3, 1e6),
            downlink_delay_s=draw.uniform(0.005, 0.4),
            uplink_delay_s=draw.uniform(0.005, 0.4),
            transfer_bytes=round(decades(10e3, 20e6)),
            window_segments=draw.randint(1, 300),
        )
        for _ in range(count)
    ]


def column(cells: Sequence[Cell], name: str) -> NDArray[np.float64]:
    """One field of all cells."""
    return np.array([getattr(cell, name) for cell in cells], dtype=np.float64)


def path_of(cells: Sequence[Cell]) -> AsymmetricPath:
    """The cells' links as one vectorised path."""
    return AsymmetricPath(
        downlink_rate_bps=column(cells, "downlink_rate_bps"),
        uplink_rate_bps=column(cells, "uplink_rate_bps"),
        downlink_delay_s=column(cells, "downlink_delay_s"),
        uplink_delay_s=column(cells, "uplink_delay_s"),
        segment_payload_bytes=column(cells, "segment_payload_bytes"),
        header_bytes=column(cells, "header_bytes"),
        ack_bytes=column(cells, "ack_bytes"),
        redundancy=column(cells, "redundancy"),
    )


def _decades(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(math.log10(low), math.log10(high)).map(lambda x: float(10.0**x))


@st.composite
def any_path(draw: st.DrawFn) -> AsymmetricPath:
    """Any path that makes sense, and many that don't."""
    return AsymmetricPath(
        downlink_rate_bps=draw(_decades(1e2, 1e11)),
        uplink_rate_bps=draw(_decades(1e2, 1e11)),
        downlink_delay_s=draw(st.one_of(st.just(0.0), _decades(1e-6, 1e2))),
        uplink_delay_s=draw(st.one_of(st.just(0.0), _decades(1e-6, 1e2))),
        segment_payload_bytes=draw(st.integers(1, 65_000)),
        header_bytes=draw(st.integers(0, 120)),
        ack_bytes=draw(st.integers(1, 120)),
        redundancy=draw(st.floats(1.0, 3.0)),
    )


@st.composite
def small_cell(draw: st.DrawFn) -> Cell:
    """A transfer that the packet-level reference finishes quickly."""
    payload = draw(st.sampled_from([100, 536, 1448]))
    return Cell(
        downlink_rate_bps=draw(_decades(1e4, 1e9)),
        uplink_rate_bps=draw(_decades(1e3, 1e8)),
        downlink_delay_s=draw(st.sampled_from([0.0, 0.001, 0.05, 0.1, 0.25])),
        uplink_delay_s=draw(st.floats(0.0, 0.5)),
        transfer_bytes=draw(st.integers(1, 400 * payload)),
        window_segments=draw(st.integers(1, 60)),
        segment_payload_bytes=payload,
        redundancy=draw(st.sampled_from([1.0, 16 / 15])),
        delayed_ack_s=draw(st.sampled_from([0.0, 0.01, 0.04, 0.1, 0.2, 0.5])),
        initial_window_segments=draw(st.integers(1, 12)),
        counts_segments=draw(st.booleans()),
        arrival_wins_ties=draw(st.booleans()),
    )


losses = st.one_of(st.just(0.0), _decades(1e-12, 0.49))
sizes = _decades(1.0, 1e10).map(round)
windows = st.integers(1, 5000)
