"""quic-acceptance: 100 MB by geostationary satellite over QUIC, beside the bounds of picoquic."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.quic_acceptance.cells import Cell, every_cell
from bentpipe.studies.study import Study

STUDY: Final[Study[Cell]] = Study.of(Path(__file__).parent, cells=every_cell)
