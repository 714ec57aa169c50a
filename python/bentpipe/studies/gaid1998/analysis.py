"""Figures, measurements and remarks from the outcomes of the cells."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from bentpipe.studies.gaid1998.centre import centre_figure
from bentpipe.studies.gaid1998.comparison import comparison_figures
from bentpipe.studies.gaid1998.evidence import Evidence
from bentpipe.studies.gaid1998.figures import figures
from bentpipe.studies.gaid1998.future import future_figures
from bentpipe.studies.gaid1998.measurements import measure
from bentpipe.studies.gaid1998.probes import probe_figures
from bentpipe.studies.gaid1998.remarks import remarks
from bentpipe.studies.study import Analysis, Outcomes

if TYPE_CHECKING:
    from bentpipe.studies.gaid1998.cells import Cell


def analyse(outcomes: Outcomes[Cell]) -> Analysis:
    """Draw the figures and measure the claims."""
    evidence = Evidence(outcomes)
    return Analysis(
        figures=[
            *figures(evidence),
            *comparison_figures(evidence),
            centre_figure(evidence),
            *future_figures(evidence),
            *probe_figures(evidence),
        ],
        measurements=partial(measure, evidence),
        remarks=partial(remarks, evidence),
    )
