"""The study of vanzara2014, as a quick run makes it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bentpipe.scenario import Scenario
from bentpipe.studies import get
from bentpipe.studies.open_settings import committed
from bentpipe.studies.runner import simulate
from bentpipe.studies.vanzara2014.cells import (
    BOTH_DIRECTIONS,
    CAPACITY_BPS,
    FLOW,
    LINK_BPS,
    MAIN,
    PIPE_PACKETS,
    RECEIVED,
    RULES,
    SEEDS,
    SMALL_FILE_BYTES,
    WRONG_CAPACITIES,
    Contest,
    Setting,
    Transfer,
    every_cell,
    wrong_capacity,
)
from bentpipe.studies.vanzara2014.evidence import Evidence
from bentpipe.studies.vanzara2014.figures import bound_bps
from bentpipe.studies.vanzara2014.open_settings import SEARCH, setting_of
from bentpipe.studies.vanzara2014.remarks import WITNESS, witness_mbps
from bentpipe.studies.vanzara2014.settings import PUBLISHED

from .conftest import load_script

FIGURES = ("2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "A1", "A2", "A3", "A4", "A5")
SETTINGS = [setting_of(row) for row in SEARCH.settings]


STUDY = "vanzara2014"


def test_every_figure_is_written(has_figures: bool, reproduction: Path) -> None:
    assert has_figures
    assert "85.6 Mbit/s" in (reproduction / "report.html").read_text()


def test_seed_independent_claims_hold(claims: dict[str, Any]) -> None:
    """Far from their tolerances. The others are the full run's to say."""
    for id_ in (
        "ber0-within-100-s",
        "ber1e-8-enhanced",
        "ber1e-5-westwood",
        "rtt-enhanced-flat",
        "rtt-westwood",
        "ber-equal",
        "erasure-bound",
    ):
        assert claims[id_]["holds"], claims[id_]


def test_claim_above_the_goodput_bound_does_not_hold(claims: dict[str, Any]) -> None:
    assert not claims["ber1e-5-enhanced"]["holds"]
    assert bound_bps(1e-5) == pytest.approx(85.6e6, rel=1e-3)


def test_every_cell_resolves_to_its_scenario() -> None:
    for cell in every_cell(True)[::9]:
        resolved = cell.scenario().resolved()
        if isinstance(cell, Contest):
            assert len(resolved["flows"]) == cell.flows
            continue
        (link,) = resolved["links"]
        assert link["forward"]["delay_s"] == pytest.approx(cell.round_trip_ms / 2e3)
        assert link["forward"]["errors"]["bit_error_rate"] == cell.bit_error_rate


def test_every_setting_resolves_to_its_scenario() -> None:
    for rule in RULES:
        # Every factor's levels, and every other departure.
        for setting in SETTINGS[::7]:
            cell = Transfer(rule=rule, bit_error_rate=1e-7, setting=setting)
            sender = cell.scenario().resolved()["nodes"][0]["tcp"]
            assert sender["recovery"] == setting.recovery
            assert sender["profile"] == setting.profile
            expected = setting.westwood_rule if rule == "westwood" else rule
            assert sender["congestion_control"] == expected


def test_settings_unused_without_errors_give_equal_runs() -> None:
    """Westwood without errors: these settings are the main one's run, since they are the same."""
    unused: dict[str, dict[str, Any]] = {
        "NewReno": {"recovery": "newreno"},
        "FACK": {"recovery": "fack"},
        "no RACK": {"rack": False},
        "PRR": {"proportional_rate_reduction": True},
        "queue": {"queue_packets": 5000},
        "window": {"westwood_after_loss": "pipe"},
        "filter": {"westwood_filter": "last-sample"},
        "2001": {"westwood_rule": "westwood-2001"},
    }
    cells = {}
    for name, options in unused.items():
        setting = replace(MAIN, **options)
        assert setting.of("westwood", 0.0) == MAIN, name
        cells[name] = Transfer(rule="westwood", bit_error_rate=0.0, setting=setting)
    main = Transfer(rule="westwood", bit_error_rate=0.0)
    assert all(cell.scenario() != main.scenario() for cell in cells.values())
    outcomes = simulate([main, *cells.values()])
    expected = outcomes[main]
    assert expected.summary.links[0].packets_dropped == 0
    for name, cell in cells.items():
        assert outcomes[cell].flow() == expected.flow(), name
        received = outcomes[cell].series[RECEIVED].values
        assert list(received) == list(expected.series[RECEIVED].values), name


@dataclass(frozen=True)
class Told:
    """Enhanced Hybla without errors, told this of the link whether it comes to use it or not."""

    setting: Setting

    def scenario(self) -> Scenario:
        main = Transfer(rule="enhanced-hybla", bit_error_rate=0.0)
        return main.scenario().with_settings(self.setting.as_keys(main.rule, main.round_trip_ms))


def test_enhanced_hybla_ignores_capacity_without_errors() -> None:
    """Without errors, six capacities and filters are the main run, since they are the same."""
    eightfold = replace(MAIN, channel_capacity_bps=8 * LINK_BPS)
    settings = [*SETTINGS, *map(wrong_capacity, WRONG_CAPACITIES)]
    unused = {each for each in settings if each != MAIN and each.as_far_as_used(0.0) == MAIN}
    assert {each.channel_capacity_bps for each in unused} >= {LINK_BPS // 2, LINK_BPS, 2 * LINK_BPS}
    unused = {replace(MAIN, channel_capacity_bps=each.channel_capacity_bps) for each in unused}
    unused.discard(MAIN)
    assert len(unused) > 4
    assert not any(each.as_far_as_used(1e-8) == MAIN for each in unused)
    outcomes = simulate([Told(each) for each in (MAIN, eightfold, *unused)])
    expected = outcomes[Told(MAIN)]
    assert expected.summary.links[0].packets_dropped > 0
    for setting in unused:
        outcome = outcomes[Told(setting)]
        assert outcome.flow() == expected.flow(), setting
        received = outcome.series[RECEIVED].values
        assert list(received) == list(expected.series[RECEIVED].values)
    # It is used where it is said to be more.
    assert outcomes[Told(eightfold)].flow() != expected.flow()


def test_cells_with_random_errors_have_five_seeds() -> None:
    cells = set(every_cell(False))
    assert len(SEEDS) >= 5
    for rule in RULES:
        for seed in SEEDS:
            assert Transfer(rule=rule, bit_error_rate=1e-5, seed=seed) in cells
        assert Transfer(rule=rule, bit_error_rate=0.0, seed=2) not in cells


def test_small_files_with_random_errors_have_at_least_twenty_seeds() -> None:
    seeds: dict[tuple[str, float, int], set[int]] = {}
    for cell in every_cell(False):
        if isinstance(cell, Transfer) and cell.file_bytes is not None and cell.bit_error_rate:
            key = (cell.rule, cell.bit_error_rate, cell.file_bytes)
            seeds.setdefault(key, set()).add(cell.seed)
    assert seeds
    for (_, _, size), found in seeds.items():
        assert len(found) >= (20 if size <= SMALL_FILE_BYTES else len(SEEDS))


def test_no_interval_receives_more_than_the_link_carries() -> None:
    """In-order data jumps when a gap closes: NewReno seemed to have 115 Mbit/s."""
    newreno = Transfer(
        rule="enhanced-hybla", bit_error_rate=0.0, setting=replace(MAIN, recovery="newreno")
    )
    lossy = Transfer(rule="enhanced-hybla", bit_error_rate=1e-5)
    delivered = f"{FLOW}.delivered"
    both = [_With(cell, (RECEIVED, delivered)) for cell in (newreno, lossy)]
    outcomes = simulate(both)
    in_order = []
    for cell in both:
        evidence = Evidence({cell.cell: outcomes[cell]})
        rates = evidence.rates_bps(cell.cell)
        assert rates.max() <= CAPACITY_BPS * 1.0001
        series = outcomes[cell].series
        assert all(series[RECEIVED].values >= series[delivered].values)
        in_order.append(max(series[delivered].values[10:] - series[delivered].values[:-10]) / 10)
    assert 8 * max(in_order) > 1.05 * CAPACITY_BPS


@dataclass(frozen=True)
class _With:
    """A transfer with these series."""

    cell: Transfer
    series: tuple[str, ...]

    def scenario(self) -> Scenario:
        return self.cell.scenario().with_settings({"probes.series": list(self.series)})


def test_witness_table_is_that_of_the_recorded_runs() -> None:
    script = Path(__file__).parents[2] / "benches" / "witness" / "vanzara2014.py"
    recorded = load_script(script).recorded()
    rows = WITNESS.read_text().splitlines()[1:]
    assert len(rows) == len(recorded)
    for cell, outcomes in recorded.items():
        if cell.initial_slow_start_threshold:
            found = witness_mbps(cell.congestion_control, cell.bit_error_rate)
            goodputs = [each.goodput_bps(cell) / 1e6 for each in outcomes.values()]
            mean = sum(goodputs) / len(goodputs)
            assert found == pytest.approx((mean, min(goodputs), max(goodputs)), rel=1e-5)


def test_numbers_of_causes_are_measured() -> None:
    """A cause of kind "setting" names goodputs of table A1."""
    measured = {f"{value:.3g}" for row in committed(STUDY) for value in row.measured.values()}
    causes = [claim.cause for claim in get(STUDY).claims if claim.cause is not None]
    settings = [cause for cause in causes if cause.kind == "setting"]
    assert len(settings) > 4
    for cause in settings:
        named = re.findall(r"([\d.]+) Mbit/s", cause.text)
        found = [each for each in named if each not in {"100", "200"}]
        assert found or "both" in cause.text, cause.text
        assert set(found) <= measured, cause.text


def test_quick_run_has_a_subset_of_the_cells() -> None:
    assert len(every_cell(True)) < len(every_cell(False)) / 3
    assert set(every_cell(True)) <= set(every_cell(False))
    assert get("vanzara2014").cells(True) == every_cell(True)


def test_constants_equal_the_papers() -> None:
    assert PIPE_PACKETS == 5000
    assert pytest.approx(96.5e6, rel=1e-3) == CAPACITY_BPS
    assert replace(MAIN, recovery="newreno") in SETTINGS
    assert MAIN in SETTINGS
    assert BOTH_DIRECTIONS in SETTINGS
    assert {each.rule for each in PUBLISHED} == set(RULES)


@dataclass(frozen=True)
class Asked:
    """Ten minutes with errors as they are asked for, whether a bit goes wrong or not."""

    cell: Transfer

    def scenario(self) -> Scenario:
        cell = self.cell
        errors = {"links.satellite.forward.errors.bit_error_rate": cell.bit_error_rate}
        unspoilt = replace(cell, bit_error_rate=0.0, seed=SEEDS[0])
        return unspoilt.scenario().with_settings({**errors, "seed": cell.seed})


def test_cells_without_bit_errors_reuse_the_error_free_run() -> None:
    transfers = [each for each in every_cell(False) if isinstance(each, Transfer)]
    plain = {each: replace(each, bit_error_rate=0.0, seed=SEEDS[0]) for each in transfers}
    spared = [
        each
        for each in transfers
        if each.bit_error_rate > 0.0 and each.scenario() == plain[each].scenario()
    ]
    assert {each.bit_error_rate for each in spared} == {1e-11}
    # The same seeds for every rule: the same bits go wrong.
    assert len(spared) == len(RULES) * len({each.seed for each in spared})
    chosen = [each for each in spared if each.rule == "westwood"]
    outcomes = simulate([Asked(each) for each in chosen])
    (expected,) = simulate([plain[chosen[0]]]).values()
    for cell in chosen:
        outcome = outcomes[Asked(cell)]
        assert outcome.summary.links[0].packets_lost == 0
        assert outcome.flow() == expected.flow(), cell
        received = outcome.series[RECEIVED].values
        assert list(received) == list(expected.series[RECEIVED].values)


def test_error_free_runs_are_recognized_before_simulation() -> None:
    link = {"between": ["a", "b"], "rate": "1 Mbit/s", "delay": "1 ms"}
    flow = {"from": "a", "to": "b", "app": {"kind": "bulk"}}

    def scenario(**errors: object) -> Scenario:
        return Scenario.of(
            {
                "name": "errors",
                "duration": "10 s",
                "hosts": {"a": {}, "b": {}},
                "links": {"l": {**link, "forward": {"errors": errors}}},
                "flows": {"f": flow},
            }
        )

    assert not scenario().may_meet_errors()
    assert not scenario(bit_error_rate=0.0).may_meet_errors()
    # Ten million bits at the most, 1e-3 of an error; and ten errors.
    assert not scenario(bit_error_rate=1e-10).may_meet_errors()
    assert scenario(bit_error_rate=1e-6).may_meet_errors()
    assert scenario(packet_loss_rate=1e-9).may_meet_errors()
    assert scenario(lost_packets=[1_000_000]).may_meet_errors()
