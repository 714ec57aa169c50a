"""Groups of the items that `count` makes: client-1, client-2 and so on are one group."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

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
