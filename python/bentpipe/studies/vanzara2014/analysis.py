"""Figures, measurements and remarks from the outcomes of the cells."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from bentpipe.studies.study import Analysis, Outcomes
from bentpipe.studies.vanzara2014.evidence import Evidence
from bentpipe.studies.vanzara2014.figures import figures
from bentpipe.studies.vanzara2014.judgement import judgement_figures
from bentpipe.studies.vanzara2014.measurements import measure
from bentpipe.studies.vanzara2014.remarks import remarks

if TYPE_CHECKING:
    from bentpipe.studies.vanzara2014.cells import StudyCell


def analyse(outcomes: Outcomes[StudyCell]) -> Analysis:
    """Draw the figures and measure the claims."""
    evidence = Evidence(outcomes)
    return Analysis.of(
        evidence, chain(figures(evidence), judgement_figures(evidence)), measure, remarks
    )
