"""The study framework, with a study of two cells."""

from __future__ import annotations

import csv
import json
import re
import shlex
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import inf, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from bentpipe import report, studies
from bentpipe.errors import RequestError, WorkError
from bentpipe.plot import new_axes, published
from bentpipe.plot.style import new_figure
from bentpipe.report.page import first_sentence, ranges, shown
from bentpipe.results import RunResult, run
from bentpipe.scenario import Scenario
from bentpipe.studies import provenance, simulations
from bentpipe.studies.judging import Expectation, holds, steps
from bentpipe.studies.runner import Progress, judge, reproduce, simulate
from bentpipe.studies.study import (
    Analysis,
    Cause,
    Claim,
    Figure,
    Measurement,
    Outcomes,
    Study,
    Table,
    Verdict,
    read_claims,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

TEXT = """
name = "cell"
duration = "10 s"
hosts = { a = {}, b = {} }
links.l = { between = ["a", "b"], rate = "1 Mbit/s", delay = "10 ms" }
flows.f = { from = "a", to = "b", app = { kind = "bulk", size = "50 kB" } }
"""


@dataclass(frozen=True)
class Tiny:
    rate: str

    def scenario(self) -> Scenario:
        return Scenario(path=Path("tiny.toml"), text=TEXT).with_settings(
            {"links.l.rate": self.rate}
        )


SLOW, FAST = Tiny("1 Mbit/s"), Tiny("2 Mbit/s")


def claim(id: str) -> Claim:  # noqa: A002
    return Claim(
        id=id,
        section="1",
        statement=f"<b>{id}</b> & so on",
        published="fast > slow",
        tolerance=0.02 if id == "holds" else 0.0,
        reason="an order",
        expect={"fast_over_slow": Expectation(more_than=1.0 if id == "holds" else 100.0)},
    )


def analyse(outcomes: Outcomes[Tiny]) -> Analysis:
    rates = [outcomes[cell].flow().goodput_bps for cell in (SLOW, FAST)]

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.plot([1.0, 2.0], rates)

    figure = Figure(
        id="1", title="Two rates", caption="A line.", columns={"rate_bps": rates}, draw=draw
    )
    table = Table(
        id="1",
        title="Two links",
        caption="By rate.",
        columns={"link": ["slow", "fast & far"], "goodput, bit/s": rates, "loss": [None, 0.01234]},
    )
    return Analysis(
        figures=[figure, table],
        measurements=lambda: {
            id_: Measurement(
                measured=f"{rates[1] / rates[0]:.1f}",
                values={"fast_over_slow": [rates[1] / rates[0]]},
            )
            for id_ in ("holds", "fails")
        },
        remarks=lambda: ["A remark."],
    )


TINY: Study[Tiny] = Study(
    key="tiny",
    title="Tiny",
    reference="Nobody, 2000.",
    summary="Two cells.",
    claims=(claim("holds"), claim("fails")),
    cells=lambda quick: [SLOW] if quick else [SLOW, FAST, SLOW],
    analyse=analyse,
)


class Steps(Progress):
    def __init__(self) -> None:
        self.tasks: list[tuple[str, int]] = []
        self.steps = 0

    def begin(self, task: str, total: int) -> None:
        self.tasks.append((task, total))

    def step(self) -> None:
        self.steps += 1


def test_study_writes_figures_claims_and_a_report(tmp_path: Path) -> None:
    steps = Steps()
    (done,) = reproduce([TINY], out=tmp_path, progress=steps).studies
    # The third cell equals the first.
    assert (done.cells, steps.steps) == (2, 3)
    assert steps.tasks[0] == ("tiny: simulating", 2)

    assert (tmp_path / "tiny" / "figure-1.svg").read_text().startswith("<?xml")
    rates = pq.read_table(tmp_path / "tiny" / "figure-1.parquet")["rate_bps"].to_pylist()
    assert rates[1] > rates[0]

    # A table is written as a figure's numbers are, and shown as HTML.
    assert not (tmp_path / "tiny" / "table-1.svg").exists()
    table = pq.read_table(tmp_path / "tiny" / "table-1.parquet")
    assert table["loss"].to_pylist() == [None, 0.01234]
    with (tmp_path / "tiny" / "table-1.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["link"] for row in rows] == ["slow", "fast & far"]
    assert [float(row["goodput, bit/s"]) for row in rows] == rates

    claims = json.loads((tmp_path / "claims.json").read_text())
    assert [each["holds"] for each in claims] == [True, False]
    for each in claims:
        # A reader of the file comes to the same verdict.
        (bounds,), (values,) = each["expect"].values(), each["values"].values()
        again = all(value > bounds["more_than"] * (1 - each["tolerance"]) for value in values)
        assert again == each["holds"]
        assert each.keys() >= {
            *("study", "id", "statement", "published", "measured", "tolerance", "holds"),
            *("expect", "values"),
        }

    page = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;holds&lt;/b&gt; &amp; so on" in page
    assert "doesn’t hold" in page
    assert "A remark." in page
    assert "1 of 2 of the papers&#39; claims hold" in page
    assert '<th class="number">goodput, bit/s</th>' in page
    assert "<td>fast &amp; far</td>" in page
    assert '<td class="number">0.01234</td>' in page
    assert "tiny/table-1.csv" in page
    # Self-contained: nothing is loaded from anywhere, and links lead to files beside the page.
    assert "src=" not in page
    links = re.findall(r'href="([^"]*)"', page)
    places = set(re.findall(r'id="([^"]*)"', page))
    for each in links:
        assert each.removeprefix("#") in places or (tmp_path / each).is_file(), each
    assert len(places) == len(re.findall(r'id="([^"]*)"', page))


def test_report_begins_with_the_failing_claims_and_their_causes(tmp_path: Path) -> None:
    cause = Cause(kind="setting", text="With 1 kbit/s it is 1000. This was measured.")
    ours = replace(claim("ours"), source="bentpipe")
    study = replace(
        TINY,
        claims=(claim("holds"), replace(claim("fails"), cause=cause, figures=("table 1",)), ours),
        analyse=lambda outcomes: measured_once_more(analyse(outcomes), "ours", "fails"),
    )
    reproduction = reproduce([study], out=tmp_path)
    page = (tmp_path / "report.html").read_text()
    begin = page[: page.index("<h2")]
    assert "1 of 2 of the papers&#39; claims and 0 of 1 of our own claims hold" in begin
    assert "2 claims do not hold" in begin
    assert begin.index('href="#tiny-fails"') < begin.index('href="#tiny-ours"')
    # A line has the first sentence, and the whole text as a tooltip.
    line = (
        r'<td class="line" title="[^"]*measured\."><strong>setting</strong>: With [^<]* 1000\.</td>'
    )
    assert re.search(line, begin)
    assert "no cause stated" in begin
    row = page[page.index('<tr class="claim" id="tiny-fails"') :]
    row = row[: row.index("</tr>")]
    assert "Cause: holds under another setting. With 1 kbit/s it is 1000. This was" in row
    assert re.search(r'See\s*<a href="#tiny-table-1">table 1</a>', row)
    table = page[page.index('<figure id="tiny-table-1"') :]
    assert re.search(r'Claims: <a href="#tiny-fails">fails</a>', table)
    # A full run says which claims lack a cause.
    assert reproduction.inconsistencies() == ["tiny: ours does not hold, and states no cause"]
    assert replace(reproduction, quick=True).inconsistencies() == []
    assert "Verdict and stated cause disagree" in begin


def measured_once_more(analysis: Analysis, name: str, like: str) -> Analysis:
    measured = analysis.measurements()
    return replace(analysis, measurements=lambda: {**measured, name: measured[like]})


def test_holding_claim_with_a_cause_is_inconsistent() -> None:
    cause = Cause(kind="unresolved", text="Nothing helped.")
    measured = Measurement(measured="", values={"fast_over_slow": [2.0]})
    verdict = Verdict(study="tiny", claim=claim("holds"), measurement=measured)
    assert verdict.inconsistency == ""
    odd = replace(verdict, claim=replace(claim("holds"), cause=cause))
    assert odd.inconsistency == "holds, but states a cause"
    assert odd.as_json()["cause"] == {"kind": "unresolved", "text": "Nothing helped."}


def test_reasons_are_printed() -> None:
    page = (Path(report.__file__).parent / "report.html").read_text(encoding="utf-8")
    (printed,) = re.findall(r"@media print \{(.*?)\n  \}", page, flags=re.DOTALL)
    assert "details::details-content { content-visibility: visible" in printed
    assert not re.search(r"details \{[^}]*display: none", page)
    # For browsers that do not know ::details-content.
    assert 'addEventListener("beforeprint"' in page


def test_command_of_every_cell_repeats_its_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bentpipe: Any
) -> None:
    (done,) = reproduce([TINY], out=tmp_path).studies
    with done.cells_csv.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2
    # Commands name copies of the scenarios beside the report.
    monkeypatch.chdir(tmp_path)
    for row, cell in zip(rows, (SLOW, FAST), strict=True):
        words = shlex.split(row["command"])
        assert words[:3] == ["bentpipe", "run", "tiny/scenarios/tiny.toml"]
        again = json.loads(bentpipe(*words[1:], "--json").out)
        assert int(row["packet_hops"]) == again["packet_hops"]
        assert again["flows"][0]["goodput_bps"] == run(cell.scenario()).flow().goodput_bps


def test_report_states_its_origin(tmp_path: Path) -> None:
    reproduction = reproduce([TINY], out=tmp_path, workers=1, command="bentpipe reproduce tiny")
    data = json.loads((tmp_path / "provenance.json").read_text())
    assert data == reproduction.provenance.as_json()
    assert re.fullmatch(r"20\d\d-\d\d-\d\d \d\d:\d\d UTC", data["date"])
    assert data["workers"] == "1 at a time"
    assert data["elapsed_s"] > 0.0
    assert data["libraries"].keys() >= {"numpy", "matplotlib"}
    page = (tmp_path / "report.html").read_text()
    for each in (data["processor"], data["python"], data["commit"], data["command"]):
        assert each in page


def test_commit_is_that_of_the_checkout(tmp_path: Path) -> None:
    package = tmp_path / "python" / "bentpipe"
    package.mkdir(parents=True)
    # An installed package is in no checkout.
    assert provenance.checkout_commit(package) == ""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    (package / "a.py").write_text("1")
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *arguments], check=True)
    commit = provenance.checkout_commit(package)
    assert re.fullmatch(r"[0-9a-f]{12}", commit)
    (package / "a.py").write_text("2")
    assert provenance.checkout_commit(package) == f"{commit}, with changes"


def test_processor_is_named_as_linux_does(tmp_path: Path) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text("processor\t: 0\nmodel name\t: Fast CPU @ 3 GHz\n")
    assert provenance.processor(path) == "Fast CPU @ 3 GHz"
    assert provenance.processor(tmp_path / "missing")


def test_equal_runs_have_equal_reports(tmp_path: Path) -> None:
    pages = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        reproduce([TINY], out=tmp_path / name)
        page = (tmp_path / name / "report.html").read_text()
        # The date and the run times.
        pages.append(re.sub(r"(<\w+[^>]* data-varies>)[^<]*", r"\1", page))
        assert pages[-1] != page
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One. Two.", "One."),
        ("It takes 0.5 s (fig. 4 of the paper). Then", "It takes 0.5 s (fig. 4 of the paper)."),
        ("Only one", "Only one"),
    ],
)
def test_first_sentence_of_a_cause(text: str, first: str) -> None:
    assert first_sentence(text) == first


def test_seeds_are_listed_as_ranges() -> None:
    assert ranges([1, 2, 3, 42, 50, 51]) == "1 to 3, 42, 50 to 51"


def test_failed_cell_error_has_the_command_to_reproduce_it() -> None:
    with pytest.raises(WorkError, match=r"bentpipe run tiny\.toml --set links\.l\.rate=fast"):
        simulate([SLOW, Tiny("fast"), FAST])


def test_mismatched_claims_and_measurements_are_refused() -> None:
    with pytest.raises(ValueError, match="fails, holds, other"):
        judge(TINY, {"other": Measurement(measured="", values={})})


def test_figure_is_drawn_when_its_runs_have_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path / "tiny" / "figure-1.svg"

    def run_after_the_first_figure(scenario: Scenario, **options: Any) -> RunResult:
        deadline = time.monotonic() + 60.0
        while scenario == FAST.scenario() and not first.is_file():
            assert time.monotonic() < deadline, "the figure waits for runs that it does not need"
            time.sleep(0.01)
        return run(scenario, **options)

    def figures(outcomes: Outcomes[Tiny]) -> Iterator[Figure]:
        for number, cell in enumerate((SLOW, FAST), start=1):
            columns = {"rate_bps": [outcomes[cell].flow().goodput_bps]}
            yield Figure(id=str(number), title="", caption="", columns=columns, draw=lambda _: None)

    def analyse_one_by_one(outcomes: Outcomes[Tiny]) -> Analysis:
        return Analysis(
            figures=figures(outcomes), measurements=lambda: analyse(outcomes).measurements()
        )

    monkeypatch.setattr(simulations, "run", run_after_the_first_figure)
    study = replace(TINY, analyse=analyse_one_by_one)
    (done,) = reproduce([study], out=tmp_path).studies
    assert [each.figure.id for each in done.figures] == ["1", "2"]


def test_claims_are_read_from_toml(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    one = (
        '[[claim]]\nid = "a"\nsection = "1"\nstatement = "s"\npublished = "p"\n'
        'tolerance = 0.02\nexpect.mbps = { value = 50.0 }\nreason = "r"\n'
    )
    path.write_text(one)
    (read,) = read_claims(path)
    assert (read.id, read.tolerance, read.source) == ("a", 0.02, "paper")
    assert read.expect == {"mbps": Expectation(value=50.0)}
    path.write_text(one + one)
    with pytest.raises(ValueError, match="more than one claim a"):
        read_claims(path)


def test_claim_has_a_known_source_and_a_known_cause(tmp_path: Path) -> None:
    path = tmp_path / "claims.toml"
    one = (
        '[[claim]]\nid = "a"\nsection = "1"\nstatement = "s"\npublished = "p"\nfigures = ["4"]\n'
        'tolerance = 0.02\nexpect.mbps = { value = 50.0 }\nreason = "r"\nsource = "fitted"\n'
        'cause = { kind = "setting", text = "With 25 ms it is 50 Mbit/s." }\n'
    )
    path.write_text(one)
    (read,) = read_claims(path)
    assert not read.is_published
    assert read.figures == ("4",)
    assert read.cause == Cause(kind="setting", text="With 25 ms it is 50 Mbit/s.")
    path.write_text(one.replace("fitted", "ours"))
    with pytest.raises(ValueError, match="claim a: source 'ours'; there are: paper, bentpipe"):
        read_claims(path)
    path.write_text(one.replace('"setting"', '"luck"'))
    with pytest.raises(ValueError, match="cause 'luck'; there are: contradiction, setting"):
        read_claims(path)
    with pytest.raises(ValueError, match="without a text"):
        Cause(kind="setting", text=" ")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (nan, "–"),
        (inf, "∞"),
        (True, "yes"),
        (12345, "12,345"),
        (1536000.0, "1,536,000"),
        (0.012345, "0.01235"),
        (-2.5, "−2.5"),
        ("a", "a"),
    ],
)
def test_table_values_are_readable(value: Any, text: str) -> None:
    assert shown(value) == text


def test_published_values_have_one_style_and_are_in_the_legend() -> None:
    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        published.mark(axes, [1.0, 2.0], [3.0, 4.0])
        published.mark(axes, 1.5, 3.5, label=None)
        published.band(axes, 3.0, 3.5, label="paper's range")
        published.band(axes, 4.0, 4.0, label="paper's value")

    figure = new_figure(draw)
    (axes,) = figure.axes
    assert axes.get_legend_handles_labels()[1] == ["paper", "paper's range", "paper's value"]
    marks = [line for line in axes.lines if line.get_marker() == "D"]
    assert [np.asarray(line.get_xdata()).tolist() for line in marks] == [[1.0, 2.0], [1.5]]


@pytest.mark.parametrize(
    ("bounds", "tolerance", "met", "not_met"),
    [
        ({"value": 50.0}, 0.2, (40.0, 60.0), (39.9, 60.1)),
        ({"value": -2.0}, 0.5, (-1.0, -3.0), (-0.9, 2.0)),
        ({"at_least": 90.0}, 0.0, (90.0, inf), (89.999,)),
        ({"at_least": 90.0}, 0.05, (85.5,), (85.4,)),
        ({"at_most": 1.0}, 0.01, (1.01, -inf), (1.02,)),
        ({"more_than": 1.0}, 0.0, (1.001,), (1.0,)),
        ({"more_than": 1.0}, 0.01, (0.991,), (0.99,)),
        ({"less_than": 0.5}, 0.0, (0.499,), (0.5,)),
        ({"at_least": 3.0, "at_most": 4.0}, 0.1, (2.7, 4.4), (2.6, 4.5)),
    ],
)
def test_verdict_follows_from_expectation_and_tolerance(
    bounds: dict[str, float],
    tolerance: float,
    met: tuple[float, ...],
    not_met: tuple[float, ...],
) -> None:
    expected = {"x": Expectation(**bounds)}
    assert holds({"x": met}, expected, tolerance)
    for each in (*not_met, nan):
        assert not holds({"x": [each]}, expected, tolerance)
        # One that is not as expected is enough.
        assert not holds({"x": [*met, each]}, expected, tolerance)
    assert not holds({"x": []}, expected, tolerance)


def test_measurements_must_match_the_expectations() -> None:
    with pytest.raises(ValueError, match="don't match: x, y"):
        holds({"x": [1.0]}, {"y": Expectation(value=1.0)}, 0.0)
    with pytest.raises(ValueError, match="nothing is expected"):
        Expectation()
    assert steps([1.0, 2.0, 3.0]) == [2.0, 1.5]
    # Nothing over nothing is no order.
    assert not holds({"x": steps([0.0, 0.0])}, {"x": Expectation(more_than=1.0)}, 0.0)


def test_stated_tolerance_equals_the_applied_one() -> None:
    """No claim has a share in its text beside a tolerance of 0, and no study judges by itself."""
    for name in studies.names():
        for each in studies.get(name).claims:
            assert each.expect, each.id
            said = re.search(r">= (\d+)% of", each.published)
            if said is not None and not each.changed:
                stated = [1.0 - each.tolerance, *_bounds(each)]
                assert int(said[1]) / 100 in [pytest.approx(one) for one in stated], each.id
        folder = Path(studies.__file__).parent / name
        for path in folder.glob("*.py"):
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"\bholds\s*(&|\|)?=", text), path


def _bounds(claim: Claim) -> list[float]:
    return [
        bound
        for each in claim.expect.values()
        for bound in (each.value, each.at_least, each.at_most, each.more_than, each.less_than)
        if bound is not None
    ]


def test_studies_are_found_by_name() -> None:
    for name in studies.names():
        assert studies.get(name).key == name
    with pytest.raises(RequestError, match="did you mean 'obata2000'"):
        studies.get("obata")


def test_changed_claims_state_date_and_reason() -> None:
    changed = {
        (name, claim.id): claim.changed
        for name in studies.names()
        for claim in studies.get(name).claims
        if claim.changed
    }
    # Changes in the history of the claims' files after each study's first measurement.
    assert changed.keys() >= {
        ("gaid1998", "host-window"),
        ("gaid1998", "window-over-measured-t1"),
        ("obata2000", "narrow-uplink"),
        ("obata2000", "bandwidth-order"),
        ("samaraweera1999", "harmless-goodput"),
        ("samaraweera1999", "harmless-retransmissions"),
        ("vanzara2014", "ber0-westwood-later"),
    }
    for text in changed.values():
        assert re.match(r"\d{4}-\d{2}-\d{2}[,:] .{30,}", text)
    page = (Path(report.__file__).parent / "report.html").read_text(encoding="utf-8")
    assert "verdict.claim.changed" in page
