"""Tables, measurements and remarks from the outcomes of the cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.quic_acceptance.evidence import Evidence
from bentpipe.studies.quic_acceptance.figures import figures
from bentpipe.studies.quic_acceptance.measurements import measure
from bentpipe.studies.quic_acceptance.remarks import remarks
from bentpipe.studies.study import Analysis, Outcomes

if TYPE_CHECKING:
    from bentpipe.studies.quic_acceptance.cells import Cell


def analyse(outcomes: Outcomes[Cell]) -> Analysis:
    """Make the tables and measure the claims."""
    evidence = Evidence(outcomes)
    return Analysis.of(evidence, figures(evidence), measure, remarks)
