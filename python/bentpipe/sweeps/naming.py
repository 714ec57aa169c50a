"""Column names of axes: the end of the key, with its unit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import fields
from typing import Final

from bentpipe.results import DirectionResult, FlowResult, RoundTrip, Summary

# Columns of the results. `seed` and `duration_s` mean the same in both.
RESERVED: Final = (
    frozenset({"cell", "kind", "name", "error", "flow", "group", "link", "gateway", "run"})
    | {each.name for record in (Summary, FlowResult, DirectionResult) for each in fields(record)}
    | {f"rtt_{each.name}_ms" for each in fields(RoundTrip)}
) - {"seed", "duration_s"}


def axis_columns(
    keys: Sequence[tuple[str, str, str]], *, reserved: Iterable[str] = ()
) -> list[str]:
    """Return a column name for each (key, unit, name given by the user or None).

    It is the key's last part and the unit: `links.satellite.forward.delay` in seconds is `delay_s`.
    More parts are used where columns would have equal names.
    """
    taken = RESERVED | set(reserved) | {name for _, _, name in keys if name}
    open_ = [key for key, _, name in keys if not name]
    depths = dict.fromkeys(range(len(keys)), 1)
    while True:
        names = [
            name or _column(key, unit, depths[at]) for at, (key, unit, name) in enumerate(keys)
        ]
        clashing = [
            at
            for at, (key, _, name) in enumerate(keys)
            if not name
            and (names[at] in taken or names.count(names[at]) > 1)
            and depths[at] <= key.count(".")
        ]
        if not clashing or not open_:
            return names
        for at in clashing:
            depths[at] += 1


def _column(key: str, unit: str, depth: int) -> str:
    text = "_".join([*key.split(".")[-depth:], *([unit] if unit else [])])
    return re.sub(r"[^A-Za-z0-9_]", "_", text)
