"""Outcomes as rows of one tidy table.

A cell has a row of kind "run", and one for each flow, group, link direction and gateway. Each row
has the cell's coordinates. A failed cell has only the row of kind "run", with its error.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

import pyarrow as pa

from bentpipe.results import DirectionResult, FlowResult, RoundTrip, Summary, limit_shares

if TYPE_CHECKING:
    from bentpipe.sweeps.cell import Outcome
    from bentpipe.sweeps.definition import Sweep

_Row = dict[str, Any]

RUN, FLOW, GROUP, LINK, GATEWAY = "run", "flow", "group", "link", "gateway"
_PARTS: Final = {"flows": FLOW, "groups": GROUP, "links": LINK, "gateways": GATEWAY}
# Stored apart from the results, because it differs from run to run.
WALL: Final = "wall_s"
_UNITS: Final = ("_ms", "_s", "_bps", "_bytes")


def table_of(outcomes: Iterable[Outcome], sweep: Sweep) -> pa.Table:
    """Return the rows of the outcomes, in order, with `wall_s` among the columns."""
    rows = [row for outcome in outcomes for row in _rows(outcome, sweep)]
    known = _known_types()
    places = {name: _type(values) for name, values in sweep.columns().items()}
    names = ["cell", *places, "kind", "name", "error", WALL]
    types = {"cell": pa.int64(), "kind": pa.string(), "error": pa.string(), WALL: pa.float64()}
    types |= {"name": pa.string()} | known | places
    names += [name for name in known if name not in names]
    # Values for which this module has no column yet; they are kept as extra columns.
    extra = {name for row in rows for name, value in row.items() if value is not None}
    for name in sorted(extra.difference(names)):
        values = [row.get(name) for row in rows]
        types[name] = _type([value for value in values if value is not None])
        names.append(name)
    columns = {
        name: pa.array([_fitting(row.get(name), types[name]) for row in rows], types[name])
        for name in names
    }
    return pa.table(columns)


def merged(tables: Sequence[pa.Table]) -> pa.Table:
    """Concatenate tables; the columns' types and order do not depend on their number."""
    schemas = [table.schema for table in tables]
    types: dict[str, pa.DataType] = {}
    for schema in schemas:
        for field in schema:
            types[field.name] = _wider(types.get(field.name), field.type)
    fixed = max((_fixed_columns(schema) for schema in schemas), key=len)
    names = [*fixed, *sorted(types.keys() - set(fixed))]
    target = pa.schema([(name, types[name]) for name in names])
    return pa.concat_tables([_cast(table, target) for table in tables])


def _rows(outcome: Outcome, sweep: Sweep) -> Iterable[_Row]:
    place = {"cell": outcome.cell, **sweep.coordinates(sweep.cell(outcome.cell))}
    if outcome.summary_json is None:
        yield {**place, "kind": RUN, "error": outcome.error, WALL: outcome.wall_s}
        return
    summary = json.loads(outcome.summary_json)
    run = {key: value for key, value in summary.items() if key not in _PARTS}
    run["name"] = run.pop("scenario")
    # An axis's column takes precedence over a value of that name in the summary.
    yield _flat(run) | place | {"kind": RUN, WALL: outcome.wall_s}
    place["seed"] = summary["seed"]
    for key, kind in _PARTS.items():
        for part in summary.get(key, ()):
            limited = _limited_by(part) if kind == FLOW else {}
            yield _flat(part) | limited | place | {"kind": kind}


def _limited_by(flow: Mapping[str, Any]) -> _Row:
    """Return the largest limit of a flow's sender as a column; nothing if it never waited."""
    most = next(iter(limit_shares(flow.get("limited_s", {}))), None)
    return {"limited_by": most}


def _flat(record: Mapping[str, Any]) -> _Row:
    """Return a record without nested records: rtt_ms.min becomes rtt_min_ms."""
    flat: _Row = {}
    for name, value in record.items():
        if isinstance(value, Mapping):
            flat.update({_within(name, key): each for key, each in _flat(value).items()})
        else:
            flat[name] = value
    return flat


def column_of(path: Sequence[str]) -> str:
    """Return the column name of a path in a result: ("rtt_ms", "min") is rtt_min_ms."""
    *records, name = path
    for record in reversed(records):
        name = _within(record, name)
    return name


def _within(record: str, name: str) -> str:
    """Return the column name of a nested name: the record's unit moves to the end."""
    unit = next((each for each in _UNITS if record.endswith(each)), "")
    return f"{record.removesuffix(unit)}_{name}{unit}"


@cache
def _known_types() -> dict[str, pa.DataType]:
    """Return the columns of the typed results, in their order."""
    types: dict[str, pa.DataType] = {"seed": pa.int64()}
    for record in (Summary, FlowResult, DirectionResult):
        hints = get_type_hints(record)
        for each in fields(record):
            kind = hints[each.name]
            if kind is RoundTrip:
                types |= {f"rtt_{name}_ms": pa.float64() for name in ("min", "mean", "p95", "max")}
            elif (arrow := _SCALARS.get(_without_none(kind))) is not None:
                types.setdefault(each.name, arrow)
    for name in ("scenario", "name", WALL):
        types.pop(name)
    return types


_SCALARS: Final[dict[object, pa.DataType]] = {
    int: pa.int64(), float: pa.float64(), bool: pa.bool_(), str: pa.string()
}  # fmt: skip


def _without_none(kind: object) -> object:
    if isinstance(kind, UnionType):
        return next(each for each in get_args(kind) if each is not type(None))
    return kind


def _type(values: Sequence[Any]) -> pa.DataType:
    kinds = {type(value) for value in values}
    if kinds == {int, float}:
        return pa.float64()
    return _SCALARS.get(kinds.pop(), pa.string()) if len(kinds) == 1 else pa.string()


def _fitting(value: Any, kind: pa.DataType) -> Any:
    if value is None or not pa.types.is_string(kind) or isinstance(value, str):
        return value
    return json.dumps(value)


def _wider(one: pa.DataType | None, other: pa.DataType) -> pa.DataType:
    if one is None or one == other:
        return other
    numbers = {pa.int64(), pa.float64()}
    return pa.float64() if {one, other} == numbers else pa.string()


def _fixed_columns(schema: pa.Schema) -> list[str]:
    """Return the columns that every part has: those before the extra ones."""
    last = max(schema.get_field_index(name) for name in _known_types())
    return list(schema.names[: last + 1])


def _cast(table: pa.Table, target: pa.Schema) -> pa.Table:
    columns = [
        table[field.name].cast(field.type)
        if field.name in table.schema.names
        else pa.nulls(len(table), field.type)
        for field in target
    ]
    return pa.table(columns, schema=target)
