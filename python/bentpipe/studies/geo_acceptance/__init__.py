"""geo-acceptance: 100 MB by geostationary satellite in the time that a draft allows."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.geo_acceptance.analysis import analyse
from bentpipe.studies.geo_acceptance.cells import Transfer, every_cell
from bentpipe.studies.study import Study, read_claims

STUDY: Final[Study[Transfer]] = Study(
    key="geo-acceptance",
    title="QUIC for SATCOM: the regression tests and their acceptance targets",
    reference="N. Kuhn, G. Fairhurst, J. Border, E. Stephan, draft-kuhn-quic-4-sat-06, 2020.",
    summary="The draft says how long 100 MB may take over a round trip of 600 ms. It speaks of "
    "QUIC; here it is asked which of TCP's window rules, windows and gateways meet its targets.",
    claims=read_claims(Path(__file__).parent / "claims.toml"),
    cells=every_cell,
    analyse=analyse,
)
