"""Limits of a split gateway between real hosts: rates of classes, connections of a source."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .boxes import GATEWAY, Box, fetch, listen, live, row
from .test_gateway import SERVER, SPLIT, write_scenario
from .test_gateway_control import controlled, held_connection, told

pytestmark = live

BYTES = 1_000_000
# Receives, with the class of the first argument, and answers with one byte.
SINK = """
import socket, threading
listening = socket.create_server(("::", 81), family=socket.AF_INET6, dualstack_ipv6=True)
print("listening", flush=True)
def serve(peer):
    with peer:
        while peer.recv(1 << 16):
            pass
        peer.sendall(b"x")
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"""
# Sends with a class, and prints the seconds until all has arrived.
SENDS = """
import socket, sys, time
v6 = ":" in sys.argv[1]
peer = socket.socket(socket.AF_INET6 if v6 else socket.AF_INET)
peer.settimeout(25)
if v6:
    peer.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_TCLASS, int(sys.argv[2]) << 2)
else:
    peer.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, int(sys.argv[2]) << 2)
peer.connect((sys.argv[1], 81))
begun = time.monotonic()
peer.sendall(bytes(int(sys.argv[3])))
peer.shutdown(socket.SHUT_WR)
assert peer.recv(1) == b"x"
print(time.monotonic() - begun)
"""


def limited(limits: str) -> str:
    """Return the scenario with additional settings of the gateway."""
    return SPLIT.replace('facing = "satellite"', f'facing = "satellite", {limits}')


def sink(box: Box) -> None:
    process = box.python(SINK)
    assert process.stdout is not None
    assert process.stdout.readline() == "listening\n"


def seconds(client: Box, address: str, dscp: int) -> float:
    """Return how long a transfer with a code point takes."""
    return float(client.run(sys.executable, "-c", SENDS, address, str(dscp), str(BYTES)))


@pytest.mark.parametrize("address", SERVER, ids=["IPv4", "IPv6"])
def test_a_code_point_has_at_most_its_rate(tmp_path: Path, address: str) -> None:
    text = limited('rate_limits = [{ dscp = [8, 10], rate = "4 Mbit/s" }]')
    with row("server", "hub", "client") as (server, hub, client):
        sink(server)
        with controlled(hub, tmp_path, text=text, command=GATEWAY) as (running, path):
            taken = seconds(client, address, 8)
            # Less what waits in the queue at the end.
            assert taken > BYTES * 8 / 4e6 - 0.25
            assert seconds(client, address, 46) < taken / 2
            # A rate changes while the gateway runs.
            write_scenario(tmp_path, text.replace("4 Mbit/s", "40 Mbit/s"))
            told(path, "reload")
            assert seconds(client, address, 10) < taken / 2
            said = running.end()
    assert said["gateways"][0]["connections"]["split"] == 3


def test_packets_above_the_rate_are_dropped_and_counted(tmp_path: Path) -> None:
    limits = 'class = { ports = [81], addresses = ["10.1.0.0/24"] }, longest_wait = "10 ms"'
    text = limited(f'rate_limits = [{{ {limits}, rate = "4 Mbit/s" }}]')
    with row("server", "hub", "client") as (server, hub, client):
        sink(server)
        with controlled(hub, tmp_path, text=text, command=GATEWAY) as (running, path):
            seconds(client, SERVER[0], 0)
            counters = told(path, "status")["counters"]["hub"]
            dropped = counters["packets.over_rate"]
            assert dropped > 0
            # Not in the class.
            seconds(client, SERVER[1], 0)
            said = running.end()
    assert said["gateways"][0]["packets"]["over_rate"] == dropped


def test_a_source_has_at_most_its_connections_split(tmp_path: Path) -> None:
    with row("server", "hub", "client") as (server, hub, client):
        listen(server)
        text = limited("source_connections = 2")
        with (
            controlled(hub, tmp_path, text=text, command=GATEWAY) as (running, _),
            held_connection(client),
            held_connection(client),
        ):
            # It is forwarded.
            fetch(client, SERVER[0])
            # The IPv6 address is another source.
            fetch(client, SERVER[1])
            said = running.end()
    assert said["gateways"][0]["connections"]["split"] == 3
    assert said["gateways"][0]["connections"]["refused"] == 1
