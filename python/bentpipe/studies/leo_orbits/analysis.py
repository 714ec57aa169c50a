"""Figures, measurements and remarks from the outcomes of the cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.leo_orbits.evidence import Evidence
from bentpipe.studies.leo_orbits.figures import figures
from bentpipe.studies.leo_orbits.measurements import measure
from bentpipe.studies.leo_orbits.remarks import remarks
from bentpipe.studies.study import Analysis, Outcomes

if TYPE_CHECKING:
    from bentpipe.studies.leo_orbits.cells import Cell


def analyse(outcomes: Outcomes[Cell]) -> Analysis:
    """Draw the figures and measure the claims."""
    evidence = Evidence(outcomes)
    return Analysis.of(evidence, figures(evidence), measure, remarks)
