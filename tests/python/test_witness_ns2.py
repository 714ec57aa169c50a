"""bentpipe against ns-2: the time to the last data byte, cell by cell."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bentpipe.studies.obata2000.cells import Network, Transfer, figures_5_and_6
from bentpipe.studies.runner import simulate

from .conftest import load_script

SCRIPT = Path(__file__).parents[2] / "benches" / "witness" / "obata2000.py"
TOLERANCE = 0.02


witness = load_script(SCRIPT)

pytestmark = pytest.mark.skipif(
    not witness.ns2.available(), reason="ns-2 is not installed (no `ns` on PATH)"
)


def _transfer(cell: Any) -> Transfer:
    return Transfer(
        network=Network(
            downlink_bps=cell.downlink_bps,
            downlink_delay_s=cell.downlink_delay_s,
            uplink_bps=cell.uplink_bps,
            uplink_delay_s=cell.uplink_delay_s,
            delayed_ack_s=cell.delayed_ack_s,
        ),
        window_segments=cell.window_segments,
        file_bytes=cell.file_bytes,
    )


@pytest.fixture(scope="module")
def differences() -> dict[Any, float]:
    """Relative differences in time, ours against ns-2's, of figures 5 and 6."""
    cells = {place.cell for place in witness.paper_cells() if place.figure in {"5", "6"}}
    transfers = {cell: _transfer(cell) for cell in cells}
    outcomes = simulate(list(transfers.values()))
    times = {cell: outcomes[each].flow().transfer_time_s for cell, each in transfers.items()}
    with ThreadPoolExecutor() as pool:
        references = dict(zip(times, pool.map(witness.simulate, times), strict=True))
    compared: dict[Any, float] = witness.compare(times, references)
    return compared


def test_witness_cells_equal_the_studys(differences: dict[Any, float]) -> None:
    assert {_transfer(cell) for cell in differences} == set(figures_5_and_6())


def test_every_cell_is_within_2_percent_of_ns2(differences: dict[Any, float]) -> None:
    beyond = {cell: each for cell, each in differences.items() if abs(each) > TOLERANCE}
    assert not beyond, "\n".join(f"{each:+.2%} {cell}" for cell, each in beyond.items())
