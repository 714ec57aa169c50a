"""What a gateway's segments carry beside the streams: class, flow label, hop limit, timestamps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from .boxes import Box, fetch, gateway, listen, live, row
from .test_gateway import CLIENT, HUB, SERVER, SPLIT, write_scenario

pytestmark = live

# Records the TCP segments on an interface until its input ends: a line for each.
SNIFF = """
import ipaddress, json, select, socket, struct, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
raw.bind((sys.argv[1], 3))
raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
print("ready", flush=True)
seen = []
while True:
    ready, _, _ = select.select([raw, sys.stdin], [], [], 20)
    if raw not in ready:
        break
    packet = raw.recv(1 << 17)
    if packet[0] >> 4 == 4 and packet[9] == 6:
        start, tos, label, ttl = 20, packet[1], 0, packet[8]
        source = ipaddress.ip_address(packet[12:16])
    elif packet[0] >> 4 == 6 and packet[6] == 6:
        word = struct.unpack("!I", packet[:4])[0]
        start, tos, label, ttl = 40, word >> 20 & 255, word & 0xfffff, packet[7]
        source = ipaddress.ip_address(packet[8:24])
    else:
        continue
    tcp = packet[start:]
    options, stamp = tcp[20 : (tcp[12] >> 4) * 4], None
    while options and options[0]:
        if options[0] == 1:
            options = options[1:]
            continue
        if options[0] == 8:
            stamp = struct.unpack("!I", options[2:6])[0]
        options = options[max(options[1], 2) :]
    seen.append(
        dict(source=str(source), port=struct.unpack("!H", tcp[:2])[0], tos=tos, label=label,
             ttl=ttl, flags=tcp[13], stamp=stamp, data=len(tcp) - (tcp[12] >> 4) * 4)
    )
print(json.dumps(seen), flush=True)
"""

# Serves one connection after the other: reads to the end, and answers with as much. Its class is
# the first argument.
SERVES = """
import socket, sys
listening = socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True)
def mark(peer):
    peer.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(sys.argv[1]))
    peer.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, int(sys.argv[1]))
mark(listening)
print("listening", flush=True)
while True:
    peer = listening.accept()[0]
    mark(peer)
    content = b"".join(iter(lambda: peer.recv(1 << 16), b""))
    peer.sendall(content)
    peer.close()
"""
ASKS = """
import socket, sys, time
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
peer = socket.socket(family)
peer.settimeout(20)
if family == socket.AF_INET:
    peer.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(sys.argv[2]))
else:
    peer.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, int(sys.argv[2]))
peer.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
peer.bind(("::" if family == socket.AF_INET6 else "", int(sys.argv[3])))
begun = time.monotonic()
peer.connect((sys.argv[1], 80))
taken = time.monotonic() - begun
peer.sendall(bytes(100_000))
peer.shutdown(socket.SHUT_WR)
assert sum(map(len, iter(lambda: peer.recv(1 << 16), b""))) == 100_000
print(taken)
"""

# Ends each connection first, so that TIME-WAIT is at the server.
ENDS_FIRST = """
import socket
listening = socket.create_server(("", 80), backlog=50)
print("listening", flush=True)
while True:
    peer = listening.accept()[0]
    peer.sendall(b"x" * 1000)
    peer.shutdown(socket.SHUT_WR)
    while peer.recv(1 << 16):
        pass
    peer.close()
"""
LEAVES = """
import socket, sys, time
peer = socket.socket()
peer.settimeout(20)
peer.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
peer.bind(("", int(sys.argv[2])))
begun = time.monotonic()
peer.connect((sys.argv[1], 80))
taken = time.monotonic() - begun
assert sum(map(len, iter(lambda: peer.recv(1 << 16), b""))) == 1000
peer.close()
print(taken)
"""

# Sends SYNs with growing hop limits, as `traceroute -T` does, and prints who answers each.
TRACES = """
import json, socket, struct, sys
answers = []
for limit in range(1, 6):
    peer = socket.socket()
    peer.settimeout(3)
    peer.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, limit)
    # Linux's IP_RECVERR.
    peer.setsockopt(socket.IPPROTO_IP, 11, 1)
    try:
        peer.connect((sys.argv[1], 80))
        answers.append(sys.argv[1])
        break
    except OSError:
        _, ancillary, _, _ = peer.recvmsg(512, 512, socket.MSG_ERRQUEUE)
        for level, kind, data in ancillary:
            # The reporter's address is behind struct sock_extended_err.
            answers.append(socket.inet_ntoa(data[20:24]))
    peer.close()
print(json.dumps(answers))
"""


def start(box: Box, program: str, *words: str, first: str) -> subprocess.Popen[str]:
    started = box.python(program, *words)
    assert started.stdout is not None
    assert started.stdout.readline() == first + "\n"
    return started


def sniff(box: Box, interface: str) -> subprocess.Popen[str]:
    return start(box, SNIFF, interface, first="ready")


def seen_by(process: subprocess.Popen[str]) -> list[dict[str, Any]]:
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    seen: list[dict[str, Any]] = json.loads(out)
    return seen


def ask(client: Box, address: str, tos: int, port: int = 0) -> float:
    return float(client.run(sys.executable, "-c", ASKS, address, str(tos), str(port)))


def fields(seen: list[dict[str, Any]], source: str, name: str) -> set[Any]:
    """Return the values of a field in the segments of a host."""
    return {each[name] for each in seen if each["source"] == source}


@pytest.mark.parametrize("version", [0, 1], ids=["IPv4", "IPv6"])
def test_class_and_flow_label_of_each_direction_are_preserved(tmp_path: Path, version: int) -> None:
    with row("server", "hub", "client") as (server, hub, client):
        start(server, SERVES, str(0xB8), first="listening")
        with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
            before, behind = sniff(client, "to-hub"), sniff(server, "to-hub")
            ask(client, SERVER[version], 0x88)
            at_client, at_server = seen_by(before), seen_by(behind)
            said = running.end()
    assert said["gateways"][0]["connections"]["split"] == 1
    assert fields(at_server, CLIENT[version], "tos") == {0x88}
    assert fields(at_client, SERVER[version], "tos") == {0xB8}
    if version:
        # Linux gives each connection a label.
        label = fields(at_client, CLIENT[1], "label")
        assert fields(at_server, CLIENT[1], "label") == label
        assert label != {0}
        labels = fields(at_server, SERVER[1], "label")
        assert fields(at_client, SERVER[1], "label") == labels


def test_ecn_is_negotiated_for_each_leg(tmp_path: Path) -> None:
    """The class is the hosts' own, and the two ECN bits are those of each leg."""
    text = SPLIT.replace('"hybla" } }', '"hybla", ecn = "request" }, host_tcp = {} }')
    with row("server", "hub", "client") as (server, hub, client):
        start(server, SERVES, str(0x28), first="listening")
        for box in (server, client):
            box.sysctl("net.ipv4.tcp_ecn=1")
        with gateway(hub, write_scenario(tmp_path, text), *HUB):
            before, behind = sniff(client, "to-hub"), sniff(server, "to-hub")
            ask(client, SERVER[0], 0x48)
            at_client, at_server = seen_by(before), seen_by(behind)
    with_data = [each for each in at_client if each["source"] == SERVER[0] and each["data"]]
    # Retransmissions are not ECN-capable (RFC 3168 section 6.1.5).
    assert {each["tos"] & ~2 for each in with_data} == {0x28}
    assert 0x28 | 2 in {each["tos"] for each in with_data}, "the satellite leg is ECT(0)"
    with_data = [each for each in at_server if each["source"] == CLIENT[0] and each["data"]]
    assert {each["tos"] for each in with_data} == {0x48}, "the other leg has no ECN"


def test_timestamps_continue_those_of_the_host(tmp_path: Path) -> None:
    with row("server", "hub", "client") as (server, hub, client):
        start(server, SERVES, "0", first="listening")
        with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB):
            before, behind = sniff(client, "to-hub"), sniff(server, "to-hub")
            ask(client, SERVER[0], 0)
            at_client, at_server = seen_by(before), seen_by(behind)

    def of_syn(seen: list[dict[str, Any]], source: str) -> int:
        stamps = [each["stamp"] for each in seen if each["source"] == source and each["flags"] & 2]
        return int(stamps[0])

    for host in (SERVER[0], CLIENT[0]):
        assert of_syn(at_client, host) == of_syn(at_server, host)


def test_a_reused_port_opens_at_once_after_a_restart(tmp_path: Path) -> None:
    """A server in TIME-WAIT accepts a SYN whose timestamp continues the earlier ones (RFC 6191)."""
    with row("server", "hub", "client") as (server, hub, client):
        start(server, ENDS_FIRST, first="listening")
        file = write_scenario(tmp_path, SPLIT)
        taken = []
        for _ in range(3):
            with gateway(hub, file, *HUB) as running:
                for port in range(40_000, 40_010):
                    words = (sys.executable, "-c", LEAVES, SERVER[0], str(port))
                    taken.append(float(client.run(*words)))
                running.end()
    # Otherwise half of them take a second. Two may, on a busy machine.
    assert sorted(taken)[-3] < 0.9, taken


def test_a_traceroute_by_syns_shows_all_hops(tmp_path: Path) -> None:
    with row("client", "hub", "one", "two", "server") as boxes:
        client, hub, server = boxes[0], boxes[1], boxes[-1]
        listen(server)
        sides = ("--interface", "lan=to-one", "--interface", "satellite=to-client")
        answers = []
        for _ in range(2):
            answers.append(json.loads(client.run(sys.executable, "-c", TRACES, "10.4.0.2")))
            with gateway(hub, write_scenario(tmp_path, SPLIT), "--gateway", "hub", *sides):
                answers.append(json.loads(client.run(sys.executable, "-c", TRACES, "10.4.0.2")))
                fetch(client, "10.4.0.2")
    assert answers[0] == ["10.1.0.2", "10.2.0.2", "10.3.0.2", "10.4.0.2"]
    assert all(each == answers[0] for each in answers)
