"""samaraweera1999: a satellite download whose ACKs go back through a modem."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.samaraweera1999.analysis import analyse
from bentpipe.studies.samaraweera1999.cells import Download, every_cell
from bentpipe.studies.study import Study, read_claims

STUDY: Final[Study[Download]] = Study(
    key="samaraweera1999",
    title="Return Link Optimization for Internet Service Provision Using DVB-S Networks",
    reference="N. K. G. Samaraweera, ACM SIGCOMM Computer Communication Review 29(3), 1999.",
    summary="A download of 10 Mbit/s by satellite, acknowledged through a modem of 9.6 kbit/s: "
    "the ACKs queue up, the sender times out, and the download crawls. Header compression, ACK "
    "suppression, and the paper's own ACK compaction and spacing are compared; we set beside them "
    "the ACK filter of Linux's CAKE and RFC 3449's ACK reconstruction, and ask whether the methods "
    "do any harm to today's TCP.",
    claims=read_claims(Path(__file__).parent / "claims.toml"),
    cells=every_cell,
    analyse=analyse,
)
