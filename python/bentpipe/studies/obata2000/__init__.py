"""obata2000: a throughput formula for TCP Reno, satellite down and terrestrial link up."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from bentpipe.studies.obata2000.analysis import analyse
from bentpipe.studies.obata2000.cells import Transfer, every_cell
from bentpipe.studies.study import Study, read_claims

STUDY: Final[Study[Transfer]] = Study(
    key="obata2000",
    title="TCP Performance Analysis on Asymmetric Networks Composed of Satellite and Terrestrial "
    "Links",
    reference="H. Obata, K. Ishida, J. Funasaka, K. Amano, ICNP 2000.",
    summary="A formula for the throughput of TCP Reno with delayed acknowledgments, slow start "
    "included, where data comes down by satellite and acknowledgments go up by land. We evaluate "
    "it as printed (with the advertised window in whole segments), simulate every cell packet by "
    "packet, and set a corrected formula beside it.",
    claims=read_claims(Path(__file__).parent / "claims.toml"),
    cells=every_cell,
    analyse=analyse,
)
