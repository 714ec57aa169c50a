"""The study of samaraweera1999, as a quick run makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bentpipe.studies import get
from bentpipe.studies.samaraweera1999 import cells
from bentpipe.studies.samaraweera1999.cells import METHODS, QUEUES, Download, every_cell, shared

FIGURES = ("3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "A1", "A2", "A3")


STUDY = "samaraweera1999"


def test_every_figure_is_written(has_figures: bool) -> None:
    assert has_figures


@pytest.mark.parametrize(
    "id_",
    [
        "compression-sizes",
        "suppression-grows",
        "compaction-passes-all",
        "compaction-no-timeout",
        "spacing-one",
        "spacing-three",
        "slow-start-queue",
        "queue-compression",
        "rates-highest",
        "rates-independent",
        "never-beyond",
        "harmless-goodput",
        "harmless-retransmissions",
    ],
)
def test_confirmed_claims_hold(claims: dict[str, Any], id_: str) -> None:
    assert claims[id_]["holds"], claims[id_]


def test_refuted_claim_does_not_hold(claims: dict[str, Any]) -> None:
    """A timer that every ACK restarts never expires while ACKs arrive; the remarks say more."""
    assert not claims["unmodified-times-out"]["holds"]
    assert claims["unmodified-times-out"]["measured"].startswith("0 timeouts")


def test_only_the_unmodified_method_has_timeouts_in_figure_12(reproduction: Path) -> None:
    table = pq.read_table(reproduction / "samaraweera1999" / "figure-11.parquet").to_pylist()
    timeouts = {(row["method"], row["return_bps"]): row["timeouts"] for row in table}
    assert timeouts[cells.UNMODIFIED, cells.FIGURE_12_BPS] > 0
    for method in (cells.COMPRESSION, cells.SUPPRESSION, cells.COMPACTION, cells.SPACING):
        assert timeouts[method, cells.FIGURE_12_BPS] == 0


def test_every_cell_resolves_to_its_scenario() -> None:
    for cell in every_cell(True):
        resolved = cell.scenario().resolved()
        uploads = cell.disturbance == cells.TWO_WAY
        assert len(resolved["flows"]) == cell.sessions + uploads
        (link,) = [each for each in resolved["links"] if each["name"] == "dvb"]
        assert link["return"]["rate_bps"] == cell.return_bps
        if cell.queue is not None:
            assert link["forward"]["queue"]["kind"] == cell.queue


def test_quick_run_has_a_subset_of_the_cells() -> None:
    assert set(every_cell(True)) < set(every_cell(False))
    assert get("samaraweera1999").cells(True) == every_cell(True)


def test_cells_cover_all_methods_and_queues() -> None:
    chosen = set(every_cell(False))
    for method in METHODS:
        for rate in cells.RETURN_RATES_BPS:
            assert shared(method, rate) in chosen
    for queue in QUEUES:
        assert any(isinstance(each, Download) and each.queue == queue for each in chosen)
