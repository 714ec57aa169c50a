"""A run's results as data frames: pandas, polars, xarray."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import xarray as xr

    from bentpipe.results import RunResult
    from bentpipe.series import Series

Table = Literal["flows", "groups", "links", "gateways", "series"]
_TABLES: Final = get_args(Table)


def arrow_table(result: RunResult, table: str) -> pa.Table:
    """Return a table of a result: one row for each flow, group, direction, gateway or sample.

    Raises
    ------
    ValueError
        There is no such table.
    """
    import pyarrow as pa

    from bentpipe.probe_file import tidy

    if table == "series":
        return tidy({name: result.series[name] for name in result.series})
    if table not in _TABLES:
        known = ", ".join(map(repr, _TABLES))
        raise ValueError(f"table must be one of {known}, not {table!r}")
    rows = [_flat(record) for record in getattr(result.summary, table)]
    names = list(dict.fromkeys(name for row in rows for name in row))
    return pa.table({name: [row.get(name) for row in rows] for name in names})


def _flat(record: Any) -> dict[str, Any]:
    """Return a record's fields in one row, without lists: rtt_ms.mean is rtt_ms_mean."""
    row: dict[str, Any] = {}
    for field in fields(record):
        value = getattr(record, field.name)
        if field.name == "extra":
            row.update(_flat_mapping(value))
        elif field.name == "counters":
            row.update({} if value is None else value.total)
        elif field.name == "access":
            own = {} if value is None else _flat(value)
            row.update({f"access_{name}": one for name, one in own.items()})
        elif field.name == "classes":
            for each in value:
                row.update({f"{each.name}_{name}": one for name, one in _flat(each).items()})
                row.pop(f"{each.name}_name")
        elif field.name == "wait_ms":
            row.update({f"wait_ms_{name}": getattr(value, name) for name in _WAIT})
        elif field.name == "rtt_ms":
            row.update({f"rtt_ms_{name}": getattr(value, name) for name in _RTT})
        elif isinstance(value, Mapping):
            row.update(_flat_mapping(value, f"{field.name}_"))
        else:
            row[field.name] = value
    return {name: value for name, value in row.items() if not isinstance(value, list)}


def _flat_mapping(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return nested mappings in one row, under joined names."""
    row: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping):
            row.update(_flat_mapping(value, f"{prefix}{name}_"))
        else:
            row[f"{prefix}{name}"] = value
    return row


_RTT: Final = ("min", "mean", "p95", "max")
_WAIT: Final = ("mean", "p95", "max")


def to_pandas(result: RunResult, table: str) -> pd.DataFrame:
    """Return a table of a result as a pandas DataFrame."""
    return arrow_table(result, table).to_pandas()


def to_polars(result: RunResult, table: str) -> pl.DataFrame:
    """Return a table of a result as a polars DataFrame.

    Raises
    ------
    ImportError
        polars is not installed: it is an optional dependency.
    """
    try:
        import polars as pl
    except ImportError as error:
        raise ImportError("to_polars needs polars: pip install polars") from error
    frame = pl.from_arrow(arrow_table(result, table))
    assert isinstance(frame, pl.DataFrame)
    return frame


def to_xarray(series: Mapping[str, Series]) -> xr.Dataset:
    """Return probes as a Dataset: one variable each over `time_s`, NaN where one has no sample.

    A probe of events, which may have several samples at one time, has its own coordinate:
    `NAME_time_s`.
    """
    import numpy as np
    import xarray as xr

    shared: dict[str, xr.DataArray] = {}
    alone: dict[str, xr.DataArray] = {}
    for name in series:
        each = series[name]
        ascending = bool((np.diff(each.times_s) > 0).all())
        own = not ascending or name.rpartition(".")[2] == "retransmitted"
        dimension = f"{name}_time_s" if own else "time_s"
        array = xr.DataArray(
            each.values,
            dims=[dimension],
            coords={dimension: (dimension, each.times_s, {"units": "s"})},
            attrs={"units": each.unit},
        )
        (alone if own else shared)[name] = array
    arrays = list(shared.values())
    aligned = xr.align(*arrays, join="outer", copy=False) if arrays else ()
    variables = dict(zip(shared, aligned, strict=True)) | alone
    return xr.Dataset({name: variables[name] for name in series})
