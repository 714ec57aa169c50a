"""Where the axes of a figure are: constrained layout, measured once where that is enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from matplotlib.layout_engine import ConstrainedLayoutEngine

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class MeasuredOnce(ConstrainedLayoutEngine):
    """Constrained layout, by the same rules, in half of its time for a figure with one axes.

    Matplotlib measures everything twice, and measuring takes as long as drawing: labels beside the
    axes may change their size when the axes move. In most of our figures only the numbers along
    the axes can change. Whether they did is known without measuring. The last number below may
    also stand out to the right by a different amount.
    """

    def execute(self, fig: Figure) -> None:
        """Place the axes."""
        axes = _alone(fig)
        if axes is None:
            super().execute(fig)
            return
        before = _numbers(axes)
        stands_out = self._place(fig, axes)
        if stands_out or _numbers(axes) != before:
            self._place(fig, axes)

    def _place(self, figure: Figure, axes: Axes) -> bool:
        """Measure what stands beside the axes, leave room for it; say if any does to the right."""
        in_figure = figure.transFigure.inverted()
        place = axes.get_position(original=True)
        measured: Any = axes.get_tightbbox(for_layout_only=True)
        taken = in_figure.transform_bbox(measured)
        width, height = figure.get_size_inches()
        padding = self.get()
        aside, above = padding["w_pad"] / width, padding["h_pad"] / height
        left = place.x0 - taken.x0 + aside
        right = taken.x1 - place.x1 + aside
        bottom = place.y0 - taken.y0 + above
        top = taken.y1 - place.y1 + above
        for legend in figure.legends:
            below: Any = legend.get_tightbbox()
            extent = in_figure.transform_bbox(below)
            bottom += extent.height + 2 * above
        axes.set_position((left, bottom, 1.0 - left - right, 1.0 - bottom - top))
        # A figure that gets another size is laid out again.
        axes.set_in_layout(True)
        return bool(taken.x1 > place.x1)


def _alone(figure: Figure) -> Axes | None:
    """Return the axes of a figure in which nothing else depends on how large they are."""
    if len(figure.axes) != 1 or figure.subfigs or figure.get_suptitle():
        return None
    if any(getattr(legend, "_outside_loc", None) != "lower" for legend in figure.legends):
        return None
    (axes,) = figure.axes
    if axes.get_legend() or axes.texts or axes.child_axes:
        return None
    # Aslant, those below reach to the left by what the axes' width leaves.
    return None if axes.xaxis.get_tick_params().get("rotation") else axes


def _numbers(axes: Axes) -> list[list[str]]:
    """Return what is written along the axes: a longer axis may have other numbers."""
    written = []
    for axis in (axes.xaxis, axes.yaxis):
        written.append(axis.get_major_formatter().format_ticks(list(axis.get_majorticklocs())))
        written.append(axis.get_minor_formatter().format_ticks(list(axis.get_minorticklocs())))
    return written
