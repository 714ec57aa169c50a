"""The report page: inline figures, claims as a table, the most important numbers first."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bentpipe import _native
from bentpipe.files import atomic_write
from bentpipe.studies.study import CAUSES, SOURCES

if TYPE_CHECKING:
    from bentpipe.studies.runner import Reproduced
    from bentpipe.studies.study import Value

_FOLDER = Path(__file__).parent


def write_report(reproduced: Sequence[Reproduced], path: Path, *, quick: bool = False) -> None:
    """Write the report; the only files that it refers to are the figures' numbers."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "data_uri": _data_uri,
        "rows": _rows,
        "shown": shown,
        "source": SOURCES.__getitem__,
        "cause": CAUSES.__getitem__,
    }
    page = environment.get_template("report.html").render(
        reproduced=reproduced,
        quick=quick,
        version=_native.__version__,
        folder=path.parent,
    )
    with atomic_write(path) as part:
        part.write_text(page, encoding="utf-8")


def _data_uri(svg: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.read_bytes()).decode("ascii")


def _rows(columns: Iterable[Sequence[Value]]) -> Iterator[tuple[Value, ...]]:
    return zip(*columns, strict=True)


def shown(value: Value) -> str:
    """Return a table's value as text: four significant digits, thousands in groups."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case str():
            return value
    number = float(value)
    if number != number:
        return "–"
    if abs(number) == inf:
        return "∞" if number > 0 else "−∞"
    if abs(number) >= 1e3:
        return f"{number:,.0f}"
    return f"{number:.4g}".replace("-", "−")
