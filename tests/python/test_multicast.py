"""Groups and carousels: what `predict` says against runs, captures, tables, refusals."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import bentpipe
from bentpipe import _native
from bentpipe.cli.application import application
from bentpipe.scenario import Scenario

from .live import live
from .networks import link

TEXT = "\n".join(
    [
        """
name = "many"
duration = "70 s"
[hosts.station]
[hosts.dish]
count = 40
[gateways.hub]
""",
        link("studio", "station", "hub", rate="100 Mbit/s", delay="5 ms"),
        link(
            "satellite",
            "hub",
            "dish",
            rate="10 Mbit/s",
            delay="250 ms",
            broadcast="true",
            one_way="true",
        ),
        """
[groups.all]
members = ["dish"]
[flows.news]
from = "station"
to = "all"
app = { kind = "carousel", size = "100 kB", rate = "2 Mbit/s", files = 20 }
""",
    ]
)


@pytest.mark.parametrize(
    ("loss", "turns", "ip"),
    [*product((0.0, 0.003, 0.02, 0.2), (1, 2, 3), ("v4",)), (0.02, 2, "v6")],
)
def test_carousel_prediction_matches_a_run(loss: float, turns: int, ip: str) -> None:
    settings: dict[str, Any] = {
        "links.satellite.errors": f"{{ packet_loss_rate = {loss} }}",
        "flows.news.app.turns": turns,
        "ip": ip,
    }
    scenario = Scenario(path=Path("many.toml"), text=TEXT)
    predicted = bentpipe.predict(scenario, settings=settings).flows
    assert {flow.like for flow in predicted} == {"news-1"}
    (model,) = predicted[0].models
    assert model.applies
    group = bentpipe.run(scenario, settings=settings).summary.groups[0]
    files = group.extra["files"]
    begun = files["begun"]
    assert begun == 40 * 20
    share = float(model.reason.split("%")[0]) / 100.0
    deviation = (share * (1.0 - share) / begun) ** 0.5
    # The reason is in three digits.
    assert files["count"] / begun == pytest.approx(share, abs=5.0 * deviation + 0.0005)
    if files["count"] > 100:
        # Half a second or so from turn to turn; a few hundred files at least.
        assert model.transfer_time_s == pytest.approx(files["time_ms"]["mean"] / 1e3, abs=0.05)
    if loss == 0.0:
        assert model.transfer_time_s == pytest.approx(files["time_ms"]["max"] / 1e3, abs=1e-3)
    # Every file takes its turns, and of each file at the end all that is new has come.
    expected = 20 * 100_000 * (1.0 - loss**turns)
    assert group.bytes_delivered / 40 == pytest.approx(expected, rel=0.01)
    received = group.extra["received_percent"]
    assert received["mean"] == pytest.approx(100.0 * (1.0 - loss), abs=1.0)


def test_carousel_above_the_link_rate_has_no_model() -> None:
    scenario = Scenario(path=Path("many.toml"), text=TEXT)
    flow = bentpipe.predict(scenario, settings={"links.satellite.rate": "1 Mbit/s"}).flows[0]
    assert not flow.models[0].applies
    assert flow.lowest == "downlink"
    assert flow.uplink == ()


@pytest.mark.parametrize(
    ("ip", "address"),
    [("v4", bytes([232, 0, 1, 0])), ("v6", bytes.fromhex("ff3e" + "0" * 20 + "80000001"))],
)
def test_captures_have_multicast_addresses(tmp_path: Path, ip: str, address: bytes) -> None:
    capture = tmp_path / "satellite.pcapng"
    place = [("satellite", str(capture))]
    _native.run("many.toml", text=TEXT, overrides=[("ip", ip)], pcap=place)
    # Once on the link, however many hear it.
    assert capture.read_bytes().count(address) == 20 * 72


def test_run_and_predict_commands_report_groups(tmp_path: Path) -> None:
    file = tmp_path / "many.toml"
    file.write_text(TEXT)
    runner = CliRunner()
    ran = runner.invoke(application(), ["run", str(file), "--out", str(tmp_path / "out")])
    assert ran.exit_code == 0, ran.output
    assert "each got: least" in ran.output
    assert (tmp_path / "out" / "received.svg").exists()
    told = runner.invoke(application(), ["predict", str(file)])
    assert told.exit_code == 0, told.output
    assert "to a group, unloaded" in told.output
    assert "100% of the files become whole" in told.output


@live
def test_emulate_refuses_groups_with_attached_hosts() -> None:
    scenario = Scenario(path=Path("many.toml"), text=TEXT)
    for host in ("station", "dish-3"):
        with pytest.raises(bentpipe.ScenarioError, match=r"flows\.news\.to: a host with our TCP"):
            bentpipe.emulate(scenario, attach={host: "our"})


def test_advise_has_no_remedies_for_a_group() -> None:
    assert bentpipe.advise(Scenario(path=Path("many.toml"), text=TEXT)).remedies == ()


@live
@pytest.mark.parametrize("ip", ["v4", "v6"])
def test_kernel_group_members_receive_each_datagram_once(ip: str) -> None:
    settings: dict[str, Any] = {
        "ip": ip,
        "duration": "8 s",
        "hosts.dish.count": 4,
        "flows.news.app.files": 2,
        # The second of the packets is lost to all, which every member finds out for itself.
        "links.satellite.forward.errors": "{ lost_packets = [2] }",
    }
    scenario = Scenario(path=Path("many.toml"), text=TEXT)
    both = [
        bentpipe.run(scenario, settings=settings).summary,
        bentpipe.emulate(scenario, settings=settings).summary,
    ]
    for summary in both:
        group = summary.groups[0]
        assert group.extra["files"]["begun"] == 4 * 2
        assert group.extra["files"]["count"] == 4
        channel = next(each for each in summary.links if each.name == "satellite.forward")
        studio = next(each for each in summary.links if each.name == "studio.forward")
        # One packet up, and a copy for each of the four.
        assert channel.packets_delivered == 4 * (studio.packets_delivered - 1)
    simulated, real = both
    assert real.groups[0].bytes_delivered == simulated.groups[0].bytes_delivered
    delays = [summary.groups[0].extra["files"]["time_ms"]["mean"] for summary in both]
    assert delays[1] == pytest.approx(delays[0], abs=15.0)
