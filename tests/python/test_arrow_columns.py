"""Columns made without pandas are those that pyarrow makes with it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe.arrow_columns import of_values

NUMBERS = st.floats(allow_nan=False)
WHOLE = st.integers(-(2**63), 2**63 - 1)
KINDS: list[st.SearchStrategy[Any]] = [
    NUMBERS,
    NUMBERS.map(np.float64),
    WHOLE,
    st.booleans(),
    st.text(),
]


@given(st.sampled_from(KINDS).flatmap(lambda kind: st.lists(st.none() | kind)))
def test_column_equals_pyarrow_array_for_any_list(values: list[Any]) -> None:
    column = of_values(values)
    column.validate(full=True)
    expected = pa.array(values)
    assert column.type == expected.type
    assert column.equals(expected)


@pytest.mark.parametrize("values", [[1, 2.5, None], [1.0, 2], [float("nan"), None]])
def test_mixed_integers_and_floats_have_pyarrows_type(values: list[float | None]) -> None:
    assert str(of_values(values)) == str(pa.array(values))


def test_pandas_is_not_imported() -> None:
    program = (
        "import sys, pyarrow as pa, bentpipe.arrow_columns as columns\n"
        "of = columns.of_values\n"
        "table = pa.table({'a': of([1.5, None]), 'b': of(['x', 'y'])})\n"
        "assert table.num_rows == 2\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
