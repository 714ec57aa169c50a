"""Real gateways and connections whose segments are signed, as BGP's are (RFC 2385)."""

from __future__ import annotations

import socket
import sys
from pathlib import Path

import pytest

from .boxes import gateway, live, row
from .test_gateway import CLIENT, HUB, HYBRID, SERVER, SPLIT, write_scenario

pytestmark = live

# TCP_MD5SIG of tcp(7): an address and a key for it, in a `struct tcp_md5sig`.
SIGNS = """
import socket, struct, sys
def signed(peer):
    family = socket.AF_INET6 if ":" in peer else socket.AF_INET
    before = "=HHI" if family == socket.AF_INET6 else "=HH"
    address = struct.pack(before, family, *[0] * (len(before) - 2))
    address += socket.inet_pton(family, peer)
    end = socket.socket(family)
    end.settimeout(20)
    key = struct.pack("=128sBBHI80s", address, 0, 0, 6, 0, b"secret")
    end.setsockopt(socket.IPPROTO_TCP, 14, key)
    return end
"""
SERVES = (
    SIGNS
    + """
listening = signed(sys.argv[1])
listening.bind(("", 179))
listening.listen()
print("listening", flush=True)
peer, _ = listening.accept()
while text := peer.recv(1 << 16):
    peer.sendall(text)
"""
)
ASKS = (
    SIGNS
    + """
peer = signed(sys.argv[1])
peer.connect((sys.argv[1], 179))
peer.sendall(bytes(range(250)) * 100)
peer.shutdown(socket.SHUT_WR)
print(b"".join(iter(lambda: peer.recv(1 << 16), b"")) == bytes(range(250)) * 100)
"""
)


def obstacle() -> str | None:
    """Say why this kernel cannot sign."""
    with socket.socket() as end:
        try:
            # (Nothing is set: the key is for no address that there is.)
            end.setsockopt(socket.IPPROTO_TCP, 14, bytes(216))
        except OSError as error:
            return str(error) if error.errno == 92 else None
    return None


OBSTACLE = obstacle()


@pytest.mark.skipif(OBSTACLE is not None, reason=f"optional: no TCP_MD5SIG: {OBSTACLE}")
@pytest.mark.parametrize("version", [0, 1], ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("text", [SPLIT, HYBRID], ids=["split", "hybrid"])
def test_signed_connections_pass_unchanged(tmp_path: Path, text: str, version: int) -> None:
    with (
        row("server", "hub", "client") as (server, hub, client),
        gateway(hub, write_scenario(tmp_path, text), *HUB) as running,
    ):
        serving = server.python(SERVES, CLIENT[version])
        assert serving.stdout is not None
        assert serving.stdout.readline() == "listening\n"
        # A changed segment would need a valid signature, for which the gateway has no key.
        assert client.run(sys.executable, "-c", ASKS, SERVER[version]) == "True\n"
        [told] = running.end()["gateways"]
    assert told["connections"]["split" if text == SPLIT else "tracked"] == 0
    assert (told["packets"]["passed"] if text == SPLIT else told["packets_passed"]) > 20
