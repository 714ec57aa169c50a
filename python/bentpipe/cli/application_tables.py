"""What applications came to, as a table: pages, answers and packets, with their times."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bentpipe.cli.tables import Table
from bentpipe.units import format_seconds

if TYPE_CHECKING:
    from bentpipe.results import FlowResult

# The quantiles of a distribution of times, with their headings.
_QUANTILES: Final = {"mean": "mean", "median": "p50", "95%": "p95", "99%": "p99", "longest": "max"}


def application_table(flows: Sequence[FlowResult]) -> Table | None:
    """Return a table of what these flows' applications tell; None where none tells anything."""
    rows = [(flow.name, *row) for flow in flows for row in _rows(flow.extra)]
    if not rows:
        return None
    table = Table(headings=("flow", "what", "number", *_QUANTILES))
    for name, what, number, times in rows:
        seconds = (times.get(key) for key in _QUANTILES.values())
        cells = (format_seconds(None if each is None else each / 1e3) for each in seconds)
        table.add(name, what, number, *cells)
    return table


def _rows(told: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, float | None]]]:
    rows = []
    if (pages := told.get("pages")) is not None:
        begun = told.get("navigations", len(pages))
        rows.append(("page load", _of(len(pages), begun), told["page_load_ms"]))
        rows.append(("first byte", _of(len(pages), begun), told["first_byte_ms"]))
    if (responses := told.get("responses")) is not None:
        number = _of(responses["count"], responses["requests"])
        rows.append(("response", number, responses["time_ms"]))
    if (messages := told.get("messages")) is not None:
        number = _of(messages["received"], messages["sent"])
        rows.append(("packet delay", number, messages["delay_ms"]))
    return rows


def _of(done: int, begun: int) -> str:
    return f"{done:,}" if done == begun else f"{done:,} of {begun:,}"
