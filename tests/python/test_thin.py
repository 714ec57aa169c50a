"""Thinning keeps what a plot shows."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.plot.thin import thin_line, thin_points


@given(
    st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=400),
    st.integers(1, 20),
)
def test_thinned_line_keeps_ends_and_extremes(values: list[float], columns: int) -> None:
    y = np.array(values)
    x = np.arange(len(y), dtype=np.float64) ** 1.5
    thin_x, thin_y = thin_line(x, y, columns=columns)
    assert set(zip(thin_x, thin_y, strict=True)) <= set(zip(x, y, strict=True))
    assert np.all(np.diff(thin_x) > 0)
    assert (thin_x[0], thin_x[-1]) == (x[0], x[-1])
    assert (thin_y.min(), thin_y.max()) == (y.min(), y.max())
    assert len(thin_x) <= max(4 * columns, 4)


@given(st.integers(0, 2**32 - 1))
def test_thinned_points_are_a_subset_in_every_occupied_cell(seed: int) -> None:
    random = np.random.default_rng(seed)
    x, y = random.random(5000), random.random(5000) ** 3
    thin_x, thin_y = thin_points(x, y, columns=20, rows=10)
    assert len(thin_x) <= 200
    assert set(zip(thin_x, thin_y, strict=True)) <= set(zip(x, y, strict=True))


def test_few_points_are_not_thinned() -> None:
    x = np.array([1.0, 1.0, 2.0])
    y = np.array([3.0, 5.0, 4.0])
    for thin in (thin_line, thin_points):
        same_x, same_y = thin(x, y)
        assert same_x is x
        assert same_y is y
