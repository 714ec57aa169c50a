"""The study leo-orbits: its cells are what they say, and it measures what it claims."""

from __future__ import annotations

import math

import pytest

from bentpipe import studies
from bentpipe.studies.leo_orbits.cells import (
    ADDRESSES,
    CITIES,
    FILED,
    HANDLEY,
    LATITUDES,
    LONDON,
    address,
    every_cell,
    latitude,
    measured,
    office,
    rule,
    to_city,
)
from bentpipe.studies.leo_orbits.evidence import Evidence, great_circle_m
from bentpipe.studies.leo_orbits.figures import _cities
from bentpipe.studies.leo_orbits.measurements import _MEASURES
from bentpipe.studies.runner import simulate
from bentpipe.studies.study import Verdict

STUDY = studies.get("leo-orbits")
CLAIMS = {claim.id: claim for claim in STUDY.claims}
# Claims that need no traffic.
GEOMETRY = (
    "bent-pipe-delay",
    "faster-than-fibre",
    "fibre-for-the-near",
    "lower-shell",
    "oneweb-polar",
    "edge-of-the-shell",
    "ship-between",
)


def test_study_measures_every_claim() -> None:
    assert CLAIMS.keys() == _MEASURES.keys()


def test_quick_cells_are_a_subset_of_all_cells() -> None:
    quick, everything = every_cell(True), every_cell(False)
    assert set(quick) < set(everything)
    rules, measured, offices = 5 * 2 * 10, (5 + 2) * 10, 2 * 3 * 10
    assert len(everything) == len(set(everything)) == 3 + rules + measured + 2 * 5 + offices + 2 + 1
    assert len(LATITUDES) == 3


def test_distances_are_those_of_the_great_circle() -> None:
    distances = {city.name: great_circle_m(LONDON, city) / 1e3 for city in CITIES}
    assert distances["New York"] == pytest.approx(5_570, abs=5)
    assert distances["Singapore"] == pytest.approx(10_850, rel=0.01)
    assert min(distances.values()) < 1_000


@pytest.mark.parametrize("name", GEOMETRY)
def test_claims_about_geometry_hold(name: str) -> None:
    measured = _MEASURES[name](Evidence({}))
    verdict = Verdict(study=STUDY.key, claim=CLAIMS[name], measurement=measured)
    assert verdict.holds == (CLAIMS[name].cause is None), measured


def test_the_shell_decides_where_fibre_is_faster() -> None:
    """To Istanbul, glass is faster than the shell at 1,150 km, and slower than the one at 550."""
    evidence = Evidence({})
    istanbul = next(city for city in CITIES if city.name == "Istanbul")
    assert evidence.space_over_fibre(istanbul, FILED) < 1.0
    assert evidence.space_over_fibre(istanbul, HANDLEY) > 1.0


def test_every_cell_is_a_scenario() -> None:
    cells = [latitude(50), rule("bbr", 0.01, 2), to_city(CITIES[0]), office("geo", 3)]
    for cell in cells:
        resolved = cell.scenario().resolved()
        (path,) = [link["path"] for link in resolved["links"] if link.get("path")]
        assert path["handovers"] >= 0
    assert resolved["seed"] == 3


def test_rules_are_compared_over_handovers() -> None:
    """A download over one handover with losses: BBR's goodput is above CUBIC's."""
    cells = [rule(name, 0.01, 1) for name in ("bbr", "cubic")]
    evidence = Evidence(simulate(cells))
    bbr, cubic = (evidence.goodput_bps(name, 0.01)[0] for name in ("bbr", "cubic"))
    assert math.isfinite(bbr)
    assert bbr > cubic
    assert len(evidence.goodput_bps("bbr", 0.01)) == 1


def test_both_versions_of_bbr_are_above_cubic_over_measured_slots() -> None:
    """Over jitter, spikes and losses. A gateway with BBR brings CUBIC's sender most of its rate."""
    cells = [measured(name, 1) for name in ("bbr", "bbr3", "cubic")]
    evidence = Evidence(simulate([*cells, measured("cubic", 1, "split with BBR")]))
    measurement = _MEASURES["both-bbr-above-cubic"](evidence)
    claim = CLAIMS["both-bbr-above-cubic"]
    assert Verdict(study=STUDY.key, claim=claim, measurement=measurement).holds, measurement
    (share,) = _MEASURES["gateway-with-bbr"](evidence).values["split_over_bbr"]
    assert 0.6 < share < 1.0


def test_a_change_of_address_ends_a_download_and_no_call() -> None:
    evidence = Evidence(simulate([address(kept) for kept in ADDRESSES]))
    measurement = _MEASURES["address-breaks-downloads"](evidence)
    claim = CLAIMS["address-breaks-downloads"]
    assert Verdict(study=STUDY.key, claim=claim, measurement=measurement).holds, measurement


def test_table_of_cities_has_a_row_for_each_city_of_each_shell() -> None:
    table = _cities(Evidence({}))
    assert len(table.columns["over glass"]) == 2 * len(CITIES)
