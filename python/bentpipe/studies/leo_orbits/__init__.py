"""leo-orbits: what published studies of low orbits found, measured over the presets' orbits."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.leo_orbits.cells import Cell, every_cell
from bentpipe.studies.study import Study

STUDY: Final[Study[Cell]] = Study.of(Path(__file__).parent, cells=every_cell)
