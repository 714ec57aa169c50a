"""vanzara2014: Hybla, Westwood and Enhanced Hybla on a lossy satellite link of 100 Mbit/s."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.study import Study
from bentpipe.studies.vanzara2014.cells import StudyCell, every_cell

STUDY: Final[Study[StudyCell]] = Study.of(Path(__file__).parent, cells=every_cell)
