"""The study geo-acceptance: its cells are what they say, and it measures what it claims."""

from __future__ import annotations

from pathlib import Path
from statistics import median

import pyarrow.parquet as pq
import pytest

from bentpipe import studies
from bentpipe.studies.geo_acceptance import STUDY, cells
from bentpipe.studies.geo_acceptance.cells import (
    ACCESSES,
    SPLIT,
    Transfer,
    every_cell,
    with_losses,
)
from bentpipe.studies.geo_acceptance.evidence import Evidence
from bentpipe.studies.geo_acceptance.measurements import _MEASURES
from bentpipe.studies.runner import reproduce, simulate
from bentpipe.studies.study import Verdict


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
    # Nine more seeds of the transfers that may meet the target with losses.
    more_seeds = 9 * 3 * 2 * 2
    assert len(everything) == len(set(everything)) == 7 * 4 * 2 * 2 * 2 + more_seeds


def test_losses_are_judged_by_the_median_over_seeds() -> None:
    access = cells.LOSSY[-1]
    seeds = cells.SEEDS[:3]
    chosen = [cell for seed in seeds for cell in with_losses(access, seed)]
    evidence = Evidence(simulate(chosen))
    best = evidence.best_median(access)
    assert len(evidence.by_seed(best)) == len(seeds)
    assert len(set(evidence.by_seed(best))) == len(seeds)
    medians = [median(evidence.by_seed(cell)) for cell in with_losses(access, seeds[0])]
    assert median(evidence.by_seed(best)) == min(medians)


def test_window_is_what_keeps_the_default_from_the_target() -> None:
    """The claim fails if the control fails: its transfers differ by the window alone."""
    pair = [
        Transfer(access=cells.CLEAN, rule="hybla", window=window)
        for window in (cells.DEFAULT_WINDOW, cells.LARGE_WINDOW)
    ]
    evidence = Evidence(simulate(pair))
    (claim,) = [each for each in STUDY.claims if each.id == "default-window"]

    def verdict(evidence: Evidence) -> bool:
        measured = _MEASURES["default-window"](evidence)
        return Verdict(study="geo-acceptance", claim=claim, measurement=measured).holds

    assert verdict(evidence)
    outcomes = dict(evidence.outcomes)
    # The control as slow as the default.
    outcomes[pair[1]] = outcomes[pair[0]]
    assert not verdict(Evidence(outcomes))


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("geo")
    reproduce([STUDY], out=out, quick=True)
    return out


def test_times_are_html_tables(quick: Path) -> None:
    page = (quick / "report.html").read_text(encoding="utf-8")
    assert "<svg" not in page
    times = pq.read_table(quick / "geo-acceptance" / "table-1.parquet").to_pylist()
    head = "250/3 Mbit/s (target 7 s)"
    by_setting = {row["setting"]: row[head] for row in times}
    assert by_setting["hybla, 64 MiB"] < 7.0 < by_setting["cubic, 6 MiB"]
    # A value within the target is marked.
    assert f'marked">{by_setting["hybla, 64 MiB"]:.4g}</td>' in page
    assert f'"number">{by_setting["cubic, 6 MiB"]:.4g}</td>' in page


def test_transfer_time_is_serialization_plus_slow_start_rounds() -> None:
    cell = Transfer(access=cells.SMALL, window=cells.LARGE_WINDOW)
    evidence = Evidence(simulate([cell]))
    # 100 MB in segments of 1448 B, packets of 1500 B.
    link_s = 100e6 / 1448 * 1500 * 8 / 10e6
    assert link_s + 0.6 < evidence.time_s(cell) < link_s + 0.6 + 7 * 0.6
