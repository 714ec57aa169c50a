"""Quantities of a scenario file, such as "250 ms", as numbers on an axis.

The simulator decides which values a key accepts. This module only recognises numbers with a unit,
so that "64 kbit/s" and "2 Mbit/s" lie on one axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from bentpipe import _native

# Each unit's base unit, which names the column, and the factor to it.
_UNITS: Final[dict[str, tuple[str, Fraction]]] = {
    name: (base, Fraction(worth, per)) for name, base, worth, per, _ in _native.units()
}
# Base units of quantities that are whole numbers.
COUNTED: Final = frozenset(base for _, base, _, _, whole in _native.units() if whole)


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """A number with a unit, exactly as written."""

    number: Fraction
    unit: str

    @property
    def base_unit(self) -> str:
        """The unit of a column of such quantities: s, bps, bytes, packets, segments."""
        return _UNITS[self.unit][0]

    @property
    def in_base_unit(self) -> float:
        """The quantity in its base unit."""
        return float(self.number * _UNITS[self.unit][1])

    def converted(self, unit: str) -> Fraction:
        """Return the number in another unit of the same kind."""
        return self.number * _UNITS[self.unit][1] / _UNITS[unit][1]


def parse_quantity(text: str) -> Quantity | None:
    """Return the quantity of a text such as "250 ms"; None if it is no number with a known unit."""
    parts = _native.number_and_unit(text)
    return None if parts is None else Quantity(number=Fraction(parts[0]), unit=parts[1])


def common_unit(values: Sequence[object]) -> str | None:
    """Return the base unit that all values share, or None."""
    quantities = [parse_quantity(value) if isinstance(value, str) else None for value in values]
    units = {quantity.base_unit if quantity is not None else None for quantity in quantities}
    return units.pop() if len(units) == 1 else None
