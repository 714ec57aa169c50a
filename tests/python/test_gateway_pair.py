"""Two gateways around a satellite, each a machine of its own; the satellite is a third one."""

from __future__ import annotations

import contextlib
import re
import sys
from pathlib import Path

import pytest

import bentpipe

from .boxes import Box, gateway, live, row
from .live import repeated_after_stall

pytestmark = live

PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"

# Sends as much as it is asked for, to each that connects.
SENDER = """
import socket, threading
listening = socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True)
print("listening", flush=True)
def serve(peer):
    with peer:
        length = int(peer.recv(100))
        peer.sendall(bytes(each % 251 for each in range(1004)) * (length // 1004 + 1))
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"""
# Fetches that many bytes; how long after it began to connect the last of them was there.
FETCHER = """
import socket, sys, time
length = int(sys.argv[2])
began = time.monotonic()
with socket.create_connection((sys.argv[1], 80), timeout=20) as peer:
    peer.sendall(sys.argv[2].encode())
    content = b""
    while len(content) < length:
        content += peer.recv(1 << 16)
took = time.monotonic() - began
whole = bytes(each % 251 for each in range(1004)) * (length // 1004 + 1)
assert content[:length] == whole[:length]
print(took)
"""


def download(server: Box, client: Box, address: str, length: int) -> float:
    """Return how long a download takes, in seconds."""
    sender = server.python(SENDER)
    assert sender.stdout is not None
    assert sender.stdout.readline() == "listening\n"
    took = float(client.run(sys.executable, "-c", FETCHER, address, str(length)))
    sender.kill()
    return took


def office() -> str:
    """Return the scenario that the documentation shows."""
    found = re.search(r"```toml\n(# office\.toml.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert found is not None
    # With CUBIC, a download of 1 MB takes as long as without gateways.
    facing = 'facing = "satellite"\n'
    hybla = 'tcp = { congestion_control = "hybla" }\n'
    return found[1].replace(facing, facing + hybla, 1)


@pytest.mark.parametrize("address", ["10.1.0.1", "fd00:1::1"], ids=["IPv4", "IPv6"])
@repeated_after_stall
def test_live_gateway_pair_matches_the_simulated_download(tmp_path: Path, address: str) -> None:
    file = tmp_path / "office.toml"
    file.write_text(office(), encoding="utf-8")
    simulated = bentpipe.run(file).summary.flows[0].finish_s
    assert simulated is not None
    satellite = ("--link", "satellite", "--interface", "hub=to-hub")
    hub = ("--gateway", "hub", "--interface", "lan=to-server", "--interface", "satellite=to-sky")
    terminal = ("--gateway", "terminal", "--interface", "satellite=to-sky")
    with row("server", "hub", "sky", "terminal", "client") as boxes, contextlib.ExitStack() as all_:
        server, first, sky, second, client = boxes
        all_.enter_context(gateway(sky, file, *satellite, "--interface", "terminal=to-terminal"))
        without = download(server, client, address, 1_000_000)
        ends = [
            all_.enter_context(gateway(first, file, *hub)),
            all_.enter_context(
                gateway(
                    second, file, *terminal, "--interface", "home=to-client", "--shape", "satellite"
                )
            ),
        ]
        with_both = download(server, client, address, 1_000_000)
        said = [end.end() for end in ends]
    print(f"simulated {simulated:.3f} s, without {without:.3f} s, with both {with_both:.3f} s")
    assert [each["gateways"][0]["connections"]["split"] for each in said] == [1, 1]
    # The request, which a simulated flow does not have, is half a round trip more.
    assert with_both == pytest.approx(simulated + 0.25, rel=0.1)
    assert with_both < 0.9 * without
