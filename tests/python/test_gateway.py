"""`bentpipe-gateway` between real interfaces: the kernel's TCPs on both sides of it.

Each machine is a network namespace; see `boxes`.
"""

from __future__ import annotations

import json
import shlex
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .boxes import GATEWAY, Box, fetch, gateway, join, listen, live, row, wait_until

pytestmark = live

SPLIT = """
name = "box"
duration = "60 s"
hosts = { server = {}, client = {} }
gateways.hub = { kind = "split", facing = "satellite", tcp = { congestion_control = "hybla" } }
[links.lan]
between = ["server", "hub"]
rate = "100 Mbit/s"
delay = "1 ms"
[links.satellite]
between = ["hub", "client"]
forward = { rate = "10 Mbit/s", delay = "250 ms" }
return = { rate = "1 Mbit/s", delay = "250 ms" }
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk", size = "1 MB" }
"""
HYBRID = SPLIT.replace(
    '{ kind = "split", facing = "satellite", tcp = { congestion_control = "hybla" } }',
    '{ kind = "hybrid", facing = "satellite", tcp = {} }',
)
SIDES = ("--interface", "lan=to-server", "--interface", "satellite=to-client")
HUB = ("--gateway", "hub", *SIDES)

# The boxes' addresses, in the row server - hub - client.
SERVER = ("10.1.0.1", "fd00:1::1")
CLIENT = ("10.2.0.2", "fd00:2::2")


@pytest.fixture
def boxes() -> Iterator[list[Box]]:
    with row("server", "hub", "client") as made:
        yield made


def write_scenario(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "box.toml"
    file.write_text(text, encoding="utf-8")
    return file


def gateway_state(box: Box) -> list[str]:
    """Return the state of a gateway left in a box: rules, routes, devices, groups."""
    lines = []
    for line in ("-4 rule", "-6 rule", "-4 route show table all", "-6 route show table all"):
        lines += [each for each in box.ip(line).splitlines() if "proto 190" in each]
    lines += [each["ifname"] for each in interfaces(box) if "bentpipe" in each["ifname"]]
    return lines + [each["ifname"] for each in interfaces(box) if each["group"] != "default"]


def interfaces(box: Box) -> list[dict[str, Any]]:
    """Return a box's interfaces, as `ip` has them."""
    told: list[dict[str, Any]] = json.loads(box.ip("-json link show"))
    return told


@pytest.mark.parametrize("text", [SPLIT, HYBRID], ids=["split", "hybrid"])
def test_payload_is_intact_in_both_directions_over_ipv4_and_ipv6(
    boxes: list[Box], tmp_path: Path, text: str
) -> None:
    server, hub, client = boxes
    # Packets from the gateway's devices have sources elsewhere: strict reverse-path filtering would
    # drop them.
    hub.sysctl("net.ipv4.conf.all.rp_filter=1")
    listen(server)
    listen(client)
    with gateway(hub, write_scenario(tmp_path, text), *HUB) as running:
        for address in SERVER:
            fetch(client, address)
        for address in CLIENT:
            fetch(server, address)
        assert len(gateway_state(hub)) == 10 + 4 + 2 + 2
        said = running.end()
    assert gateway_state(hub) == []
    [told] = said["gateways"]
    counted = told["connections"]
    assert told["name"] == "hub"
    assert counted["split" if text == SPLIT else "tracked"] == 4
    assert counted.get("passed", 0) == counted["refused"] == 0
    assert said["refused"] == {}
    # The gateway has had the bytes, and has given them all away.
    assert told["bytes_held"]["max"] > 1448
    assert told["bytes_held"]["now"] == 0
    names = ["lan.forward", "lan.return", "satellite.forward", "satellite.return"]
    assert [link["name"] for link in said["links"]] == names
    assert all(link["bytes_delivered"] > 4 * 300_000 for link in said["links"])
    assert said["packets_in"] > 4 * 300_000 // 1448
    assert said["late_ms"]["mean"] > 0


# Connects, says that it has; sends when it is told to, and says what of it is not acknowledged.
SENDER = """
import fcntl, socket, struct, sys, termios, time
peer = socket.create_connection((sys.argv[1], 80), timeout=20)
print("connected", flush=True)
sys.stdin.readline()
peer.sendall(bytes(20_000))
waiting = 0
for _ in range(50):
    time.sleep(0.02)
    [waiting] = struct.unpack("i", fcntl.ioctl(peer, termios.TIOCOUTQ, bytes(4)))
    if waiting == 0:
        break
print(waiting, flush=True)
"""


def unacknowledged(sender: Box, receiver: Box, address: str, cable: str) -> int:
    """Send to a host that is cut off meanwhile; return how much of it nobody has acknowledged."""
    program = sender.python(SENDER, address)
    assert program.stdin is not None
    assert program.stdout is not None
    assert program.stdout.readline() == "connected\n"
    receiver.ip(f"link set {cable} down")
    print("go", file=program.stdin, flush=True)
    return int(program.stdout.readline())


@pytest.mark.parametrize("kind", ["plain", "split", "hybrid"])
def test_gateway_acknowledges_data_locally(boxes: list[Box], tmp_path: Path, kind: str) -> None:
    server, hub, client = boxes
    listen(client)
    if kind == "plain":
        assert unacknowledged(server, client, CLIENT[0], "to-hub") == 20_000
        return
    text = SPLIT if kind == "split" else HYBRID
    with gateway(hub, write_scenario(tmp_path, text), *HUB) as running:
        assert unacknowledged(server, client, CLIENT[0], "to-hub") == 0
        [told] = running.end()["gateways"]
        assert told["bytes_held"]["max"] >= 20_000


# Greets whoever comes; connects, and says how long the greeting took.
GREETS = """
import socket
listening = socket.create_server(("", 80))
print("listening", flush=True)
while True:
    listening.accept()[0].sendall(b"220 ready")
"""
IS_GREETED = """
import socket, sys, time
begin = time.monotonic()
with socket.create_connection((sys.argv[1], 80), timeout=20) as peer:
    assert peer.recv(9) == b"220 ready"
print(time.monotonic() - begin)
"""


@pytest.mark.parametrize("text", [SPLIT, HYBRID], ids=["split", "hybrid"])
def test_server_greeting_passes_the_gateway_without_delay(
    boxes: list[Box], tmp_path: Path, text: str
) -> None:
    server, hub, client = boxes
    greeting = server.python(GREETS)
    assert greeting.stdout is not None
    assert greeting.stdout.readline() == "listening\n"
    with gateway(hub, write_scenario(tmp_path, text), *HUB):
        took = [float(client.run(sys.executable, "-c", IS_GREETED, SERVER[0])) for _ in range(3)]
    # A SYN+ACK goes again after 1 s.
    assert min(took) < 0.9


def test_killed_gateway_forwards_and_its_rules_are_cleaned_up(
    boxes: list[Box], tmp_path: Path
) -> None:
    server, hub, client = boxes
    file = write_scenario(tmp_path, SPLIT)
    listen(server)
    with gateway(hub, file, *HUB) as running:
        fetch(client, SERVER[0], 1000)
        running.kill_with_watchdog()
    # Rules are left, which find nothing, and groups; neither devices nor routes.
    assert len(gateway_state(hub)) == 10 + 2
    fetch(client, SERVER[0])
    fetch(client, SERVER[1])
    with gateway(hub, file, *HUB) as running:
        assert any("removed 10 rules" in line for line in running.said), running.said
        fetch(client, SERVER[0])
        running.kill_with_watchdog()
    assert json.loads(hub.run(*GATEWAY, "--clean", "--json")) == {"rules": 10, "groups": 2}
    assert gateway_state(hub) == []
    fetch(client, SERVER[0])


# Answers datagrams with what they were, hop limit and class of service included.
ECHO = """
import socket
box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
box.setsockopt(socket.IPPROTO_IP, 12, 1)
box.setsockopt(socket.IPPROTO_IP, 13, 1)
# IP_RECVTTL and IP_RECVTOS, above: ip(7).
box.bind(("0.0.0.0", 7))
print("listening", flush=True)
while True:
    content, more, _, peer = box.recvmsg(65536, 256)
    said = {kind: value[0] for _, kind, value in more}
    box.sendto(bytes([said[socket.IP_TTL], said[socket.IP_TOS]]) + content, peer)
"""
# Asks it, and pings. Prints what came back of each.
ASKS = """
import os, socket, struct, sys
to = sys.argv[1]
box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
box.settimeout(10)
box.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 77)
box.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, 0xb8)
content = bytes(range(256)) * 40
for length in (0, 1, 1000, 1472, 10_000):
    box.sendto(content[:length], (to, 7))
    answer = box.recv(65536)
    assert answer[2:] == content[:length], length
    print(*answer[:2])
ping = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
ping.settimeout(10)
def checksum(of):
    total = sum(struct.unpack(f"!{len(of) // 2}H", of))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
def ask(hops, sequence):
    ping.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, hops)
    head = struct.pack("!BBHHH", 8, 0, 0, 4711, sequence)
    text = content[:1000]
    head = struct.pack("!BBHHH", 8, 0, checksum(head + text), 4711, sequence)
    ping.sendto(head + text, (to, 0))
    while True:
        answer = ping.recv(65536)
        if answer[20] == 0 and answer[24:28] == head[4:] and answer[28:] == text:
            return "pong", answer[8]
        if answer[20] == 11:
            return "too old, says", ".".join(map(str, answer[12:16]))
print(*ask(64, 1))
print(*ask(2, 2))
print(*ask(1, 3))
"""


# The same of IPv6, and a protocol that nobody knows (253: RFC 3692).
ECHO_V6 = """
import select, socket
box = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
box.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
box.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
box.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
box.bind(("::", 7))
raw = socket.socket(socket.AF_INET6, socket.SOCK_RAW, 253)
print("listening", flush=True)
while True:
    for ready in select.select([box, raw], [], [])[0]:
        content, more, _, peer = ready.recvmsg(65536, 256)
        said = {kind: value[0] for _, kind, value in more}
        if ready is raw:
            raw.sendto(content[::-1], peer)
        else:
            hops = bytes([said[socket.IPV6_HOPLIMIT], said[socket.IPV6_TCLASS]])
            box.sendto(hops + content, peer)
"""
ASKS_V6 = """
import socket, struct, sys
to = sys.argv[1]
box = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
box.settimeout(10)
box.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, 77)
box.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, 0xb8)
content = bytes(range(256)) * 40
for length in (0, 1, 1000, 1452, 10_000):
    box.sendto(content[:length], (to, 7))
    answer = box.recv(65536)
    assert answer[2:] == content[:length], length
    print(*answer[:2])
raw = socket.socket(socket.AF_INET6, socket.SOCK_RAW, 253)
raw.settimeout(10)
for length in (1, 999, 5000):
    raw.sendto(content[:length], (to, 0))
    assert raw.recv(65536) == content[:length][::-1]
    print("another protocol")
ping = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
ping.settimeout(10)
def ask(hops, length):
    ping.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, hops)
    head = struct.pack("!BBHHH", 128, 0, 0, 4711, length)
    ping.sendto(head + content[:length], (to, 0))
    while True:
        answer, peer = ping.recvfrom(65536)
        if answer[0] == 129 and answer[4:8] == head[4:] and answer[8:] == content[:length]:
            return ["pong"]
        if answer[0] == 3:
            return "too old, says", peer[0]
print(*ask(64, 4000))
print(*ask(2, 10))
print(*ask(1, 11))
"""


@pytest.mark.parametrize("text", [SPLIT, HYBRID], ids=["split", "hybrid"])
def test_non_tcp_traffic_passes_with_one_hop(boxes: list[Box], tmp_path: Path, text: str) -> None:
    server, hub, client = boxes
    asked = {ASKS: SERVER[0], ASKS_V6: SERVER[1]}
    for program in (ECHO, ECHO_V6):
        echo = server.python(program)
        assert echo.stdout is not None
        assert echo.stdout.readline() == "listening\n"
    plain = [client.run(sys.executable, "-c", asks, asked[asks]) for asks in asked]
    datagrams = ["76 184"] * 5
    assert [said.splitlines() for said in plain] == [
        [*datagrams, "pong 63", "pong 63", "too old, says 10.2.0.1"],
        [*datagrams, *["another protocol"] * 3, "pong", "pong", "too old, says fd00:2::1"],
    ]
    with gateway(hub, write_scenario(tmp_path, text), *HUB) as running:
        assert [client.run(sys.executable, "-c", asks, asked[asks]) for asks in asked] == plain
        said = running.end()
    [told] = said["gateways"]
    passed = told["packets"]["passed"] if text == SPLIT else told["packets_passed"]
    assert passed > 2 * 7 + 2 * 11
    assert told["connections"]["split" if text == SPLIT else "tracked"] == 0


def test_traffic_to_the_machine_itself_is_left_to_the_kernel(
    boxes: list[Box], tmp_path: Path
) -> None:
    _, hub, client = boxes
    listen(hub)
    with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
        fetch(client, "10.2.0.1")
        fetch(client, "10.1.0.2")
        fetch(client, "fd00:2::1")
        assert running.end()["packets_in"] == 0


def test_third_interface_traffic_is_not_diverted(boxes: list[Box], tmp_path: Path) -> None:
    server, hub, client = boxes
    with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
        other = Box("other")
        try:
            join(hub, other, 9)
            for box in (server, client):
                box.ip("route add default via " + ("10.1.0.2" if box is server else "10.2.0.1"))
            other.ip("route add default via 10.9.0.1")
            listen(other)
            listen(client)
            fetch(client, "10.9.0.2")
            fetch(other, CLIENT[0])
            # Between the two sides it goes on.
            fetch(server, CLIENT[0])
        finally:
            other.end()
        said = running.end()
    [told] = said["gateways"]
    assert told["connections"]["split"] == 1
    assert told["connections"]["passed"] == told["packets"]["passed"] == 0


@pytest.mark.parametrize("text", [SPLIT, HYBRID], ids=["split", "hybrid"])
def test_segments_fit_an_interface_with_a_smaller_mtu(tmp_path: Path, text: str) -> None:
    with row("server", "hub", "router", "client") as (server, hub, router, client):
        hub.ip("link set to-router mtu 1300")
        router.ip("link set to-hub mtu 1300")
        listen(server)
        words = ("--interface", "lan=to-server", "--interface", "satellite=to-router")
        with gateway(hub, write_scenario(tmp_path, text), "--gateway", "hub", *words) as running:
            fetch(client, SERVER[0])
            assert running.end()["refused"] == {}


def test_interface_down_and_up_is_logged(tmp_path: Path) -> None:
    with (
        row("server", "hub", "client") as (_, hub, _),
        gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running,
    ):
        hub.ip("link set to-client down")
        wait_until(lambda: "to-client is down" in running.log_lines(), "it is told")
        hub.ip("link set to-client up")
        wait_until(
            lambda: any("to-client is up again" in line for line in running.log_lines()), "too"
        )
        assert len(running.log_lines()) == 2


def test_capture_timestamps_are_wall_clock_time(
    boxes: list[Box], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, hub, client = boxes
    listen(server)
    monkeypatch.chdir(tmp_path)
    began = time.time()
    with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB, "--pcap", "satellite") as running:
        fetch(client, SERVER[0])
        running.end()
    times = packet_times(tmp_path / "satellite.pcapng")
    assert len(times) > 10
    assert began < times[0] <= times[-1] < time.time()


def packet_times(capture: Path) -> list[float]:
    """Return when the packets of a capture passed, in seconds since the Unix epoch."""
    content = capture.read_bytes()
    times, at = [], 0
    while at < len(content):
        kind, length = struct.unpack_from("<II", content, at)
        # An enhanced packet block: interface, and the time in nanoseconds.
        if kind == 6:
            high, low = struct.unpack_from("<II", content, at + 12)
            times.append((high << 32 | low) / 1e9)
        at += length
    return times


LOWERED = (
    "the MTU of to-client changed from 1500 to 1400: "
    "new connections use it after a restart of bentpipe-gateway"
)


def test_recreated_interface_is_diverted_again(boxes: list[Box], tmp_path: Path) -> None:
    server, hub, client = boxes
    listen(server)
    listen(client)
    with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
        fetch(client, SERVER[0], 1000)
        [group] = {line["group"] for line in interfaces(hub) if line["ifname"] == "to-client"}
        # As a modem's that dials anew: another interface by the same name.
        hub.ip("link delete to-client")
        wait_until(lambda: "to-client is gone" in running.log_lines(), "it is told")
        join(hub, client, 2)
        client.ip("route add 10.1.0.0/24 via 10.2.0.1")
        wait_until(
            lambda: any(
                line["ifname"] == "to-client" and line["group"] == group for line in interfaces(hub)
            ),
            "it is in the group again",
        )
        fetch(client, SERVER[0])
        fetch(server, CLIENT[0])
        hub.ip("link set to-client group 7 mtu 1400")
        wait_until(lambda: len(running.log_lines()) == 4, "it is told")
        assert running.log_lines() == [
            "to-client is gone",
            "to-client has returned",
            "to-client was moved to another interface group, and was moved back",
            LOWERED,
        ]
        [told] = running.end()["gateways"]
    assert told["connections"]["split"] == 3
    assert gateway_state(hub) == []


# Connects, and says what becomes of it.
READER = """
import socket, sys
with socket.create_connection((sys.argv[1], 80), timeout=20) as peer:
    peer.sendall(b"go")
    peer.recv(1)
    print("began", flush=True)
    try:
        while peer.recv(1 << 16):
            pass
        print("ended")
    except OSError as error:
        print(type(error).__name__)
"""
FOREVER = """
import socket, sys
with socket.create_server(("", 80)) as listening:
    print("listening", flush=True)
    peer, _ = listening.accept()
    peer.recv(100)
    try:
        while True:
            peer.sendall(bytes(1 << 16 if sys.argv[1] == "full" else 1))
            if sys.argv[1] == "idle":
                peer.recv(1)
                break
        print("ended")
    except OSError as error:
        print(type(error).__name__)
"""


SHAPE = ("--shape", "satellite")


# (A hybrid gateway whose hosts take all that comes holds nothing now and then: these go on.)
@pytest.mark.parametrize(
    ("text", "stream", "shape"),
    [(SPLIT, "full", ()), (SPLIT, "full", SHAPE), (SPLIT, "idle", ()), (HYBRID, "full", SHAPE)],
    ids=["split", "split, shaped", "split, idle", "hybrid, shaped"],
)
def test_graceful_stop_resets_open_connections(
    boxes: list[Box], tmp_path: Path, text: str, stream: str, shape: tuple[str, ...]
) -> None:
    server, hub, client = boxes
    sender = server.python(FOREVER, stream)
    assert sender.stdout is not None
    assert sender.stdout.readline() == "listening\n"
    with gateway(hub, write_scenario(tmp_path, text), *HUB, *shape) as running:
        reader = client.python(READER, SERVER[0])
        assert reader.stdout is not None
        assert reader.stdout.readline() == "began\n"
        time.sleep(0.3)
        said = running.end()
        # Either would wait for the other until its patience is over: minutes, or for good.
        for end in (sender, reader):
            out, _ = end.communicate(timeout=5)
            assert out == "ConnectionResetError\n"
    connections = said["gateways"][0]["connections"]
    assert connections["open"] == 0
    assert connections["aborted" if text == SPLIT else "given_up"] == 1


@pytest.mark.parametrize("log", ["2>/dev/full", "2>&-"], ids=["full", "closed"])
def test_unread_log_does_not_stop_the_gateway(boxes: list[Box], tmp_path: Path, log: str) -> None:
    server, hub, client = boxes
    listen(server)
    command = shlex.join(GATEWAY)
    words = shlex.join([str(write_scenario(tmp_path, SPLIT)), *HUB, "--json"])
    running = hub.start("sh", "-c", f"exec {command} {words} {log}")
    wait_until(lambda: len(gateway_state(hub)) == 18, "it is set up")
    fetch(client, SERVER[0])
    running.terminate()
    out, _ = running.communicate(timeout=10)
    assert running.returncode == 0
    assert json.loads(out)["gateways"][0]["connections"]["split"] == 1


def test_gateway_ends_after_its_duration_and_on_ctrl_c(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, _ = boxes
    file = write_scenario(tmp_path, SPLIT)
    with gateway(hub, file, *HUB, "--duration", "200 ms") as running:
        out, _ = running.process.communicate(timeout=10)
        said = json.loads(out)
        assert running.process.returncode == 0
        assert 0.2 <= said["ended_s"] < 2
        assert said["duration_s"] == 0.2
    assert gateway_state(hub) == []
    with gateway(hub, file, *HUB) as running:
        # Another one would have no interfaces.
        command = [*GATEWAY, str(file), *HUB]
        other = subprocess.run(hub.within(*command), capture_output=True, text=True, check=False)
        assert other.returncode == 2
        assert other.stderr == "bentpipe: to-server: in use by another bentpipe-gateway\n"
        assert running.end(signal.SIGINT)["scenario"] == "box"
    assert gateway_state(hub) == []


def test_full_disk_capture_does_not_stop_the_gateway(
    boxes: list[Box], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server, hub, client = boxes
    listen(server)
    monkeypatch.chdir(tmp_path)
    Path("satellite.pcapng").symlink_to("/dev/full")
    with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB, "--pcap", "satellite") as running:
        fetch(client, SERVER[0])
        cut = "satellite.pcapng: cannot be written: No space left on device"
        wait_until(lambda: any(cut in line for line in running.log_lines()), "it is told")
        fetch(client, SERVER[0])
        told = running.end()
    assert told["gateways"][0]["connections"]["split"] == 2
    [note] = [note for note in told["notes"] if cut in note]
    assert note.endswith("the capture ends there")


def test_gateway_device_taken_down_is_brought_up_again(boxes: list[Box], tmp_path: Path) -> None:
    server, hub, client = boxes
    listen(server)
    with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
        for device in ("bentpipe0", "bentpipe1"):
            hub.ip(f"link set {device} down")
            again = f"{device} was taken down, and is up again"
            wait_until(lambda what=again: any(what in line for line in running.log_lines()), again)
            for address in SERVER:
                fetch(client, address)
        told = running.end()
    assert gateway_state(hub) == []
    assert told["gateways"][0]["connections"]["split"] == 4


def test_deleted_gateway_device_ends_it_and_traffic_is_forwarded(
    boxes: list[Box], tmp_path: Path
) -> None:
    server, hub, client = boxes
    listen(server)
    with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
        fetch(client, SERVER[0])
        hub.ip("link delete bentpipe0")
        _, err = running.process.communicate(timeout=10)
        assert running.process.returncode == 1
        assert "bentpipe0 was deleted" in err
        fetch(client, SERVER[0])
    assert gateway_state(hub) == []


def test_check_changes_nothing_and_lists_missing_setup(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, _ = boxes
    file = write_scenario(tmp_path, SPLIT)
    hub.sysctl("net.ipv4.ip_forward=0")
    hub.ip("link set to-client down")
    command = [*GATEWAY, str(file), *HUB, "--check"]
    assert hub.run(*command).splitlines() == [
        "gateway hub: lan is to-server (MTU 1500)",
        "gateway hub: satellite is to-client (MTU 1500)",
        "note: the kernel does not forward IPv4: `sysctl -w net.ipv4.ip_forward=1` enables it",
        "note: to-client is down: `ip link set to-client up` brings it up",
    ]
    assert gateway_state(hub) == []


KIND = '{ kind = "split", facing = "satellite", tcp = { congestion_control = "hybla" } }'
ACKS = SPLIT.replace(KIND, "{}")
ACKS = ACKS.replace(
    'return = { rate = "1 Mbit/s", delay = "250 ms" }',
    'return = { rate = "32 kbit/s", delay = "250 ms", acks = { kind = "suppression" } }',
)


@pytest.mark.parametrize("method", ["none", "suppression", "filter"])
def test_shaped_return_link_has_the_scenarios_ack_handling(
    boxes: list[Box], tmp_path: Path, method: str
) -> None:
    # The box is the terminal: what it sends to the satellite is the return.
    server, hub, client = boxes
    text = ACKS.replace('["server", "hub"]', '["client", "hub"]')
    text = text.replace('["hub", "client"]', '["server", "hub"]').replace("suppression", method)
    words = ("--interface", "satellite=to-server", "--interface", "lan=to-client")
    listen(server)
    with gateway(
        hub, write_scenario(tmp_path, text), "--gateway", "hub", *words, "--shape", "satellite"
    ) as running:
        fetch(client, SERVER[0], 5_000)
        said = running.end()
    links = {link["name"]: link for link in said["links"]}
    shaped = links["satellite.return"]
    # 5,000 bytes take 1.3 s at 32 kbit/s.
    assert said["ended_s"] > 1.25
    assert shaped["utilization"] > 0.5
    assert "utilization" not in links["satellite.forward"]
    assert shaped["queue_max_packets"] > 0


def test_suppression_reduces_kernel_acknowledgments(boxes: list[Box], tmp_path: Path) -> None:
    server, hub, client = boxes
    text = ACKS.replace('["server", "hub"]', '["client", "hub"]')
    text = text.replace('["hub", "client"]', '["server", "hub"]')
    words = ("--interface", "satellite=to-server", "--interface", "lan=to-client")
    listen(client)
    removed = {}
    for method in ("none", "suppression"):
        file = write_scenario(tmp_path, text.replace("suppression", method))
        with gateway(hub, file, "--gateway", "hub", *words, "--shape", "satellite") as running:
            program = server.python(SENDER.replace("20_000", "400_000"), CLIENT[0])
            assert program.stdin is not None
            assert program.stdout is not None
            assert program.stdout.readline() == "connected\n"
            print("go", file=program.stdin, flush=True)
            wait_until(lambda program=program: program.poll() is not None, "it is sent")
            said = running.end()
        links = {link["name"]: link for link in said["links"]}
        counters = links["satellite.return"].get("counters", {"total": {}})
        removed[method] = counters["total"].get("acks_removed", 0)
    assert removed["none"] == 0
    assert removed["suppression"] > 20
