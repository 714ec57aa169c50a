"""Paragraphs of the report on leo-orbits, with the numbers of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.leo_orbits.cells import ship

if TYPE_CHECKING:
    from bentpipe.studies.leo_orbits.evidence import Evidence


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return the report's paragraphs with the numbers of this run."""
    path = evidence.orbit(ship()).path("satellite")
    echoes = evidence.result(ship()).flow("echo").extra["echoes"]
    return (
        (
            f"The ship has service for {path['available']:.0%} of its day, with gaps of up to "
            f"{path['worst_gap_s'] / 60:.0f} minutes; {echoes['count']:,} of "
            f"{echoes['requests']:,} echoes are answered."
        ),
        (
            "Beams, their sharing and the operator's scheduling are not modelled: real round trips "
            "vary more than these orbits do, and real rates are lower in busy cells."
        ),
    )
