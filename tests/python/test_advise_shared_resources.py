"""`advise` where no link is full: limits by a processor, a carrier, or granted capacity."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import cli
from bentpipe.advice import Advice, FlowLimits
from bentpipe.advice.remedy import PARTIES

from .networks import pair


def _limits(network: dict[str, Any]) -> Advice:
    """Return what limits the flows: nobody can change anything, so no remedy is simulated."""
    return bentpipe.advise(network, seeds=1, without=PARTIES)


def _served(node: str) -> dict[str, Any]:
    """Return a network whose node takes a millisecond for a packet, and whose links are wide."""
    processing = {"processing": {"time": "1 ms"}}
    return {
        "name": "served",
        "duration": "60 s",
        "hosts": {name: processing if name == node else {} for name in ("server", "client")},
        "gateways": {"hub": processing if node == "hub" else {}},
        "links": {
            "lan": {"between": ["server", "hub"], "rate": "1 Gbit/s", "delay": "1 ms"},
            "satellite": {"between": ["hub", "client"], "rate": "20 Mbit/s", "delay": "40 ms"},
        },
        "flows": {"transfer": {"from": "server", "to": "client", "app": {"kind": "bulk"}}},
    }


def _terminals(access: dict[str, object], *, carrier: str = "1 Mbit/s") -> dict[str, Any]:
    """Return ten terminals on a carrier, each of which sends for two minutes."""
    forward = {"kind": "on-demand", "carrier": "inroute", **access}
    return {
        "name": "shops",
        "duration": "120 s",
        "hosts": {"hub": {}, "shop": {"count": 10}},
        "carriers": {"inroute": {"rate": carrier}},
        "links": {
            "shops": {
                "between": ["shop", "hub"],
                "delay": "250 ms",
                "forward": {"rate": "512 kbit/s", "access": forward},
                "return": {"rate": "10 Mbit/s"},
            }
        },
        "flows": {"upload": {"from": "shop", "to": "hub", "app": {"kind": "bulk"}}},
    }


@pytest.mark.parametrize("node", ["server", "client", "hub"])
def test_saturated_processor_is_the_limit(node: str) -> None:
    advice = _limits(_served(node))
    (flow,) = advice.flows
    assert flow.verdict == "processing"
    assert flow.processor is not None
    assert flow.processor.name == node
    assert 0.95 < flow.processor.used <= 1.0
    assert flow.downlink_used < 0.5
    # The limit named by predict applies in the run.
    (predicted,) = bentpipe.predict(_served(node)).flows
    assert predicted.lowest == "processing, with ACKs"
    (told,) = advice.as_json()["flows"]
    assert told["processor"] == {"name": node, "used": flow.processor.used}
    assert told["carrier"] is None


def test_idle_processor_is_not_the_limit() -> None:
    network = _served("client")
    network["hosts"]["client"]["processing"] = {"time": "100 us"}
    network["links"]["satellite"]["rate"] = "2 Mbit/s"
    (flow,) = _limits(network).flows
    assert flow.verdict == "downlink"
    assert flow.processor is not None
    # 167 segments a second and half as many ACKs, but for losses, for 0.1 ms each.
    assert flow.processor.used == pytest.approx(1.5 * 2e6 / 12_000 * 1e-4, rel=0.1)


def test_full_carrier_limits_every_flow_that_shares_it() -> None:
    network = _terminals({"volume_based": True})
    flows = _limits(network).flows
    assert {flow.verdict for flow in flows} == {"carrier"}
    for flow in flows:
        assert flow.carrier is not None
        assert flow.carrier.name == "inroute"
        assert 0.95 < flow.carrier.used <= 1.0
    shares = bentpipe.predict(network).flows
    assert {each.lowest for each in shares} == {"fair share"}


@pytest.mark.parametrize("access", [{"volume_based": True}, {"rate_based": "100 kbit/s"}])
def test_faded_carrier_is_full_with_fewer_bytes(access: dict[str, object]) -> None:
    network = _terminals(access)
    forward = network["links"]["shops"]["forward"]
    forward["schedule"] = [{"at": "0 s", "rate": "128 kbit/s"}]
    result = bentpipe.run(network, no_probes=True)
    flows = _limits(network).flows
    assert {flow.verdict for flow in flows} == {"carrier"}
    for flow in flows:
        assert flow.carrier is not None
        # By the bytes it would be a quarter of that.
        assert 0.95 < flow.carrier.used <= 1.0
    used = sum(link.access.used_bytes for link in result.summary.links if link.access is not None)
    assert 8 * used < 0.26 * 1e6 * 120
    # `run` reports the same share.
    occupied = [link.access for link in result.summary.links if link.access is not None]
    share = 8 * sum(each.occupied_bytes for each in occupied) / 1e6 / 120
    assert share == pytest.approx(8 * 4 * used / 1e6 / 120, rel=1e-3)


def test_carrier_with_free_capacity_is_not_the_limit() -> None:
    flows = _limits(_terminals({"volume_based": True}, carrier="8 Mbit/s")).flows
    assert "carrier" not in {flow.verdict for flow in flows}
    assert all(flow.carrier is not None and flow.carrier.used < 0.8 for flow in flows)


def test_acknowledgment_limited_flows_name_the_full_carrier() -> None:
    network = _terminals({"volume_based": True}, carrier="512 kbit/s")
    # Each downloads beside its upload, which leaves nothing to its acknowledgments.
    network["flows"]["download"] = {"from": "hub", "to": "shop", "app": {"kind": "bulk"}}
    flows = _limits(network).flows
    downloads = [flow for flow in flows if flow.name.startswith("download")]
    assert {flow.verdict for flow in downloads} == {"acknowledgments"}
    for flow in downloads:
        assert flow.uplink_used < 0.5
        assert flow.full_carrier is not None
        assert flow.full_carrier.name == "inroute"


def test_constant_rate_terminals_are_capacity_limited() -> None:
    advice = bentpipe.advise(_terminals({"constant": "64 kbit/s"}), seeds=1)
    assert {flow.verdict for flow in advice.flows} == {"capacity"}
    # Other traffic on the carrier does not affect them.
    assert all(flow.carrier is None for flow in advice.flows)
    names = [each.remedy.name for each in advice.remedies if each.gain > 1.3]
    assert "capacity by volume on shops-1.forward" in names
    assert "free capacity on shops-1.forward" in names


def test_plain_network_has_no_processor_or_carrier() -> None:
    network = pair("plain", duration="20 s", rate="2 Mbit/s", delay="50 ms", size="2 MB")
    (flow,) = _limits(tomllib.loads(network)).flows
    assert (flow.processor, flow.carrier) == (None, None)
    assert isinstance(flow, FlowLimits)


@pytest.mark.parametrize(
    ("network", "limited", "line"),
    [
        (
            _served("hub"),
            "the processor of hub (",
            r"Busy: the processor of hub \((9\d|100)%\)\. No window, queue or gateway",
        ),
        (
            _terminals({"volume_based": True}),
            "the carrier inroute (",
            r"Full: the carrier inroute \((9\d|100)%\)\. No setting gives a carrier more capacity",
        ),
    ],
    ids=["processor", "carrier"],
)
def test_command_reports_limits_that_no_setting_removes(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    network: dict[str, Any],
    limited: str,
    line: str,
) -> None:
    file = tmp_path / "network.toml"
    file.write_text(bentpipe.Scenario.of(network).text or "", encoding="utf-8")
    assert cli.execute(["advise", str(file), "--seeds", "1"]) == 0
    out = capsys.readouterr().out
    assert limited in out
    assert re.search(line, out)
