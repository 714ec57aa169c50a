"""gaid1998: a hybrid gateway that acknowledges on behalf of a host with a dish and a modem."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.gaid1998.analysis import analyse
from bentpipe.studies.gaid1998.cells import Cell, every_cell
from bentpipe.studies.study import Study, read_claims

STUDY: Final[Study[Cell]] = Study(
    key="gaid1998",
    title="Simulation Studies of a Hybrid Network in Order to Enhance the Performance of Hybrid "
    "Internet Service",
    reference="A. Y. Gaid and J. S. Baras, Center for Satellite and Hybrid Communication "
    "Networks, University of Maryland, technical report CSHCN TR 98-9, 1998.",
    summary="A host receives by satellite, 10 Mbit/s and 250 ms, and sends through a modem of "
    "9,600 bit/s. The hybrid gateway acknowledges the server's data on the host's behalf and "
    "offers a larger window than the host's (Asymmetric TCP/IP). The paper's five sets of settings "
    "are run again, what it leaves open is swept, and the gateway is set beside splitting gateways "
    "and remedies for the return link, on its network and on one of today.",
    claims=read_claims(Path(__file__).parent / "claims.toml"),
    cells=every_cell,
    analyse=analyse,
)
