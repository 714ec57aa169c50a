"""Metrics of a sweep other than goodput: a number of a group in the results."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bentpipe.errors import RequestError
from bentpipe.sweeps.records import GROUP, column_of
from bentpipe.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bentpipe.sweeps.definition import Sweep
    from bentpipe.sweeps.outcome import SweepResult

_NUMBERS: Final = frozenset({"integer", "number"})
# Length of the path "outcomes.finished".
_OF_OUTCOMES: Final = 2
# Names that an error message lists at most.
_MOST_NAMES: Final = 12


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number of a group, as `groups[]` of `run --json` has it: `pages`, `page_load_ms.p50`."""

    group: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return ".".join((self.group, *self.path))

    @property
    def unit(self) -> str:
        """The unit of its values: "bit/s", "ms", "s", "B"; empty for counts."""
        # page_load_ms.p50 is in milliseconds, as page_load_ms is.
        ends = {"_bps": "bit/s", "_ms": "ms", "_s": "s", "_percent": "%"}
        for name in reversed(self.path):
            for end, unit in ends.items():
                if name.endswith(end):
                    return unit
            if "bytes" in name.split("_"):
                return "B"
        return ""

    def shown(self, value: float) -> str:
        """Write a value with its unit."""
        if self.unit == "bit/s":
            return format_rate(value)
        if self.unit in {"ms", "s"}:
            return format_seconds(value / 1e3 if self.unit == "ms" else value)
        if self.unit == "B":
            return format_bytes(value)
        return f"{value:.4g}{self.unit}"

    def values(self, result: SweepResult) -> NDArray[np.float64]:
        """Return its value in each cell; NaN where there is none."""
        values = np.full(len(result.sweep), math.nan)
        column = column_of(self.path)
        if column not in result.table.schema.names:
            return values
        rows = result.table.filter((pc.field("kind") == GROUP) & (pc.field("name") == self.group))
        values[rows["cell"].to_numpy()] = rows[column].cast(pa.float64()).to_numpy()
        return values


def parse_metric(text: str, sweep: Sweep) -> Metric:
    """Return the metric that a text such as "pages.page_load_ms.p50" names.

    Raises
    ------
    RequestError
        There are no flows of that name, or groups have no such number.
    """
    first = sweep.scenario_of(sweep.cell(0)).resolved()
    names = dict.fromkeys(flow["table"] for flow in first["flows"])
    group, *path = text.split(".")
    if group not in names or not path:
        known = ", ".join(list(names)[:_MOST_NAMES])
        raise RequestError(
            f"--metric {text}: expected a table of flows and what results tell of it, such as "
            f'"{next(iter(names))}.goodput_bps"; the flows are {known}'
        )
    known_paths = tuple(_numbers())
    # The keys of `outcomes` are outcomes of flows, which the schema does not list.
    if tuple(path) not in known_paths and not (path[0] == "outcomes" and len(path) == _OF_OUTCOMES):
        wanted = ".".join(path)
        every = [".".join(each) for each in known_paths]
        near = [each for each in every if each.startswith(wanted)]
        near = near[:_MOST_NAMES] or difflib.get_close_matches(wanted, every, n=3, cutoff=0.3)
        raise RequestError(
            f"--metric {text}: results tell no such number of a group; near it are "
            f"{', '.join(near or every[:3])} (GroupSummary in `bentpipe schema results` has all)"
        )
    return Metric(group=group, path=tuple(path))


def _numbers() -> Iterator[tuple[str, ...]]:
    """Yield the paths of all numbers that a group may have in the results."""
    from bentpipe import _native

    definitions = json.loads(_native.results_schema())["definitions"]

    def walk(schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        for name, value in schema["properties"].items():
            for each in value.get("anyOf", [value]):
                of = each.get("$ref") or each.get("allOf", [{}])[0].get("$ref")
                if of is not None:
                    yield from walk(definitions[of.rpartition("/")[2]], (*path, name))
                elif _NUMBERS.intersection(np.atleast_1d(each.get("type", ""))):
                    yield (*path, name)

    return walk(definitions["GroupSummary"], ())
