"""Figures: one style, and the plots of a run."""

from bentpipe.plot.run_plots import write_run_plots
from bentpipe.plot.style import COLOURS, new_figure, save

__all__ = ["COLOURS", "new_figure", "save", "write_run_plots"]
