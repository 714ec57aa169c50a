"""Groups in sweeps: rows of their own, and any number of theirs in the place of goodput."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import cli
from bentpipe.sweeps.metric import parse_metric
from bentpipe.sweeps.summary import summarise

USERS: dict[str, Any] = {
    "name": "users",
    "duration": "30 s",
    "hosts": {"hub": {}, "user": {"count": 3}},
    "links": {"sky": {"between": ["user", "hub"], "rate": "2 Mbit/s", "delay": "50 ms"}},
    "flows": {
        "pages": {"from": "user", "to": "hub", "app": {"kind": "web"}},
        "upload": {"from": "user", "to": "hub", "app": {"kind": "bulk", "size": "100 kB"}},
        "echo": {"from": "user", "to": "hub", "app": {"kind": "ping"}},
    },
}


def _sweep(folder: Path) -> Path:
    scenario = folder / "users.toml"
    scenario.write_text(bentpipe.Scenario.of(USERS).text or "", encoding="utf-8")
    file = folder / "sweep.toml"
    file.write_text(
        'scenario = "users.toml"\n[axes]\nlinks.sky.delay = ["50 ms", "250 ms"]\n'
        "hosts.user.count = [2, 3]\nseed = { count = 2 }\n",
        encoding="utf-8",
    )
    return file


def test_group_rows_of_a_cell_equal_its_run(tmp_path: Path) -> None:
    result = bentpipe.sweep(_sweep(tmp_path))
    rows = result.rows("group").to_pylist()
    assert len(rows) == len(result.sweep) * 3
    run = bentpipe.run(USERS, seed=2, settings={"links.sky.delay": "250 ms", "hosts.user.count": 2})
    groups = {each["name"]: each for each in json.loads(run.summary_json)["groups"]}
    place = {"delay_s": 0.25, "count": 2, "seed": 2}
    here = {row["name"]: row for row in rows if place.items() <= row.items()}
    assert here.keys() == groups.keys() == {"pages", "upload", "echo"}
    for name, row in here.items():
        told = groups[name]
        assert row["flows"] == told["flows"] == 2
        assert row["goodput_bps"] == told["goodput_bps"]
        assert row["bytes_delivered"] == told["bytes_delivered"]
    assert here["pages"]["page_load_p50_ms"] == groups["pages"]["page_load_ms"]["p50"]
    assert here["echo"]["echoes_time_p95_ms"] == groups["echo"]["echoes"]["time_ms"]["p95"]
    assert here["upload"]["outcomes_finished"] == 2
    assert here["upload"]["page_load_p50_ms"] is None
    data = result.dataset
    assert data.sizes["group"] == 3
    found = data.group_page_load_p50_ms.sel(group="pages", **place)
    assert float(found) == groups["pages"]["page_load_ms"]["p50"]


@pytest.mark.parametrize(
    ("text", "unit", "shown"),
    [
        ("pages.page_load_ms.p50", "ms", "2.5 s"),
        ("echo.echoes.time_ms.p99", "ms", "2.5 s"),
        ("pages.goodput_bps", "bit/s", "2.5 kbit/s"),
        ("pages.bytes_delivered", "B", "2.5 kB"),
        ("upload.outcomes.finished", "", "2500"),
    ],
)
def test_metric_values_equal_those_of_the_runs(
    tmp_path: Path, text: str, unit: str, shown: str
) -> None:
    result = bentpipe.sweep(_sweep(tmp_path))
    metric = parse_metric(text, result.sweep)
    assert str(metric) == text
    assert (metric.unit, metric.shown(2500.0)) == (unit, shown)
    values = metric.values(result)
    for cell in result.sweep.cells():
        scenario = result.sweep.scenario_of(cell)
        told = json.loads(bentpipe.run(scenario, no_probes=True).summary_json)
        (value,) = [group for group in told["groups"] if group["name"] == metric.group]
        for name in metric.path:
            value = value[name]
        assert values[cell.number] == value
    points = summarise(result, metric)
    assert [each.cells for each in points] == [2] * 4
    for number, point in enumerate(points):
        assert point.metric is not None
        both = sorted(values[2 * number : 2 * number + 2])
        assert point.metric.median == pytest.approx(sum(both) / 2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nobody.goodput_bps", "the flows are pages, upload, echo"),
        ("pages", 'such as "pages.goodput_bps"'),
        ("pages.page_load", "page_load_ms.p50"),
        ("pages.page_load_ms", "page_load_ms.p50"),
        ("pages.name", "results tell no such number"),
        ("pages.page_load_ms.percentiles", "results tell no such number"),
    ],
)
def test_unknown_metric_is_refused_before_simulation(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, said: str
) -> None:
    file = _sweep(tmp_path)
    out = tmp_path / "results.parquet"
    assert cli.execute(["sweep", str(file), "--out", str(out), "--metric", text]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith(f"bentpipe: --metric {text}: ")
    assert said in captured.err
    assert not out.exists()


def test_command_prints_and_plots_the_metric(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out, plot = _sweep(tmp_path), tmp_path / "r.parquet", tmp_path / "plot.svg"
    command = ["sweep", str(file), "--out", str(out), "--metric", "pages.page_load_ms.p50"]
    assert cli.execute([*command, "--plot", str(plot)]) == 0
    printed = capsys.readouterr().out
    assert "pages.page_load_ms.p50" in printed
    assert "goodput" not in printed
    assert "pages.page_load_ms.p50 (" in plot.read_text(encoding="utf-8")
    assert cli.execute([*command, "--resume", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["metric"] == "pages.page_load_ms.p50"
    assert all(point["metric"]["median"] > 0.0 for point in told["points"])
    # A metric of other applications exists in no cell; the command reports that.
    command[-1] = "upload.page_load_ms.p50"
    assert cli.execute([*command, "--resume"]) == 0
    assert "no cell has upload.page_load_ms.p50" in capsys.readouterr().out
