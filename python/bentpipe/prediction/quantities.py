"""Quantities that a resolved scenario keeps as text: "4 Mbit/s", "500 ms"."""

from __future__ import annotations


def in_base_unit(text: str) -> float | None:
    """Return a number with a unit in bit/s, seconds or bytes; None for any other text."""
    from bentpipe import _native

    parts = _native.number_and_unit(text)
    if parts is None:
        return None
    number, unit = parts
    worth, per = next((worth, per) for name, _, worth, per, _ in _native.units() if name == unit)
    return float(number) * worth / per
