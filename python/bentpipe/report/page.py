"""The report page: failing claims first, then the origin, then every study."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from bentpipe.files import atomic_write
from bentpipe.report.inline_svg import inline_svg
from bentpipe.report.templates import template

if TYPE_CHECKING:
    from bentpipe.studies.runner import DrawnFigure, Reproduced, Reproduction
    from bentpipe.studies.study import Table, Value

_FOLDER = Path(__file__).parent
# A sentence ends before a capital letter: "0.5 s" and "fig. 4" are inside of one.
_SENTENCE: Final = re.compile(r"(?<=[.:;])\s+(?=[A-Z\"“])")


def write_report(reproduction: Reproduction, path: Path) -> None:
    """Write the report; the only files that it refers to are those beside it."""
    filters: dict[str, Callable[..., Any]] = {
        "first_sentence": first_sentence,
        "inline": _inline,
        "ranges": ranges,
        "rows": _rows,
        "shown": shown,
    }
    page = template(_FOLDER / "report.html", filters).render(
        reproduction=reproduction,
        provenance=reproduction.provenance,
        folder=path.parent,
    )
    with atomic_write(path) as part:
        part.write_text(page, encoding="utf-8")


def _inline(drawn: DrawnFigure, each: Reproduced) -> Markup:
    assert drawn.svg is not None
    text = drawn.svg.read_text(encoding="utf-8")
    name = f"{each.study.key}-{drawn.figure.id}".replace(" ", "-")
    return Markup(inline_svg(text, name=name, title=drawn.figure.title))


def _rows(table: Table) -> Iterator[list[tuple[Value, bool]]]:
    """Yield a table's rows: values, and whether each is marked."""
    columns: list[Iterable[tuple[Value, bool]]] = []
    for head, values in table.columns.items():
        marked = table.marked.get(head, [False] * len(values))
        columns.append(zip(values, marked, strict=True))
    for row in zip(*columns, strict=True):
        yield list(row)


def first_sentence(text: str) -> str:
    """Return the first sentence of a text."""
    return _SENTENCE.split(text.strip(), maxsplit=1)[0].rstrip(":;")


def ranges(numbers: Sequence[int]) -> str:
    """Return ascending whole numbers as ranges: "1 to 20, 42"."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in found)


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
