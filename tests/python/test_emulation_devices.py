"""Changes of an emulated host's device, and IPv6 on it."""

from __future__ import annotations

import json
import sys
from functools import partial

import pytest

import bentpipe
from bentpipe import _native
from bentpipe.comparison import compare
from bentpipe.emulation import Command
from bentpipe.scenario import Scenario

from .live import live
from .networks import short

network = partial(short, rate="16 Mbit/s")


SERVER = """
import socket
listener = socket.create_server(("", 7000), family=socket.{family})
connection, _ = listener.accept()
connection.sendall(bytes(range(250)) * 8000)
connection.shutdown(socket.SHUT_WR)
connection.recv(1)
"""

# Reads half, pulls the cable out for a while, and reads the rest.
CLIENT = """
import fcntl, socket, struct, time

def interface(up):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        request = struct.pack("16sH14x", b"bentpipe", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(control, 0x8913, request))[1]
        flags = flags | 1 if up else flags & ~1
        fcntl.ioctl(control, 0x8914, struct.pack("16sH14x", b"bentpipe", flags))

deadline = time.monotonic() + 10
while True:
    try:
        connection = socket.create_connection(("server", 7000), timeout=10)
        break
    except ConnectionRefusedError:
        assert time.monotonic() < deadline
        time.sleep(0.05)
data = b""
while len(data) < 1_000_000:
    data += connection.recv(1 << 16)
interface(False)
time.sleep(0.3)
interface(True)
while piece := connection.recv(1 << 16):
    data += piece
raise SystemExit(7 if data == bytes(range(250)) * 8000 else 8)
"""


@live
@pytest.mark.parametrize(("ip", "family"), [("v4", "AF_INET"), ("v6", "AF_INET6")])
def test_connection_survives_an_emulated_device_down(ip: str, family: str) -> None:
    server = (sys.executable, "-c", SERVER.replace("{family}", family))
    commands = [
        Command(host="server", words=server),
        Command(host="client", words=(sys.executable, "-c", CLIENT), waited_for=True),
    ]
    result = bentpipe.emulate(network(ip=ip), commands=commands)
    assert result.status == 7, "the connection outlives it, and all bytes are there"
    refused = json.loads(result.summary_json)["refused"]
    assert refused["device_down"] > 10


@live
def test_ipv6_kernel_transfer_matches_the_simulation() -> None:
    settings = {"hosts.server.tcp.profile": "linux", "hosts.client.tcp.profile": "linux"}
    scenario = Scenario.of(network(ip="v6")).with_settings(settings)
    comparison = compare(scenario)
    result = comparison.emulated
    real = result.flow()
    assert (real.outcome, real.bytes_delivered) == ("finished", 1_000_000)
    assert not [note for note in result.notes if not note.startswith("hosts.")] or result.too_late
    assert json.loads(result.summary_json)["refused"] == {}
    (difference,) = comparison.differences.values()
    assert difference.transfer_time is not None
    assert abs(difference.transfer_time) < 0.05
    # Its headers are 20 bytes longer, its segments as much shorter.
    assert max(result.series["download.congestion_window"].values) % 1428 == 0


@live
@pytest.mark.parametrize("ip", ["v4", "v6"])
def test_kernel_receive_window_follows_receive_buffer(ip: str) -> None:
    """The window is what limits the flow: a quarter more of it would be a quarter more goodput."""
    hosts = {"server": {}, "client": {"tcp": {"receive_buffer": "128 KiB"}}}
    links = {"satellite": {"between": ["server", "client"], "rate": "40 Mbit/s", "delay": "50 ms"}}
    flow = {"from": "server", "to": "client", "app": {"kind": "bulk"}}
    scenario = network(ip=ip, hosts=hosts, links=links, flows={"download": flow})
    settings = {"hosts.server.tcp.profile": "linux", "hosts.client.tcp.profile": "linux"}
    comparison = compare(Scenario.of(scenario).with_settings(settings))
    (difference,) = comparison.differences.values()
    assert difference.goodput is not None
    assert abs(difference.goodput) < 0.06 or comparison.emulated.too_late


@live
@pytest.mark.parametrize("ours", ["server", "client"])
def test_attached_tcp_interoperates_over_ipv6(ours: str) -> None:
    result = bentpipe.emulate(network(ip="v6"), attach={ours: "our"})
    flow = result.flow()
    assert (flow.outcome, flow.bytes_delivered) == ("finished", 1_000_000)
    assert not any("differs from the one that was sent" in note for note in result.notes)


@live
def test_mss_below_the_ipv6_minimum_is_refused_by_key() -> None:
    scenario = network(ip="v6", hosts={"server": {"tcp": {"mss": "1000 B"}}, "client": {}})
    with pytest.raises(_native.ScenarioError, match=r"hosts\.server\.tcp\.mss: .*at least 1208 B"):
        bentpipe.emulate(scenario)


@live
def test_many_flows_are_sent_on_time() -> None:
    """Three hundred connections that open at once, by two threads and no more."""
    flow = {"from": "server", "to": "client", "count": 300, "app": {"kind": "bulk"}}
    links = {"satellite": {"between": ["server", "client"], "rate": "20 Mbit/s", "delay": "50 ms"}}
    result = bentpipe.emulate(network(duration="2 s", flows={"many": flow}, links=links))
    flows = result.summary.flows
    assert len(flows) == 300
    assert all(each.outcome == "running" for each in flows)
    delivered = sum(each.bytes_delivered for each in flows)
    assert delivered > 0.5 * 20e6 / 8 * 2 or result.too_late
