"""Published values in a figure: one marker style and one band style everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Above curves and bars (matplotlib: lines 2, texts 3).
_ON_TOP: Final = 5.0
_BEHIND: Final = 0.5
_BLACK: Final = "#000000"


def mark(
    axes: Axes,
    x: float | Sequence[float],
    y: float | Sequence[float],
    *,
    label: str | None = "paper",
) -> None:
    """Mark published values with hollow black diamonds, in the legend as `label`."""
    axes.plot(
        np.atleast_1d(x),
        np.atleast_1d(y),
        linestyle="none",
        marker="D",
        markersize=7.0,
        markerfacecolor="none",
        markeredgecolor=_BLACK,
        markeredgewidth=1.3,
        label=label,
        zorder=_ON_TOP,
    )


def band(axes: Axes, low: float, high: float, *, label: str | None = "paper") -> None:
    """Mark a published range of y over the whole width; a dashed line where both ends are equal."""
    if low == high:
        axes.axhline(low, color=_BLACK, linestyle=(0, (4, 3)), linewidth=1.1, label=label)
        return
    axes.axhspan(
        low,
        high,
        facecolor=_BLACK,
        alpha=0.12,
        linewidth=0.0,
        label=label,
        zorder=_BEHIND,
    )
