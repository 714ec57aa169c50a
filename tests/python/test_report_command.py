"""`bentpipe report`: its numbers are those of `run` and `advise`, and its page stands alone."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import cli
from bentpipe.scenario_report.measures import shown

# Users of several kinds behind a satellite, short enough for a test.
OFFICE = """
name = "office"
description = "Pages, calls and a download by satellite."
duration = "12 s"
seed = 3
[hosts.internet]
[hosts.users]
count = 3
[hosts.phone]
[gateways.hub]
kind = "router"
[links.backbone]
between = ["internet", "hub"]
rate = "100 Mbit/s"
delay = "5 ms"
[links.satellite]
between = ["hub", "terminal"]
rate = "4 Mbit/s"
delay = "250 ms"
forward = { errors = { packet_loss_rate = 0.001 } }
[gateways.terminal]
kind = "router"
[links.desks]
between = ["terminal", "users"]
rate = "100 Mbit/s"
delay = "1 ms"
[links.line]
between = ["terminal", "phone"]
rate = "100 Mbit/s"
delay = "1 ms"
[flows.pages]
from = "users"
to = "internet"
app = { kind = "web", page = "3gpp", reading = "exponential(2 s)" }
[flows.call]
from = "phone"
to = "internet"
app = { kind = "voice", codec = "g729" }
[flows.download]
from = "internet"
to = "phone"
app = { kind = "bulk", size = "300 kB" }
"""
LINE = """
name = "line"
duration = "5 s"
[hosts.server]
[hosts.client]
[links.wire]
between = ["server", "client"]
rate = "2 Mbit/s"
delay = "100 ms"
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk" }
"""


class Page(HTMLParser):
    """The text, the tags and the references of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.parts: list[str] = []
        self.tags: list[str] = []
        self.identifiers: list[str] = []
        self.references: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        for name, value in attrs:
            if name == "id":
                self.identifiers.append(value or "")
            if name in ("src", "href", "xlink:href", "action", "data", "poster"):
                self.references.append(value or "")

    def handle_data(self, data: str) -> None:
        self.parts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.parts).split())


def write(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any], str]:
    """Return a file, the numbers behind its report, and the report."""
    folder = tmp_path_factory.mktemp("office")
    file = write(folder, "office.toml", OFFICE)
    out = folder / "office.html"
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        data = json.loads(printed(["report", "office.toml", "--json", "--out", str(out)]))
    return file, data, out.read_text(encoding="utf-8")


def printed(words: list[str]) -> str:
    import contextlib
    import io

    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        assert cli.execute(words) == 0
    return stream.getvalue()


def test_results_are_those_of_run(office: tuple[Path, dict[str, Any], str]) -> None:
    file, data, html = office
    (told,) = data["scenarios"]
    run = bentpipe.run(file).summary
    assert told["run"] == {
        **json.loads(bentpipe.run(file).summary_json),
        "wall_s": told["run"]["wall_s"],
    }
    assert told["seeds"] == [3, 4, 5]
    measures = {(each["table"], each["what"]): each for each in told["measures"]}
    groups = {group.name: group for group in run.groups}
    pages = groups["pages"].extra["page_load_ms"]
    assert measures["pages", "page load"]["value"] == pages["p50"]
    assert measures["pages", "page load"]["tail"] == pages["p95"]
    assert measures["call", "MOS"]["value"] == groups["call"].extra["call_mos"]["mean"]
    download = next(flow for flow in run.flows if flow.name == "download")
    assert download.finish_s is not None
    assert measures["download", "transfer time"]["value"] == 1e3 * (
        download.finish_s - download.start_s
    )
    assert measures["pages", "goodput together"]["value"] == groups["pages"].goodput_bps
    assert measures["call", "goodput"]["value"] == groups["call"].goodput_bps
    rates = sorted(flow.goodput_bps for flow in run.flows if flow.name.startswith("pages-"))
    assert measures["pages", "goodput"]["value"] == rates[1]
    assert measures["pages", "goodput"]["tail"] == rates[0]
    over = bentpipe.run_seeds(file, seeds=3)
    for key in (("pages", "page load"), ("call", "MOS")):
        values = [
            {group.name: group for group in each.groups}[key[0]].extra for each in over.summaries
        ]
        found = [
            each["page_load_ms"]["p50"] if key[1] == "page load" else each["call_mos"]["mean"]
            for each in values
        ]
        assert measures[key]["over_seeds"]["min"] == min(found)
        assert measures[key]["over_seeds"]["max"] == max(found)
    text = Page(html).text
    for table, what in told["main"]:
        each = measures[table, what]
        assert shown(each["value"], each["unit"]) in text


def test_remedies_are_those_of_advise(office: tuple[Path, dict[str, Any], str]) -> None:
    file, data, html = office
    advice = bentpipe.advise(file)
    (told,) = data["scenarios"]
    found = [(each["name"], each["gain"], each["set"]) for each in told["advise"]["remedies"]]
    assert found == [(each.remedy.name, each.gain, each.sets) for each in advice.remedies]
    text = Page(html).text
    best = advice.remedies[0]
    assert best.overall_gain > 1.02
    assert best.remedy.name in text
    # The settings of each remedy in the table can be copied.
    assert best.sets[0] in text
    verdicts = {flow["name"]: flow["verdict"] for flow in told["advise"]["flows"]}
    assert verdicts["call"] == "application"


def test_each_variation_is_a_run_with_its_settings(
    office: tuple[Path, dict[str, Any], str],
) -> None:
    file, data, _ = office
    (told,) = data["scenarios"]
    assert [each["kind"] for each in told["sensitivity"]] == ["rate", "delay", "losses", "users"]
    for each in told["sensitivity"]:
        assert not each["why_not"]
        present = [value for value in each["values"] if value["present"]]
        assert len(present) == 1
        assert present[0]["set"] == []
        assert present[0]["measures"] == [
            measure
            for measure in told["measures"]
            if [measure["table"], measure["what"]] in told["main"]
        ]
        last = each["values"][-1]
        settings = dict(pair.split("=", 1) for pair in last["set"])
        run = bentpipe.run(file, settings=settings).summary
        pages = next(group for group in run.groups if group.name == "pages").extra
        measure = next(one for one in last["measures"] if one["what"] == "page load")
        assert measure["value"] == pages["page_load_ms"]["p50"]
    users = told["sensitivity"][-1]
    assert [value["value"] for value in users["values"]] == [2, 3, 5, 6]
    assert len(bentpipe.run(file, settings={"hosts.users.count": "6"}).summary.flows) == 6 + 2


def test_page_asks_for_nothing_and_has_no_identifier_twice(
    office: tuple[Path, dict[str, Any], str],
) -> None:
    _, _, html = office
    page = Page(html)
    assert not [each for each in page.references if not each.startswith("#")]
    assert "script" not in page.tags
    assert not {"img", "link", "iframe", "object", "embed"} & set(page.tags)
    assert not re.findall(r"url\((?!#)", html)
    assert "@import" not in html
    assert len(set(page.identifiers)) == len(page.identifiers)
    assert {each[1:] for each in page.references} <= set(page.identifiers)
    assert len(html.encode()) < 2_000_000
    # The diagram, and a figure for each main measure and variation.
    assert page.tags.count("svg") == 2 + 3 * 4


def test_origin_is_stated(office: tuple[Path, dict[str, Any], str]) -> None:
    import hashlib

    file, data, html = office
    text = Page(html).text
    assert hashlib.sha256(file.read_bytes()).hexdigest() in text
    assert data["version"] == bentpipe.__version__
    assert f"bentpipe {bentpipe.__version__}" in text
    assert "bentpipe report office.toml" in text
    assert "Pages, calls and a download by satellite." in text
    # The scenario itself is the last part.
    assert 'app = { kind = "voice", codec = "g729" }' in text


def test_files_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "today.toml", LINE)
    write(tmp_path, "faster.toml", LINE.replace("2 Mbit/s", "4 Mbit/s"))
    words = ["report", "today.toml", "faster.toml", "--quick", "--json"]
    data = json.loads(printed(words))
    keys = {each["key"]: each["values"] for each in data["differences"]}
    assert keys["links.wire.forward.rate_bps"] == ["2000000", "4000000"]
    assert not [key for key in keys if key.startswith("flows")]
    text = Page(Path("report.html").read_text(encoding="utf-8")).text
    rates = [bentpipe.run(file).flow().goodput_bps for file in ("today.toml", "faster.toml")]
    assert rates[1] > 1.1 * rates[0]
    change = f"{rates[1] / rates[0] - 1.0:+.0%} better"
    assert f"{shown(rates[1], 'bit/s')} {change}" in text
    assert "What differs between the files" in text
    # A quick report has three values of each variation, and one seed.
    (rate, *_) = data["scenarios"][0]["sensitivity"]
    assert [each["value"] for each in rate["values"]] == [1e6, 2e6, 4e6]
    assert data["scenarios"][0]["seeds"] == [1]
    # Other flows have no measure in common.
    other = LINE.replace("flows.download", "flows.upload").replace("rate =", 'mtu = "1 kB"\nrate =')
    write(tmp_path, "other.toml", other)
    data = json.loads(printed(["report", "today.toml", "other.toml", "--quick", "--json"]))
    assert [each["key"] for each in data["differences"]][:2] == ["flows.download", "flows.upload"]
    html = Path("report.html").read_text(encoding="utf-8")
    assert "no measure in common with today.toml" in html
    # Written keys come first, in the order of the files.
    written = re.findall(r"<tr><td><code>([^<]*)</code></td><td>[^<]*</td><td>", html)
    assert written[:3] == ["flows.download", "flows.upload", "links.wire.mtu"]
    # Equal files differ in nothing.
    same = json.loads(printed(["report", "today.toml", "today.toml", "--quick", "--json"]))
    assert same["differences"] == []


def test_hostile_text_is_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    hostile = (
        """<script>alert(1)</script> {{ 7 * 7 }} {% raw %} 'x' & </pre><img src=x onerror=y>"""
    )
    file = "a<b>&'c'.toml"
    write(tmp_path, file, f'description = "{hostile}"\n# {hostile}\n{LINE}')
    printed(["report", file, "dvb-9k6", "--quick"])
    page = Page(Path("report.html").read_text(encoding="utf-8"))
    assert "script" not in page.tags
    assert "img" not in page.tags
    assert "b" not in page.tags
    # In the description, and in the scenario's text twice.
    assert page.text.count(" ".join(hostile.split())) == 3
    assert file in page.text


def test_goodput_stands_for_transfers_that_do_not_finish(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time of a transfer is not the same with all values because some do not finish."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "sized.toml", LINE.replace('"bulk"', '"bulk", size = "700 kB"'))
    data = json.loads(printed(["report", "sized.toml", "--json"]))
    (told,) = data["scenarios"]
    assert told["main"] == [["download", "transfer time"]]
    by_kind = {each["kind"]: each for each in told["sensitivity"]}
    for kind, what in (("delay", "transfer time"), ("rate", "goodput")):
        values = by_kind[kind]["values"]
        assert {each["measures"][0]["what"] for each in values} == {what}
    text = Page(Path("report.html").read_text(encoding="utf-8")).text
    assert "Rate of wire.forward: download, goodput, " in text


def test_findings_are_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "line.toml", LINE)
    assert cli.execute(["report", "line.toml", "--quick", "--out", "line.html"]) == 0
    said = capsys.readouterr()
    assert said.err == ""
    goodput = shown(bentpipe.run("line.toml").flow().goodput_bps, "bit/s")
    assert f"Download: {goodput} delivered." in said.out
    assert said.out.endswith("wrote line.html\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nosuch"], "nosuch: no such file"),
        (["line.toml", "wrong.toml"], "wrong.toml:9: links.wire.delay"),
        (["sweep.toml"], "`bentpipe report` takes a scenario"),
        (["line.toml", "--out", "no/such/report.html"], "there is no folder no/such"),
        (["line.toml", "--out", "."], "--out .: is a folder"),
        (["line.toml", "--workers", "2", "--dask", "tcp://127.0.0.1:9"], "doesn't go with --dask"),
        (["line.toml", "--seeds", "0"], "0"),
        (["line.toml", "--set", "nokey"], "expected KEY=VALUE"),
        (["-", "-"], "standard input can be read once"),
    ],
)
def test_refusals_have_one_line_and_leave_no_file(
    words: list[str],
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "line.toml", LINE)
    write(tmp_path, "wrong.toml", LINE.replace('"100 ms"', '"fast"'))
    write(tmp_path, "sweep.toml", 'scenario = "line.toml"\n[axes]\nseed = [1]\n')
    assert cli.execute(["report", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert told in said.err
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="optional: no /dev/full here")
def test_unwritable_report_still_prints_the_findings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "line.toml", LINE)
    Path("full.html").symlink_to("/dev/full")
    for as_json in ([], ["--json"]):
        words = ["report", "line.toml", "--quick", "--out", "full.html", *as_json]
        assert cli.execute(words) == 1
        said = capsys.readouterr()
        assert said.err == "bentpipe: full.html: no space left on device\n"
        assert "full.html" not in said.out
        assert ("delivered" in said.out) or json.loads(said.out)["scenarios"]


@pytest.mark.skipif(find_spec("distributed") is None, reason="dask.distributed isn't installed")
def test_cluster_gives_the_same_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from .test_sweep_dask import cluster

    monkeypatch.chdir(tmp_path)
    write(tmp_path, "line.toml", LINE)
    here = json.loads(printed(["report", "line.toml", "--quick", "--json"]))
    with cluster(tmp_path) as running:
        running.worker()
        words = ["report", "line.toml", "--quick", "--json", "--dask", running.address]
        there = json.loads(printed(words))
    for told in (here, there):
        told["scenarios"][0]["run"]["wall_s"] = 0
    assert here["scenarios"] == there["scenarios"]
    assert here["simulations"] == there["simulations"]
    text = Page(Path("report.html").read_text(encoding="utf-8")).text
    assert f"Dask cluster at {running.address}" in text


def test_networks_without_results_have_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is delivered, and no page is loaded: the report says so."""
    monkeypatch.chdir(tmp_path)
    dead = LINE.replace(
        'delay = "100 ms"', 'delay = "100 ms"\nforward = { errors = { packet_loss_rate = 1.0 } }'
    ).replace('"bulk"', '"bulk", size = "10 kB"')
    write(tmp_path, "dead.toml", dead)
    printed(["report", "dead.toml", "--quick"])
    text = Page(Path("report.html").read_text(encoding="utf-8")).text
    assert "download: nothing was delivered." in text.replace("Download", "download")
    web = LINE.replace('from = "server"\nto = "client"', 'from = "client"\nto = "server"')
    write(tmp_path, "slow.toml", web.replace('"bulk"', '"web"').replace("2 Mbit/s", "9.6 kbit/s"))
    printed(["report", "slow.toml", "--quick"])
    assert "page" in Path("report.html").read_text(encoding="utf-8")
