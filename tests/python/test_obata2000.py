"""The study of obata2000, as a quick run makes it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bentpipe.studies import get
from bentpipe.studies.obata2000.cells import (
    DELAYED_ACK_S,
    FIGURE_5,
    KBYTES,
    NS2_DELAYED_ACK_S,
    SEGMENT_BYTES,
    every_cell,
    figure_cells,
    figures_5_and_6,
    lossy_cells,
    random_cells,
)
from bentpipe.studies.open_settings import committed, search_of

STUDY = "obata2000"
FIGURES = ("5", "6", "7", "8", "9", "10", "A1", "A2")


def test_every_figure_is_written(has_figures: bool, reproduction: Path) -> None:
    assert has_figures
    assert (reproduction / "report.html").stat().st_size > 100_000


def test_own_claims_hold(claims: dict[str, Any]) -> None:
    for id_ in ("corrected-figures", "corrected-random"):
        assert claims[id_]["source"] == "bentpipe"
        assert claims[id_]["holds"], claims[id_]


def test_failing_paper_claims_are_the_documented_ones(claims: dict[str, Any]) -> None:
    """Not a wish: a change that turns one of these over must be explained."""
    fail = {id_ for id_, verdict in claims.items() if not verdict["holds"]}
    assert fail == {
        # The delayed-ACK timer, which the printed formula knows in the first round only.
        "consistent-values",
        # By one of two readings only.
        "existing-overestimates",
        # Linear and monotonic, but not proportional.
        "proportional-delay",
        "inverse-bandwidth",
    }


def test_figures_5_and_6_have_the_authors_numbers(claims: dict[str, Any]) -> None:
    # With ns-2's timer, not with the formula's 200 ms: 79 of 107 instead of 44.
    assert "in order at 7 of 7 windows" in claims["bandwidth-order"]["measured"]
    assert claims["consistent"]["measured"].startswith("54 of 54 cells within 2% of the axis")


def test_searched_setting_is_the_studys(claims: dict[str, Any]) -> None:
    search, _ = search_of(STUDY)
    best = search.best(committed(STUDY))[0].within
    (row,) = [
        row
        for row in committed(STUDY)
        if row.setting
        == {
            "simulated_timer_ms": 1e3 * NS2_DELAYED_ACK_S,
            "formula_timer_ms": 1e3 * DELAYED_ACK_S,
            "kbyte": KBYTES[0],
            "window": "down",
            "file": "bytes",
        }
    ]
    assert row.within == best
    assert set(search.cells(row.setting)) == set(figures_5_and_6([KBYTES[0]]))
    errors = claims["consistent"]["values"]["error_over_axis"]
    largest = max(abs(each) for each in errors)
    assert largest == pytest.approx(row.measured["largest_error_of_axis"], rel=1e-5)


def test_figure_9_retransmits_the_two_lost_segments(reproduction: Path) -> None:
    table = pq.read_table(reproduction / "obata2000" / "figure-9.parquet").to_pylist()
    again = [row["value"] for row in table if row["series"] == "retransmitted"]
    (cell,) = [cell for cell in lossy_cells().values() if cell.traced]
    lost = [segment * SEGMENT_BYTES for segment in cell.lost_segments]
    # Whether an offset is a segment's beginning or its end is the probe's business.
    assert [value // SEGMENT_BYTES * SEGMENT_BYTES for value in again[:2]] == lost


def test_cells_include_the_papers() -> None:
    assert len(figures_5_and_6()) == 107
    for kbyte in KBYTES:
        windows = {cell.window_segments for cell in figure_cells(FIGURE_5["125 ms"], kbyte)}
        assert windows >= {kbytes * kbyte // SEGMENT_BYTES for kbytes in (4, 8, 16, 32, 64, 128)}
        assert windows >= {67, 68}
    assert math.isclose(FIGURE_5["125 ms"].saturation_window(), 67.1, abs_tol=0.1)


def test_random_networks_are_deterministic() -> None:
    assert random_cells() == random_cells()
    assert random_cells(40) == random_cells()[:40]
    assert len(set(random_cells())) == 200


def test_every_cell_resolves_to_its_scenario() -> None:
    for cell in every_cell(True)[::10]:
        resolved = cell.scenario().resolved()
        receiver = resolved["nodes"][1]["tcp"]
        assert receiver["receive_buffer_bytes"] == cell.window_segments * SEGMENT_BYTES
        (link,) = resolved["links"]
        assert link["forward"]["rate_bps"] == cell.network.downlink_bps
        assert link["return"]["delay_s"] == pytest.approx(cell.network.uplink_delay_s)


def test_quick_run_has_a_subset_of_the_cells() -> None:
    assert len(every_cell(True)) < len(every_cell(False))
    assert set(every_cell(True)) <= set(every_cell(False))
    assert get("obata2000").cells(True) == every_cell(True)
