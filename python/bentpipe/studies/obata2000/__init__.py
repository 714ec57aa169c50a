"""obata2000: a throughput formula for TCP Reno, satellite down and terrestrial link up."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.obata2000.cells import Transfer, every_cell
from bentpipe.studies.study import Study

STUDY: Final[Study[Transfer]] = Study.of(Path(__file__).parent, cells=every_cell)
