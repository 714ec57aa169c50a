"""Curves with quartile bands, before they are drawn."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Curve:
    """One curve: x, then the lower quartile, median and upper quartile of what it is of."""

    label: str
    points: tuple[tuple[float, float, float, float], ...]


@dataclass(frozen=True, kw_only=True)
class Curves:
    """Goodput, or a metric, along an axis, a curve for each value of what `legend` names.

    With `ticks`, x counts them: the axis has names, not numbers. `y_label` says what it is
    of, or whose goodput, and `unit` in which unit; a label has it as it reads well.
    """

    title: str
    x_label: str
    log_x: bool
    ticks: tuple[str, ...] | None
    legend: str
    curves: tuple[Curve, ...]
    y_label: str = "goodput"
    unit: str = "bit/s"
