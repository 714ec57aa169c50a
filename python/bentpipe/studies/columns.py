"""Columns of a figure or a table, while its rows are collected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bentpipe.studies.evidence import Curve
    from bentpipe.studies.study import Value

# The values of each column, by its name.
Columns = dict[str, list["Value"]]


def empty(*names: str) -> Columns:
    """Return columns without rows."""
    return {name: [] for name in names}


def add(columns: Columns, *values: Value) -> None:
    """Append a row: a value for each column, in their order."""
    for column, value in zip(columns.values(), values, strict=True):
        column.append(value)


def add_row(columns: Columns, row: Mapping[str, Value]) -> None:
    """Append a row by the names of its columns; a name that is new begins a column."""
    for name, value in row.items():
        columns.setdefault(name, []).append(value)


def append(columns: Columns, /, **more: Sequence[Value]) -> None:
    """Append rows that are given as columns of equal length."""
    for name, values in more.items():
        columns.setdefault(name, []).extend(values)


def add_samples(columns: Columns, samples: Curve, /, **keys: Value) -> None:
    """Append a row for each sample of a curve: the same keys in all, the time and the value."""
    fixed = {name: [value] * len(samples.times_s) for name, value in keys.items()}
    append(columns, **fixed, time_s=samples.times_s.tolist(), value=samples.values.tolist())
