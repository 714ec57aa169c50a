"""Evaluation of a window rule by RFC 9743: verdicts, report, published findings."""

from __future__ import annotations

import json
import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from html.parser import HTMLParser
from math import inf, nan
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bentpipe import congestion
from bentpipe.evaluation import findings
from bentpipe.evaluation.experiments import EXPERIMENTS
from bentpipe.evaluation.networks import CUBIC, GEO, LEO, Cell
from bentpipe.evaluation.observation import Observed, jain, ratio
from bentpipe.evaluation.runner import standard_of
from bentpipe.evaluation.verdicts import (
    COMPARABLE,
    FAILS,
    INCONCLUSIVE,
    MEETS,
    Criterion,
    Judged,
    Measure,
    row,
    rules,
)
from bentpipe.results import run

from .commands import assert_refused

QUEUE = Measure(id="queue", what="queue", source="a text", at_most=0.1, standard=True)
SHARE = Measure(id="share", what="share", source="a text", at_least=0.8)
TIME = Measure(id="time", what="time", source="a text", better="less", standard=True)
# Reno as the reference has it, in Python.
RENO = """
import bentpipe

@bentpipe.congestion_control("renew")
class Renew:
    def __init__(self):
        self.credit = 0

    def on_ack(self, window, ack):
        self.credit += ack.acknowledged
        while self.credit >= window.congestion_window:
            self.credit -= int(window.congestion_window)
            window.congestion_window += window.segment

    def on_congestion(self, window, event, flight_size, now_s):
        window.slow_start_threshold = max(flight_size // 2, 2 * window.segment)
        timeout = event == "timeout"
        window.congestion_window = window.segment if timeout else window.slow_start_threshold
        self.credit = 0
"""


@pytest.fixture(autouse=True)
def _no_rules_of_other_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(congestion, "_classes", {})


def simulated(cells: list[Cell]) -> dict[Cell, Observed]:
    """Simulate cells, two at a time; equal ones once."""
    different = list(dict.fromkeys(cells))
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda cell: run(cell.scenario(), default_probes=False), different)
        return {
            cell: Observed(cell, result) for cell, result in zip(different, results, strict=True)
        }


@pytest.mark.parametrize(
    ("measure", "value", "standard", "verdict"),
    [
        (QUEUE, 0.1, 3.0, MEETS),
        (QUEUE, 3.29, 3.0, COMPARABLE),
        (QUEUE, 3.31, 3.0, FAILS),
        (QUEUE, 0.11, 0.05, FAILS),
        (QUEUE, nan, 3.0, INCONCLUSIVE),
        (QUEUE, 0.2, nan, INCONCLUSIVE),
        (SHARE, 0.8, None, MEETS),
        (SHARE, 0.79, 0.5, FAILS),
        (replace(SHARE, standard=True), 0.5, 0.55, COMPARABLE),
        (replace(SHARE, standard=True), 0.49, 0.55, FAILS),
        # Without a bound, the standard control decides.
        (TIME, 0.8, 1.0, MEETS),
        (TIME, 1.05, 1.0, COMPARABLE),
        (TIME, 1.2, 1.0, FAILS),
        (TIME, inf, 1.0, FAILS),
        (TIME, inf, inf, COMPARABLE),
    ],
)
def test_value_is_judged_by_bound_then_by_the_standard_control(
    measure: Measure, value: float, standard: float | None, verdict: str
) -> None:
    assert measure.judge(value, standard, margin=0.1) == verdict


def test_seeds_that_disagree_about_failing_are_inconclusive() -> None:
    def verdict(*values: float) -> str:
        return row("here", QUEUE, values, [1.0] * len(values), margin=0.1).verdict

    assert verdict(0.05, 0.1) == MEETS
    assert verdict(0.05, 1.05) == COMPARABLE
    assert verdict(0.05, 2.0) == INCONCLUSIVE
    assert verdict(1.0, 2.0) == INCONCLUSIVE
    assert verdict(2.0, 2.0) == FAILS


def test_criterion_has_the_worst_verdict_and_names_the_worst_value() -> None:
    criterion = Criterion(
        id="c", section="1", title="t", asks="a", method="m", measures={"queue": QUEUE}
    )

    def judged(*values: float) -> Judged:
        rows = tuple(
            row(f"place {number}", QUEUE, [value], [1.0], margin=0.1)
            for number, value in enumerate(values)
        )
        return Judged(criterion=criterion, rule="mine", rows=rows, standard="cubic")

    assert judged(0.05, 0.09).verdict == MEETS
    assert judged(0.05, 1.0).verdict == COMPARABLE
    failing = judged(0.05, 3.0, 2.0)
    assert failing.verdict == FAILS
    assert failing.counts == "meets: 1, does not meet: 2"
    assert failing.reason == (
        "2 of 3 values, farthest from its bound: queue, place 1: 3.00 (at most 0.10; CUBIC: 1.00)"
    )
    assert judged().verdict == INCONCLUSIVE


def test_indices_of_fairness() -> None:
    assert jain([5.0, 5.0, 5.0]) == pytest.approx(1.0)
    assert jain([6.0, 0.0, 0.0]) == pytest.approx(1 / 3)
    assert jain([0.0, 0.0]) != jain([0.0, 0.0])
    assert ratio(1.0, 0.0) == inf
    assert ratio(inf, inf) != ratio(inf, inf)
    assert ratio(inf, 2.0) == inf


def test_every_criterion_has_sources_and_experiments() -> None:
    every = rules().criteria
    assert [each.id for each in every] == list(EXPERIMENTS)
    for criterion in every:
        assert criterion.measures
        names = [each.name for each in EXPERIMENTS[criterion.id]]
        assert len(set(names)) == len(names), criterion.id
        for measure in criterion.measures.values():
            assert measure.source, measure.id
    assert standard_of(CUBIC).name == "reno"
    # Satellites are among the networks of most criteria.
    networks = [
        {cell.network.name for each in conditions for cell in each.cells(CUBIC, 1)}
        for conditions in EXPERIMENTS.values()
    ]
    assert sum(bool(each & {LEO.name, GEO.name}) for each in networks) >= 13


def test_every_condition_measures_what_its_criterion_lists() -> None:
    """With CUBIC and one seed; each quantity is measured somewhere, and has a value."""
    jobs = [
        (criterion, condition, condition.cells(CUBIC, 1))
        for criterion in rules().criteria
        for condition in EXPERIMENTS[criterion.id]
    ]
    seen = simulated([cell for _, _, cells in jobs for cell in cells])
    measured: dict[str, set[str]] = {each.id: set() for each in rules().criteria}
    for criterion, condition, cells in jobs:
        values = condition.measure(*(seen[cell] for cell in cells))
        assert values.keys() <= criterion.measures.keys(), condition.name
        assert all(value == value for value in values.values()), (condition.name, values)
        measured[criterion.id] |= values.keys()
        # Relative to beside its own kind, CUBIC is at 1.
        own_kind = {"kept", "short_time", "long_kept", "others_kept"} & values.keys()
        if "Reno" not in condition.name:
            assert {values[name] for name in own_kind} <= {1.0}, condition.name
    for criterion in rules().criteria:
        assert measured[criterion.id] == criterion.measures.keys(), criterion.id


def test_published_findings_about_cubic_and_bbr_appear() -> None:
    """All but those that state why they do not appear."""
    seen = simulated(findings.cells())
    verdicts = findings.check(seen.__getitem__)
    assert len(verdicts) == 10
    assert [each.inconsistency for each in verdicts] == [""] * len(verdicts), [
        (each.claim.id, each.measurement.measured) for each in verdicts
    ]
    missing = {each.claim.id for each in verdicts if not each.holds}
    assert missing == {"bbr-fixed-share-very-deep"}


class Page(HTMLParser):
    """Targets of a report's links, and the names of its elements."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: list[str] = []
        self.figures = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.figures += tag == "figure"
        for key, value in attrs:
            if key in {"href", "src"}:
                self.links.append(value or "")
            elif key == "id":
                self.names.append(value or "")


def test_report_data_and_commands_belong_together(tmp_path: Path, bentpipe: Any) -> None:
    out = tmp_path / "out"
    only = ["--only", "constrained", "--only", "principles", "--seeds", 2, "--workers", 2]
    done = bentpipe("evaluate", "hybla", *only, "--out", out, "--json")
    assert done.status == 0, done.err
    data = done.data
    assert data["rule"] == "hybla"
    assert data["references"] == ["cubic", "bbr", "bbr3", "reno"]
    assert [each["id"] for each in data["criteria"]] == ["principles", "constrained"]
    written = json.loads((out / "evaluation.json").read_text(encoding="utf-8"))
    assert written | {"report": str(out / "evaluation.html")} == data
    table = pq.read_table(out / "evaluation.parquet").to_pylist()
    # Five rules with two seeds; one value, and two.
    assert len(table) == 5 * 2 * 3
    rules_of = data["criteria"][1]["rules"]
    (kept,) = [each for each in rules_of["hybla"]["values"] if each["measure"] == "utilisation"]
    values = {
        each["seed"]: each["value"]
        for each in table
        if (each["rule"], each["measure"]) == ("hybla", "utilisation")
    }
    assert list(values.values()) == kept["values"]
    # A command of the data repeats the simulation, in the folder.
    (command,) = [
        each["commands"]
        for each in table
        if (each["rule"], each["measure"], each["seed"]) == ("hybla", "retransmitted", 2)
    ]
    words = shlex.split(command)
    assert words[:3] == ["bentpipe", "run", "dumbbell.toml"]
    again = bentpipe("run", out / words[2], *words[3:], "--json").data
    (flow,) = again["flows"]
    (retransmitted,) = [
        each["value"]
        for each in table
        if (each["rule"], each["measure"], each["seed"]) == ("hybla", "retransmitted", 2)
    ]
    assert flow["segments_retransmitted"] / flow["segments_sent"] == retransmitted
    page = Page((out / "evaluation.html").read_text(encoding="utf-8"))
    assert page.figures == 2
    assert len(set(page.names)) == len(page.names)
    for link in page.links:
        assert link.removeprefix("#") in page.names or (out / link).is_file(), link


def test_printed_summary_has_every_criterion(tmp_path: Path, bentpipe: Any) -> None:
    done = bentpipe(
        "evaluate", "bbr1", "--only", "constrained", "--seeds", 1, "--out", tmp_path / "out"
    )
    assert done.status == 0, done.err
    lines = done.out.splitlines()
    assert lines[0].startswith("BBR by RFC 9743: ")
    # The rule is among the references, and listed once.
    assert re.split(r"  +", lines[2]) == ["section", "criterion", "BBR", "CUBIC", "BBRv3", "Reno"]
    assert lines[3].startswith("7.4 ")
    assert any(line.startswith("7.4 ") and ": " in line for line in lines[4:])
    assert lines[-1] == f"wrote {tmp_path / 'out' / 'evaluation.html'}"


def test_python_rule_is_judged_as_the_same_built_in_rule(tmp_path: Path, bentpipe: Any) -> None:
    script = tmp_path / "renew.py"
    script.write_text(RENO, encoding="utf-8")
    out = tmp_path / "out"
    only = ["--only", "constrained", "--only", "principles", "--seeds", 1]
    done = bentpipe("evaluate", "renew", "--python", script, *only, "--out", out, "--json")
    assert done.status == 0, done.err
    assert done.data["python"]
    for criterion in done.data["criteria"]:
        own, reno = (criterion["rules"][name] for name in ("renew", "reno"))
        assert own["values"] == reno["values"]
    assert "What a rule in Python cannot do" in (out / "evaluation.html").read_text("utf-8")


def test_settings_apply_to_the_rule_and_not_to_the_references(
    tmp_path: Path, bentpipe: Any
) -> None:
    out = tmp_path / "out"
    only = ["--only", "constrained", "--seeds", 1, "--out", out]
    done = bentpipe("evaluate", "reno", "--set", "recovery=newreno", *only, "--json")
    assert done.status == 0, done.err
    assert done.data["tcp"] == {"recovery": "newreno"}
    # Reno as it is by default is still among the references.
    assert done.data["references"] == ["cubic", "bbr", "bbr3", "reno"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nobody"], "no window rule 'nobody'; there are reno, "),
        (["cubic", "--only", "nothing"], "--only nothing: expected one of collapse, "),
        (["cubic", "--set", "nothing=1"], "nothing"),
        (["cubic", "--set", "mss"], "expected KEY=VALUE"),
        (["cubic", "--seeds", "0"], "--seeds"),
        (["cubic", "--workers", "0"], "--workers"),
        (["cubic", "--workers", "2", "--dask", "tcp://127.0.0.1:9"], "doesn't go with --dask"),
        (["enhanced-hybla"], "channel_capacity"),
        (["mine", "--python", "missing.py"], "missing.py"),
    ],
)
def test_wrong_requests_are_refused_before_anything_is_written(
    tmp_path: Path, bentpipe: Any, arguments: list[str], said: str
) -> None:
    out = tmp_path / "out"
    assert_refused(bentpipe("evaluate", *arguments, "--out", out), said)
    assert not out.exists()
