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
    """One panel of a sweep's figure: a quantity along an axis, one curve per value of a second.

    * `ticks`: names along x, whose values are then indices of them.
    * `y_label`, `unit`: the quantity and its unit, which the figure may scale.
    * `panel`: the value of a third axis.
    * `note`: the seeds, and the meaning of the bands.
    """

    title: str
    x_label: str
    log_x: bool
    ticks: tuple[str, ...] | None
    legend: str
    curves: tuple[Curve, ...]
    y_label: str = "goodput"
    unit: str = "bit/s"
    panel: str = ""
    note: str = ""
