"""karir1999: gateways at both ends of a satellite link that split TCP connections."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from bentpipe.studies.karir1999.runs import every_cell
from bentpipe.studies.study import Study

if TYPE_CHECKING:
    from bentpipe.studies.karir1999.cells import Cell

STUDY: Final[Study[Cell]] = Study.of(Path(__file__).parent, cells=every_cell)
