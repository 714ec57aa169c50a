"""The study quic-acceptance: its cells are what they say, and it measures what it claims."""

from __future__ import annotations

from math import isinf

import pytest

from bentpipe import studies
from bentpipe.studies.quic_acceptance import STUDY, cells
from bentpipe.studies.quic_acceptance.cells import (
    ACCESSES,
    DEFAULT,
    FITTING,
    LARGE_WINDOW,
    RULES,
    Transfer,
    acknowledged,
    every_cell,
)
from bentpipe.studies.quic_acceptance.evidence import Evidence
from bentpipe.studies.quic_acceptance.measurements import _MEASURES
from bentpipe.studies.quic_acceptance.remedies import FILE, GEO, IN_THE_NETWORK, LOADS, remedied
from bentpipe.studies.runner import simulate


def test_study_is_found_by_name_and_measures_every_claim() -> None:
    study = studies.get("quic-acceptance")
    assert study.key == "quic-acceptance"
    assert {claim.id for claim in study.claims} == _MEASURES.keys()
    assert {claim.id for claim in STUDY.claims} == _MEASURES.keys()


@pytest.mark.parametrize("access", ACCESSES, ids=lambda access: access.name)
def test_access_parameters_equal_picoquics(access: cells.Access) -> None:
    resolved = Transfer(access=access, window=FITTING).scenario().resolved()
    links = {link["name"]: link for link in resolved["links"]}
    satellite = links["satellite"]
    assert satellite["forward"]["rate_bps"] == access.down_bps
    assert satellite["return"]["rate_bps"] == access.up_bps
    trip = sum(link[way]["delay_s"] for link in links.values() for way in ("forward", "return"))
    assert trip == pytest.approx(0.6)
    (flow,) = resolved["flows"]
    assert flow["app"]["size_bytes"] == access.size_bytes
    assert flow["app"]["transport"] == "quic"


def test_quick_cells_are_a_subset_of_all_cells() -> None:
    quick, everything = every_cell(True), every_cell(False)
    assert set(quick) < set(everything)
    # Acknowledgments on two accesses: the usual ones are among the other cells.
    more = 2 * (2 * 3 - 1)
    # Files and pages over TCP and QUIC.
    more += 4 * 2 * (4 * 2 + 4)
    assert len(everything) == len(set(everything)) == 6 * 3 * 5 + more


def test_a_window_far_above_the_path_ends_the_connection() -> None:
    """Too many gaps with 64 MiB, none with what path and queue hold, by the claim's own measure."""
    pair = [Transfer(access=cells.MEDIUM, window=window) for window in (LARGE_WINDOW, FITTING)]
    evidence = Evidence(simulate(pair))
    assert "too many gaps in stream buffer" in evidence.failure(pair[0])
    assert isinf(evidence.time_s(pair[0]))
    assert evidence.failure(pair[1]) == ""
    # 16.3 s of the link, and slow start.
    assert 16.3 < evidence.time_s(pair[1]) < 30.0


def test_saved_path_meets_its_target() -> None:
    chosen = [
        cell for cell in acknowledged(cells.LARGE) if cell.resumes and cell.ack_threshold == 9
    ]
    evidence = Evidence(simulate(chosen))
    # 3.3 s of the link, two round trips, and the way there.
    assert 4.8 < evidence.time_s(chosen[0]) <= 5.0
    assert evidence.failure(chosen[0]) == ""


def test_default_window_limits_the_transfer() -> None:
    cell = Transfer(access=cells.LARGE, window=DEFAULT)
    evidence = Evidence(simulate([cell]))
    limited = evidence.result(cell).summary.flows[0].limits
    assert limited["receive_window"] > 0.7
    assert evidence.time_s(cell) > 48.0
    assert cell.rule in RULES


@pytest.mark.parametrize("load", LOADS)
def test_remedies_in_the_network_reach_tcp_alone(load: str) -> None:
    """Gateways change the time over TCP, and none over QUIC; the windows change that of a file."""
    chosen = [cell for cell in remedied((GEO,)) if cell.load == load]
    evidence = Evidence(simulate(chosen))
    times = {(each.transport, each.remedy.name): evidence.time_s(each) for each in chosen}
    for remedy in IN_THE_NETWORK:
        assert times["quic", remedy.name] == times["quic", "nothing"]
    assert times["tcp", "hybrid gateway"] < 0.8 * times["tcp", "nothing"]
    if load == FILE:
        assert times["quic", "windows of 32 MiB"] < 0.8 * times["quic", "nothing"]
        assert times["quic", "and CUBIC with a saved path"] < 0.5 * times["quic", "nothing"]
