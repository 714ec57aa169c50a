"""Definition of a sweep: a scenario, the axes along which it varies, and the cells they span."""

from __future__ import annotations

import hashlib
import inspect
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType
from typing import Any

from bentpipe.congestion import registered
from bentpipe.errors import RequestError
from bentpipe.scenario import Scenario
from bentpipe.toml import literal, read

TomlValue = str | int | float | bool | list[Any] | dict[str, Any]
Coordinate = str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class Variable:
    """A scenario key and its values along an axis.

    `name` is its column's name in the results. `coordinates` are the values in that column: numbers
    in `unit` for quantities, else the values themselves.
    """

    key: str
    name: str
    unit: str
    values: tuple[TomlValue, ...]
    coordinates: tuple[Coordinate, ...]


@dataclass(frozen=True, kw_only=True)
class Axis:
    """A dimension of the sweep: one key, or several that vary together."""

    name: str
    variables: tuple[Variable, ...]
    # Coordinates of the dimension; for a single key, its own coordinates.
    coordinates: tuple[Coordinate, ...]

    def __len__(self) -> int:
        return len(self.coordinates)

    @property
    def zipped(self) -> bool:
        """Whether the axis has a name of its own besides those of its keys."""
        return [variable.name for variable in self.variables] != [self.name]

    @property
    def unit(self) -> str:
        """The coordinates' unit, empty if they have none."""
        return "" if self.zipped else self.variables[0].unit


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One simulation of a sweep: its number, and its index on each axis."""

    number: int
    indices: tuple[int, ...]


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A scenario and the axes along which it varies.

    Cells are numbered as if by nested loops over the axes, the last one innermost.
    """

    name: str
    scenario: Scenario
    axes: tuple[Axis, ...]
    description: str = ""
    settings: tuple[tuple[str, TomlValue], ...] = ()
    # Whether every cell's probes are kept, too.
    series: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The axes' lengths."""
        return tuple(len(axis) for axis in self.axes)

    def __len__(self) -> int:
        return math.prod(self.shape)

    def cell(self, number: int) -> Cell:
        """Return a cell by its number."""
        indices = []
        rest = number
        for length in reversed(self.shape):
            rest, index = divmod(rest, length)
            indices.append(index)
        return Cell(number=number, indices=tuple(reversed(indices)))

    def cells(self) -> Iterator[Cell]:
        """Return all cells, in order."""
        return (self.cell(number) for number in range(len(self)))

    def coordinates(self, cell: Cell) -> dict[str, Coordinate]:
        """Return a cell's coordinates by column."""
        place: dict[str, Coordinate] = {}
        for axis, index in zip(self.axes, cell.indices, strict=True):
            place[axis.name] = axis.coordinates[index]
            for variable in axis.variables:
                place[variable.name] = variable.coordinates[index]
        return place

    def columns(self) -> dict[str, Sequence[Coordinate]]:
        """Return the axes' columns, each with the coordinates that occur in it."""
        columns: dict[str, Sequence[Coordinate]] = {}
        for axis in self.axes:
            columns[axis.name] = axis.coordinates
            columns.update({each.name: each.coordinates for each in axis.variables})
        return columns

    def scenario_of(self, cell: Cell) -> Scenario:
        """Return the scenario of a cell."""
        chosen = [
            (variable.key, variable.values[index])
            for axis, index in zip(self.axes, cell.indices, strict=True)
            for variable in axis.variables
        ]
        pairs = tuple((key, literal(value)) for key, value in (*self.settings, *chosen))
        return replace(self.scenario, settings=self.scenario.settings + pairs)

    def as_json(self) -> dict[str, Any]:
        """Return the sweep as plain data, its scenario's text included."""
        return {
            "name": self.name,
            "description": self.description,
            "scenario": {
                "path": str(self.scenario.path),
                "text": self.scenario.content(),
                "settings": [list(pair) for pair in self.scenario.settings],
            },
            "settings": [list(pair) for pair in self.settings],
            "axes": [
                {
                    "name": axis.name,
                    "coordinates": list(axis.coordinates),
                    "variables": [
                        {
                            "key": variable.key,
                            "name": variable.name,
                            "unit": variable.unit,
                            "values": list(variable.values),
                            "coordinates": list(variable.coordinates),
                        }
                        for variable in axis.variables
                    ],
                }
                for axis in self.axes
            ],
            "series": self.series,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Sweep:
        """Return the sweep of data that `as_json` returned."""
        scenario = data["scenario"]
        return cls(
            name=data["name"],
            description=data["description"],
            scenario=Scenario(
                path=Path(scenario["path"]),
                text=scenario["text"],
                settings=tuple((key, value) for key, value in scenario["settings"]),
            ),
            settings=tuple((key, value) for key, value in data["settings"]),
            axes=tuple(_axis_from_json(axis) for axis in data["axes"]),
            series=data["series"],
        )


def with_settings(sweep: Sweep, settings: Mapping[str, object]) -> Sweep:
    """Return the sweep with these settings in every cell, in place of the file's `set`.

    Raises
    ------
    RequestError
        A key varies along an axis.
    """
    if not settings:
        return sweep
    for key in settings:
        for axis in sweep.axes:
            if any(_overlap(key, variable.key) for variable in axis.variables):
                raise RequestError(f"--set {key}: varies along the axis {axis.name!r}")
    kept = tuple(
        (key, value)
        for key, value in sweep.settings
        if not any(_overlap(key, other) for other in settings)
    )
    return replace(sweep, scenario=sweep.scenario.with_settings(settings), settings=kept)


def _overlap(key: str, other: str) -> bool:
    """Return whether two dotted keys are equal, or one is within the table of the other."""
    return key == other or key.startswith(f"{other}.") or other.startswith(f"{key}.")


def identity(sweep: Sweep, *, version: str) -> dict[str, str]:
    """Return a digest of each input that the results depend on.

    Comments and layout of the files are ignored. All values count, and so do the defaults of this
    version of bentpipe.
    """
    data = sweep.as_json()
    written = read(data["scenario"]["text"])
    return {
        "scenario": _digest([written, data["scenario"]["settings"]]),
        "settings": _digest(data["settings"]),
        "axes": _digest(data["axes"]),
        "series": _digest(data["series"]),
        "controls": _digest(_controls(json.dumps(data))),
        "defaults": _digest(sweep.scenario.resolved()),
        "bentpipe": version,
    }


def _controls(described: str) -> dict[str, list[str]]:
    """Return the source code of the user's congestion controls that a sweep names, by name."""
    return {
        name: [_source(each) for each in vars(control).values() if inspect.isfunction(each)]
        for name, control in registered()
        if f'"{name}"' in described
    }


def _source(function: FunctionType) -> str:
    try:
        return inspect.getsource(function)
    except OSError:
        # Typed at a prompt: there is no source file to compare.
        return function.__qualname__


def _axis_from_json(data: Mapping[str, Any]) -> Axis:
    variables = tuple(
        Variable(
            key=each["key"],
            name=each["name"],
            unit=each["unit"],
            values=tuple(each["values"]),
            coordinates=tuple(each["coordinates"]),
        )
        for each in data["variables"]
    )
    return Axis(name=data["name"], variables=variables, coordinates=tuple(data["coordinates"]))


def _digest(data: object) -> str:
    text = json.dumps(data, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode()).hexdigest()
