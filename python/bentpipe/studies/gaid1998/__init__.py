"""gaid1998: a hybrid gateway that acknowledges on behalf of a host with a dish and a modem."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.gaid1998.runs import Cell, every_cell
from bentpipe.studies.study import Study

STUDY: Final[Study[Cell]] = Study.of(Path(__file__).parent, cells=every_cell)
