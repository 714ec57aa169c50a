"""karir1999: gateways at both ends of a satellite link that split TCP connections."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.karir1999.analysis import analyse
from bentpipe.studies.karir1999.cells import Cell, every_cell
from bentpipe.studies.study import Study, read_claims

STUDY: Final[Study[Cell]] = Study(
    key="karir1999",
    title="A Simulation Study of Enhanced TCP/IP Gateways for Broadband Internet over Satellite",
    reference="M. Karir, M. Liu, B. Barrett, J. S. Baras, CSHCN T.R. 99-34, 1999.",
    summary="A file of 50 Mbyte over a T1 link by satellite, with and without gateways that split "
    "the connection. The order of the four networks is the paper's; several of its numbers need "
    "other windows than those it states. Beside them: what splitting buys today's hosts.",
    claims=read_claims(Path(__file__).parent / "claims.toml"),
    cells=every_cell,
    analyse=analyse,
)
