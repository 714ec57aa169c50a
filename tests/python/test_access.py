"""Capacity on demand from Python and the command line: results, predictions, real time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import cli
from bentpipe.scenario import Scenario

from .live import live, repeated_after_stall

ON_DEMAND = {"kind": "on-demand", "processing": "10 ms"}


def terminal(access: dict[str, Any] | None = None, **app: Any) -> Scenario:
    """Return a terminal that has to ask for what it sends to a server."""
    sends = app or {"kind": "ping", "interval": "0.99 s", "requests": 8}
    back = {"rate": "1 Mbit/s", "access": ON_DEMAND if access is None else access}
    return Scenario.of(
        {
            "name": "terminal",
            "duration": "12 s",
            "hosts": {"server": {}, "terminal": {}},
            "links": {
                "satellite": {
                    "between": ["server", "terminal"],
                    "delay": "250 ms",
                    "forward": {"rate": "10 Mbit/s"},
                    "return": back,
                }
            },
            "flows": {"up": {"from": "terminal", "to": "server", "app": sends}},
        }
    )


def test_access_result_has_requested_granted_and_used_bytes() -> None:
    forward, back = bentpipe.run(terminal()).summary.links
    assert forward.access is None
    access = back.access
    assert access is not None
    assert (access.requests, access.granted_bytes, access.used_bytes) == (8, 8 * 84, 8 * 84)
    assert access.unused_share == 0.0
    assert access.extra == {}
    mean, longest = access.wait_ms.mean, access.wait_ms.max
    assert mean is not None
    assert longest is not None
    # 510 ms are 20 frames, begun ones too; each request waits for a frame to be made in.
    assert 20 * 26.5 <= mean <= longest <= 21 * 26.5


def test_table_shows_on_demand_capacity_and_groups_terminals(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.execute(["run", "rcs2-terminals", "--set", "duration=20 s"]) == 0
    (line,) = [each for each in capsys.readouterr().out.splitlines() if "on demand" in each]
    assert line.split()[:3] == ["capacity", "on", "demand"]
    assert cli.execute(["run", "rcs2-terminals", "--set", "duration=20 s", "--all"]) == 0
    said = capsys.readouterr().out
    after = said[said.index("capacity on demand") :]
    assert after.count("homes-") == 10
    assert after.count("desks-") == 6


def test_table_shows_carrier_utilization(capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"duration": "20 s"}
    summary = bentpipe.run("rcs2-terminals", settings=settings).summary
    asking = [link.access for link in summary.links if link.access is not None]
    assert {(each.carrier, each.carrier_rate_bps) for each in asking} == {("uplink", 4_000_000)}
    share = 8 * sum(each.used_bytes for each in asking) / (4e6 * summary.extra["ended_s"])
    assert 0.0 < share < 1.0
    assert cli.execute(["run", "rcs2-terminals", "--set", "duration=20 s"]) == 0
    (row,) = [
        line for line in capsys.readouterr().out.splitlines() if line.startswith("carrier uplink ")
    ]
    assert f" {share:.1%} " in row


def test_run_plots_granted_capacity(tmp_path: Path) -> None:
    assert (
        cli.execute(["run", "rcs2-terminals", "--set", "duration=20 s", "--out", str(tmp_path)])
        == 0
    )
    figure = (tmp_path / "desks-1.forward.granted.svg").read_text()
    assert "capacity granted (kbit/s)" in figure


@pytest.mark.parametrize(
    ("access", "most_bps", "limit"),
    [
        ({"constant": "64 kbit/s"}, 64e3, "60 kB"),
        ({"constant": "64 kbit/s", "rate_based": "100 kbit/s"}, 164e3, "60 kB"),
        ({"rate_based": "100 kbit/s", "volume_based": True}, 1e6, "250 kB"),
        ({"rate_based": "100 kbit/s", "free": True}, 1e6, "250 kB"),
    ],
)
def test_predicted_downlink_limit_is_the_largest_grant(
    access: dict[str, Any], most_bps: float, limit: str
) -> None:
    # The first round trips aside, and what was sent twice, TCP fills what it may: there is room
    # for what waits for grants, a megabit in the loop of a second.
    scenario = terminal({"kind": "on-demand", **access}, kind="bulk").with_settings(
        {"duration": "200 s", "links.satellite.return.queue.limit": limit}
    )
    (predicted,) = bentpipe.predict(scenario).flows
    highest = 1448 / 1500 * most_bps
    assert predicted.limits_bps["downlink"] == pytest.approx(highest)
    goodput_bps = bentpipe.run(scenario, no_probes=True).flow().goodput_bps
    assert 0.9 * highest < goodput_bps <= highest


def test_predicted_round_trip_includes_minimum_access_wait() -> None:
    scenario = terminal({"kind": "on-demand"}, kind="bulk", size="20 kB")
    (predicted,) = bentpipe.predict(scenario).flows
    # 500 ms are 19 frames, begun ones too.
    assert predicted.round_trip_s == pytest.approx(0.5 + 19 * 0.0265, abs=0.02)
    assert 'satellite.return: access "on-demand"' in predicted.ignored
    reasons = {model.reason for model in predicted.models}
    expected = "at satellite.return packets wait for grants; it assumes a transmitter of some rate"
    assert expected in reasons
    assert all(model.throughput_bps is None for model in predicted.models)


def test_sweep_compares_on_demand_with_continuous_access(tmp_path: Path) -> None:
    (tmp_path / "terminals.toml").write_text(
        """
scenario = "rcs2-terminals"
[set]
duration = "15 s"
[axes]
carriers.uplink.rate = ["4 Mbit/s", "8 Mbit/s"]
links.homes.access = [{ kind = "continuous" }, { kind = "on-demand", carrier = "uplink" }]
""",
        encoding="utf-8",
    )
    out = tmp_path / "out"
    words = ["sweep", str(tmp_path / "terminals.toml"), "--out", str(out), "--workers", "1"]
    assert cli.execute(words) == 0
    done = bentpipe.load_sweep(out)
    granted = {
        row["cell"] for row in done.rows("link").to_pylist() if row["name"] == "desks-1.forward"
    }
    assert granted == set(range(4))
    assert not done.failures


@live
@repeated_after_stall
def test_emulated_access_wait_equals_simulated() -> None:
    scenario = terminal()
    simulated = bentpipe.run(scenario, no_probes=True)
    emulated = bentpipe.emulate(scenario)
    waits = []
    for result in (simulated, emulated):
        access = result.summary.links[1].access
        assert access is not None
        assert access.requests == 8
        waits.append(access.wait_ms.mean)
    assert waits[0] is not None
    # The kernel's ends begin when they begin: up to a frame sooner or later.
    assert waits[1] == pytest.approx(waits[0], abs=27.0)


FADE = [{"at": "4 s", "rate": "250 kbit/s"}, {"at": "8 s", "rate": "1 Mbit/s"}]


def test_predicted_downlink_is_averaged_over_a_fade() -> None:
    scenario = terminal({"rate_based": "1 Mbit/s", "kind": "on-demand"}, kind="bulk")
    faded = scenario.with_settings({"links.satellite.return.schedule": FADE})
    (predicted,) = bentpipe.predict(faded).flows
    # A third of the time at a quarter.
    assert predicted.limits_bps["downlink"] == pytest.approx(1448 / 1500 * 0.75e6)
    assert any("rate that changes" in what for what in predicted.ignored)


def test_sweep_over_fade_rate_reduces_delivered_bytes(tmp_path: Path) -> None:
    (tmp_path / "rain.toml").write_text(
        """
scenario = "rcs2-terminals"
[set]
duration = "15 s"
links.offices.fading = { clear = "1 s", faded = "9 s" }
[axes]
links.offices.fading.rate = ["2 Mbit/s", "500 kbit/s", "100 kbit/s"]
""",
        encoding="utf-8",
    )
    out = tmp_path / "out"
    words = ["sweep", str(tmp_path / "rain.toml"), "--out", str(out), "--workers", "1"]
    assert cli.execute(words) == 0
    done = bentpipe.load_sweep(out)
    assert not done.failures
    sent = {
        row["cell"]: row["bytes_delivered"]
        for row in done.rows("link").to_pylist()
        if row["name"] == "offices-1.forward"
    }
    assert sent[0] > sent[1] > sent[2]


def test_run_plots_a_fade_and_counts_faded_bytes(tmp_path: Path) -> None:
    fade = 'links.desks.schedule=[{ at = "10 s", rate = "50 kbit/s" }]'
    words = ["run", "rcs2-terminals", "--set", "duration=20 s", "--set", fade]
    assert cli.execute([*words, "--out", str(tmp_path)]) == 0
    assert (tmp_path / "desks-1.forward.granted.svg").exists()
    summary = bentpipe.run(
        Scenario.of("rcs2-terminals").with_settings(
            {"duration": "20 s", "links.desks.schedule": [{"at": "10 s", "rate": "50 kbit/s"}]}
        )
    ).summary
    faded = {
        link.name: link.access.faded_bytes for link in summary.links if link.access is not None
    }
    # 520 ms are 20 frames, begun ones too, planned for 88 kbit/s and good for 50 of 2000.
    assert faded["homes-1.forward"] is None
    lost = 20 * 88e3 * (1 - 50 / 2000) * 0.0265 / 8
    assert faded["desks-1.forward"] == pytest.approx(lost, rel=0.06)


@live
@repeated_after_stall
def test_emulated_fade_grants_equal_simulated() -> None:
    scenario = terminal(
        {"constant": "1 Mbit/s", "kind": "on-demand"},
        kind="packets",
        size="972 B",
        interval="10 ms",
    ).with_settings({"links.satellite.return.schedule": FADE, "duration": "10 s"})
    simulated = bentpipe.run(scenario, no_probes=True)
    emulated = bentpipe.emulate(scenario)
    granted = []
    for result in (simulated, emulated):
        access = result.summary.links[1].access
        assert access is not None
        granted.append((access.granted_constant_bytes, access.used_bytes))
    assert granted[0][0] == granted[1][0]
    assert granted[1][1] == pytest.approx(granted[0][1], rel=0.02)
