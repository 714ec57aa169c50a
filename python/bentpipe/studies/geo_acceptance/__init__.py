"""geo-acceptance: 100 MB by geostationary satellite within a draft's target times."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.geo_acceptance.cells import Transfer, every_cell
from bentpipe.studies.study import Study

STUDY: Final[Study[Transfer]] = Study.of(Path(__file__).parent, cells=every_cell)
