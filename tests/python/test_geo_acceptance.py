"""The study geo-acceptance: its cells are what they say, and it measures what it claims."""

from __future__ import annotations

import pytest

from bentpipe import studies
from bentpipe.studies.geo_acceptance import cells
from bentpipe.studies.geo_acceptance.cells import ACCESSES, SPLIT, Transfer, every_cell
from bentpipe.studies.geo_acceptance.evidence import Evidence
from bentpipe.studies.geo_acceptance.measurements import _MEASURES
from bentpipe.studies.runner import simulate


def test_study_is_found_by_name_and_measures_every_claim() -> None:
    study = studies.get("geo-acceptance")
    assert study.key == "geo-acceptance"
    assert {claim.id for claim in study.claims} == _MEASURES.keys()


@pytest.mark.parametrize("access", ACCESSES, ids=lambda access: access.name)
def test_access_parameters_equal_the_drafts(access: cells.Access) -> None:
    resolved = Transfer(access=access, gateways=SPLIT).scenario().resolved()
    links = {link["name"]: link for link in resolved["links"]}
    satellite = links["satellite"]
    assert satellite["forward"]["rate_bps"] == access.down_bps
    assert satellite["return"]["rate_bps"] == access.up_bps
    trip = sum(link[way]["delay_s"] for link in links.values() for way in ("forward", "return"))
    assert trip == pytest.approx(0.6)
    (flow,) = resolved["flows"]
    assert flow["from"] == ("client" if access.upload else "server")
    assert flow["app"]["size_bytes"] == 100_000_000


def test_quick_cells_are_a_subset_of_all_cells() -> None:
    quick, everything = every_cell(True), every_cell(False)
    assert set(quick) < set(everything)
    assert len(everything) == len(set(everything)) == 7 * 4 * 2 * 2 * 2


def test_transfer_time_is_serialization_plus_slow_start_rounds() -> None:
    cell = Transfer(access=cells.SMALL, window=cells.LARGE_WINDOW)
    evidence = Evidence(simulate([cell]))
    # 100 MB in segments of 1448 B, packets of 1500 B.
    link_s = 100e6 / 1448 * 1500 * 8 / 10e6
    assert link_s + 0.6 < evidence.time_s(cell) < link_s + 0.6 + 7 * 0.6
