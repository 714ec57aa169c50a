"""Columns of Arrow tables, built from buffers.

`pyarrow.array`, `pyarrow.scalar` and `pyarrow.table` import pandas when they are given lists, to
check for pandas objects. That takes a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from numpy.typing import NDArray


def of_numbers(values: NDArray[np.float64 | np.int32], kind: pa.DataType) -> pa.Array:
    """Return a column of numbers that shares the array's memory."""
    content = pa.py_buffer(np.ascontiguousarray(values))
    return pa.Array.from_buffers(kind, len(values), [None, content])


def of_texts(texts: Sequence[str]) -> pa.StringArray:
    """Return a column of texts."""
    encoded = [text.encode() for text in texts]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    content = pa.py_buffer(b"".join(encoded))
    return pa.StringArray.from_buffers(len(texts), pa.py_buffer(ends), content)


def repeated(label: str, count: int) -> pa.DictionaryArray:
    """Return a column that repeats one text `count` times."""
    places = of_numbers(np.zeros(count, dtype=np.int32), pa.int32())
    return pa.DictionaryArray.from_arrays(places, of_texts([label]))


def of_values(values: Sequence[str | int | float | bool | None]) -> pa.Array:
    """Return a column of strings, booleans, or whole and fractional numbers; None is null.

    The column has the type that `pyarrow.array` would give it.
    """
    known = np.array([value is not None for value in values], dtype=bool)
    if not known.any():
        return pa.nulls(len(values))
    if isinstance(values[int(known.argmax())], str):
        texts = of_texts(["" if value is None else str(value) for value in values])
        kind, content = pa.string(), texts.buffers()[1:]
    else:
        present = np.array([value for value in values if value is not None])
        numbers = np.zeros(len(values), dtype=present.dtype)
        numbers[known] = present
        kind = pa.from_numpy_dtype(numbers.dtype)
        bits = numbers.dtype == bool
        content = [pa.py_buffer(np.packbits(numbers, bitorder="little") if bits else numbers)]
    missing = None if known.all() else pa.py_buffer(np.packbits(known, bitorder="little"))
    return pa.Array.from_buffers(kind, len(values), [missing, *content])
