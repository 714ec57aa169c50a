"""Check of a sweep's values by the scenario reader, before the first cell is simulated."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import RequestError
from bentpipe.scenario import is_sweep
from bentpipe.sweeps.definition import Cell, Sweep
from bentpipe.toml import literal, read

if TYPE_CHECKING:
    from bentpipe.scenario import Scenario
    from bentpipe.sweeps.reader import Key, Refuse

# Values that are checked at most; each takes a fraction of a millisecond.
_MOST_TRIED: Final = 2000
_NAMED: Final = {"hosts": "host", "gateways": "gateway", "links": "link", "flows": "flow"}
# Characters of a setting that the scenario reader repeats in a message.
_LONGEST_SETTING: Final = 80


def check_sweep(sweep: Sweep, refuse: Refuse) -> None:
    """Refuse a sweep with a key or a value that the scenario does not accept.

    Each value is tried with the first values of the other axes, then with the last ones. A value
    that fails with both is refused here. Values that fail in some cells only are found and recorded
    when those cells are run.

    Raises
    ------
    RequestError, ScenarioError
        The sweep or its scenario is wrong.
    """
    from bentpipe import _native

    try:
        sweep.scenario.resolved()
    except _native.ScenarioError:
        if is_sweep(sweep.scenario):
            raise refuse(
                ("scenario",),
                f"{sweep.scenario.path} is a sweep file, too; expected a scenario: "
                "what varies in a sweep is all in one file",
            ) from None
        raise
    _check_names(sweep, refuse)
    with_settings = sweep.scenario.settings + tuple((k, literal(v)) for k, v in sweep.settings)
    try:
        replace(sweep.scenario, settings=with_settings).resolved()
    except _native.ScenarioError as error:
        # No refusal yet: the scenario may be complete only with the axes' values.
        if (told := _in_the_file(str(error), sweep, None, refuse)) is not None:
            raise told from None
    for place, axis in enumerate(sweep.axes):
        for index in range(min(len(axis), _MOST_TRIED)):
            first = _fault(sweep, place, index, end=0)
            if first is not None and (last := _fault(sweep, place, index, end=-1)) is not None:
                cell = _corner(sweep, place, index, -1)
                told = _in_the_file(last, sweep, cell, refuse)
                raise told or RequestError(f"{last} (in the cell {_described(sweep, cell)})")


def _fault(sweep: Sweep, place: int, index: int, *, end: int) -> str | None:
    from bentpipe import _native

    try:
        sweep.scenario_of(_corner(sweep, place, index, end)).resolved()
    except _native.ScenarioError as error:
        return str(error)
    return None


def _corner(sweep: Sweep, place: int, index: int, end: int) -> Cell:
    """Return the cell with the first or last values of all axes but one."""
    indices = [(length - 1) if end else 0 for length in sweep.shape]
    indices[place] = index
    return Cell(number=0, indices=tuple(indices))


def _described(sweep: Sweep, cell: Cell) -> str:
    return ", ".join(f"{name} = {value}" for name, value in sweep.coordinates(cell).items())


def _in_the_file(
    message: str, sweep: Sweep, tried: Cell | None, refuse: Refuse
) -> RequestError | None:
    """Return the error with the sweep file's line instead of `--set KEY=VALUE`, or None."""
    candidates: list[tuple[Key, str, str]] = [
        (("set", *key.split(".")), key, literal(value)) for key, value in sweep.settings
    ]
    # The error may be about the value of any axis of the cell, or of an axis with a single value.
    for axis, index in zip(sweep.axes, tried.indices, strict=True) if tried is not None else ():
        root: Key = ("zip", axis.name) if axis.zipped else ("axes",)
        for variable in axis.variables:
            path: Key = (*root, *variable.key.split("."), index)
            candidates.append((path, variable.key, literal(variable.values[index])))
    for path, key, value in candidates:
        setting = f"{key}={value}"
        if len(setting) > _LONGEST_SETTING:
            setting = f"{setting[:_LONGEST_SETTING]}..."
        prefix = f"--set {setting}: "
        if message.startswith(prefix):
            return refuse(path, message.removeprefix(prefix))
    return None


def _check_names(sweep: Sweep, refuse: Refuse) -> None:
    """Refuse `links.satelite.delay` where the scenario has no such link."""
    written: Mapping[str, Any] = read(sweep.scenario.content())
    made = [key.split(".") for key, _ in sweep.scenario.settings]
    keys: list[tuple[Key, str]] = [(("set",), key) for key, _ in sweep.settings]
    for axis in sweep.axes:
        root: Key = ("zip", axis.name) if axis.zipped else ("axes",)
        keys += [(root, variable.key) for variable in axis.variables]
    # A link that the sweep itself describes has at least the required keys.
    counts: dict[tuple[str, str], int] = {}
    for _, key in keys:
        if key.count(".") > 1:
            table, name, _ = key.split(".", 2)
            counts[table, name] = counts.get((table, name), 0) + 1
    for root, key in keys:
        table, _, rest = key.partition(".")
        name = rest.partition(".")[0]
        if table not in _NAMED or not name or counts.get((table, name), 0) > 1:
            continue
        names = [*written.get(table, {}), *(key[1] for key in made if key[0] == table and key[1:])]
        if name in names:
            continue
        close = difflib.get_close_matches(name, names, n=1)
        hint = f'did you mean "{close[0]}"?' if close else f"there are: {', '.join(names)}"
        path: Key = (*root, *key.split("."))
        raise refuse(path, f'the scenario has no {_NAMED[table]} "{name}"; {hint}')


def scenario_in_memory(scenario: Scenario) -> Scenario:
    """Return the scenario with its text, so that the file is not read again."""
    return replace(scenario, text=scenario.content())
