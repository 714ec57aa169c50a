"""Tables of the settings that meet the targets."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from bentpipe.plot.style import COLOURS, new_axes
from bentpipe.studies.geo_acceptance.cells import ACCESSES, GATEWAYS, NO_GATEWAYS, SPLIT
from bentpipe.studies.study import Figure, Value

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.geo_acceptance.cells import Access, Transfer
    from bentpipe.studies.geo_acceptance.evidence import Evidence

Columns = dict[str, list[Value]]
_COLUMNS = ("access", "target_s", "rule", "window_bytes", "gateways", "initial_window", "time_s")


def figures(evidence: Evidence) -> list[Figure]:
    """Return a table of times without gateways, and one with them."""
    return [
        _table(evidence, NO_GATEWAYS, "1", "End to end"),
        _table(evidence, SPLIT, "2", "With split gateways at both ends of the satellite link"),
    ]


def _table(evidence: Evidence, gateways: str, number: str, title: str) -> Figure:
    assert gateways in GATEWAYS
    columns: Columns = {name: [] for name in _COLUMNS}
    names: list[str] = []
    times: dict[tuple[str, str], float] = {}
    for access in ACCESSES:
        for cell in evidence.over(access):
            if cell.gateways != gateways:
                continue
            times[cell.name, access.name] = evidence.time_s(cell)
            if cell.name not in names:
                names.append(cell.name)
            _add(columns, cell, access, evidence.time_s(cell))
    heads = [
        "\n".join((*access.name.split(", "), f"target {access.target_s:g} s"))
        for access in ACCESSES
    ]

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.grid(visible=False)
        shares = np.full((len(names), len(ACCESSES)), np.nan)
        for row, name in enumerate(names):
            for column, access in enumerate(ACCESSES):
                time_s = times.get((name, access.name))
                if time_s is None:
                    continue
                shares[row, column] = time_s / access.target_s
                is_met = time_s < access.target_s
                text = f"{time_s:.1f} s" if isfinite(time_s) else "not in time"
                axes.text(
                    column,
                    row,
                    f"\N{CHECK MARK} {text}" if is_met else text,
                    ha="center",
                    va="center",
                    fontsize=8,
                    color="white" if is_met else "black",
                    fontweight="bold" if is_met else "normal",
                )
                axes.fill_between(
                    [column - 0.5, column + 0.5],
                    row - 0.5,
                    row + 0.5,
                    color=COLOURS[0] if is_met else "#EEEEEE",
                    linewidth=0.0,
                )
        axes.set_xlim(-0.5, len(ACCESSES) - 0.5)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xticks(range(len(heads)), labels=heads, fontsize=8)
        axes.set_yticks(range(len(names)), labels=names, fontsize=8)

    return Figure(
        id=number,
        title=f"{title}: seconds for 100 MB",
        caption="A mark: the draft's target is met. Rows: window rule, window, and how many "
        "segments go at once at first, if not ten.",
        columns=columns,
        draw=draw,
        width=12.0,
        height=1.6 + 0.28 * max(len(names), 4),
    )


def _add(columns: Columns, cell: Transfer, access: Access, time_s: float) -> None:
    values = (
        access.name,
        access.target_s,
        cell.rule,
        cell.window,
        cell.gateways,
        cell.initial_window,
        time_s if isfinite(time_s) else None,
    )
    for name, value in zip(_COLUMNS, values, strict=True):
        columns[name].append(value)
