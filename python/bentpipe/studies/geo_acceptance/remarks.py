"""Paragraphs of the report on geo-acceptance, with the numbers of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.geo_acceptance.cells import ACCESSES, GATEWAYS, SPLIT

if TYPE_CHECKING:
    from bentpipe.studies.geo_acceptance.evidence import Evidence


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return the report's paragraphs with the numbers of this run."""
    return (_who_meets_what(evidence), _about_the_draft())


def _who_meets_what(evidence: Evidence) -> str:
    parts = []
    for access in ACCESSES:
        found = []
        for gateways in GATEWAYS:
            cells = [cell for cell in evidence.over(access) if cell.gateways == gateways]
            met = sum(evidence.met(cell) for cell in cells)
            best = evidence.best(access, gateways=gateways)
            where = "with gateways" if gateways == SPLIT else "end to end"
            found.append(
                f"{where} {met} of {len(cells)}, "
                f"at best {evidence.time_s(best):.1f} s ({best.name})"
            )
        parts.append(f"{access.name}, {access.target_s:g} s: {'; '.join(found)}")
    return "How many settings meet each target: " + ". ".join(parts) + "."


def _about_the_draft() -> str:
    return (
        "The draft's targets are for QUIC, whose headers and handshake differ from TCP's by less "
        "than what is between these settings. Its text gives no rate for the losses in the form "
        "that we have it, so three are tried. Tables 1 and 2 have one seed; table 3 has the times "
        "of several seeds for the settings that come near the target with losses."
    )
