"""Reader of sweep files; errors name the file, line, key and expected value."""

from __future__ import annotations

import difflib
import math
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from bentpipe import _native, toml
from bentpipe.errors import RequestError, reason
from bentpipe.scenario import Scenario, example, read_text, ready_made, short
from bentpipe.sweeps import ranges
from bentpipe.sweeps.definition import Axis, Coordinate, Sweep, TomlValue, Variable
from bentpipe.sweeps.naming import RESERVED, axis_columns
from bentpipe.sweeps.quantities import common_unit, parse_quantity
from bentpipe.toml import literal

_KEYS: Final = ("name", "description", "scenario", "set", "axes", "zip", "series")
# Top-level keys of a scenario file, which users may write into a sweep file by mistake.
_SCENARIO_KEYS: Final = ("duration", "seed", "hosts", "gateways", "links", "flows", "probes")
_AXIS_KEYS: Final = ("values", "name", *ranges.KEYS)
_SEED: Final = "seed"
_LIST_OR_RANGE: Final = f"a list of values, or a range such as {ranges.EXAMPLE}"
_NAME: Final = re.compile(r"[A-Za-z0-9_-]+")
_COLUMN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MOST_CELLS: Final = 10_000_000
# Longest file in bytes: several lists of a hundred thousand values fit, endless input does not.
_MOST_BYTES: Final = 16 << 20

Key = tuple[str | int, ...]
Refuse = Callable[[Key, str], RequestError]


def read_sweep(path: str | Path) -> tuple[Sweep, Refuse]:
    """Read a sweep file, or an example by its name.

    Returns
    -------
        The sweep, and a function that makes errors with the line of a key in the file.

    Raises
    ------
    RequestError
        The file cannot be read, or is wrong.
    """
    if not str(path):
        raise RequestError("expected a sweep file, got nothing")
    path = Path(path)
    try:
        if path.is_dir():
            raise RequestError(f"{path} is a folder; expected a sweep file")
        is_file = path.is_file()
        if not is_file and not path.exists() and (named := example(str(path), ".toml")) is not None:
            path, is_file = named, True
        if not is_file and str(path) != "-" and not path.exists():
            raise RequestError(_is_missing(str(path)))
    except OSError as error:
        raise RequestError(f"{short(path)}: {reason(error)}") from None
    folder = path.parent if is_file else Path()
    text = read_text(path, longest=_MOST_BYTES, kind="sweep file")
    try:
        data = toml.read(text)
    except tomllib.TOMLDecodeError as error:
        raise RequestError(_not_toml(path, str(error), text)) from None
    lines = _native.key_lines(text) or {}
    refuse = _refusals(str(path), lines)
    return _Reader(data, refuse, folder=folder, order=lines).sweep(path.stem), refuse


def define_sweep(data: Mapping[str, Any], *, folder: Path | None = None) -> tuple[Sweep, Refuse]:
    """Return the sweep of plain data with the contents of a sweep file.

    A relative path of the scenario begins at `folder`, by default the working folder.

    Raises
    ------
    RequestError
        The sweep is wrong.
    """
    refuse = _refusals("sweep", None)
    plain = dict(data)
    return _Reader(plain, refuse, folder=folder or Path(), order={}).sweep("sweep"), refuse


def _is_missing(name: str) -> str:
    if name not in ready_made():
        return f"{name}: no such file"
    return (
        f"{name} is a ready-made scenario, which `bentpipe run {name}` simulates; "
        f'a sweep is a file with scenario = "{name}" and [axes]'
    )


def _not_toml(path: Path, said: str, text: str) -> str:
    """Return the message for text that is not TOML, worded like those of the scenario reader."""
    if _native.key_lines(text) is None:
        try:
            _native.load(path, text=text)
        except _native.ScenarioError as error:
            return str(error)
    place = str(path)
    match = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)", said)
    if match is not None:
        line = match[1] or text.count("\n") + 1
        place = f"{place}:{line}"
        said = said[: match.start()]
    return f"{place}: not TOML: {said[:1].lower()}{said[1:]}"


def _refusals(place: str, lines: Mapping[Key, int] | None) -> Refuse:
    def refuse(key: Key, message: str) -> RequestError:
        line = ""
        if lines is not None:
            known = (lines[key[:n]] for n in range(len(key), 0, -1) if key[:n] in lines)
            line = f":{next(known, 1)}"
        dotted = ".".join(part for part in key if isinstance(part, str))
        return RequestError(f"{place}{line}: {dotted}: {message}" if dotted else
                            f"{place}{line}: {message}")  # fmt: skip

    return refuse


class _Reader:
    def __init__(
        self,
        data: Mapping[str, Any],
        refuse: Refuse,
        *,
        folder: Path,
        order: Mapping[Key, int],
    ) -> None:
        self._data = data
        self._refuse = refuse
        self._folder = folder
        self._order = {key: place for place, key in enumerate(order)}

    def sweep(self, stem: str) -> Sweep:
        if not self._data.keys() & {"scenario", "axes", "zip"} and "links" in self._data:
            raise self._refuse(
                (),
                "this is a scenario, which `bentpipe run` simulates; a sweep file names it "
                'with scenario = "..." and has [axes]',
            )
        for key in self._data:
            if key not in _KEYS:
                raise self._refuse((key,), _unknown_key(key))
        name = self._text("name", re.sub(r"[^A-Za-z0-9_-]+", "-", stem) or "sweep")
        if not _NAME.fullmatch(name):
            raise self._refuse(("name",), f'expected letters, digits, "-" and "_", got {name!r}')
        series = self._data.get("series", False)
        if not isinstance(series, bool):
            raise self._refuse(("series",), f"expected true or false, got {_shown(series)}")
        scenario = self._scenario()
        settings = tuple(self._settings(self._table("set"), ("set",)))
        axes = self._axes()
        self._check_keys([key for key, _ in settings], axes)
        count = math.prod(len(axis) for _, axis in axes)
        if count > _MOST_CELLS:
            raise self._refuse(("axes",), f"{count:,} cells; expected at most {_MOST_CELLS:,}")
        return Sweep(
            name=name,
            description=self._text("description", ""),
            scenario=scenario,
            settings=settings,
            axes=tuple(axis for _, axis in axes),
            series=series,
        )

    def _text(self, key: str, default: str) -> str:
        value = self._data.get(key, default)
        if not isinstance(value, str):
            raise self._refuse((key,), f"expected a string, got {_shown(value)}")
        return value

    def _table(self, key: str) -> Mapping[str, Any]:
        value = self._data.get(key, {})
        if not isinstance(value, Mapping):
            raise self._refuse((key,), f"expected a table, got {_shown(value)}")
        return value

    def _scenario(self) -> Scenario:
        given = self._data.get("scenario")
        if isinstance(given, Scenario):
            return given
        # Only data from Python may contain the scenario itself. A sweep file names its scenario
        # file, to which line numbers and relative paths refer.
        if isinstance(given, Mapping) and not self._order:
            return Scenario.from_data(given)
        if given is None:
            raise self._refuse(
                ("scenario",), "missing; expected a scenario file, or a ready-made scenario's name"
            )
        if not isinstance(given, str | Path):
            raise self._refuse(("scenario",), f"expected a string, got {_shown(given)}")
        beside = self._folder / given
        try:
            return Scenario.find(beside if beside.is_file() else given)
        except RequestError as error:
            raise self._refuse(("scenario",), str(error)) from None

    def _settings(self, table: Mapping[str, Any], path: Key) -> Iterable[tuple[str, TomlValue]]:
        for key, value in table.items():
            if isinstance(value, Mapping) and value:
                yield from self._settings(value, (*path, key))
            else:
                self._check_value((*path, key), value)
                yield _dotted((*path, key)[1:]), value

    def _axes(self) -> list[tuple[Key, Axis]]:
        """Return the axes with their keys, in the file's order."""
        single = list(self._found(self._table("axes"), ("axes",)))
        zipped: list[tuple[Key, list[tuple[Key, Any]], Any]] = []
        for name, table in self._table("zip").items():
            path = ("zip", name)
            if not isinstance(table, Mapping):
                raise self._refuse(path, f"expected a table of keys, got {_shown(table)}")
            keys = {key: value for key, value in table.items() if key != "labels"}
            found = sorted(self._found(keys, path), key=lambda each: self._place(each[0]))
            zipped.append((path, found, table.get("labels")))
        if not single and not zipped:
            raise self._refuse(
                (), "no axes; expected a table [axes] such as axes.seed = { count = 5 }"
            )
        read = [(path, [self._variable(path, spec)]) for path, spec in single]
        read += [
            (path, [self._variable(each, spec, zip_name=path[1]) for each, spec in found])
            for path, found, _ in zipped
        ]
        columns = axis_columns(
            [
                (variable.key, variable.unit, variable.name)
                for _, group in read
                for variable in group
            ],
            reserved=[str(path[1]) for path, _, _ in zipped],
        )
        names = iter(columns)
        labels = {path: each for path, _, each in zipped}
        axes = [
            (path, self._axis(path, [_named(each, next(names)) for each in group], labels))
            for path, group in read
        ]
        self._check_columns(axes)
        return sorted(axes, key=lambda each: self._place(each[0]))

    def _place(self, path: Key) -> int:
        """Return the position of a key in the file; data from Python keep their order."""
        return self._order.get(path, 0)

    def _found(self, table: Mapping[str, Any], path: Key) -> Iterable[tuple[Key, Any]]:
        """Yield the lists and ranges in a table, at any depth."""
        for key, value in table.items():
            below = (*path, key)
            if isinstance(value, Mapping) and not _is_spec(value) and _dotted(below[1:]) != _SEED:
                if not value:
                    raise self._refuse(below, f"expected {_LIST_OR_RANGE}, got an empty table")
                yield from self._found(value, below)
            elif isinstance(value, list | tuple | Mapping):
                yield below, value
            else:
                raise self._refuse(
                    below,
                    f"expected {_LIST_OR_RANGE}, got {_shown(value)}; what doesn't vary goes "
                    "under [set]",
                )

    def _variable(self, path: Key, spec: Any, *, zip_name: object = None) -> Variable:
        """Read one key's values; `zip_name` is the name given in the file, if any."""
        key = _dotted(path[1:] if zip_name is None else path[2:])
        name = ""
        at = path
        if isinstance(spec, Mapping):
            for each in spec:
                if each not in _AXIS_KEYS:
                    raise self._refuse((*path, each), _suggested(each, _AXIS_KEYS))
            name = spec.get("name", "")
            if name and (not isinstance(name, str) or not _COLUMN.fullmatch(name)):
                raise self._refuse(
                    (*path, "name"), f'expected letters, digits and "_", got {_shown(name)}'
                )
            if "values" in spec:
                at = (*path, "values")
                extra = [each for each in ranges.KEYS if each in spec]
                if extra:
                    raise self._refuse((*path, extra[0]), "not allowed beside values")
                values = spec["values"]
            else:
                values = self._range(path, key, spec)
        else:
            values = spec
        if not isinstance(values, list | tuple) or not values:
            raise self._refuse(at, f"expected {_LIST_OR_RANGE}, got {_shown(values)}")
        for index, value in enumerate(values):
            self._check_value((*at, index), value)
            if key == _SEED and (isinstance(value, bool) or not isinstance(value, int)):
                raise self._refuse((*at, index), f"expected a whole number, got {_shown(value)}")
        coordinates, unit = _coordinates(values)
        if zip_name is None:
            self._check_distinct(at, values, coordinates)
        return Variable(
            key=key, name=name, unit=unit, values=tuple(values), coordinates=coordinates
        )

    def _range(self, path: Key, key: str, spec: Mapping[str, Any]) -> tuple[TomlValue, ...]:
        if key == _SEED and "to" not in spec:
            return self._seeds(path, spec)
        try:
            return ranges.expand_range({each: spec[each] for each in spec if each != "name"})
        except ranges.RangeError as error:
            where = (*path, error.key) if error.key else path
            raise self._refuse(where, str(error)) from None

    def _seeds(self, path: Key, spec: Mapping[str, Any]) -> tuple[int, ...]:
        first, count = spec.get("from", 1), spec.get("count")
        if (
            not spec.keys() <= {"name", "from", "count"}
            or not isinstance(first, int)
            or not isinstance(count, int)
            or not 1 <= count <= ranges.MOST_VALUES
            or isinstance(first, bool)
            or isinstance(count, bool)
        ):
            raise self._refuse(
                path,
                "expected a list of seeds, or how many: { count = 5 }, or from which one: "
                f"{{ from = 100, count = 5 }}; count is 1 to {ranges.MOST_VALUES:,}",
            )
        return tuple(range(first, first + count))

    def _axis(self, path: Key, variables: list[Variable], labels: Mapping[Key, Any]) -> Axis:
        if path[0] == "axes":
            (variable,) = variables
            return Axis(name=variable.name, variables=(variable,), coordinates=variable.coordinates)
        name = str(path[1])
        if not _COLUMN.fullmatch(name):
            raise self._refuse(path, 'expected a name of letters, digits and "_"')
        if not variables:
            raise self._refuse(path, "expected keys that vary together")
        length = len(variables[0].values)
        for variable in variables:
            if len(variable.values) != length:
                raise self._refuse(
                    (*path, *variable.key.split(".")),
                    f"expected {length} value{'' if length == 1 else 's'}, "
                    f"as {variables[0].key} has, "
                    f"got {len(variable.values)}",
                )
        coordinates = labels[path]
        if coordinates is None:
            coordinates = [
                ", ".join(str(variable.values[index]) for variable in variables)
                for index in range(length)
            ]
        elif (
            not isinstance(coordinates, list | tuple)
            or len(coordinates) != length
            or not all(isinstance(each, str) for each in coordinates)
        ):
            got = _shown(coordinates)
            if isinstance(coordinates, list | tuple) and len(coordinates) != length:
                got = str(len(coordinates))
            raise self._refuse((*path, "labels"), f"expected {length} strings, got {got}")
        self._check_distinct(path, coordinates, coordinates)
        return Axis(name=name, variables=tuple(variables), coordinates=tuple(coordinates))

    def _check_value(self, path: Key, value: object) -> None:
        if isinstance(value, list | tuple):
            for index, item in enumerate(value):
                self._check_value((*path, index), item)
        elif isinstance(value, Mapping):
            for key, item in value.items():
                self._check_value((*path, key), item)
        elif isinstance(value, float) and not math.isfinite(value):
            raise self._refuse(path, f"expected a finite number, got {value}")
        elif not isinstance(value, str | int | float | bool):
            raise self._refuse(
                path, f"expected a string, a number, true or false, got {_shown(value)}"
            )

    def _check_distinct(
        self, path: Key, values: Iterable[object], coordinates: Iterable[Coordinate]
    ) -> None:
        seen: dict[Coordinate, object] = {}
        for index, (value, coordinate) in enumerate(zip(values, coordinates, strict=True)):
            if coordinate in seen:
                same = (
                    f", the same as {_shown(seen[coordinate])}" if seen[coordinate] != value else ""
                )
                raise self._refuse((*path, index), f"{_shown(value)} appears twice{same}")
            seen[coordinate] = value

    def _check_columns(self, axes: Iterable[tuple[Key, Axis]]) -> None:
        seen: dict[str, Key] = {}
        for path, axis in axes:
            own = {axis.name, *(variable.name for variable in axis.variables)}
            for name in own:
                if name in RESERVED:
                    raise self._refuse(
                        path,
                        f"named {name!r}, as one of the results is: give it another: "
                        '{ values = [...], name = "..." }',
                    )
                if name in seen:
                    raise self._refuse(
                        path, f"named {name!r}, as {_dotted(seen[name][1:])} is: give it "
                        'another: { values = [...], name = "..." }'
                    )  # fmt: skip
                seen[name] = path

    def _check_keys(self, settings: Iterable[str], axes: Iterable[tuple[Key, Axis]]) -> None:
        """Refuse keys that overwrite each other."""
        taken: dict[str, str] = {}
        for path, axis in axes:
            for variable in axis.variables:
                key = variable.key
                where = path if path[0] == "axes" else (*path, *key.split("."))
                for other, which in taken.items():
                    if key == other or _within(key, other) or _within(other, key):
                        raise self._refuse(
                            where, f"varies already, along the axis {which!r}: {other}"
                        )
                taken[key] = axis.name
        for setting in settings:
            for key, which in taken.items():
                if setting == key or _within(setting, key):
                    raise self._refuse(
                        ("set", *setting.split(".")), f"varies along the axis {which!r}"
                    )


def _is_spec(table: Mapping[str, Any]) -> bool:
    """Return whether a table describes values instead of holding more keys."""
    return "values" in table or any(
        key in _AXIS_KEYS and not isinstance(value, list | tuple | Mapping)
        for key, value in table.items()
    )


def _coordinates(values: Iterable[TomlValue]) -> tuple[tuple[Coordinate, ...], str]:
    """Return the values as coordinates, and the unit they share."""
    items = list(values)
    unit = common_unit(items)
    if unit is not None:
        quantities = [parse_quantity(item) for item in items if isinstance(item, str)]
        numbers = [each.in_base_unit for each in quantities if each is not None]
        if all(number.is_integer() for number in numbers) and unit != "s":
            return tuple(int(number) for number in numbers), unit
        return tuple(numbers), unit
    kinds = {type(item) for item in items}
    if kinds == {int, float}:
        return tuple(float(item) for item in items if isinstance(item, int | float)), ""
    if len(kinds) == 1 and kinds <= {str, int, float, bool}:
        return tuple(item for item in items if isinstance(item, str | int | float)), ""
    return tuple(item if isinstance(item, str) else literal(item) for item in items), ""


def _named(variable: Variable, name: str) -> Variable:
    from dataclasses import replace

    return replace(variable, name=name)


def _dotted(path: Iterable[str | int]) -> str:
    return ".".join(part for part in path if isinstance(part, str))


def _within(key: str, table: str) -> bool:
    return key.startswith(f"{table}.")


def _unknown_key(key: str) -> str:
    if key in _SCENARIO_KEYS or key.partition(".")[0] in _SCENARIO_KEYS:
        return "unknown key; what varies goes under [axes], what doesn't under [set]"
    return _suggested(key, _KEYS)


def _suggested(key: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(key, names, n=1)
    hint = f'did you mean "{close[0]}"?' if close else f"known here: {', '.join(names)}"
    return f"unknown key; {hint}"


def _shown(value: object) -> str:
    """Return a value as the scenario reader's messages show it."""
    if isinstance(value, Mapping):
        return "a table"
    if isinstance(value, list | tuple):
        return "an array" if value else "an empty array"
    if isinstance(value, bool):
        return "true" if value else "false"
    return f'"{value}"' if isinstance(value, str) else str(value)
