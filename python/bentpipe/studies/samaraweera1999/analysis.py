"""Figures, measurements and remarks from the outcomes of the cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.samaraweera1999.comparison import comparison_figures
from bentpipe.studies.samaraweera1999.evidence import Evidence
from bentpipe.studies.samaraweera1999.figures import figures
from bentpipe.studies.samaraweera1999.measurements import measure
from bentpipe.studies.samaraweera1999.remarks import remarks
from bentpipe.studies.study import Analysis, Outcomes

if TYPE_CHECKING:
    from bentpipe.studies.samaraweera1999.cells import Download


def analyse(outcomes: Outcomes[Download]) -> Analysis:
    """Draw the figures and measure the claims."""
    evidence = Evidence(outcomes)
    return Analysis.of(
        evidence, [*figures(evidence), *comparison_figures(evidence)], measure, remarks
    )
