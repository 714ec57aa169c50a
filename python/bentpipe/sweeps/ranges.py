"""Ranges: values between two ends, in even steps or by equal factors, with or without units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from bentpipe.sweeps.quantities import COUNTED, Quantity, parse_quantity

KEYS: Final = ("from", "to", "count", "step", "per_decade", "scale")
SCALES: Final = ("linear", "log")
EXAMPLE: Final = '{ from = "100 ms", to = "600 ms", count = 6 }'
# Greatest number of values on one axis: more is a typing error in a count.
MOST_VALUES: Final = 100_000

# Digits of a value: enough to tell the values of a range apart, and few enough to keep 1e-07.
_DIGITS: Final = 12


class RangeError(ValueError):
    """A range is wrong; `key` is the key to correct."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = key


@dataclass(frozen=True, kw_only=True)
class _End:
    """One end of a range, in the unit of the first end."""

    number: Fraction
    unit: str
    whole: bool


def expand_range(spec: Mapping[str, object]) -> tuple[str | int | float, ...]:
    """Return the values of a range, both ends included.

    Whole ends give whole values, as do packets and segments. The ends themselves are returned as
    written.

    Raises
    ------
    RangeError
        The range is wrong.
    """
    low, high = _ends(spec)
    if low.number >= high.number:
        raise RangeError(
            "to", f"expected more than from = {_told(spec['from'])}, got {_told(spec['to'])}"
        )
    scale = spec.get("scale", "linear")
    if scale not in SCALES:
        raise RangeError("scale", f'expected "linear" or "log", got {_told(scale)}')
    numbers = _linear(spec, low, high) if scale == "linear" else _log(spec, low, high)
    values = [_written(number, low) for number in numbers]
    values[0] = _as_given(spec["from"])
    if numbers[-1] == high.number:
        values[-1] = _as_given(spec["to"])
    if len(set(values)) < len(values):
        raise RangeError(
            "count", f"expected at most as many values as there are whole numbers, got {values}"
        )
    return tuple(values)


def _ends(spec: Mapping[str, object]) -> tuple[_End, _End]:
    for key in ("from", "to"):
        if key not in spec:
            raise RangeError("", f"{key} is missing; expected a range such as {EXAMPLE}")
    first, last = _parsed(spec, "from"), _parsed(spec, "to")
    if isinstance(first, Quantity) and isinstance(last, Quantity):
        if first.base_unit != last.base_unit:
            raise RangeError("to", f"expected the unit of from, {first.unit}, got {last.unit}")
        whole = first.base_unit in COUNTED
        return (
            _End(number=first.number, unit=first.unit, whole=whole),
            _End(number=last.converted(first.unit), unit=first.unit, whole=whole),
        )
    if isinstance(first, Quantity) or isinstance(last, Quantity):
        raise RangeError("to", "expected a unit at both ends or at none")
    whole = isinstance(spec["from"], int) and isinstance(spec["to"], int)
    return _End(number=first, unit="", whole=whole), _End(number=last, unit="", whole=whole)


def _parsed(spec: Mapping[str, object], key: str) -> Quantity | Fraction:
    value = spec[key]
    if isinstance(value, str) and (quantity := parse_quantity(value)) is not None:
        return quantity
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise RangeError(
            key, f'expected a number, or a quantity such as "100 ms", got {_told(value)}'
        )
    return Fraction(repr(value))


def _linear(spec: Mapping[str, object], low: _End, high: _End) -> list[Fraction]:
    _only(spec, "count", "step", scale="linear")
    if "step" not in spec:
        count = _count(spec, "count", least=2)
        return [
            low.number + (high.number - low.number) * each / (count - 1) for each in range(count)
        ]
    step = _step(spec, low)
    count = (high.number - low.number) // step + 1
    _bounded("step", count)
    return [low.number + step * each for each in range(count)]


def _step(spec: Mapping[str, object], low: _End) -> Fraction:
    step = _parsed(spec, "step")
    if isinstance(step, Quantity):
        if not low.unit or step.base_unit != Quantity(number=step.number, unit=low.unit).base_unit:
            raise RangeError("step", f"expected the unit of from, got {_told(spec['step'])}")
        step = step.converted(low.unit)
    elif low.unit:
        raise RangeError("step", f"expected a unit as in from, got {_told(spec['step'])}")
    if step <= 0:
        raise RangeError("step", f"expected more than 0, got {_told(spec['step'])}")
    return step


def _log(spec: Mapping[str, object], low: _End, high: _End) -> list[Fraction]:
    _only(spec, "count", "per_decade", scale="log")
    if low.number <= 0:
        raise RangeError("from", f"expected more than 0 on a log scale, got {_told(spec['from'])}")
    decades = math.log10(high.number) - math.log10(low.number)
    if "per_decade" in spec:
        each = _count(spec, "per_decade", least=1)
        # A range whose end lies between two steps stops at the last step before it.
        steps = math.floor(decades * each + 1e-9)
        _bounded("per_decade", steps + 1)
        exponents = [step / each for step in range(steps + 1)]
    else:
        count = _count(spec, "count", least=2)
        exponents = [decades * step / (count - 1) for step in range(count)]
    start = math.log10(low.number)
    numbers = [Fraction(f"{10.0 ** (start + exponent):.{_DIGITS}g}") for exponent in exponents]
    numbers[0] = low.number
    if abs(exponents[-1] - decades) < 1e-9:
        numbers[-1] = high.number
    return numbers


def _only(spec: Mapping[str, object], first: str, second: str, *, scale: str) -> None:
    """Require exactly one of the two keys that give the number of values."""
    for key in ("count", "step", "per_decade"):
        if key in spec and key not in {first, second}:
            raise RangeError(key, f"not on a {scale} scale; expected {first} or {second}")
    if (first in spec) == (second in spec):
        wrong = "both" if first in spec else "neither"
        raise RangeError("", f"expected either {first} or {second}, got {wrong}")


def _count(spec: Mapping[str, object], key: str, *, least: int) -> int:
    count = spec[key]
    if isinstance(count, bool) or not isinstance(count, int) or not least <= count <= MOST_VALUES:
        raise RangeError(
            key, f"expected a whole number from {least} to {MOST_VALUES}, got {_told(count)}"
        )
    return count


def _bounded(key: str, count: int) -> None:
    if count > MOST_VALUES:
        raise RangeError(key, f"expected at most {MOST_VALUES} values, this makes {count}")


def _written(number: Fraction, end: _End) -> str | int | float:
    if end.whole:
        # Halves are rounded up, which keeps the gaps as even as possible.
        number = Fraction(math.floor(number + Fraction(1, 2)))
    if not end.unit:
        return int(number) if end.whole else float(f"{float(number):.{_DIGITS}g}")
    text = str(int(number)) if number.denominator == 1 else f"{float(number):.{_DIGITS}g}"
    # Never an exponent, so that people can read it.
    return f"{format(Decimal(text), 'f')} {end.unit}"


def _as_given(value: object) -> str | int | float:
    assert isinstance(value, str | int | float)
    return value


def _told(value: object) -> str:
    """Return a value as the scenario reader's messages show it."""
    return f'"{value}"' if isinstance(value, str) else str(value)
