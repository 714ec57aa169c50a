"""A sweep's results as an xarray Dataset."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import xarray as xr

from bentpipe.sweeps.records import FLOW, GATEWAY, GROUP, LINK, RUN

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bentpipe.sweeps.outcome import SweepResult

_UNITS: Final = {
    "_s": "s",
    "_ms": "ms",
    "_bps": "bit/s",
    "_bytes": "B",
    "_packets": "packets",
    "_segments": "segments",
}


def dataset_of(result: SweepResult) -> xr.Dataset:
    """Return the results with the axes, `flow`, `group`, `link` and `gateway` as dimensions."""
    sweep = result.sweep
    variables: dict[Hashable, Any] = {}
    coordinates: dict[Hashable, Any] = {}
    for axis in sweep.axes:
        coordinates[axis.name] = (axis.name, _coordinate(axis.coordinates), _units(axis.name))
        for variable in axis.variables:
            attributes = {"key": variable.key, **_units(variable.name)}
            coordinates[variable.name] = (
                axis.name,
                _coordinate(variable.coordinates),
                attributes,
            )
    dimensions = [axis.name for axis in sweep.axes]
    for kind in (RUN, FLOW, GROUP, LINK, GATEWAY):
        rows = result.rows(kind)
        places, names = _places(rows, kind)
        if kind != RUN and names:
            coordinates[kind] = (kind, _coordinate(names))
        for column in rows.schema.names:
            if column in {"cell", "name", *sweep.columns()} or (kind != RUN and column == "seed"):
                continue
            name = column if kind in (RUN, FLOW) else f"{kind}_{column}"
            if name in variables or name in coordinates:
                name = f"{kind}_{column}"
            values = _spread(rows, column, places, shape=(len(sweep), max(len(names), 1)))
            shape = sweep.shape if kind == RUN else (*sweep.shape, len(names))
            over = dimensions if kind == RUN else [*dimensions, kind]
            variables[name] = (over, values.reshape(shape), _units(column))
    attributes = {"sweep": sweep.name, "scenario": str(sweep.scenario.path)}
    if sweep.description:
        attributes["description"] = sweep.description
    return xr.Dataset(variables, coordinates, attributes)


def _places(rows: pa.Table, kind: str) -> tuple[NDArray[np.int64], list[str]]:
    """Return each row's index in an array of cells by names, and the names."""
    cells = rows["cell"].to_numpy()
    if kind == RUN:
        return cells, []
    # In the scenario's order, even where some cells have more flows than others.
    index: dict[str, int] = {}
    columns = [index.setdefault(name, len(index)) for name in rows["name"].to_pylist()]
    return cells * max(len(index), 1) + np.asarray(columns, dtype=np.int64), list(index)


def _spread(
    rows: pa.Table, column: str, places: NDArray[np.int64], *, shape: tuple[int, int]
) -> NDArray[Any]:
    """Return a column's values as an array over the dimensions; missing ones are NaN or None."""
    values = rows[column]
    total = shape[0] * shape[1]
    whole = values.null_count == 0 and len(values) == total
    if pa.types.is_string(values.type):
        spread: NDArray[Any] = np.full(total, None, dtype=object)
        spread[places] = values.to_numpy()
    elif whole:
        found = values.to_numpy()
        spread = np.empty(total, dtype=found.dtype)
        spread[places] = found
    else:
        spread = np.full(total, np.nan)
        spread[places] = values.cast(pa.float64()).to_numpy()
    return spread


def _coordinate(values: Sequence[Any]) -> NDArray[Any]:
    return np.asarray(values, dtype=object if isinstance(values[0], str) else None)


def _units(name: str) -> dict[str, str]:
    unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), None)
    return {"units": unit} if unit is not None else {}
