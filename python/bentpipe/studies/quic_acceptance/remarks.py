"""Paragraphs of the report on quic-acceptance, with the numbers of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.quic_acceptance.cells import ACCESSES

if TYPE_CHECKING:
    from bentpipe.studies.quic_acceptance.evidence import Evidence


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return the report's paragraphs with the numbers of this run."""
    parts = []
    for access in ACCESSES:
        cells = evidence.over(access)
        if cells:
            failed = [cell for cell in cells if evidence.failure(cell)]
            best = evidence.best(access)
            parts.append(
                f"{access.name}: at best {evidence.time_s(best):.1f} s ({best.name}); "
                f"{len(failed)} of {len(cells)} connections failed"
            )
    return ("The fastest settings: " + ". ".join(parts) + ".", _about_picoquic())


def _about_picoquic() -> str:
    return (
        "picoquic's queue has no limit, and its packets no IP and UDP headers. Its CUBIC and BBR "
        "have starts of their own for long round trips. quinn gives a window rule neither a "
        "pacing rate of its own nor the signs of a spurious loss."
    )
