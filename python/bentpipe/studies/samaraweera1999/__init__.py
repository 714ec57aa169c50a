"""samaraweera1999: a satellite download whose ACKs return through a modem."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.samaraweera1999.cells import Download, every_cell
from bentpipe.studies.study import Study

STUDY: Final[Study[Download]] = Study.of(Path(__file__).parent, cells=every_cell)
