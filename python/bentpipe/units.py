"""Quantities, read from a scenario and written for people.

Multiples of bits and bytes are decimal (kB = 1000 B); KiB and MiB are binary.
"""

from __future__ import annotations

import math
import re
from typing import Final

_PREFIXES: Final = {"": 1.0, "k": 1e3, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_BINARY: Final = {"Ki": 1024.0, "Mi": 1024.0**2, "Gi": 1024.0**3}
_TIMES: Final = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0,
}  # fmt: skip
_QUANTITY: Final = re.compile(r"\s*([-+]?[\d_]*\.?\d+(?:[eE][-+]?\d+)?)\s*(\S.*?)?\s*")


def seconds(quantity: str | float) -> float:
    """Read a time such as "250 ms"; a bare number is seconds already."""
    number, unit = _split(quantity, default="s")
    if unit not in _TIMES:
        raise ValueError(f"{quantity!r} is no time")
    return number * _TIMES[unit]


def bits_per_second(quantity: str | float) -> float:
    """Read a rate such as "1.536 Mbit/s"; a bare number is bit/s already."""
    number, unit = _split(quantity, default="bit/s")
    prefix = unit.removesuffix("bit/s")
    if prefix == unit or prefix not in _PREFIXES:
        raise ValueError(f"{quantity!r} is no rate")
    return number * _PREFIXES[prefix]


def amount(quantity: str | float, *, segment_bytes: float = math.nan) -> float:
    """Read bytes, such as "64 KiB" or "10 segments"; a bare number is bytes already."""
    number, unit = _split(quantity, default="B")
    if unit in {"segment", "segments"}:
        return number * segment_bytes
    prefix = unit.removesuffix("B")
    scale = _PREFIXES.get(prefix, _BINARY.get(prefix))
    if prefix == unit or scale is None:
        raise ValueError(f"{quantity!r} is no number of bytes")
    return number * scale


def ratio(quantity: str | float) -> float:
    """Read a fraction such as "16/15", or a number."""
    if not isinstance(quantity, str):
        return float(quantity)
    upper, _, lower = quantity.partition("/")
    return float(upper) / float(lower or 1)


def format_rate(bits_per_second: float) -> str:
    """Write a rate: "1.54 Mbit/s"."""
    return _scaled(bits_per_second, "bit/s")


def format_bytes(count: float) -> str:
    """Write a number of bytes: "1.02 MB"."""
    return _scaled(count, "B")


def format_seconds(time_s: float | None) -> str:
    """Write a time: "250 ms", "12.3 s"; a dash for None."""
    if time_s is None:
        return "–"
    if time_s and abs(time_s) < 1e-3:
        return f"{_rounded(time_s * 1e6)} µs"
    if time_s and abs(time_s) < 1.0:
        return f"{_rounded(time_s * 1e3)} ms"
    return f"{_rounded(time_s)} s"


def _scaled(value: float, unit: str) -> str:
    for prefix, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale:
            return f"{_rounded(value / scale)} {prefix}{unit}"
    return f"{_rounded(value)} {unit}"


def _rounded(value: float) -> str:
    # Three digits, but never 1.2e+03.
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _split(quantity: str | float, *, default: str) -> tuple[float, str]:
    if not isinstance(quantity, str):
        return float(quantity), default
    match = _QUANTITY.fullmatch(quantity)
    if match is None:
        raise ValueError(f"{quantity!r} is no quantity")
    return float(match[1].replace("_", "")), match[2] or default
