"""Results, typed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import bentpipe
from bentpipe.errors import RequestError
from bentpipe.results import Summary, tidy
from bentpipe.scenario import Scenario, ready_made

TEXT = """
name = "two"
duration = "10 s"
hosts = { a = {}, b = {} }
links.l = { between = ["a", "b"], rate = "1 Mbit/s", delay = "10 ms" }
flows.one = { from = "a", to = "b", app = { kind = "bulk", size = "100 kB" } }
flows.two = { from = "a", to = "b", start = "1 s", app = { kind = "bulk" } }
probes = { series = ["one.congestion_window", "l.forward.queue"], interval = "100 ms" }
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(path=tmp_path / "two.toml", text=TEXT)


def test_run_returns_a_summary_and_series(scenario: Scenario, tmp_path: Path) -> None:
    result = bentpipe.run(scenario)
    assert result.summary.scenario == "two"
    one, two = result.summary.flows
    assert result.flow("one") == one
    assert one.finish_s is not None
    assert one.first_data_s is not None
    assert one.transfer_time_s == pytest.approx(one.finish_s - one.first_data_s)
    assert (two.finish_s, two.transfer_time_s) == (None, None)
    assert (one.outcome, one.ended_s) == ("finished", one.finish_s)
    assert (two.outcome, two.ended_s) == ("running", None)
    with pytest.raises(KeyError, match="one, two"):
        result.flow()
    with pytest.raises(KeyError, match="one, two"):
        result.flow("three")

    # A queue sampled every 100 ms also has a series of the maximum since the last sample.
    names = {"one.congestion_window", "l.forward.queue", "l.forward.queue_max"}
    assert result.series.keys() == names
    exactly = bentpipe.run(scenario, default_probes=False)
    assert exactly.series.keys() == {"one.congestion_window", "l.forward.queue"}
    window = result.series["one.congestion_window"]
    assert window.unit == "B"
    assert window.times_s.dtype == window.values.dtype == np.float64
    assert np.all(np.diff(window.times_s) >= 0)

    result.write_parquet(tmp_path / "probes.parquet")
    table = pq.read_table(tmp_path / "probes.parquet")
    assert table.num_rows == sum(len(each.times_s) for each in result.series.values())
    rows = [row for row in table.to_pylist() if row["series"] == "one.congestion_window"]
    assert [row["value"] for row in rows] == window.values.tolist()
    assert {row["unit"] for row in rows} == {"B"}


def test_empty_series_give_an_empty_table() -> None:
    assert tidy({}).num_rows == 0
    assert tidy({}).column_names == ["series", "time_s", "value", "unit"]


def test_unknown_summary_fields_are_kept(scenario: Scenario) -> None:
    data = json.loads(bentpipe.run(scenario).summary_json)
    data["mood"] = "fine"
    data["flows"][0]["colour"] = "blue"
    summary = Summary.from_json(json.dumps(data))
    assert summary.extra["mood"] == "fine"
    assert summary.flows[0].extra["colour"] == "blue"


def test_link_counters_exist_for_counting_components() -> None:
    link = bentpipe.run("dvb-9k6-compaction").summary.links[1]
    assert link.name == "satellite.return"
    assert link.count("acks_removed") == link.count("acks_regenerated") > 1000
    assert link.count("acks_removed", flow="download") == link.count("acks_removed")
    assert link.count("acks_removed", flow="upload") == 0
    assert link.count("zebras") == 0
    assert link.bytes_delivered > 60 * link.packets_delivered
    plain = bentpipe.run("dvb-9k6", settings={"duration": "5 s"}).summary.links[1]
    assert plain.counters is None
    assert plain.count("acks_removed") == 0


def test_settings_are_applied_in_order(scenario: Scenario) -> None:
    seed = scenario.with_settings({"seed": 3}).with_settings({"seed": 4})
    assert bentpipe.run(seed).summary.seed == 4
    assert bentpipe.run(seed, settings={"seed": 5}).summary.seed == 5
    assert bentpipe.run(seed, seed=6).summary.seed == 6
    listed = scenario.with_settings({"links.l.forward.errors.lost_packets": [5, 6]})
    assert listed.resolved()["links"][0]["forward"]["errors"]["lost_packets"] == [5, 6]
    off = scenario.with_settings({"hosts.a.tcp.timestamps": False})
    assert off.resolved()["nodes"][0]["tcp"]["timestamps"] is False
    assert "--set seed=4" in seed.command()


def test_run_errors_have_their_types(scenario: Scenario, tmp_path: Path) -> None:
    with pytest.raises(bentpipe.ScenarioError, match=r"two\.toml"):
        bentpipe.run(Scenario(path=scenario.path, text="name = 1"))
    with pytest.raises(RequestError, match="no such file"):
        bentpipe.run(tmp_path / "missing.toml")


def test_ready_made_scenarios_resolve() -> None:
    assert len(ready_made()) >= 6
    for name in ready_made():
        assert Scenario.find(name).resolved()["name"] == name


def test_public_names_exist() -> None:
    for name in bentpipe.__all__:
        assert getattr(bentpipe, name) is not None
    with pytest.raises(AttributeError, match="zebra"):
        _ = bentpipe.zebra


def test_streamed_probes_equal_in_memory_probes(scenario: Scenario, tmp_path: Path) -> None:
    changes = {
        "probes.interval": "every-change",
        "links.l.rate": "100 Mbit/s",
        "duration": "300 s",
        "probes.series": ["two.sent", "two.congestion_window", "l.forward.queue", "l.return.queue"],
    }
    kept = bentpipe.run(scenario, settings=changes)
    path = tmp_path / "probes.parquet"
    filed = bentpipe.run(scenario, settings=changes, probes_to=path)
    assert [file.name for file in tmp_path.iterdir()] == ["probes.parquet"]
    assert pq.ParquetFile(path).num_row_groups > 8
    assert list(filed.series) == list(kept.series)
    assert sum(len(each.values) for each in kept.series.values()) > 4_000_000
    for name, series in kept.series.items():
        again = filed.series[name]
        assert again.unit == series.unit
        assert np.array_equal(again.times_s, series.times_s)
        assert np.array_equal(again.values, series.values)
        outline = filed.outlines()[name]
        assert len(outline.values) < 100_000
        assert (outline.values.min(), outline.values.max()) == (
            series.values.min(),
            series.values.max(),
        )
        assert np.all(np.diff(outline.times_s) >= 0)
    with pytest.raises(KeyError):
        filed.series["three.sent"]


def test_failed_run_leaves_no_probe_file(scenario: Scenario, tmp_path: Path) -> None:
    def give_up(*_: float) -> None:
        raise RuntimeError("enough")

    settings = {"links.l.rate": "100 Mbit/s", "duration": "300 s"}
    with pytest.raises(RuntimeError, match="enough"):
        bentpipe.run(
            scenario, settings=settings, probes_to=tmp_path / "probes.parquet", progress=give_up
        )
    assert list(tmp_path.iterdir()) == []


def test_no_probes_records_no_series(scenario: Scenario) -> None:
    assert bentpipe.run(scenario, no_probes=True).series == {}


def test_queue_classes_are_typed_and_have_columns() -> None:
    result = bentpipe.run("hybrid-noc", settings={"duration": "12 s"})
    down = next(link for link in result.summary.links if link.name == "satellite.forward")
    assert [each.name for each in down.classes] == ["calls", "questions", "pages", "others"]
    assert down.classes[0].wait_ms.mean is not None
    links = result.to_pandas("links").set_index("name")
    sent = links.loc["satellite.forward", "pages_packets_sent"]
    assert sent == down.classes[2].packets_sent
