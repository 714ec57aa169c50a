"""Limits that `predict` finds: a pace, processors, frames, changing paths, carriers."""

from __future__ import annotations

import random
from typing import Any

import pytest

import bentpipe


def _pair(
    link: dict[str, object] | None = None, *, size: str | None = None, **more: Any
) -> dict[str, Any]:
    """Return a network of two hosts and a transfer from the one to the other."""
    app = {"kind": "bulk"} | ({} if size is None else {"size": size})
    plain: dict[str, object] = {
        "between": ["server", "client"],
        "rate": "20 Mbit/s",
        "delay": "40 ms",
    }
    return {
        "name": "pair",
        "duration": "60 s",
        "hosts": {"server": {}, "client": {}},
        "links": {"satellite": plain | (link or {})},
        "flows": {"transfer": {"from": "server", "to": "client", "app": app}},
        **more,
    }


def test_slow_pacing_is_the_binding_limit() -> None:
    network = _pair(hosts={"server": {"tcp": {"pacing": "2 Mbit/s"}}, "client": {}})
    (flow,) = bentpipe.predict(network).flows
    assert flow.binding == "pacing"
    # The first ten segments go at once.
    assert 2e6 < flow.limits_bps["pacing"] < 1.01 * 2e6
    assert not any(each.applies for each in flow.models)
    assert "paces at 2 Mbit/s" in flow.models[0].reason
    goodput = bentpipe.run(network, no_probes=True).flow().goodput_bps
    assert 0.95 * 2e6 < goodput <= 2e6


@pytest.mark.parametrize("size", ["14 kB", "50 kB", "500 kB", "10 MB"])
def test_short_transfer_stays_within_the_pacing_limit(size: str) -> None:
    paced = {"tcp": {"pacing": "300 kbit/s"}}
    network = _pair({"delay": "5 ms"}, size=size, hosts={"server": paced, "client": {}})
    (flow,) = bentpipe.predict(network).flows
    goodput = bentpipe.run(network, no_probes=True).flow().goodput_bps
    assert goodput > 3e5
    assert goodput <= flow.limits_bps[flow.binding]
    assert ("pacing" in flow.limits_bps) is (size != "14 kB")


def test_window_based_pacing_is_not_a_limit() -> None:
    for pacing in ("auto", "on", "off"):
        network = _pair(hosts={"server": {"tcp": {"pacing": pacing}}, "client": {}})
        (flow,) = bentpipe.predict(network).flows
        assert "pacing" not in flow.limits_bps


@pytest.mark.parametrize("slow", ["server", "client", "hub"])
def test_processing_limit_includes_acks(slow: str) -> None:
    served = {"processing": {"time": "1 ms"}}
    network = _pair(
        {"between": ["hub", "client"]},
        hosts={name: served if name == slow else {} for name in ("server", "client")},
        gateways={"hub": served if slow == "hub" else {}},
    )
    lan = {"between": ["server", "hub"], "rate": "1 Gbit/s", "delay": "1 ms"}
    network["links"]["lan"] = lan
    (flow,) = bentpipe.predict(network).flows
    # A segment a millisecond; with half an ACK for each, two in three.
    assert flow.limits_bps["processing"] == pytest.approx(8 * 1448 / 1e-3)
    assert flow.lowest == "processing, with ACKs"
    expected = flow.estimates_bps[flow.lowest]
    assert expected == pytest.approx(8 * 1448 / 1.5e-3)
    goodput = bentpipe.run(network, no_probes=True).flow().goodput_bps
    assert 0.8 * expected < goodput < 1.05 * expected
    assert "processor" in flow.models[0].reason


def test_framing_overhead_reduces_the_limits() -> None:
    network = _pair({"framing": "ethernet", "mtu": "1500 B"}, size="50 MB")
    (flow,) = bentpipe.predict(network).flows
    assert flow.limits_bps["downlink"] == pytest.approx(20e6 * 1448 / 1538)
    # An ACK of 52 bytes takes 90.
    assert flow.estimates_bps["uplink ACKs"] == pytest.approx(2 * 20e6 * 1448 / 90)
    run = bentpipe.run(network, no_probes=True)
    assert run.flow().goodput_bps < flow.limits_bps["downlink"]


@pytest.mark.parametrize(
    ("framing", "packet_bytes", "ack_bytes"),
    [
        ("ppp", 1507, 59),
        ("ppp-compressed", 1504, 56),
        ("6 B", 1506, 58),
        ("gse", 1510, 62),
        ("mpe-padding", 9 * 188, 188),
        ("ule-padding", 9 * 188, 188),
        ("mpe", 1517 * 188 / 184, 68 * 188 / 183),
        ("ule", 1515 * 188 / 184, 66 * 188 / 183),
    ],
)
def test_limits_have_the_lengths_of_frames(
    framing: str, packet_bytes: float, ack_bytes: float
) -> None:
    network = _pair({"framing": framing, "mtu": "1500 B"}, size="20 MB")
    (flow,) = bentpipe.predict(network).flows
    assert flow.limits_bps["downlink"] == pytest.approx(20e6 * 1448 / packet_bytes)
    assert flow.estimates_bps["uplink ACKs"] == pytest.approx(2 * 20e6 * 1448 / ack_bytes)
    run = bentpipe.run(network, no_probes=True)
    assert run.flow().goodput_bps < flow.limits_bps["downlink"]


def test_scheduled_rate_limit_uses_the_highest_rate() -> None:
    steps = [{"at": "20 s", "rate": "1 Mbit/s", "delay": "80 ms"}]
    network = _pair({"schedule": steps}, size="20 MB")
    (flow,) = bentpipe.predict(network).flows
    average = (20 * 20e6 + 40 * 1e6) / 60 * 1448 / 1500
    assert flow.limits_bps["downlink"] == pytest.approx(20e6 * 1448 / 1500)
    assert flow.estimates_bps["downlink, on average"] == pytest.approx(average)
    goodput = bentpipe.run(network, no_probes=True).flow().goodput_bps
    assert average < goodput < flow.limits_bps[flow.binding]
    # The window is limited by the shortest round trip, and on average by a longer one.
    window = [flow.limits_bps["window"], flow.estimates_bps["window, on average"]]
    assert window[0] > window[1]
    # Users of pages come and go, too; both ways count.
    pages = {"from": "client", "to": "server", "app": {"kind": "web"}}
    (users,) = bentpipe.predict(_pair({"schedule": steps}) | {"flows": {"pages": pages}}).flows
    assert users.limits_bps["downlink"] == pytest.approx(2 * 20e6 * 1448 / 1500)
    assert users.estimates_bps["downlink, on average"] == pytest.approx(2 * average)
    # A flow that is present all the time gets the average capacity, and no more.
    (flow,) = bentpipe.predict(_pair({"schedule": steps})).flows
    assert flow.limits_bps["downlink"] == pytest.approx(average)
    assert "downlink, on average" not in flow.estimates_bps


def test_terminals_share_their_carrier() -> None:
    on_demand = {"kind": "on-demand", "carrier": "inroute"}
    network: dict[str, Any] = {
        "name": "hub",
        "duration": "120 s",
        "hosts": {"hub": {}, "shop": {"count": 10}, "till": {"count": 5}},
        "carriers": {"inroute": {"rate": "1 Mbit/s"}},
        "links": {
            "shops": {
                "between": ["shop", "hub"],
                "delay": "250 ms",
                "forward": {"rate": "512 kbit/s", "access": {**on_demand, "volume_based": True}},
                "return": {"rate": "10 Mbit/s"},
            },
            "tills": {
                "between": ["till", "hub"],
                "delay": "250 ms",
                "forward": {"rate": "64 kbit/s", "access": {**on_demand, "constant": "16 kbit/s"}},
                "return": {"rate": "10 Mbit/s"},
            },
        },
        "flows": {
            "upload": {"from": "shop", "to": "hub", "app": {"kind": "bulk"}},
            "ask": {"from": "till", "to": "hub", "app": {"kind": "ping"}},
        },
    }
    flows = {each.name: each for each in bentpipe.predict(network).flows}
    # The tills' assigned capacity remains theirs.
    share = (1e6 - 5 * 16e3) / 10 * 1448 / 1500
    assert flows["upload-1"].estimates_bps["fair share"] == pytest.approx(share)
    run = bentpipe.run(network, no_probes=True)
    got = sum(each.goodput_bps for each in run.summary.flows if each.name.startswith("upload"))
    assert 0.8 * 10 * share < got < 1.02 * 10 * share


def test_flows_share_a_processor() -> None:
    slow = {"processing": {"time": "500 us", "queue": "100 packets"}}
    network = _pair({"rate": "100 Mbit/s"}, hosts={"server": slow, "client": {}, "other": {}})
    network["links"]["third"] = {
        "between": ["server", "other"],
        "rate": "100 Mbit/s",
        "delay": "10 ms",
    }
    network["flows"]["back"] = {"from": "other", "to": "server", "app": {"kind": "bulk"}}
    flows = {each.name: each for each in bentpipe.predict(network).flows}
    # A segment and half an ACK each: half of what one by itself would get.
    share = 8 * 1448 / (1.5 * 500e-6) / 2
    for flow in flows.values():
        assert flow.lowest == "fair share"
        assert flow.estimates_bps["fair share"] == pytest.approx(share)
    got = sum(each.goodput_bps for each in bentpipe.run(network, no_probes=True).summary.flows)
    assert 0.8 * 2 * share < got < 1.05 * 2 * share
    # The echoes' share of the capacity is deducted.
    echoes = {"kind": "ping", "size": "56 B", "interval": "2 ms"}
    network["flows"]["back"] = {"from": "other", "to": "server", "app": echoes}
    (flow, _) = bentpipe.predict(network).flows
    left = 1.0 - 2 * 500e-6 / 2e-3
    assert flow.estimates_bps["fair share"] == pytest.approx(left * 2 * share)


def test_constant_rate_datagrams_are_subtracted_before_sharing() -> None:
    app = {"kind": "packets", "size": "100 B", "interval": "500 ms"}
    link: dict[str, object] = {"rate": "9600 bit/s", "delay": "120 ms"}
    network = _pair(link, hosts={"server": {}, "client": {}})
    network["flows"]["samples"] = {"from": "server", "to": "client", "app": app}
    transfer, samples = bentpipe.predict(network).flows
    assert samples.lowest == "offered"
    assert samples.estimates_bps["offered"] == pytest.approx(1600)
    assert samples.limits_bps == {"downlink": pytest.approx(9600 * 100 / 128)}
    # 128 bytes twice a second are 2048 bit/s.
    share = (9600 - 2048) * 1448 / 1500
    assert transfer.estimates_bps["fair share"] == pytest.approx(share)
    run = bentpipe.run(network, no_probes=True)
    assert {each.name: each for each in run.summary.flows}["samples"].goodput_bps < 1601
    # There is no prediction for random or bursty traffic.
    for more in ({"interval": "exponential(500 ms)"}, {"size": "uniform(50 B, 150 B)"}):
        network["flows"]["samples"]["app"] = app | more
        _, samples = bentpipe.predict(network).flows
        assert "offered" not in samples.estimates_bps


def test_users_with_own_links_are_grouped_and_name_their_competitor() -> None:
    network = _pair({"between": ["server", "client"]}, hosts={"server": {}, "client": {"count": 3}})
    pages = {"from": "client", "to": "server", "app": {"kind": "web"}}
    transfer = network["flows"]["transfer"]
    network["flows"] = {"transfer": transfer, "pages": pages}
    flows = bentpipe.predict(network).flows
    assert [each.like for each in flows] == 3 * ["transfer-1"] + 3 * ["pages-1"]
    for number, flow in enumerate(flows[:3], start=1):
        assert flow.name == f"transfer-{number}"
        assert {f"the path is shared with pages-{number}; the model has one flow"} == {
            each.reason for each in flow.models
        }


FRAMINGS = ["ethernet", "ppp", "6 B", "mpe", "mpe-padding", "ule", "ule-padding", "gse"]


def _random_network(draw: random.Random) -> dict[str, Any]:
    """Return a network of two hosts and a gateway that has anything of what predictions know."""
    one_of = draw.choice

    def maybe(share: float, **what: Any) -> dict[str, Any]:
        return what if draw.random() < share else {}

    def direction() -> dict[str, Any]:
        steps = [
            {"at": f"{draw.randint(1, 20)} s", "rate": one_of(["100 kbit/s", "20 Mbit/s"])},
            {"at": f"{draw.randint(21, 39)} s", "delay": one_of(["10 ms", "100 ms"])},
        ]
        return {
            "rate": one_of(["64 kbit/s", "512 kbit/s", "2 Mbit/s", "10 Mbit/s", "40 Mbit/s"]),
            "delay": one_of(["5 ms", "40 ms", "250 ms"]),
            **maybe(0.3, errors={"packet_loss_rate": one_of([1e-4, 1e-3, 1e-2])}),
            **maybe(0.3, schedule=steps),
            **maybe(0.2, redundancy="16/15"),
        }

    def host() -> dict[str, Any]:
        tcp = {
            **maybe(0.4, congestion_control=one_of(["reno", "cubic", "hybla", "bbr", "westwood"])),
            **maybe(0.3, pacing=one_of(["on", "300 kbit/s", "3 Mbit/s"])),
            **maybe(0.2, receive_buffer=one_of(["64 KiB", "1 MiB"])),
            **maybe(0.2, delayed_ack="off"),
        }
        return {"tcp": tcp, **maybe(0.2, processing={"time": one_of(["100 us", "5 ms"])})}

    def flow() -> dict[str, Any]:
        ends = one_of([("a", "b"), ("b", "a")])
        size = maybe(0.6, size=one_of(["50 kB", "1 MB", "10 MB"]))
        app = one_of(
            [
                {"kind": "bulk", "direction": "upload", **size},
                {"kind": "bulk", "direction": "download", **size},
                {"kind": "bulk", "direction": "both", **size},
                {"kind": "web"},
                {"kind": "voice"},
                {"kind": "packets", "size": "500 B", "interval": "5 ms"},
            ]
        )
        return {"from": ends[0], "to": ends[1], "app": app, **maybe(0.4, start="3 s")}

    gateway = maybe(0.2, kind="split", facing="satellite") | maybe(0.2, processing={"time": "1 ms"})
    satellite = {"between": ["g", "b"], "forward": direction(), "return": direction()}
    return {
        "name": "drawn",
        "duration": "60 s",
        "ip": one_of(["v4", "v6"]),
        "hosts": {"a": host(), "b": host()},
        "gateways": {"g": gateway},
        "links": {
            "lan": {"between": ["a", "g"], "rate": "20 Mbit/s", "delay": "1 ms"},
            "satellite": satellite | maybe(0.2, framing=one_of(FRAMINGS)),
        },
        "flows": {f"flow-{letter}": flow() for letter in "xyz"[: draw.randint(1, 3)]},
    }


@pytest.mark.parametrize("number", range(10))
def test_random_networks_stay_within_predicted_limits(number: int) -> None:
    for seed in range(10 * number, 10 * number + 10):
        network = _random_network(random.Random(seed))
        got = {
            flow.name: flow.goodput_bps
            for flow in bentpipe.run(network, no_probes=True).summary.flows
        }
        for flow in bentpipe.predict(network).flows:
            limit = flow.limits_bps[flow.binding]
            assert got[flow.name] <= 1.001 * limit + 1.0, (seed, flow.name, flow.binding)


@pytest.mark.parametrize(
    ("app", "keeps_sending"),
    [
        ('{ kind = "bulk" }', True),
        ('{ kind = "bulk", direction = "both" }', True),
        ('{ kind = "bulk", size = "1 MB", transfers = 3, pause = "1 s" }', False),
        ('{ kind = "web" }', False),
        ('{ kind = "voice" }', False),
    ],
)
def test_flow_keeps_sending_as_the_entry_of_its_application(app: str, keeps_sending: bool) -> None:
    """An application's entry states whether it always has data to send; pauses end that."""
    (flow,) = bentpipe.predict("geo-consumer", settings={"flows.download.app": app}).flows
    assert flow.keeps_sending == keeps_sending
