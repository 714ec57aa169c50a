"""Groups of the items that `count` makes: client-1, client-2 and so on are one group."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Protocol, TypeVar


class Named(Protocol):
    """A record with a name."""

    @property
    def name(self) -> str:
        """Its name."""


_Record = TypeVar("_Record", bound=Named)

# `count = 3` makes client-1, client-2, client-3, and a link's directions client-1.forward, ...
_MEMBER: Final = re.compile(r"(?P<name>.+)-(?P<number>[1-9]\d*)(?P<way>\.\w+)?")


def groups(names: Sequence[str]) -> dict[str, list[int]]:
    """Return groups by name: "client", and the indices of client-1, client-2 and so on.

    A group has two members or more, numbered from 1 without a gap. Other names are groups of one.
    """
    found: dict[str, list[int]] = {}
    numbers: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        match = _MEMBER.fullmatch(name)
        group = name if match is None else f"{match['name']}-*{match['way'] or ''}"
        found.setdefault(group, []).append(place)
        numbers.setdefault(group, []).append(0 if match is None else int(match["number"]))
    whole: dict[str, list[int]] = {}
    for group, places in found.items():
        counted = numbers[group]
        if len(places) > 1 and sorted(counted) == list(range(1, len(places) + 1)):
            whole[group.replace("-*", "", 1)] = places
        else:
            whole.update({names[place]: [place] for place in places})
    return whole


def apart(
    records: Sequence[_Record], *, most: int
) -> tuple[list[_Record], dict[str, list[_Record]]]:
    """Return the records with a row each, and the groups that share one in tables above `most`."""
    if len(records) <= most:
        return list(records), {}
    alone: list[_Record] = []
    together: dict[str, list[_Record]] = {}
    for name, places in groups([record.name for record in records]).items():
        members = [records[place] for place in places]
        if len(members) > 1:
            together[name] = members
        else:
            alone += members
    return alone, together
