"""Tables of the settings that meet the targets."""

from __future__ import annotations

from math import isfinite
from statistics import median
from typing import TYPE_CHECKING

from bentpipe.studies.columns import Columns, add, empty
from bentpipe.studies.geo_acceptance.cells import (
    ACCESSES,
    LOSSY,
    NO_GATEWAYS,
    SEEDS,
    SPLIT,
    with_losses,
)
from bentpipe.studies.study import Table

if TYPE_CHECKING:
    from bentpipe.studies.geo_acceptance.cells import Access, Transfer
    from bentpipe.studies.geo_acceptance.evidence import Evidence


def figures(evidence: Evidence) -> list[Table]:
    """Return the times without gateways, those with gateways, and those of several seeds."""
    return [
        _times(evidence, NO_GATEWAYS, "1", "End to end"),
        _times(evidence, SPLIT, "2", "With split gateways at both ends of the satellite link"),
        _seeds(evidence),
    ]


def _times(evidence: Evidence, gateways: str, number: str, title: str) -> Table:
    settings: dict[str, None] = {}
    cells: dict[tuple[str, Access], Transfer] = {}
    for access in ACCESSES:
        for cell in evidence.over(access):
            if cell.gateways == gateways:
                settings[cell.name] = None
                cells[cell.name, access] = cell
    columns: Columns = {"setting": list(settings)}
    marked: dict[str, list[bool]] = {}
    for access in ACCESSES:
        head = _head(access)
        of_access = [cells.get((name, access)) for name in settings]
        columns[head] = [None if each is None else _time(evidence, each) for each in of_access]
        marked[head] = [each is not None and evidence.met(each) for each in of_access]
    return Table(
        id=number,
        title=f"{title}: seconds for 100 MB",
        caption="Marked: the draft's target is met. Settings: window rule, window, and the initial "
        "window in segments, if it is not ten. No value: not within two hours.",
        columns=columns,
        marked=marked,
    )


def _seeds(evidence: Evidence) -> Table:
    columns = empty(
        "access", "setting", "seeds", "below the target", "median, s", "least, s", "most, s"
    )
    marked: list[bool] = []
    for access in LOSSY:
        for cell in with_losses(access, SEEDS[0]):
            times_s = evidence.by_seed(cell)
            middle_s = median(times_s)
            add(
                columns,
                access.name,
                cell.name,
                len(times_s),
                sum(each < access.target_s for each in times_s),
                middle_s,
                min(times_s),
                max(times_s),
            )
            marked.append(middle_s < access.target_s)
    target_s = LOSSY[0].target_s
    return Table(
        id="3",
        title="With losses: seconds for 100 MB by seed, end to end",
        caption=f"The target is {target_s:g} s. Marked: met in the median. Table 1 has the other "
        "settings, with one seed.",
        columns=columns,
        marked={"median, s": marked},
    )


def _head(access: Access) -> str:
    return f"{access.name} (target {access.target_s:g} s)"


def _time(evidence: Evidence, cell: Transfer) -> float | None:
    time_s = evidence.time_s(cell)
    return time_s if isfinite(time_s) else None
