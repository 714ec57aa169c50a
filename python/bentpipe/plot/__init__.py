"""Figures: one style, and the plots of a run."""

from bentpipe.plot.run_plots import write_run_plots
from bentpipe.plot.style import COLOURS, MARKERS, new_axes, write_svg

__all__ = ["COLOURS", "MARKERS", "new_axes", "write_run_plots", "write_svg"]
