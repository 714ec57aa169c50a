"""Quantities as a scenario file writes them, "250 ms", as numbers that an axis can have.

What a key accepts is the simulator's business. Here it only matters which strings are a number
with a unit, so that "64 kbit/s" and "2 Mbit/s" lie on one axis.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

# The units of crates/scenario/src/quantity: what each measures, and how much it is of the unit
# that names the column.
_UNITS: Final[dict[str, tuple[str, Fraction]]] = {
    "ns": ("s", Fraction(1, 10**9)),
    "us": ("s", Fraction(1, 10**6)),
    "ms": ("s", Fraction(1, 10**3)),
    "s": ("s", Fraction(1)),
    "min": ("s", Fraction(60)),
    "h": ("s", Fraction(3600)),
    "bit/s": ("bps", Fraction(1)),
    "kbit/s": ("bps", Fraction(10**3)),
    "Mbit/s": ("bps", Fraction(10**6)),
    "Gbit/s": ("bps", Fraction(10**9)),
    "B": ("bytes", Fraction(1)),
    "kB": ("bytes", Fraction(10**3)),
    "KB": ("bytes", Fraction(10**3)),
    "MB": ("bytes", Fraction(10**6)),
    "GB": ("bytes", Fraction(10**9)),
    "KiB": ("bytes", Fraction(2**10)),
    "MiB": ("bytes", Fraction(2**20)),
    "GiB": ("bytes", Fraction(2**30)),
    "packet": ("packets", Fraction(1)),
    "packets": ("packets", Fraction(1)),
    "segment": ("segments", Fraction(1)),
    "segments": ("segments", Fraction(1)),
}
# What comes in whole numbers only.
COUNTED: Final = frozenset({"packets", "segments"})

_QUANTITY: Final = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?)\s*([A-Za-z/]+)\s*")


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number with a unit, exactly as it was written."""

    number: Fraction
    unit: str

    @property
    def base_unit(self) -> str:
        """The unit that a column of such quantities is in: s, bps, bytes, packets, segments."""
        return _UNITS[self.unit][0]

    @property
    def in_base_unit(self) -> float:
        """The quantity in its base unit."""
        return float(self.number * _UNITS[self.unit][1])

    def converted(self, unit: str) -> Fraction:
        """Return the number in another unit of the same kind."""
        return self.number * _UNITS[self.unit][1] / _UNITS[unit][1]


def parse_quantity(text: str) -> Quantity | None:
    """Read "250 ms"; None if the text is no number with a unit that scenarios know."""
    match = _QUANTITY.fullmatch(text)
    if match is None or match[2] not in _UNITS:
        return None
    return Quantity(number=Fraction(match[1]), unit=match[2])


def common_unit(values: Sequence[object]) -> str | None:
    """Return the base unit that all values share, None if they don't."""
    quantities = [parse_quantity(value) if isinstance(value, str) else None for value in values]
    units = {quantity.base_unit if quantity is not None else None for quantity in quantities}
    return units.pop() if len(units) == 1 else None
