"""Figures: one style, and the plots of a run."""

from bentpipe.plot.cache import see_to_a_cache

see_to_a_cache()

from bentpipe.plot.run_plots import write_run_plots  # noqa: E402
from bentpipe.plot.style import COLOURS, MARKERS, new_axes, write_svg  # noqa: E402

__all__ = ["COLOURS", "MARKERS", "new_axes", "write_run_plots", "write_svg"]
