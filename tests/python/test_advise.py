"""The limits of a network; and an advice's predicted gain equals the gain of a run."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import shlex
import statistics
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import _native, cli
from bentpipe.advice import Advice
from bentpipe.advice.remedies import Network, Remedy, remedies
from bentpipe.advice.remedy import PARTIES
from bentpipe.errors import RequestError
from bentpipe.scenario import Scenario, ready_made

SHIP: dict[str, Any] = {
    "name": "ship",
    "duration": "10 min",
    "hosts": {"shore": {}, "ship": {"tcp": {"receive_buffer": "64 KiB"}}},
    "links.satellite": {
        "between": ["shore", "ship"],
        "forward": {"rate": "4 Mbit/s", "delay": "270 ms"},
        "return": {"rate": "256 kbit/s", "delay": "270 ms"},
    },
    "flows.update": {"from": "shore", "to": "ship", "app": {"kind": "bulk", "size": "5 MB"}},
}


# Every scenario has something to advise by then; some take a minute on two cores for all of it.
SHORT = "12 s"


def summed_goodput(command: str) -> float:
    """Run a command line that was printed, and add up what it prints."""
    words = shlex.split(command)
    assert words[:2] == ["bentpipe", "run"]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        assert cli.execute([*words[1:], "--json"]) == 0
    return float(sum(flow["goodput_bps"] for flow in json.loads(printed.getvalue())["flows"]))


def limits_with(scenario: Any, settings: dict[str, Any] | None = None) -> Advice:
    """Return what limits the flows: nobody can change anything, so no remedy is simulated."""
    return bentpipe.advise(scenario, settings=settings, seeds=1, without=PARTIES)


@pytest.mark.parametrize("name", sorted(ready_made()))
def test_best_remedys_predicted_goodput_equals_its_run(name: str) -> None:
    assert_prediction_equals_run(name, {"duration": SHORT})


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ready_made()))
def test_best_remedys_predicted_goodput_equals_its_full_run(name: str) -> None:
    assert_prediction_equals_run(name, {})


def assert_prediction_equals_run(name: str, settings: dict[str, str]) -> None:
    advice = bentpipe.advise(name, settings=settings)
    command = ["bentpipe", "run", name]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    assert advice.goodput_bps == summed_goodput(shlex.join(command))
    best = advice.remedies[0]
    assert summed_goodput(best.command) == best.goodput_bps
    assert best.gains[0] == best.goodput_bps / advice.goodput_bps
    assert best.gain == statistics.median(best.gains)
    ranks = [(not each.remedy.every_network, each.overall_gain) for each in advice.remedies]
    assert ranks == sorted(ranks, reverse=True)
    if not advice.experiences:
        assert all(each.overall_gain == each.gain for each in advice.remedies)
    # Each remedy is feasible and changes a setting.
    assert advice.refused == {}
    for each in advice.remedies:
        assert each.remedy.settings
        assert sum(each.limits.values()) == pytest.approx(1.0)


def test_small_receive_window_is_diagnosed_and_fixed() -> None:
    advice = bentpipe.advise(SHIP)
    (flow,) = advice.flows
    assert flow.verdict == "receive_window"
    assert flow.limits["receive_window"] > 0.9
    best = advice.remedies[0]
    assert ("hosts.ship.tcp.receive_buffer", "1 MiB") in best.remedy.settings
    assert best.gain > 3.0
    again = limits_with(SHIP, dict(best.remedy.settings))
    assert again.goodput_bps == best.goodput_bps
    assert again.flows[0].verdict != "receive_window"


def test_slow_return_link_is_diagnosed_and_fixed() -> None:
    advice = bentpipe.advise(
        SHIP,
        settings={
            "hosts.ship.tcp.receive_buffer": "4 MiB",
            "links.satellite.return.rate": "9.6 kbit/s",
        },
    )
    assert advice.flows[0].verdict == "acknowledgments"
    assert advice.flows[0].uplink == "satellite.return"
    assert "ACK" in advice.remedies[0].remedy.kind
    assert advice.remedies[0].gain > 2.0


def test_ping_over_a_full_link_is_application_limited(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    echoing = {"from": "ship", "to": "shore", "app": {"kind": "ping"}}
    scenario = Scenario.of({**SHIP, "flows.echoes": echoing}).with_settings(
        {
            "duration": "60 s",
            "hosts.ship.tcp.receive_buffer": "4 MiB",
            "links.satellite.return.rate": "9.6 kbit/s",
            "flows.update.app.size": "1 GB",
        }
    )
    advice = limits_with(scenario)
    [echoes] = [flow for flow in advice.flows if flow.name == "echoes"]
    # The link is full of others' acknowledgments.
    assert echoes.downlink_used > 0.95
    assert (echoes.verdict, echoes.limits) == ("application", {})
    file = tmp_path / "ship.toml"
    file.write_text(scenario.text or "", encoding="utf-8")
    settings = [word for key, value in scenario.settings for word in ("--set", f"{key}={value}")]
    assert cli.execute(["advise", str(file), *settings]) == 0
    assert "()" not in capsys.readouterr().out


def test_no_remedy_has_a_gain_on_a_fully_used_link() -> None:
    settings = {
        "hosts.ship.tcp.receive_buffer": "4 MiB",
        "links.satellite.delay": "1 ms",
        "links.satellite.forward": {"rate": "4 Mbit/s"},
        "links.satellite.return": {"rate": "4 Mbit/s"},
    }
    advice = bentpipe.advise(SHIP, settings=settings)
    assert advice.flows[0].verdict == "downlink"
    for each in advice.remedies:
        # Longer segments save at most all of the headers: 52 of 1500 bytes.
        headers = 1500 / 1448 if each.remedy.kind == "segment size" else 1.02
        assert each.gain < headers


def test_random_networks_are_simulated_with_several_seeds() -> None:
    plain = {"hosts.ship.tcp.receive_buffer": "4 MiB"}
    advice = bentpipe.advise(SHIP, settings=plain)
    assert (advice.seeds, advice.random) == ((1,), False)
    lossy = {**plain, "links.satellite.forward.errors": {"packet_loss_rate": 1e-3}}
    advice = bentpipe.advise(SHIP, settings=lossy, seeds=4)
    assert (advice.seeds, advice.random) == ((1, 2, 3, 4), True)
    best = advice.remedies[0]
    assert len(best.gains) == 4
    assert len(set(best.gains)) > 1
    # Paired: the same luck with the remedy as without it.
    for seed, gain in zip(advice.seeds, best.gains, strict=True):
        changed = {**lossy, **dict(best.remedy.settings)}
        after = bentpipe.run(SHIP, settings=changed, seed=seed)
        before = bentpipe.run(SHIP, settings=lossy, seed=seed)
        assert gain == after.flow().goodput_bps / before.flow().goodput_bps
    assert len(bentpipe.advise(SHIP, settings=lossy, seeds=1).remedies[0].gains) == 1


def test_small_mtu_black_hole_is_diagnosed_and_fixed() -> None:
    """Between routers that say nothing, so that full segments vanish: a black hole."""
    lan = {"rate": "1 Gbit/s", "delay": "1 ms"}
    scenario = {
        **SHIP,
        "duration": "60 s",
        "links": {
            "satellite": {**SHIP["links.satellite"], "between": ["hub", "cabin"], "mtu": "1000 B"},
            "lan": {"between": ["shore", "hub"], **lan},
            "deck": {"between": ["cabin", "ship"], **lan},
        },
    }
    del scenario["links.satellite"]
    # A table as a whole is a setting, too.
    settings = {
        "gateways": {"hub": {"icmp": False}, "cabin": {"icmp": False}},
        "hosts.ship.tcp.receive_buffer": "4 MiB",
    }
    offered = remedies(Network.of(Scenario.of(scenario).with_settings(settings), _native.lists()))
    kinds = {each.name: dict(each.settings) for each in offered}
    assert kinds["MTU of 1500 B on satellite"] == {"links.satellite.mtu": "1500 B"}
    assert kinds["segments of 948 B"]["hosts.shore.tcp.mss"] == "948 B"
    assert {"MTU discovery: black-hole", "MTU discovery: search"} <= kinds.keys()
    advice = bentpipe.advise(scenario, settings=settings)
    assert advice.goodput_bps == 0.0
    assert advice.refused == {}
    by_name = {each.remedy.name: each for each in advice.remedies}
    assert by_name["MTU of 1500 B on satellite"].goodput_bps > 1e6
    assert by_name["segments of 948 B"].goodput_bps > 1e6
    assert by_name["MTU discovery: search"].goodput_bps > 0.0
    # Nothing arrives without a remedy: there is no gain to rank by, but a goodput.
    assert advice.remedies[0].goodput_bps > 1e6


def test_gateway_remedies_are_offered_for_supported_kinds() -> None:
    scenario = Scenario.of("geo-consumer")
    names = {**_native.lists(), "gateways": ["router", "split", "hybrid"]}
    offered = [each for each in remedies(Network.of(scenario, names)) if each.kind == "gateway"]
    assert [each.name for each in offered] == [
        "split at hub and terminal",
        "split at hub and terminal, hybla over satellite",
        "split at hub and terminal, bbr over satellite",
        "split at hub",
        "split at hub, hybla over satellite",
        "split at hub, bbr over satellite",
        "hybrid at hub",
    ]
    assert offered[0].settings == (
        ("gateways.hub.kind", "split"),
        ("gateways.hub.facing", "satellite"),
        ("gateways.terminal.kind", "split"),
        ("gateways.terminal.facing", "satellite"),
    )
    assert offered[1].settings == (
        *offered[0].settings,
        ("gateways.hub.tcp.congestion_control", "hybla"),
        ("gateways.terminal.tcp.congestion_control", "hybla"),
    )
    plain = {**names, "gateways": ["router"]}
    assert not [each for each in remedies(Network.of(scenario, plain)) if each.kind == "gateway"]


def test_remedies_for_counted_hosts_set_the_shared_table() -> None:
    crowd = {**SHIP, "hosts": {"shore": {}, "ship": {"count": 3, "tcp": {"sack": False}}}}
    offered = remedies(Network.of(Scenario.of(crowd), _native.lists()))
    (sack,) = [each for each in offered if each.kind == "loss recovery"]
    assert ("hosts.ship.tcp.sack", "true") in sack.settings
    for each in offered:
        Scenario.of(crowd).with_settings(dict(each.settings)).resolved()


def test_command_prints_set_options_and_writes_the_plot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "ship.toml"
    file.write_text((Scenario.of(SHIP).text or ""), encoding="utf-8")
    plot = tmp_path / "advice.svg"
    assert cli.execute(["advise", str(file), "--plot", str(plot)]) == 0
    said = capsys.readouterr().out
    assert "the receive window 9" in said
    assert "--set 'hosts.ship.tcp.receive_buffer=1 MiB'" in said
    assert ET.parse(plot).getroot().tag.endswith("svg")
    assert cli.execute(["advise", str(file), "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    first = data["remedies"][0]
    assert first.keys() >= {"set", "goodput_bps", "gain"}
    assert "hosts.ship.tcp.receive_buffer=1 MiB" in first["set"]
    assert cli.execute(["advise", str(file), "--plot", str(tmp_path / "advice.pdf")]) == 2
    assert "ends in .svg" in capsys.readouterr().err


def test_download_remedies_apply_at_the_sending_host() -> None:
    """The client opens the connection, the server sends: the client's rule has no effect."""
    satellite = {**SHIP["links.satellite"]}
    satellite["forward"] = {**satellite["forward"], "errors": {"bit_error_rate": 3e-7}}
    hosts: dict[str, Any] = {"shore": {}, "ship": {}}
    lossy = {**SHIP, "duration": "60 s", "hosts": hosts, "links.satellite": satellite}
    app = {"kind": "bulk", "size": "20 MB"}
    flows = {
        "upload": {"from": "shore", "to": "ship", "app": app},
        "download": {"from": "ship", "to": "shore", "app": {**app, "direction": "download"}},
    }
    offered = {}
    for name, flow in flows.items():
        network = Network.of(Scenario.of({**lossy, "flows.update": flow}), _native.lists())
        offered[name] = remedies(network)
        advice = bentpipe.advise({**lossy, "flows.update": flow}, seeds=1)
        assert advice.flows[0].downlink == "satellite.forward", name
        best = advice.remedies[0]
        assert best.remedy.kind == "window rule", name
        assert best.gain > 2.0, name
        assert {key for key, _ in best.remedy.settings} <= {
            "hosts.shore.tcp.congestion_control",
            "hosts.shore.tcp.channel_capacity",
        }
    assert offered["upload"] == offered["download"]


def test_channel_capacity_is_set_per_host_to_its_link_rate() -> None:
    office = remedies(Network.of(Scenario.of("vsat-office"), _native.lists()))
    for each in office:
        assert len(dict(each.settings)) == len(each.settings), each
    # Pages come at 20 Mbit/s, mails leave at 4.
    (hybla,) = (dict(each.settings) for each in office if each.name == "enhanced-hybla")
    assert hybla["hosts.internet.tcp.channel_capacity"] == "20000 kbit/s"
    assert hybla["hosts.users.tcp.channel_capacity"] == "4000 kbit/s"
    # No TCP carries a call.
    assert not [key for each in office for key, _ in each.settings if "phones" in key]


def test_short_gateway_timer_is_diagnosed_and_fixed() -> None:
    """All that is unacknowledged goes again before an answer can have come: the channel is full."""
    home = {
        "name": "home",
        "duration": "20 s",
        "hosts": {"server": {}, "home": {"tcp": {"receive_buffer": "60000 B"}}},
        "gateways.hub": {"kind": "hybrid", "facing": "sky", "retransmission_timeout": "100 ms"},
        "links.lan": {"between": ["server", "hub"], "rate": "10 Mbit/s", "delay": "20 ms"},
        "links.sky": {
            "between": ["hub", "home"],
            "one_way": True,
            "rate": "2 Mbit/s",
            "delay": "260 ms",
        },
        "links.modem": {
            "between": ["home", "hub"],
            "one_way": True,
            "rate": "28.8 kbit/s",
            "delay": "60 ms",
        },
        "flows.file": {"from": "server", "to": "home", "app": {"kind": "bulk", "size": "2 MB"}},
    }
    (gateway,) = json.loads(bentpipe.run(home).summary_json)["gateways"]
    assert gateway["to_host"]["retransmissions"] > 5 * gateway["to_host"]["segments"]
    advice = bentpipe.advise(home)
    assert "gateway's recovery" in advice.remedies[0].remedy.kind
    assert ("gateways.hub.tcp", "{}") in advice.remedies[0].remedy.settings
    assert advice.remedies[0].gain > 4.0


VILLAGE: dict[str, Any] = {
    "name": "village",
    "duration": "60 s",
    "hosts": {"web": {}, "school": {}},
    "gateways.hub": {"kind": "split", "facing": "sat"},
    "gateways.dish": {"kind": "split", "facing": "sat"},
    "links.net": {"between": ["web", "hub"], "rate": "1 Gbit/s", "delay": "15 ms"},
    "links.sat": {
        "between": ["hub", "dish"],
        "forward": {
            "rate": "20 Mbit/s",
            "delay": "270 ms",
            "errors": {"packet_loss_rate": 0.005},
        },
        "return": {"rate": "1 Mbit/s", "delay": "270 ms"},
    },
    "links.home": {"between": ["dish", "school"], "rate": "100 Mbit/s", "delay": "2 ms"},
    "flows.lessons": {"from": "web", "to": "school", "app": {"kind": "bulk"}},
}


def test_split_gateway_tcp_is_tuned_rather_than_host_tcp() -> None:
    advice = bentpipe.advise(VILLAGE)
    (flow,) = advice.flows
    assert (flow.verdict, flow.gateway) == ("gateway", "hub")
    assert flow.limits["receive_window"] > 0.9
    gains = {each.remedy.name: each.gain for each in advice.remedies}
    assert gains["hybla"] == pytest.approx(1.0, abs=0.02)
    assert gains["hybla at hub"] > 1.5
    best = advice.remedies[0]
    assert any(key.startswith("gateways.hub.tcp.") for key, _ in best.remedy.settings)
    assert best.gain > 3.0
    again = limits_with(VILLAGE, dict(best.remedy.settings))
    assert again.goodput_bps == best.goodput_bps


def test_gateway_channel_capacity_is_the_rate_of_its_outgoing_link() -> None:
    scenario = Scenario.of(VILLAGE)
    network = Network.of(scenario, _native.lists())
    settings = dict(
        setting
        for remedy in remedies(network)
        if remedy.name == "enhanced-hybla at hub"
        for setting in remedy.settings
    )
    assert settings["gateways.hub.tcp.channel_capacity"] == "20000 kbit/s"
    # The gateway at the far end receives: that is where a buffer is, and no window rule.
    assert list(network.tcp_tables("receiver", "gateways")) == ["gateways.dish.tcp"]
    assert list(network.tcp_tables("sender", "gateways")) == ["gateways.hub.tcp"]


SHARED: dict[str, Any] = {
    "name": "shared",
    "duration": "40 s",
    "hosts": {"shore": {}, "ship": {}},
    "links.satellite": {
        "between": ["shore", "ship"],
        "rate": "4 Mbit/s",
        "delay": "270 ms",
        "forward": {"queue": {"limit": "800 packets"}},
    },
    "flows.updates": {"from": "shore", "to": "ship", "count": 3, "app": {"kind": "bulk"}},
    "flows.call": {"from": "shore", "to": "ship", "app": {"kind": "voice"}},
    "flows.questions": {
        "from": "ship",
        "to": "shore",
        "app": {"kind": "request-response", "request": "200 B", "response": "2 kB"},
    },
}


def test_user_experience_values_equal_those_of_a_run() -> None:
    advice = bentpipe.advise(SHARED)
    call, questions = advice.experiences
    assert (call.flow, call.what, call.unit) == ("call", "MOS", "")
    assert (questions.flow, questions.what, questions.unit) == ("questions", "response", "ms")
    # A deep queue that downloads fill: nobody can talk. A queue of its own mends that.
    assert call.value < 2.5
    best = call.remedies[0]
    assert best.value > 3.4
    assert best.gain > 1.4
    assert {each.result.remedy.name for each in call.remedies if each.value > 3.4} >= {
        "fair queue at satellite.forward",
        "FQ-CoDel at satellite.forward",
    }
    for experience in advice.experiences:
        gains = [each.gain for each in experience.remedies]
        assert gains == sorted(gains, reverse=True)
    # The predicted value equals that of a run with those settings.
    promised = questions.remedies[0]
    settings = dict(promised.result.remedy.settings)
    told = bentpipe.run(SHARED, settings=settings).summary.groups[-1].extra["responses"]
    assert told["time_ms"]["p50"] == promised.value
    assert promised.result.gains[0] == promised.result.goodput_bps / advice.goodput_bps
    data = advice.as_json()["experiences"]
    assert data[0]["remedies"][0]["value"] == best.value
    assert data[1]["value"] == questions.value


def test_a_video_call_is_judged_by_its_opinion_score() -> None:
    meeting = {"from": "shore", "to": "ship", "app": {"kind": "video-call"}}
    scenario = {**SHARED, "flows.call": meeting}
    advice = bentpipe.advise(scenario)
    assert [(each.flow, each.what, each.unit) for each in advice.experiences] == [
        ("call", "video MOS", ""),
        ("questions", "response", "ms"),
    ]
    call = advice.as_json()["experiences"][0]
    best = call["remedies"][0]
    assert best["value"] > call["value"]
    assert best["gain"] == pytest.approx(best["value"] / call["value"])
    # A run with the promised settings has that score.
    settings = dict(setting.split("=", 1) for setting in best["set"])
    told = bentpipe.run(scenario, settings=settings).summary.groups[1].extra["video_call_mos"]
    assert told["mean"] == best["value"]


def test_fewer_completions_are_not_counted_as_a_gain() -> None:
    from bentpipe.advice.advisor import RemedyResult
    from bentpipe.advice.remedy import Remedy
    from bentpipe.advice.user_experience import UserMeasure, experiences

    def remedy_result(name: str, *felt: UserMeasure) -> RemedyResult:
        return RemedyResult(
            remedy=Remedy(kind=name, name=name, why="", settings=()),
            goodput_bps=1.0,
            gain=1.0,
            gains=(1.0,),
            limits={},
            command="",
            measures=tuple({("pages", "page load"): each} for each in felt),
        )

    without = [{("pages", "page load"): UserMeasure(value=1000.0, completed=0.9)}] * 3
    fewer = remedy_result("fewer", *[UserMeasure(value=100.0, completed=0.8)] * 3)
    lucky = remedy_result(
        "lucky", *(UserMeasure(value=value, completed=0.9) for value in (250.0, 2000.0, 800.0))
    )
    good = remedy_result("good", *[UserMeasure(value=500.0, completed=0.9)] * 3)
    (pages,) = experiences(without, [fewer, lucky, good])
    assert [each.result.remedy.name for each in pages.remedies] == ["good", "lucky"]
    # A time's half is twice as good; of three seeds the median counts, the value is the first's.
    assert [each.gain for each in pages.remedies] == [2.0, 1.25]
    assert pages.remedies[1].value == 250.0


def test_command_prints_the_user_experience_table(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["advise", "geo-voice", "--set", "duration=30 s", "--set"]
    words += ['links.satellite.forward.queue={ limit = "1000 packets" }']
    assert cli.execute(words) == 0
    printed = capsys.readouterr().out
    assert "User experience" in printed
    felt = printed.partition("User experience")[2]
    line = next(line for line in felt.splitlines() if "fair queue at" in line)
    number, flow, what = line.split()[:3]
    assert (flow, what) == ("call", "MOS")
    assert 'kind = "fair"' in settings_line(printed, number)
    # The first table has another one, with the interval of the path's round trip.
    line = next(line for line in printed.splitlines() if "FQ-CoDel at" in line)
    settings = settings_line(printed, line.split()[0])
    assert '"fq-codel"' in settings
    assert 'interval = "546 ms"' in settings


def settings_line(printed: str, number: str) -> str:
    """Return the line with the settings of a numbered remedy."""
    return next(line for line in printed.splitlines() if line.split()[:2] == [number, "--set"])


# Pages and a call beside a backup, which fills the return link of all flows.
OFFICE: dict[str, Any] = {
    "name": "office",
    "duration": "40 s",
    "hosts": {"internet": {}, "users": {"count": 14}, "room": {}, "fileserver": {}},
    "gateways": {"hub": {"kind": "router"}, "terminal": {"kind": "router"}},
    "links.backbone": {"between": ["internet", "hub"], "rate": "1 Gbit/s", "delay": "10 ms"},
    "links.satellite": {
        "between": ["hub", "terminal"],
        "delay": "270 ms",
        "forward": {"rate": "10 Mbit/s"},
        "return": {"rate": "1 Mbit/s"},
    },
    "links.desks": {"between": ["terminal", "users"], "rate": "1 Gbit/s", "delay": "1 ms"},
    "links.lan": {"between": ["terminal", "room"], "rate": "1 Gbit/s", "delay": "1 ms"},
    "links.servers": {"between": ["terminal", "fileserver"], "rate": "1 Gbit/s", "delay": "1 ms"},
    "flows.backup": {"from": "fileserver", "to": "internet", "app": {"kind": "bulk"}},
    "flows.pages": {
        "from": "users",
        "to": "internet",
        "app": {"kind": "web", "page": "web-almanac", "reading": "exponential(30 s)"},
    },
    "flows.sound": {"from": "room", "to": "internet", "app": {"kind": "voice"}},
}


def offered_remedies(scenario: dict[str, Any]) -> dict[str, Remedy]:
    network = Network.of(Scenario.of(scenario), _native.lists())
    return {each.name: each for each in remedies(network)}


def test_queue_and_pacing_remedies_state_the_responsible_party() -> None:
    offered = offered_remedies(OFFICE)
    both = "satellite.return and satellite.forward"
    assert {key for key, _ in offered[f"fair queues at {both}"].settings} == {
        "links.satellite.forward.queue",
        "links.satellite.return.queue",
    }
    calls = dict(offered[f"priority for calls at {both}"].settings)
    assert calls["classes.calls"] == '{ applications = ["voice"] }'
    meeting = {"from": "room", "to": "internet", "app": {"kind": "video-call"}}
    with_video = offered_remedies({**OFFICE, "flows.meeting": meeting})
    calls = dict(with_video[f"priority for calls at {both}"].settings)
    assert calls["classes.calls"] == '{ applications = ["voice", "video-call"] }'
    assert f"lowest priority for bulk at {both}" in offered
    paced = offered["fileserver paced at 200 kbit/s"]
    assert paced.settings == (("hosts.fileserver.tcp.pacing", "200 kbit/s"),)
    who = {name: each.who for name, each in offered.items()}
    assert who[f"fair queues at {both}"] == ("operator",)
    assert who["fileserver paced at 200 kbit/s"] == ("server",)
    assert who["split at hub, hybla over satellite"] == ("gateway",)
    # Every network between the hosts has to carry them.
    jumbo = offered["segments of 8948 B"]
    assert jumbo.who == ("server", "client", "gateway", "operator")
    assert jumbo.deployability == "every network"
    assert offered["hybla"].deployability == "one party"


def test_queues_in_both_directions_replace_the_link_queue() -> None:
    """The file's `links.satellite.queue` would have no effect, which is an error."""
    link = {**OFFICE["links.satellite"], "queue": {"limit": "300 packets"}}
    scenario = Scenario.of({**OFFICE, "links.satellite": link})
    offered = remedies(Network.of(scenario, _native.lists()))
    both = [each for each in offered if each.name.endswith("return and satellite.forward")]
    assert len(both) == 4
    for each in both:
        scenario.with_settings(dict(each.settings)).resolved()
    # A queue that a direction has already is replaced by its own key.
    own = scenario.with_settings({"links.satellite.return.queue": {"limit": "50 packets"}})
    for each in remedies(Network.of(own, _native.lists())):
        own.with_settings(dict(each.settings)).resolved()


def test_receive_buffer_remedy_belongs_to_the_client() -> None:
    offered = offered_remedies(SHIP)
    assert offered["receive buffer of 1 MiB"].who == ("client",)
    assert offered["reno"].who == ("server",)


def test_class_and_pacing_remedies_need_flows_of_different_kinds() -> None:
    bulk = {"from": "shore", "to": "ship", "count": 3, "app": {"kind": "bulk"}}
    alike = offered_remedies({**SHIP, "flows.update": bulk})
    assert not [name for name in alike if "priority" in name or "paced" in name]


@pytest.fixture(scope="module")
def office_advice() -> Advice:
    return bentpipe.advise(OFFICE, seeds=1)


def test_office_advice_has_bidirectional_queues_and_remedy_pairs(office_advice: Advice) -> None:
    advice = office_advice
    pages, sound = (each for each in advice.experiences)
    assert sound.value < 2.0
    assert sound.remedies[0].value > 3.3
    found = {each.remedy.name: each for each in advice.remedies}
    both = "satellite.return and satellite.forward"
    assert found[f"fair queues at {both}"].overall_gain > 1.2
    # The best three of different kinds, in pairs.
    alone = [each for each in advice.remedies if "," not in each.remedy.kind]
    kinds: dict[str, Any] = {}
    for each in alone:
        if each.overall_gain >= 1.02 and not each.remedy.every_network:
            kinds.setdefault(each.remedy.kind, each)
    first, second, third = list(kinds.values())[:3]
    for one, other in ((first, second), (first, third), (second, third)):
        assert one.remedy.and_also(other.remedy).name in found
    best = advice.remedies[0]
    assert "," in best.remedy.kind
    assert best.overall_gain > first.overall_gain
    assert pages.value > 0.0


def test_remedies_for_every_network_rank_last_and_are_not_combined(office_advice: Advice) -> None:
    advice = office_advice
    marked = [each.remedy.every_network for each in advice.remedies]
    assert marked == sorted(marked)
    assert sum(marked) == 1
    for experience in advice.experiences:
        marked = [each.result.remedy.every_network for each in experience.remedies]
        assert marked == sorted(marked)


def test_only_and_without_filter_remedies_by_party() -> None:
    short = {"duration": "10 s"}
    server = bentpipe.advise(OFFICE, settings=short, seeds=1, only=["server"])
    assert {each.remedy.who for each in server.remedies} == {("server",)}
    rest = bentpipe.advise(OFFICE, settings=short, seeds=1, without=["server", "operator"])
    assert {each.remedy.who for each in rest.remedies} == {("gateway",)}
    data = rest.as_json()["remedies"]
    assert {(*each["who"], each["deployability"]) for each in data} == {("gateway", "one party")}
    with pytest.raises(RequestError, match="expected one of server, client, gateway, operator"):
        bentpipe.advise(OFFICE, only=["boss"])


def test_many_flows_are_grouped_into_rows_by_kind(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "office.toml"
    file.write_text(Scenario.of(OFFICE).text or "", encoding="utf-8")
    words = ["advise", str(file), "--set", "duration=10 s", "--seeds", "1", "--only", "client"]
    assert cli.execute(words) == 0
    said = capsys.readouterr().out
    rows = [line.split()[0] for line in said.splitlines() if line.strip()]
    # The important flow is there, and the crowd in one row.
    assert {"backup", "sound", "pages"} <= set(rows)
    assert "pages-1" not in rows
    assert cli.execute([*words, "--all"]) == 0
    assert "pages-14" in capsys.readouterr().out


def test_progress_text_has_the_minimum_remaining_time() -> None:
    from bentpipe.cli.progress import simulations_text

    assert simulations_text(0, 1, elapsed_s=0.5) == "0 of 1 simulations"
    assert simulations_text(10, 40, elapsed_s=20.0) == "10 of 40 simulations, at least 60 s left"


def test_on_demand_terminals_are_offered_constant_or_free_capacity() -> None:
    scenario = copy.deepcopy(SHIP)
    scenario["links.satellite"]["return"]["access"] = {"kind": "on-demand", "frame": "40 ms"}
    scenario["hosts"] = {"shore": {}, "ship": {}}
    advice = bentpipe.advise(scenario)
    found = {each.remedy.name: each for each in advice.remedies if each.remedy.kind == "capacity"}
    assert set(found) == {
        # An acknowledgment of 52 bytes for each two packets of 1500, of 4 Mbit/s.
        "constant capacity of 69 kbit/s on satellite.return",
        "free capacity on satellite.return",
    }
    # Half of each round trip was waited for a grant.
    assert all(each.gain > 1.3 for each in found.values())
    for each in found.values():
        assert summed_run(scenario, dict(each.remedy.settings)) == each.goodput_bps


def summed_run(scenario: dict[str, Any], settings: dict[str, str]) -> float:
    run = bentpipe.run(scenario, settings=settings)
    return sum(flow.goodput_bps for flow in run.summary.flows)


def test_empty_limit_table_is_not_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    network = {
        "name": "radio",
        "duration": "10 s",
        "hosts": {"studio": {}, "dish": {"count": 3}},
        "links.beam": {
            "between": ["studio", "dish"],
            "one_way": True,
            "broadcast": True,
            "rate": "1 Mbit/s",
            "delay": "250 ms",
            "errors": {"packet_loss_rate": 0.02},
        },
        "links.back": {
            "between": ["dish", "studio"],
            "one_way": True,
            "rate": "64 kbit/s",
            "delay": "50 ms",
        },
        "groups.all": {"members": ["dish"]},
        "flows.news": {
            "from": "studio",
            "to": "all",
            "app": {"kind": "carousel", "size": "20 kB", "rate": "100 kbit/s"},
        },
    }
    file = tmp_path / "radio.toml"
    file.write_text(Scenario.of(network).text or "", encoding="utf-8")
    assert cli.execute(["advise", str(file)]) == 0
    said = capsys.readouterr().out
    assert "limited by" not in said
    assert "No sender waits" in said
    assert "Results depend on the seed" not in said


def test_remedies_of_quic_are_at_its_hosts() -> None:
    """Gateways and ACK methods do not reach QUIC; windows and acknowledgments of its hosts do."""
    file = {
        "name": "geo",
        "duration": "60 s",
        "hosts": {"server": {}, "client": {}},
        "gateways": {"hub": {}, "terminal": {}},
        "links": {
            "core": {"between": ["server", "hub"], "rate": "1 Gbit/s", "delay": "5 ms"},
            "satellite": {
                "between": ["hub", "terminal"],
                "forward": {"rate": "50 Mbit/s", "delay": "280 ms"},
                "return": {"rate": "1 Mbit/s", "delay": "280 ms"},
            },
            "home": {"between": ["terminal", "client"], "rate": "1 Gbit/s", "delay": "5 ms"},
        },
        "flows": {
            "file": {
                "from": "client",
                "to": "server",
                "app": {"kind": "bulk", "size": "20 MB", "direction": "download"},
            }
        },
    }

    def offered(transport: str) -> list[Remedy]:
        scenario = Scenario.of(file).with_settings({"flows.file.app.transport": transport})
        return remedies(Network.of(scenario, _native.lists()))

    kinds = {transport: {each.kind for each in offered(transport)} for transport in ("tcp", "quic")}
    assert {"gateway", "ACK method", "buffers", "window rule"} <= kinds["tcp"]
    assert not {"gateway", "ACK method", "buffers", "window rule"} & kinds["quic"]
    assert {"QUIC windows", "QUIC acknowledgments", "QUIC window rule", "saved path"} <= kinds[
        "quic"
    ]
    assert not any("QUIC" in kind for kind in kinds["tcp"])

    advice = bentpipe.advise(file, settings={"flows.file.app.transport": "quic"})
    assert advice.refused == {}
    assert advice.flows[0].verdict == "receive_window"
    by_kind = {each.remedy.kind: each for each in advice.remedies}
    assert by_kind["QUIC windows"].gain > 1.5
    assert advice.remedies[0].gain > by_kind["QUIC windows"].gain
