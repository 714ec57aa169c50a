"""Searches over what a paper leaves open: settings on a grid, judged by the paper's numbers.

A study with a search has a module `open_settings` that defines `SEARCH`, and its result beside it,
`open_settings.csv`, which `tools/search_open_settings.py` writes. A row is one setting: its values,
the number measured for each published one, and how many of them lie within tolerance.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Generic

from bentpipe.errors import WorkError
from bentpipe.files import atomic_write
from bentpipe.studies.simulations import Awaited, simulations
from bentpipe.studies.study import CellT

if TYPE_CHECKING:
    from bentpipe.results import RunResult
    from bentpipe.studies.judging import Expectation

# Name of the column with the number of published values that a setting meets.
WITHIN: Final = "within"
_DIGITS: Final = 6

Number = str | int | float | bool
# One value for each open parameter, by name.
Setting = Mapping[str, Number]


@dataclass(frozen=True, kw_only=True)
class Published:
    """A number of the paper: what is expected, and the relative tolerance.

    Each of `columns`, the names of measured numbers, must meet the expectation.
    """

    columns: Sequence[str]
    expect: Expectation
    tolerance: float = 0.0

    def met(self, measured: Mapping[str, float]) -> bool:
        """Return whether the measured numbers are the published one, within tolerance."""
        return all(self.expect.met(measured[name], self.tolerance) for name in self.columns)

    def deviation(self, measured: Mapping[str, float]) -> float:
        """Return the largest relative deviation from the value, or beyond the bounds."""
        return max(self._deviation(measured[name]) for name in self.columns)

    def _deviation(self, measured: float) -> float:
        expect = self.expect
        low = max((each for each in (expect.at_least, expect.more_than) if each), default=None)
        high = min((each for each in (expect.at_most, expect.less_than) if each), default=None)
        return max(
            0.0,
            0.0 if expect.value is None else abs(measured / expect.value - 1.0),
            0.0 if low is None else 1.0 - measured / low,
            0.0 if high is None else measured / high - 1.0,
        )


@dataclass(frozen=True, kw_only=True)
class Row:
    """A setting, and the measured numbers."""

    setting: Setting
    measured: Mapping[str, float]
    within: int


@dataclass(frozen=True, kw_only=True)
class OpenSettings(Generic[CellT]):
    """A search over the settings that a paper leaves open.

    `settings` lists the settings to try; `grid` makes a full grid. `cells` returns the runs that a
    setting needs; settings that need the same run share it. `measure` returns measured numbers by
    name; those that no entry of `published` names are recorded but not judged.
    """

    settings: Sequence[Setting]
    published: Mapping[str, Published]
    cells: Callable[[Setting], Sequence[CellT]]
    measure: Callable[[Setting, Mapping[CellT, RunResult]], Mapping[str, float]]

    def judged(self, setting: Setting, outcomes: Mapping[CellT, RunResult]) -> Row:
        """Return the row of a setting whose runs are done."""
        measured = {
            name: float(f"{value:.{_DIGITS}g}")
            for name, value in self.measure(setting, outcomes).items()
        }
        within = sum(each.met(measured) for each in self.published.values())
        return Row(setting=setting, measured=measured, within=within)

    def search(
        self,
        settings: Sequence[Setting] | None = None,
        *,
        workers: int | None = None,
        on_row: Callable[[Row], None] = lambda _: None,
    ) -> list[Row]:
        """Run settings, by default all of the search, and return their rows in the same order.

        `on_row` is called with each row as soon as it is known.

        Raises
        ------
        WorkError
            A simulation failed.
        """
        settings = self.settings if settings is None else settings
        rows = []
        with simulations(workers) as running:
            groups = deque(running.begin([self.cells(each) for each in settings]))
            for setting in settings:
                # A result is kept until the last setting that needs it.
                outcomes = Awaited(groups.popleft())
                outcomes.wait()
                rows.append(self.judged(setting, outcomes))
                on_row(rows[-1])
        return rows

    def best(self, rows: Sequence[Row]) -> list[Row]:
        """Return the rows by the number of values within tolerance, then by mean deviation."""

        def order(row: Row) -> tuple[int, float]:
            return -row.within, sum(each.deviation(row.measured) for each in judged)

        judged = list(self.published.values())
        return sorted(rows, key=order)

    def write(self, rows: Sequence[Row], path: Path) -> None:
        """Write rows as CSV: the settings, the measured numbers, the number within tolerance."""
        names = [*self.settings[0], *rows[0].measured, WITHIN]
        with atomic_write(path) as part, part.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            for row in rows:
                writer.writerow({**row.setting, **row.measured, WITHIN: row.within})

    def read(self, path: Path) -> list[Row]:
        """Read the rows of a CSV file that `write` wrote.

        Raises
        ------
        WorkError
            The file belongs to another grid; it has to be written again.
        """
        with path.open(encoding="utf-8", newline="") as file:
            lines = list(csv.DictReader(file))
        same = len(lines) == len(self.settings) and all(
            line.get(name) == str(value)
            for line, setting in zip(lines, self.settings, strict=True)
            for name, value in setting.items()
        )
        if not same:
            raise WorkError(f"{path.name} is of another grid: run tools/search_open_settings.py")
        rows = []
        for line, setting in zip(lines, self.settings, strict=True):
            within = int(line.pop(WITHIN))
            measured = {name: float(line[name]) for name in line if name not in setting}
            rows.append(Row(setting=setting, measured=measured, within=within))
        return rows


def grid(**values: Sequence[Number]) -> list[Setting]:
    """Return every combination of the values of some parameters, as settings."""
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


def search_of(key: str) -> tuple[OpenSettings[Any], Path]:
    """Return a study's search, and the path of its committed result.

    Raises
    ------
    ModuleNotFoundError
        The study has no search.
    """
    module = import_module(f"bentpipe.studies.{key.replace('-', '_')}.open_settings")
    assert module.__file__ is not None
    search: OpenSettings[Any] = module.SEARCH
    return search, Path(module.__file__).with_suffix(".csv")


def committed(key: str) -> list[Row]:
    """Return the committed rows of a study's search."""
    search, path = search_of(key)
    return search.read(path)
