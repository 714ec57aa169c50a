"""vanzara2014: Hybla, Westwood and Enhanced Hybla on a lossy satellite link of 100 Mbit/s."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.study import Study, read_claims
from bentpipe.studies.vanzara2014.analysis import analyse
from bentpipe.studies.vanzara2014.cells import StudyCell, every_cell

STUDY: Final[Study[StudyCell]] = Study(
    key="vanzara2014",
    title="Enhanced TCP Hybla and Performance Comparison for Satellite Link",
    reference="R. Vanzara, H. Bhatt, IJARET 5(4), 2014.",
    summary="A window rule that takes a loss for a bit error as long as the connection uses less "
    "than half of a capacity that it is told, compared with Hybla and Westwood on a geostationary "
    "link. We run the paper's grid with several seeds, sweep what it leaves open, set CUBIC and "
    "others beside it, and ask what sharing the link, and a wrong capacity, cost.",
    claims=read_claims(Path(__file__).parent / "claims.toml"),
    cells=every_cell,
    analyse=analyse,
)
