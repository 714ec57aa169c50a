"""Figures, measurements and remarks from the outcomes of the cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.karir1999.evidence import Evidence
from bentpipe.studies.karir1999.figures import figures
from bentpipe.studies.karir1999.measurements import measure
from bentpipe.studies.karir1999.remarks import remarks
from bentpipe.studies.study import Analysis, Outcomes

if TYPE_CHECKING:
    from bentpipe.studies.karir1999.cells import Cell


def analyse(outcomes: Outcomes[Cell]) -> Analysis:
    """Draw the figures and measure the claims."""
    evidence = Evidence(outcomes)
    return Analysis.of(evidence, figures(evidence), measure, remarks)
