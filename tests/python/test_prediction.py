"""Predictions for scenarios: the path of a flow, and models against the simulator."""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe.prediction import FlowPrediction
from bentpipe.prediction.paths import flow_paths
from bentpipe.scenario import Scenario

from .networks import download, link, traffic

# Three links, the middle one the slowest; TCP as the formulas know it.
TEXT = "\n".join(
    [
        """
name = "routed"
duration = "1000 s"

[hosts.server.tcp]
congestion_control = "reno"
slow_start = "standard"
initial_window = "1 segment"
nagle = false
[hosts.client.tcp]
receive_buffer = "28960 B"
delayed_ack = "200 ms"
[gateways.near]
kind = "router"
[gateways.far]
kind = "router"
""",
        link("lan", "server", "near", rate="10 Mbit/s", delay="5 ms"),
        link(
            "satellite",
            "far",
            "near",
            forward='{ rate = "64 kbit/s", delay = "100 ms" }',
            **{"return": '{ rate = "1 Mbit/s", delay = "250 ms", redundancy = "16/15" }'},
        ),
        link("home", "far", "client", rate="2 Mbit/s", delay="1 ms"),
        download("1 MB"),
    ]
)


@pytest.fixture
def routed(tmp_path: Path) -> Scenario:
    return Scenario(path=tmp_path / "routed.toml", text=TEXT)


def only_flow(scenario: Scenario, settings: dict[str, object] | None = None) -> FlowPrediction:
    (flow,) = bentpipe.predict(scenario.with_settings(settings or {})).flows
    return flow


def model(flow: FlowPrediction, name: str) -> Any:
    return next(each for each in flow.models if each.name == name)


def test_route_is_reduced_to_its_bottleneck_in_each_direction(routed: Scenario) -> None:
    (path,) = flow_paths(routed.resolved())
    assert [each.name for each in path.downlink] == [
        *("lan.forward", "satellite.return", "home.forward")
    ]
    assert [each.name for each in path.uplink] == [
        *("home.return", "satellite.forward", "lan.return")
    ]
    assert path.down_bottleneck.name == "satellite.return"
    assert path.up_bottleneck.name == "satellite.forward"
    # Propagation, and a whole packet received before it goes on at the other two links.
    assert path.down_delay_s == pytest.approx(0.256 + 12_000 / 10e6 + 12_000 / 2e6)
    assert path.up_delay_s == pytest.approx(0.106 + 416 / 10e6 + 416 / 2e6)
    assert (path.segment_bytes, path.header_bytes, path.window_segments) == (1448, 52, 20)
    asymmetric = path.asymmetric()
    assert float(asymmetric.capacity_bps) == pytest.approx(1e6 * 15 / 16 * 1448 / 1500)


@pytest.mark.parametrize("window_segments", [1, 2, 5, 20, 60])
@pytest.mark.parametrize("size", ["5 kB", "100 kB", "1 MB"])
@pytest.mark.parametrize("slow_start", ["standard", "byte-counting"])
def test_corrected_formula_matches_the_simulation(
    routed: Scenario, window_segments: int, size: str, slow_start: str
) -> None:
    scenario = routed.with_settings(
        {
            "hosts.server.tcp.slow_start": slow_start,
            "hosts.client.tcp.receive_buffer": f"{window_segments * 1448} B",
            "flows.download.app.size": size,
        }
    )
    predicted = model(only_flow(scenario), "delayed_ack")
    assert predicted.applies, predicted.reason
    simulated = bentpipe.run(scenario).flow().transfer_time_s
    assert predicted.transfer_time_s == pytest.approx(simulated, rel=0.02)


@pytest.mark.parametrize(
    ("settings", "name", "reason"),
    [
        ({"hosts.server.tcp.initial_window": "10 segments"}, "obata2000", "1 segment"),
        ({"hosts.client.tcp.delayed_ack": "off"}, "obata2000", "delayed"),
        ({"hosts.server.tcp.slow_start": "byte-counting"}, "obata2000", "byte-counting"),
        ({"hosts.server.tcp.slow_start": "hystart++"}, "obata2000", "hystart"),
        ({"hosts.server.tcp.congestion_control": "hybla"}, "delayed_ack", "standard slow start"),
        ({"hosts.server.tcp.congestion_control": "cubic"}, "mathis", "no packets at random"),
        ({"hosts.client.tcp.quick_acks": 16}, "delayed_ack", "16"),
        ({"links.home.forward.errors.bit_error_rate": 1e-6}, "delayed_ack", "loses"),
        ({"links.home.forward.errors.lost_packets": [40]}, "delayed_ack", "loses"),
        ({"links.satellite.return.queue.limit": "2 packets"}, "delayed_ack", "overflows"),
        (
            {"hosts.server.tcp.initial_slow_start_threshold": "8 segments"},
            "delayed_ack",
            "slow start ends",
        ),
        ({}, "lakshman", "never overflows"),
        ({}, "mathis", "no packets at random"),
        ({"links.home.errors.packet_loss_rate": 0.1}, "mathis", "timeouts"),
        ({"links.home.errors.packet_loss_rate": 1e-6}, "mathis", "window binds"),
        ({"links.home.errors.packet_loss_rate": 1e-5}, "padhye", "is lost on average"),
        ({"flows.other": {"from": "server", "to": "client"}}, "delayed_ack", "shared"),
    ],
)
def test_inapplicable_models_have_a_reason(
    routed: Scenario, settings: dict[str, object], name: str, reason: str
) -> None:
    if "flows.other" in settings:
        settings = {
            "flows.other.from": "server",
            "flows.other.to": "client",
            "flows.other.app.kind": "bulk",
        }
    flows = bentpipe.predict(routed.with_settings(settings)).flows
    answer = model(flows[0], name)
    assert not answer.applies
    assert reason in answer.reason
    assert (answer.throughput_bps, answer.transfer_time_s) == (None, None)


def test_effects_without_a_formula_are_listed_as_ignored(routed: Scenario) -> None:
    assert only_flow(routed).ignored == ()
    parts = routed.with_settings(
        {
            "links.satellite.forward.queue.kind": "red",
            "links.satellite.return.acks.kind": "compaction",
            "links.lan.compression": "rfc1144",
        }
    )
    # Data go from near to far: the satellite link's return direction.
    assert set(only_flow(parts).ignored) == {
        'lan.forward: compression "rfc1144"',
        'lan.return: compression "rfc1144"',
        'satellite.return: acks "compaction"',
        'satellite.forward: queue "red"',
    }


def test_ack_models_do_not_apply_with_ack_suppression() -> None:
    """The models gave 282 kbit/s; the simulation gives 4 Mbit/s."""
    assert only_flow(Scenario.of("dvb-9k6")).lowest == "uplink ACKs"
    for name in ("compaction", "suppression", "rfc1144"):
        flow = only_flow(Scenario.of(f"dvb-9k6-{name}"))
        assert not any(each.applies for each in flow.models)
        assert name in model(flow, "delayed_ack").reason
        if name != "rfc1144":
            assert flow.estimates_bps == {}
    # Compressed ACKs are as many, each of the length that RFC 1144 gives it.
    ran = bentpipe.run("dvb-9k6-rfc1144", no_probes=True).flow().goodput_bps
    assert flow.lowest == "uplink ACKs"
    assert flow.estimates_bps == {"uplink ACKs": pytest.approx(9600 * 1024 / 7)}
    assert ran == pytest.approx(flow.estimates_bps["uplink ACKs"], rel=0.02)


def test_download_prediction_equals_the_reversed_upload(routed: Scenario) -> None:
    resolved = routed.resolved()
    (flow,) = resolved["flows"]
    app = {"kind": "bulk", "size": "1 MB"}
    settings: dict[str, object] = {
        "hosts.client.tcp.receive_buffer": "20 kB",
        "hosts.server.tcp.initial_window": "3 segments",
        "flows.download.app": app,
    }
    up = only_flow(routed, settings)
    mirrored = {"from": flow["to"], "to": flow["from"], "app": {**app, "direction": "download"}}
    down_settings = {**settings, "flows.download": mirrored}
    del down_settings["flows.download.app"]
    down = only_flow(routed, down_settings)
    assert down == up
    assert model(down, "delayed_ack").applies
    ran = bentpipe.run(routed.with_settings(down_settings)).flow()
    assert ran.transfer_time_s == pytest.approx(
        model(down, "delayed_ack").transfer_time_s, rel=0.005
    )


def test_loss_models_apply_with_losses(routed: Scenario) -> None:
    flow = only_flow(
        routed,
        {
            "links.home.errors.packet_loss_rate": 0.01,
            "hosts.client.tcp.receive_buffer": "1 MiB",
        },
    )
    assert flow.loss_rate == pytest.approx(0.01)
    assert flow.lowest == "loss"
    for name in ("mathis", "padhye", "cardwell"):
        answer = model(flow, name)
        assert answer.applies, answer.reason
        assert 0 < answer.throughput_bps <= flow.capacity_bps
    assert model(flow, "cardwell").transfer_time_s > 0


LOSSY = {
    "name": "lossy",
    "duration": "1500 s",
    "hosts": {"server": {}, "client": {}},
    "links": {
        "satellite": {
            "between": ["server", "client"],
            "rate": "1 Gbit/s",
            "delay": "50 ms",
            "queue": {"limit": "100000 packets"},
        }
    },
    "flows": {"download": {"from": "server", "to": "client", "app": {"kind": "bulk"}}},
}


# (No model has a fit to this simulator: what is left is that losses are at random, which leaves
# CUBIC a fifth more than the formula, whose losses are equally far apart.)
@pytest.mark.parametrize(
    ("control", "which", "avoidance", "low", "high"),
    [
        ("reno", "padhye", "byte-counting", 0.85, 1.1),
        ("reno", "padhye", "per-acknowledgment", 0.85, 1.1),
        ("reno", "mathis", "byte-counting", 0.85, 1.2),
        ("cubic", "cubic", "byte-counting", 0.75, 1.1),
        ("hybla", "hybla", "byte-counting", 0.8, 1.2),
    ],
)
@pytest.mark.parametrize("delay", ["12 ms", "100 ms", "300 ms"])
@pytest.mark.parametrize("loss", [1e-2, 1e-3])
def test_loss_law_of_the_congestion_control_matches_the_simulation(
    control: str, which: str, avoidance: str, low: float, high: float, delay: str, loss: float
) -> None:
    settings: dict[str, object] = {
        "links.satellite.delay": delay,
        "links.satellite.forward.errors.packet_loss_rate": loss,
        "hosts.server.tcp.congestion_control": control,
        "hosts.server.tcp.congestion_avoidance": avoidance,
        "hosts.server.tcp.send_buffer": "100 MB",
        "hosts.client.tcp.receive_buffer": "100 MB",
    }
    (flow,) = bentpipe.predict(LOSSY, settings=settings).flows
    answer = model(flow, which)
    assert answer.applies, answer.reason
    assert flow.lowest == "loss"
    if which != "mathis":
        assert flow.estimates_bps["loss"] == answer.throughput_bps
    goodput_bps = bentpipe.run(LOSSY, settings=settings, no_probes=True).flow().goodput_bps
    assert low < answer.throughput_bps / goodput_bps < high


@pytest.mark.parametrize("control", ["westwood", "westwood-2001", "bbr", "bbr3"])
def test_congestion_control_without_a_loss_law_has_no_loss_estimate(control: str) -> None:
    settings: dict[str, object] = {
        "links.satellite.forward.errors.packet_loss_rate": 1e-3,
        "hosts.server.tcp.congestion_control": control,
    }
    (flow,) = bentpipe.predict(LOSSY, settings=settings).flows
    assert flow.loss_rate == pytest.approx(1e-3)
    assert "loss" not in flow.estimates_bps
    assert f"losses, of {control}" in flow.ignored
    (clean,) = bentpipe.predict(LOSSY, settings={**settings, **NO_LOSSES}).flows
    assert clean.ignored == ()


NO_LOSSES: dict[str, object] = {"links.satellite.forward.errors.packet_loss_rate": 0}


def test_hybrid_gateway_has_no_loss_estimate() -> None:
    flow = only_flow(
        Scenario.of("hybrid-internet"),
        {"links.satellite.errors.packet_loss_rate": 1e-3},
    )
    assert "loss" not in flow.estimates_bps
    assert any(what.startswith("losses, of ") for what in flow.ignored)


def test_split_sections_use_their_own_loss_laws() -> None:
    settings: dict[str, object] = {"gateways.hub.tcp.congestion_control": "hybla"}
    scenario = Scenario.of("geo-split")
    hybla = only_flow(scenario, settings)
    cubic = only_flow(scenario, settings | {"gateways.hub.tcp.congestion_control": "cubic"})
    bbr = only_flow(scenario, settings | {"gateways.hub.tcp.congestion_control": "bbr"})
    satellite = next(part for part in cubic.parts if "satellite.forward" in part.downlink)
    assert satellite.estimates_bps["loss"] < satellite.capacity_bps
    assert hybla.parts[1].estimates_bps["loss"] == hybla.capacity_bps
    assert bbr.ignored == ("losses, of bbr",)


def test_excepted_flow_is_predicted_as_through_a_router() -> None:
    scenario = Scenario.of("geo-split").with_settings({"probes.series": []})
    passes: dict[str, object] = {
        f"gateways.{name}.except": {"ports": ["1-65535"]} for name in ("hub", "terminal")
    }
    routers: dict[str, object] = {f"gateways.{name}": {} for name in ("hub", "terminal")}
    assert only_flow(scenario, passes) == only_flow(scenario, routers)


@pytest.mark.parametrize(
    ("app", "payload", "offered_bps"),
    [
        ({"kind": "ping", "interval": "2 s"}, 56, 8 * 56 / 2),
        ({"kind": "ping", "protocol": "udp", "size": "1 kB"}, 1000, 8000),
        ({"kind": "voice"}, 172, 2 * 8 * 172 * 50),
        ({"kind": "voice", "codec": "g729", "packet": "40 ms"}, 52, 2 * 8 * 52 * 25),
    ],
)
@pytest.mark.parametrize("ip", ["v4", "v6"])
def test_calls_and_echoes_are_predicted_with_their_packet_sizes(
    app: dict[str, object], payload: int, offered_bps: float, ip: str
) -> None:
    """Over 9.6 kbit/s a full segment takes 1.25 s, and an echo a tenth of that."""
    settings: dict[str, object] = {
        "ip": ip,
        "duration": "100 s",
        "links.satellite.return": {"rate": "96 kbit/s"},
        "flows.download.app": app,
    }
    (flow,) = bentpipe.predict(LOSSY, settings=settings).flows
    packet = payload + {"v4": 28, "v6": 48}[ip]
    seconds = 0.1 + 8 * packet / 1e9 + 8 * packet / 96e3
    assert flow.round_trip_s == pytest.approx(seconds)
    assert flow.lowest == "offered"
    assert flow.estimates_bps == {"offered": pytest.approx(offered_bps)}
    assert (flow.window_bytes, flow.saturation_window_bytes, flow.over_tcp) == (0, None, False)
    ran = bentpipe.run(LOSSY, settings=settings).flow()
    assert ran.goodput_bps == pytest.approx(offered_bps, rel=0.03)
    if app["kind"] == "ping":
        assert ran.extra["echoes"]["time_ms"]["min"] == pytest.approx(1e3 * seconds, rel=0.02)


def test_bit_error_rate_is_converted_to_a_loss_rate(routed: Scenario) -> None:
    flow = only_flow(routed, {"links.home.forward.errors.bit_error_rate": 1e-6})
    assert flow.loss_rate == pytest.approx(1 - (1 - 1e-6) ** 12_000)
    tiny = only_flow(routed, {"links.home.forward.errors.bit_error_rate": 1e-18})
    assert tiny.loss_rate == pytest.approx(1.2e-14, rel=0.01)


def test_small_window_is_the_binding_limit(routed: Scenario) -> None:
    small = only_flow(routed, {"hosts.client.tcp.receive_buffer": "2896 B"})
    assert small.binding == "window"
    large = only_flow(routed, {"hosts.client.tcp.receive_buffer": "1 MiB"})
    assert large.binding == "downlink"
    short = only_flow(routed, {"flows.download.app.size": "2 kB"})
    assert short.binding == "transfer size"
    narrow = only_flow(
        routed,
        {
            "links.satellite.forward.rate": "1 kbit/s",
            "hosts.client.tcp.receive_buffer": "1 MiB",
            "flows.download.app.size": "100 MB",
        },
    )
    assert narrow.lowest == "uplink ACKs"
    assert narrow.saturation_window_bytes is None


def test_predictions_do_not_exceed_the_capacity(routed: Scenario) -> None:
    for window in (1, 3, 30, 300):
        for size in ("1 kB", "1 MB"):
            flow = only_flow(
                routed,
                {
                    "hosts.client.tcp.receive_buffer": f"{window * 1448} B",
                    "flows.download.app.size": size,
                },
            )
            for answer in flow.models:
                if answer.throughput_bps is not None:
                    assert answer.throughput_bps <= flow.capacity_bps * (1 + 1e-12)


def _assert_flows_stay_within_limits(scenario: Scenario) -> None:
    predicted = {flow.name: flow for flow in bentpipe.predict(scenario).flows}
    for flow in bentpipe.run(scenario, no_probes=True).summary.flows:
        for name, limit_bps in predicted[flow.name].limits_bps.items():
            assert flow.goodput_bps <= limit_bps, (flow.name, name)


@pytest.mark.parametrize(
    "app",
    [
        {"kind": "packets", "size": "400 B", "interval": "30 ms", "lasts": "5 s"},
        {"kind": "packets", "size": "60 kB", "interval": "30 ms", "lasts": "5 s"},
        {"kind": "packets", "transport": "tcp", "size": "1 kB", "interval": "5 ms", "lasts": "5 s"},
        {"kind": "carousel", "size": "50 kB", "rate": "200 kbit/s", "files": 2},
        {"kind": "ping", "interval": "100 ms", "requests": 20},
        {"kind": "bulk", "size": "20 kB", "transfers": 3},
        {"kind": "bulk", "size": "20 kB", "direction": "both"},
    ],
)
def test_application_goodput_stays_within_the_limits(
    routed: Scenario, app: dict[str, object]
) -> None:
    for rate in ("30 kbit/s", "10 Mbit/s"):
        settings = {"flows.download.app": app, "links.satellite.return.rate": rate}
        _assert_flows_stay_within_limits(routed.with_settings(settings))


def test_datagram_source_is_limited_by_its_direction_alone(
    routed: Scenario,
) -> None:
    app = {"kind": "packets", "size": "400 B", "interval": "30 ms"}
    flow = only_flow(routed, {"flows.download.app": app})
    assert flow.limits_bps == {"downlink": pytest.approx(flow.capacity_bps)}
    assert flow.estimates_bps == {"offered": pytest.approx(8 * 400 / 30e-3)}
    # Where sizes are drawn, the headers' share is as small as one likes.
    drawn = only_flow(routed, {"flows.download.app": {**app, "size": "uniform(40 B, 1400 B)"}})
    assert drawn.limits_bps == {"downlink": pytest.approx(flow.capacity_bps * 428 / 400)}
    assert drawn.estimates_bps == {}


@pytest.mark.parametrize(
    "control", ["reno", "westwood", "westwood-2001", "cubic", "hybla", "bbr", "bbr3"]
)
@pytest.mark.parametrize("size", ["2 kB", "40 kB", "1 MB"])
@pytest.mark.parametrize("uplink", ["1 Mbit/s", "2400 bit/s"])
def test_congestion_controls_stay_within_the_limits(
    routed: Scenario, control: str, size: str, uplink: str
) -> None:
    for more in (
        {},
        {"hosts.client.tcp.receive_buffer": "5000 B", "hosts.client.tcp.delayed_ack": "off"},
        {
            "hosts.client.tcp.receive_buffer": "1 MB",
            "hosts.server.tcp.initial_window": "10 segments",
        },
        {"links.satellite.forward.queue.limit": "3 packets"},
        {"links.satellite.compression": "rfc1144"},
    ):
        settings = {
            "hosts.server.tcp.congestion_control": control,
            "hosts.server.tcp.timestamps": False,
            "links.satellite.forward.rate": uplink,
            "flows.download.app.size": size,
        }
        _assert_flows_stay_within_limits(routed.with_settings(settings | more))


def test_uplink_ack_bound_is_an_estimate_when_acks_are_dropped(routed: Scenario) -> None:
    settings = {
        "links.satellite.forward.rate": "2400 bit/s",
        "links.satellite.forward.queue.limit": "2 packets",
        "hosts.client.tcp.receive_buffer": "1 MB",
    }
    scenario = routed.with_settings(settings)
    flow = only_flow(scenario)
    assert flow.lowest == "uplink ACKs"
    assert "uplink ACKs" not in flow.limits_bps
    assert bentpipe.run(scenario).flow().goodput_bps > 1.1 * flow.estimates_bps["uplink ACKs"]


@pytest.mark.parametrize(
    "settings",
    [
        {"links.home.forward.errors.packet_loss_rate": 1},
        {"links.home.forward.errors.bit_error_rate": 1},
        {"links.home.forward.errors.bit_error_rate": 5e-324},
        {"links.home.forward.errors.packet_loss_rate": 1e-300},
        {
            **{f"links.{link}.delay": "0 s" for link in ("lan", "home")},
            **{f"links.satellite.{way}.delay": "0 s" for way in ("forward", "return")},
        },
        {"flows.download.app.size": "1 B"},
    ],
)
@pytest.mark.filterwarnings("error")
def test_extreme_parameters_give_finite_predictions(
    routed: Scenario, settings: dict[str, object]
) -> None:
    flow = only_flow(routed, settings)
    numbers = [*flow.limits_bps.values(), *flow.estimates_bps.values()]
    for answer in flow.models:
        numbers += [answer.throughput_bps or 0.0, answer.transfer_time_s or 0.0]
    assert all(math.isfinite(number) and number >= 0.0 for number in numbers), numbers
    if 1 in settings.values():
        assert flow.limits_bps["loss"] == 0.0


USERS = "\n".join(
    [
        """
name = "many"
duration = "60 s"
hosts = { server = {}, user = { count = COUNT } }
gateways.hub.kind = "router"
""",
        link("sky", "server", "hub", rate="100 Mbit/s", delay="250 ms"),
        link("home", "hub", "user", rate="10 Mbit/s", delay="1 ms"),
        traffic(to="user", app='{ kind = "bulk", size = "1 MB" }'),
    ]
)


def test_identical_flows_share_one_prediction(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from bentpipe.cli import execute

    file = tmp_path / "many.toml"
    file.write_text(USERS.replace("COUNT", "1000"), encoding="utf-8")
    flows = bentpipe.predict(file).flows
    assert len(flows) == 1000
    assert {flow.like for flow in flows} == {"download-1"}
    assert flows[499].downlink == ("sky.forward", "home-500.forward")
    assert "999 other flows" in flows[0].models[0].reason
    assert execute(["predict", str(file)]) == 0
    said = capsys.readouterr().out
    assert "download-1 and 999 alike" in said
    assert len(said.splitlines()) < 40


def test_staggered_flows_are_alike_with_their_own_sections(
    tmp_path: Path,
) -> None:
    file = tmp_path / "many.toml"
    file.write_text(USERS.replace("COUNT", "3"), encoding="utf-8")
    gateway = {"kind": "split", "facing": "sky"}
    split = {"gateways.hub": gateway, "flows.download.spacing": "500 ms"}
    flows = bentpipe.predict(file, settings=split).flows
    assert {flow.like for flow in flows} == {"download-1"}
    parts = [[part.name for part in flow.parts] for flow in flows]
    assert parts == [["server to hub", f"hub to user-{user}"] for user in (1, 2, 3)]
    assert flows[2].parts[1].downlink == ("home-3.forward",)
    # Until the end of the run, the one that begins later has less time.
    endless = {**split, "flows.download.app": {"kind": "bulk"}}
    flows = bentpipe.predict(file, settings=endless).flows
    assert [flow.like for flow in flows] == [flow.name for flow in flows]
    calls = {**split, "flows.download.app": {"kind": "voice"}}
    flows = bentpipe.predict(file, settings=calls).flows
    assert {flow.like for flow in flows} == {"download-1"}


def test_huge_window_prediction_is_not_computed_per_segment(tmp_path: Path) -> None:
    settings = {
        **{f"hosts.{host}.tcp.mss": "64 B" for host in ("server", "client")},
        "hosts.server.tcp.initial_window": "10000000 segments",
        "hosts.server.tcp.send_buffer": "1 GB",
        "hosts.client.tcp.receive_buffer": "1 GB",
        "flows.download.app.size": "1 GB",
        "links.satellite.return.queue.limit": "1000000000 packets",
    }
    file = tmp_path / "routed.toml"
    file.write_text(TEXT, encoding="utf-8")
    changes = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
    command = [sys.executable, "-m", "bentpipe", "predict", str(file), "--json", *changes]
    # 700 MB of address space: 2.3 GB were needed.
    finished = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=True,
        env={"OPENBLAS_NUM_THREADS": "1", "PATH": ""},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_DATA, (700 << 20, 700 << 20)),
    )
    (flow,) = json.loads(finished.stdout)["flows"]
    reasons = {each["name"]: each["reason"] for each in flow["models"]}
    assert "10,000,000" in reasons["delayed_ack"] or "15,625,000" in reasons["delayed_ack"]


def _split(**settings: object) -> Scenario:
    return Scenario.find("geo-split").with_settings(
        {
            "links.satellite.forward.errors": {},
            "duration": "300 s",
            "flows.download.app.size": "40 MB",
            "probes.series": [],
            **settings,
        }
    )


def test_slower_split_section_is_the_limit() -> None:
    # Without gateways, the hosts' 64 KiB over half a second.
    routers = {f"gateways.{name}": {"kind": "router"} for name in ("hub", "terminal")}
    whole = bentpipe.predict(_split(**routers)).flows[0]
    assert whole.parts == ()
    assert whole.limits_bps["window"] < 1.1e6
    # With them: the satellite's rate, or what the hosts' windows let through on their LANs.
    fast = bentpipe.predict(_split()).flows[0]
    assert [part.name for part in fast.parts] == [
        "server to hub",
        "hub to terminal",
        "terminal to client",
    ]
    assert fast.downlink == whole.downlink
    lowest = min(min(part.limits_bps.values()) for part in fast.parts)
    assert min(fast.limits_bps.values()) == pytest.approx(lowest)
    assert fast.binding == "downlink"


@pytest.mark.parametrize(
    "settings",
    [
        {},
        # The server's part is the slower one: 64 KiB over 300 ms.
        {"links.backbone.delay": "150 ms"},
        # The gateways' own windows are: 200 kB over half a second.
        {"gateways.hub.tcp.send_buffer": "200 kB"},
    ],
)
def test_split_prediction_matches_a_run(settings: dict[str, object]) -> None:
    scenario = _split(**settings)
    flow = bentpipe.predict(scenario).flows[0]
    predicted = min(flow.limits_bps.values())
    measured = bentpipe.run(scenario).flow().goodput_bps
    # Slow start, and the parts one after another, are in the run.
    assert 0.8 * predicted < measured <= predicted


def sharing(**flows: dict[str, Any]) -> dict[str, Any]:
    """Make two links in a row, 10 and 4 Mbit/s, behind fair queues; c is beside the second."""
    link = {"delay": "20 ms", "queue": {"kind": "fair"}}
    return {
        "name": "lot",
        "duration": "100 s",
        "hosts": {"a": {}, "b": {}, "c": {}},
        "gateways": {"g": {}},
        "links": {
            "one": {"between": ["a", "g"], "rate": "10 Mbit/s", **link},
            "two": {"between": ["g", "b"], "rate": "4 Mbit/s", **link},
            "three": {"between": ["g", "c"], "rate": "100 Mbit/s", **link},
        },
        "flows": flows,
    }


BULK = {"kind": "bulk"}


def shares(scenario: dict[str, Any]) -> dict[str, float | None]:
    return {
        flow.name: flow.estimates_bps.get("fair share") for flow in bentpipe.predict(scenario).flows
    }


def test_shares_are_max_min_fair_and_match_fair_queues() -> None:
    # The narrow link's two get half of it each; what one of them leaves of the wide one, the
    # third has.
    scenario = sharing(
        wide={"from": "a", "to": "c", "app": BULK},
        through={"from": "a", "to": "b", "app": BULK},
        narrow={"from": "c", "to": "b", "app": BULK},
    )
    payload = 1448 / 1500
    expected = {"wide": 8e6 * payload, "through": 2e6 * payload, "narrow": 2e6 * payload}
    assert shares(scenario) == pytest.approx(expected)
    run = bentpipe.run(scenario, no_probes=True)
    for flow in run.summary.flows:
        assert flow.goodput_bps == pytest.approx(expected[flow.name], rel=0.01)
    lowest = {flow.name: flow.lowest for flow in bentpipe.predict(scenario).flows}
    assert set(lowest.values()) == {"fair share"}


def test_capacity_unused_by_a_limited_transfer_is_shared() -> None:
    scenario = sharing(
        held={"from": "a", "to": "c", "app": BULK},
        free={"from": "a", "to": "c", "app": BULK, "count": 2},
    )
    tenth = {"duration": "100 s", "hosts.c.tcp.receive_buffer": "12000 B"}
    held = bentpipe.predict(scenario, settings=tenth).flows
    # All have the small window now: the link is nobody's limit.
    assert [flow.estimates_bps.get("fair share") for flow in held] == [None] * 3
    assert {flow.lowest for flow in held} == {"window"}
    scenario["hosts"]["d"] = {"tcp": {"receive_buffer": "12000 B"}}
    link = {"rate": "100 Mbit/s", "delay": "20 ms"}
    scenario["links"]["four"] = {"between": ["g", "d"], **link}
    scenario["flows"]["held"]["to"] = "d"
    first, *others = bentpipe.predict(scenario).flows
    assert first.lowest == "window"
    left = (10e6 * 1448 / 1500 - first.limits_bps["window"]) / 2
    assert [flow.estimates_bps["fair share"] for flow in others] == pytest.approx([left] * 2)


def test_call_rate_is_subtracted_before_sharing() -> None:
    alone = sharing(only={"from": "a", "to": "b", "app": BULK})
    assert shares(alone) == {"only": None}
    calls = sharing(
        only={"from": "a", "to": "b", "app": BULK},
        calls={"from": "a", "to": "b", "count": 10, "app": {"kind": "voice"}},
    )
    # 160 bytes of speech each 20 ms, behind 40 of headers: 80 kbit/s.
    expected = (4e6 - 10 * 80e3) * 1448 / 1500
    assert shares(calls)["only"] == pytest.approx(expected)
    run = bentpipe.run(calls, no_probes=True, settings={"links.two.queue.kind": "fair"})
    assert run.summary.flows[0].goodput_bps == pytest.approx(expected, rel=0.03)


def test_share_of_a_link_with_zero_rate_is_zero() -> None:
    scenario = sharing(both={"from": "a", "to": "b", "count": 2, "app": BULK})
    scenario["links"]["two"]["forward"] = {"schedule": [{"at": "0 s", "rate": "0 bit/s"}]}
    for share in shares(scenario).values():
        assert share is not None
        assert share < 1.0
