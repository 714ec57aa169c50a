"""Two gateways, each a machine of its own, with few persistent connections between them."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .boxes import Box, Gateway, fetch, gateway, listen, live, row
from .test_gateway_many import ASKS, SERVES

pytestmark = live

OFFICE = """
name = "office"
duration = "60 s"
hosts = { server = {}, client = {} }
gateways.hub = { kind = "split", facing = "satellite", multiplex = 2 }
gateways.terminal = { kind = "split", facing = "satellite", multiplex = 2 }
[links.lan]
between = ["server", "hub"]
rate = "100 Mbit/s"
delay = "1 ms"
[links.satellite]
between = ["hub", "terminal"]
rate = "50 Mbit/s"
delay = "40 ms"
[links.home]
between = ["terminal", "client"]
rate = "100 Mbit/s"
delay = "1 ms"
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk" }
"""

# The boxes' addresses in the row server - hub - sky - terminal - client, and two that nobody has.
SERVER = ("10.1.0.1", "fd00:1::1")
ENDS = [("10.1.0.250", "10.4.0.250"), ("fd00:1::fa", "fd00:4::fa")]
BOTH_ENDS = ("--interface", "hub=to-hub", "--interface", "terminal=to-terminal")
SATELLITE = ("--link", "satellite", *BOTH_ENDS)

# Says between which ports segments have crossed an interface, when it is asked to.
LISTENS = """
import json, signal, socket, sys
seen = set()
def tell(*_):
    print(json.dumps(sorted(seen)), flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, tell)
link = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
link.bind((sys.argv[1], 0))
print("listening", flush=True)
while True:
    packet = link.recv(2048)
    at = (packet[0] & 15) * 4 if packet[0] >> 4 == 4 else 40
    if packet[9 if packet[0] >> 4 == 4 else 6] == 6:
        seen.add(int.from_bytes(packet[at : at + 2], "big"))
"""
# Reads for ever, and says what ended it.
WAITS = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 80), timeout=20)
peer.sendall(b"begun")
print("connected", flush=True)
try:
    print(len(peer.recv(1)))
except ConnectionResetError:
    print("reset")
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("multiplex") / "office.toml"
    file.write_text(OFFICE, encoding="utf-8")
    return file


@contextlib.contextmanager
def office(
    file: Path, ends: tuple[str, str], *, mtu: int | None = None
) -> Iterator[tuple[list[Box], tuple[Gateway, Gateway]]]:
    """Make the machines, with gateways that speak between these two addresses.

    Where an `mtu` is said, the satellite is a router, and no longer packets fit its second cable.
    """
    own, peer = ends
    hub = ("--gateway", "hub", "--interface", "lan=to-server", "--interface", "satellite=to-sky")
    terminal = ("--gateway", "terminal", "--interface", "satellite=to-sky")
    with row("server", "hub", "sky", "terminal", "client") as boxes, contextlib.ExitStack() as all_:
        _, first, sky, second, _ = boxes
        if mtu is None:
            all_.enter_context(gateway(sky, file, *SATELLITE))
        else:
            sky.ip(f"link set to-terminal mtu {mtu}")
            second.ip(f"link set to-sky mtu {mtu}")
        here = all_.enter_context(gateway(first, file, *hub, "--address", own, "--peer", peer))
        there = all_.enter_context(
            gateway(
                second, file, *terminal, "--interface", "home=to-client",
                "--address", peer, "--peer", own,
            )
        )  # fmt: skip
        yield boxes, (here, there)


@pytest.mark.parametrize("ends", ENDS, ids=["IPv4", "IPv6"])
def test_all_go_over_few_connections_whatever_their_version(
    file: Path, ends: tuple[str, str]
) -> None:
    with office(file, ends) as ((server, _, sky, _, client), running):
        listen(server)
        listens = sky.python(LISTENS, "to-hub")
        assert listens.stdout is not None
        assert listens.stdout.readline() == "listening\n"
        for _ in range(3):
            for address in SERVER:
                fetch(client, address)
        listens.send_signal(signal.SIGTERM)
        ports = json.loads(listens.stdout.readline())
        hub, terminal = (each.end()["gateways"][0] for each in running)
    # Nothing of any host's has crossed the satellite, but over the gateways' own: for one after the
    # other, one of these is enough.
    assert ports == [3135]
    assert hub["multiplex"]["failed"] == 0
    for told in (hub, terminal):
        assert told["connections"]["split"] == 6
        assert told["connections"]["refused"] == 0
        assert told["multiplex"]["opened"] == 1


def test_hundreds_end_in_every_way(file: Path) -> None:
    with office(file, ENDS[0]) as ((server, _, _, _, client), running):
        serving = server.python(SERVES)
        assert serving.stdout is not None
        assert serving.stdout.readline() == "listening\n"
        told = json.loads(client.run(sys.executable, "-c", ASKS, *SERVER))
        ends = [each.end()["gateways"][0] for each in running]
    assert told == {str(kind): 120 for kind in range(5)}
    for end in ends:
        assert end["connections"]["split"] == 600
        assert end["connections"]["refused"] == 0
        assert end["multiplex"]["opened"] == 2


@pytest.mark.parametrize("which", [0, 1], ids=["hub", "terminal"])
def test_when_a_gateway_ends_every_host_hears_of_it(file: Path, which: int) -> None:
    with office(file, ENDS[0]) as ((server, _, _, _, client), running):
        listen(server)
        waits = [client.python(WAITS, address) for address in SERVER]
        for each in waits:
            assert each.stdout is not None
            assert each.stdout.readline() == "connected\n"
        running[which].end()
        said = [each.communicate(timeout=10)[0] for each in waits]
    assert said == ["reset\n"] * 2


@pytest.mark.parametrize("ends", ENDS, ids=["IPv4", "IPv6"])
def test_where_less_passes_their_own_segments_are_shorter(
    file: Path, ends: tuple[str, str]
) -> None:
    with office(file, ends, mtu=1300) as ((server, _, _, _, client), running):
        listen(server)
        for address in SERVER:
            fetch(client, address)
        hub = running[0].end()["gateways"][0]
    assert hub["connections"]["split"] == 2
    # It learned once, and a timeout is not how.
    assert hub["facing"]["timeouts"] == 0
