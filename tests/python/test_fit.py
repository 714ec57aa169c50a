"""`bentpipe fit`: kinds of files, refusals, and what is written."""

from __future__ import annotations

import gzip
import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bentpipe as package
from bentpipe.errors import RequestError
from bentpipe.fit import fit
from bentpipe.fit.estimate import wilson
from bentpipe.fit.losses import count_losses

from .commands import assert_refused
from .known_networks import LEO

PING = """PING example.org (192.0.2.1) 56(84) bytes of data.
[1700000000.000001] 64 bytes from 192.0.2.1: icmp_seq=1 ttl=50 time=612 ms
[1700000001.000001] 64 bytes from 192.0.2.1: icmp_seq=2 ttl=50 time=601 ms
[1700000001.100001] 64 bytes from 192.0.2.1: icmp_seq=2 ttl=50 time=603 ms (DUP!)
no answer yet for icmp_seq=3
[1700000003.000001] 64 bytes from 192.0.2.1: icmp_seq=4 ttl=50 time=655 ms

--- example.org ping statistics ---
5 packets transmitted, 3 received, +1 duplicates, 40% packet loss, time 4004ms
rtt min/avg/max/mdev = 601.250/622.700/655.100/23.200 ms
"""


def trip(lost: str, up_ms: float, down_ms: float, at_ms: float) -> dict[str, Any]:
    delays = {"rtt": (up_ms + down_ms) * 1e6, "send": up_ms * 1e6, "receive": down_ms * 1e6}
    return {
        "lost": lost,
        "delay": delays if lost == "false" else {},
        "timestamps": {"client": {"send": {"monotonic": at_ms * 1e6}}},
    }


IRTT: dict[str, Any] = {
    "config": {"length": 172},
    "round_trips": [
        trip("false", 30.0, 20.0, 0),
        trip("true_up", 0, 0, 10),
        trip("false", 31.0, 20.5, 20),
        trip("true_down", 0, 0, 30),
        trip("false", 30.5, 21.5, 40),
    ],
}


def iperf3(*, reverse: int = 1, protocol: str = "TCP") -> dict[str, Any]:
    intervals = [
        {
            "streams": [{"rtt": 600_000 + 10_000 * second}],
            "sum": {"start": second, "end": second + 1, "bytes": 1_200_000},
        }
        for second in range(10)
    ]
    return {
        "start": {
            "tcp_mss_default": 1448,
            "test_start": {
                "protocol": protocol,
                "reverse": reverse,
                "num_streams": 1,
                "blksize": 1000,
            },
        },
        "intervals": intervals,
        "end": {
            "streams": [{"sender": {"min_rtt": 600_000}}],
            "sum": {"packets": 1000, "lost_packets": 20, "seconds": 10.0},
            "sender_tcp_congestion": "bbr",
        },
    }


def flent() -> dict[str, Any]:
    times = [0.2 * step for step in range(1, 101)]
    return {
        "version": 4,
        "x_values": times,
        "results": {
            "TCP download BE": [None if at < 5 else 8.0 for at in times],
            "TCP download avg": [None if at < 5 else 8.0 for at in times],
            "Ping (ms) ICMP": [600.0 if at < 5 else 1100.0 for at in times],
        },
        "metadata": {"NAME": "tcp_download"},
    }


def written(path: Path, content: str | bytes | dict[str, Any]) -> Path:
    if isinstance(content, dict):
        content = json.dumps(content)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a short capture of a download at the sender."""
    network = replace(LEO, duration_s=3.0, rate_bps=10e6, queue_packets=40)
    return network.captures(tmp_path_factory.mktemp("capture"))[0]


def test_ping_gives_round_trip_and_losses(tmp_path: Path) -> None:
    found = fit(written(tmp_path / "ping.txt", PING))
    delay = found.estimates["round_trip.delay"]
    # Two times 84 bytes at the assumed 100 Mbit/s are subtracted.
    assert delay.value == pytest.approx(0.60125 - 2 * 84 * 8 / 100e6)
    loss = found.estimates["forward.loss"]
    assert loss.value == 0.4
    assert (loss.low, loss.high) == pytest.approx(wilson(2, 5))
    assert {"forward.rate", "return.rate", "return.loss", "forward.delay"} <= {
        each.key for each in found.undetermined
    }
    package.run(found.scenario, settings={"duration": "1 s"})


def test_ping_without_statistics_counts_what_is_missing(tmp_path: Path) -> None:
    cut = PING.partition("\n---")[0]
    found = fit(written(tmp_path / "ping.txt", cut))
    # Of 1 to 4, one is missing; 601 ms stands for 601 to 602 ms.
    assert found.estimates["forward.loss"].value == 0.25
    delay = found.estimates["round_trip.delay"]
    assert delay.low is not None
    assert delay.high is not None
    assert delay.low < 0.601 < 0.602 < delay.high + 1e-3


def test_irtt_gives_one_way_delays_and_losses(tmp_path: Path) -> None:
    for name, content in (
        ("irtt.json", json.dumps(IRTT).encode()),
        ("irtt.json.gz", gzip.compress(json.dumps(IRTT).encode(), mtime=0)),
    ):
        found = fit(written(tmp_path / name, content))
        assert found.estimates["return.delay"].value == pytest.approx(0.030, abs=1e-4)
        assert found.estimates["forward.delay"].value == pytest.approx(0.020, abs=1e-4)
        assert found.estimates["return.loss"].value == pytest.approx(1 / 5)
        assert found.estimates["forward.loss"].value == pytest.approx(1 / 4)
        assert "return.delay" not in {each.key for each in found.undetermined}


def test_irtt_with_clocks_that_differ_gives_round_trips(tmp_path: Path) -> None:
    shifted = json.loads(json.dumps(IRTT))
    for each in shifted["round_trips"]:
        if each["delay"]:
            each["delay"]["send"] -= 50e6
            each["delay"]["receive"] += 50e6
    found = fit(written(tmp_path / "irtt.json", shifted))
    assert found.estimates["round_trip.delay"].value == pytest.approx(0.050, abs=1e-4)
    assert "return.delay" not in found.estimates


def test_iperf3_gives_rate_and_host_settings(tmp_path: Path) -> None:
    found = fit(written(tmp_path / "iperf.json", iperf3()))
    assert found.estimates["forward.rate"].value == pytest.approx(9.6e6 * 1500 / 1448)
    assert found.estimates["host.congestion_control"].value == "bbr"
    assert 'congestion_control = "bbr"' in found.toml
    upload = fit(written(tmp_path / "upload.json", iperf3(reverse=0)))
    assert "return.rate" in upload.estimates
    assert "flows.upload" in upload.toml


def test_iperf3_udp_gives_losses(tmp_path: Path) -> None:
    found = fit(written(tmp_path / "udp.json", iperf3(protocol="UDP")))
    assert found.estimates["forward.loss"].value == pytest.approx(0.02)
    assert "forward.rate" in {each.key for each in found.undetermined}


def test_flent_gives_rate_and_round_trip(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(flent()).encode())
    found = fit(written(tmp_path / "test.flent.gz", packed))
    assert found.estimates["forward.rate"].value == pytest.approx(8e6 * 1500 / 1448)
    assert found.estimates["round_trip.delay"].value == pytest.approx(0.6, abs=1e-3)


def test_probes_and_capture_are_combined(tmp_path: Path, capture: Path) -> None:
    irtt = written(tmp_path / "irtt.json", IRTT)
    found = fit(irtt, capture)
    assert found.estimates["forward.rate"].source == capture.name
    # One-way delays are better than half a round trip.
    assert found.estimates["forward.delay"].source == "irtt.json"
    # Of two loss rates, that of more packets counts.
    assert found.estimates["forward.loss"].source == capture.name
    assert found.estimates["return.loss"].source == "irtt.json"


def test_command_writes_scenario_figure_and_table(
    bentpipe: Any, tmp_path: Path, capture: Path
) -> None:
    out = tmp_path / "office.toml"
    for name in ("figure.svg", "figure.png"):
        figure = tmp_path / name
        said = bentpipe("fit", capture, "--out", out, "--figure", figure)
        assert (said.status, said.err) == (0, "")
        assert "forward.rate" in said.out
        assert "Not determined" in said.out
        assert f"wrote {out}" in said.out
        assert "goodput: measured" in said.out
        assert figure.stat().st_size > 5000
    ET.parse(tmp_path / "figure.svg")
    assert bentpipe("run", out, "--json").data["scenario"] == "office"
    # Each value has a comment with its source.
    text = out.read_text()
    assert text.count(capture.name) > 5
    assert max(map(len, text.splitlines())) <= 100


def test_json_has_everything(bentpipe: Any, capture: Path) -> None:
    data = bentpipe("fit", capture, "--json").data
    keys = {each["key"]: each for each in data["estimates"]}
    assert keys["forward.rate"]["low"] <= 10e6 <= keys["forward.rate"]["high"]
    assert keys["forward.rate"]["source"] == capture.name
    assert {each["key"] for each in data["undetermined"]} >= {"forward.delay", "return.rate"}
    assert data["toml"].startswith("# Fitted")
    assert data["files"][0]["kind"] == "capture"
    assert data["goodput_bps"]["measured"] > 0


@pytest.mark.parametrize(
    ("name", "content", "fragment"),
    [
        ("empty", b"", "got an empty file"),
        ("noise", bytes(range(200)), "expected a capture"),
        ("half.json", b'{"start": {', "invalid JSON"),
        ("deep.json", b'{"a":' * 100_000, "invalid JSON"),
        ("other.json", b'{"a": 1}', "expected JSON of iperf3, IRTT or flent"),
        ("list.json", b"[1]", "expected a capture"),
        ("failed.json", b'{"start": {}, "end": {}, "error": "unable"}', "its error: unable"),
        ("cut.gz", gzip.compress(b"x" * 1000, mtime=0)[:-5], "damaged gzip"),
        ("pcap.gz", gzip.compress(b"\xd4\xc3\xb2\xa1" + bytes(20), mtime=0), "gunzip it first"),
        ("ping.txt", b"PING a (192.0.2.1) 56(84) bytes of data.\n", "got 0"),
        ("header.pcap", b"\xd4\xc3\xb2\xa1\x02\x00\x04\x00" + bytes(16), "expected"),
        ("short.pcapng", b"\x0a\x0d\x0d\x0a", "expected"),
        ("trips.json", b'{"round_trips": 1}', "IRTT's JSON"),
        ("flent.json", b'{"x_values": [1], "results": {}}', "flent's data"),
    ],
)
def test_other_files_are_refused(
    bentpipe: Any, tmp_path: Path, name: str, content: bytes, fragment: str
) -> None:
    path = written(tmp_path / name, content)
    assert_refused(bentpipe("fit", path), str(path), fragment, "expected")


def test_missing_files_and_wrong_names_are_refused(
    bentpipe: Any, tmp_path: Path, capture: Path
) -> None:
    assert_refused(bentpipe("fit", tmp_path / "none.pcap"), "none.pcap", "no such file")
    assert_refused(bentpipe("fit", tmp_path), "is a folder")
    assert_refused(bentpipe("fit", capture, "--out", tmp_path / "a b.toml"), "--out", "expected")
    assert_refused(bentpipe("fit", capture, "--out", tmp_path / "x.txt"), ".toml")
    assert_refused(bentpipe("fit", capture, "--figure", tmp_path / "x.gif"), ".svg or .png")
    assert bentpipe("fit").status == 2
    with pytest.raises(RequestError):
        fit()


def test_cut_captures_are_used_up_to_the_cut_or_refused(tmp_path: Path, capture: Path) -> None:
    whole = capture.read_bytes()
    for share in (0.001, 0.01, 0.3, 0.7):
        path = written(tmp_path / "cut.pcapng", whole[: int(len(whole) * share)])
        try:
            found = fit(path)
        except RequestError as error:
            assert str(path) in str(error)  # noqa: PT017
            assert share < 0.1
        else:
            assert any("ends within a packet" in note for note in found.measurements[0].notes)


@given(place=st.floats(0, 1), value=st.binary(min_size=1, max_size=64))
def test_damaged_captures_give_a_scenario_or_a_refusal(
    capture: Path, place: float, value: bytes
) -> None:
    content = bytearray(capture.read_bytes()[:200_000])
    at = int(place * (len(content) - len(value)))
    content[at : at + len(value)] = value
    path = written(capture.with_name("damaged.pcapng"), bytes(content))
    try:
        found = fit(path)
    except RequestError as error:
        assert str(path) in str(error)  # noqa: PT017
    else:
        found.scenario.resolved()


@given(content=st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
def test_random_files_are_refused(tmp_path_factory: Any, content: bytes) -> None:
    path = written(tmp_path_factory.getbasetemp() / "random", content)
    with pytest.raises(RequestError, match="random: expected"):
        fit(path)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


def places(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths to all values of plain data."""
    found = [path] if path else []
    items = (
        data.items()
        if isinstance(data, dict)
        else enumerate(data)
        if isinstance(data, list)
        else ()
    )
    for key, value in items:
        found += places(value, (*path, key))
    return found


@pytest.mark.parametrize("kind", ["irtt", "iperf3", "udp", "flent"])
@given(data=st.data())
def test_changed_json_gives_a_scenario_or_a_refusal(
    tmp_path_factory: Any, kind: str, data: st.DataObject
) -> None:
    made = {
        "irtt": lambda: json.loads(json.dumps(IRTT)),
        "iperf3": iperf3,
        "udp": lambda: iperf3(protocol="UDP"),
        "flent": flent,
    }[kind]()
    *parents, last = data.draw(st.sampled_from(places(made)))
    target = made
    for key in parents:
        target = target[key]
    target[last] = data.draw(JSON)
    path = written(tmp_path_factory.getbasetemp() / f"{kind}.json", made)
    try:
        found = fit(path)
    except RequestError as error:
        assert str(path) in str(error)  # noqa: PT017
    else:
        found.scenario.resolved()


@given(hits=st.integers(0, 50), more=st.integers(0, 1000))
def test_wilsons_interval_contains_the_share(hits: int, more: int) -> None:
    low, high = wilson(hits, hits + more)
    assert 0 <= low <= high <= 1
    if hits + more:
        assert low <= hits / (hits + more) <= high


def test_independent_losses_are_no_bursts() -> None:
    # Of 200 sequences of independent losses, few have bursts that look significant.
    generator = np.random.default_rng(1)
    found = [count_losses(generator.random(20_000) < 0.02).mean_burst for _ in range(200)]
    assert sum(each is not None for each in found) <= 10
