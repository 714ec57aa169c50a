"""The study of samaraweera1999, as a quick run makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bentpipe.studies import get
from bentpipe.studies.open_settings import committed
from bentpipe.studies.samaraweera1999 import cells, open_settings
from bentpipe.studies.samaraweera1999.cells import (
    METHODS,
    QUEUES,
    Download,
    Open,
    every_cell,
    shared,
)

FIGURES = (
    *("3", "4", "5", "6", "7", "8", "9", "10", "11", "12"),
    *("A1", "A2", "A3", "A6", "A7", "A8"),
)


STUDY = "samaraweera1999"


def test_every_figure_is_written(has_figures: bool) -> None:
    assert has_figures


@pytest.mark.parametrize(
    "id_",
    [
        "unmodified-times-out",
        "compression-times-out",
        "compression-helps-little",
        "compression-reduces",
        "compression-sizes",
        "suppression-grows",
        "suppression-crosses",
        "compaction-slow-start",
        "one-setting",
        "pacing-halves-slow-start",
        "fewer-acks-need-bytes",
        "compaction-passes-all",
        "compaction-no-timeout",
        "spacing-one",
        "spacing-three",
        "slow-start-queue",
        "rates-independent",
        "never-beyond",
        "harmless-goodput",
        "harmless-retransmissions",
    ],
)
def test_confirmed_claims_hold(claims: dict[str, Any], id_: str) -> None:
    assert claims[id_]["holds"], claims[id_]


def test_compression_of_three_sessions_times_out(claims: dict[str, Any]) -> None:
    """The tenth value of the search: no setting gives it with the others."""
    assert not claims["queue-compression"]["holds"]
    rows = committed(STUDY)
    assert max(row.within for row in rows) == len(open_settings.SEARCH.published) - 1


def test_the_study_has_the_best_setting_of_the_search() -> None:
    best = open_settings.SEARCH.best(committed(STUDY))[0]
    assert best.setting == Open().setting


def test_numbers_in_claims_are_those_of_the_search() -> None:
    (claim,) = [each for each in get(STUDY).claims if each.id == "compression-helps-little"]
    factors = [row.measured["compression_over_unmodified"] for row in committed(STUDY)]
    count = sum(factor >= 2.0 for factor in factors)
    assert f"in {count} of the {len(factors)} settings" in claim.reason
    assert f"up to {max(factors):.1f} times" in claim.changed


def test_numbers_in_causes_are_those_of_the_search() -> None:
    rows = committed(STUDY)
    causes = {each.id: each.cause.text for each in get(STUDY).claims if each.cause}

    def reached(name: str, least: float, *, framed: bool) -> tuple[int, int]:
        some = [row for row in rows if bool(row.setting["framing_bytes"]) == framed]
        return sum(row.measured[name] >= least for row in some), len(some)

    ratio = "slow_compaction_over_reconstruction"
    met, of = reached(ratio, 0.98, framed=False)
    assert f"in {met} of {of} settings" in causes["rates-highest"]
    assert reached(ratio, 0.98, framed=True) == (0, 160)
    assert all(row.measured["three_times_empty"] == 0 for row in rows)
    assert all(row.measured["three_largest_queue_acks"] > 15 for row in rows)
    ours = Open().setting
    for row in rows:
        if all(row.setting[name] == ours[name] for name in ("initial_segments", "framing_bytes")):
            restarted = row.setting["counted_from"] == "acknowledgment"
            floor = 4.0 if restarted else 6.0
            is_long = float(row.setting["minimum_s"]) >= floor
            assert (row.measured["three_compression_timeouts"] == 0) == is_long


def test_compaction_has_no_timeouts_in_figure_12(reproduction: Path) -> None:
    table = pq.read_table(reproduction / "samaraweera1999" / "figure-11.parquet").to_pylist()
    timeouts = {(row["method"], row["return_bps"]): row["timeouts"] for row in table}
    assert timeouts[cells.UNMODIFIED, cells.FIGURE_12_BPS] > 0
    for method in (cells.SUPPRESSION, cells.COMPACTION, cells.SPACING):
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
