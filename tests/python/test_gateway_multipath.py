"""Real gateways, and hosts with Multipath TCP (RFC 8684)."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from .boxes import gateway, live, row
from .test_gateway import HUB, HYBRID, SERVER, SPLIT, write_scenario

pytestmark = live

# IPPROTO_MPTCP is 262. Both ends wait now and then, so that what they tell each other goes in
# acknowledgments alone.
SERVES = """
import socket, time
listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
listening.bind(("", 80))
listening.listen()
print("listening", flush=True)
peer, _ = listening.accept()
wanted = int(peer.recv(100))
for _ in range(10):
    peer.sendall(bytes(wanted // 10))
    time.sleep(0.05)
while peer.recv(1 << 16):
    pass
"""
ASKS = """
import socket, sys, time
peer = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
peer.settimeout(15)
peer.connect((sys.argv[1], 80))
peer.sendall(b"4000000")
left = 4_000_000
while left:
    # As one behind a link of 80 Mbit/s.
    left -= len(peer.recv(min(left, 10_000)))
    time.sleep(0.001)
begin = time.monotonic()
peer.shutdown(socket.SHUT_WR)
assert peer.recv(1) == b""
print(time.monotonic() - begin < 1)
"""


def obstacle() -> str | None:
    """Say why this kernel has no Multipath TCP."""
    try:
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262).close()
    except OSError as error:
        return str(error)
    return None


OBSTACLE = obstacle()


@pytest.mark.skipif(OBSTACLE is not None, reason=f"optional: no Multipath TCP: {OBSTACLE}")
@pytest.mark.parametrize("text", [SPLIT, HYBRID], ids=["split", "hybrid"])
def test_multipath_tcp_connects_through_the_gateway(tmp_path: Path, text: str) -> None:
    with (
        row("server", "hub", "client") as (server, hub, client),
        gateway(hub, write_scenario(tmp_path, text), *HUB) as running,
    ):
        serving = server.python(SERVES)
        assert serving.stdout is not None
        assert serving.stdout.readline() == "listening\n"
        assert client.run(sys.executable, "-c", ASKS, SERVER[0]) == "True\n"
        [told] = running.end()["gateways"]
    # A split gateway answers without the option, and both ends go on by TCP.
    if text == SPLIT:
        assert told["connections"]["split"] == 1
    else:
        assert told["connections"]["tracked"] == 0
        assert told["packets_passed"] > 4_000_000 // 1448
