"""Quantities as text for people. Multiples are decimal: 1 kB is 1000 bytes."""

from __future__ import annotations


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
    # Three digits, without exponents such as 1.2e+03.
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.3g}"
