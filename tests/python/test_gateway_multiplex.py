"""Two gateways, each a machine of its own, with few persistent connections between them."""

from __future__ import annotations

import contextlib
import json
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from .boxes import GATEWAY, Box, Gateway, fetch, gateway, listen, live, row, wait_until
from .live import repeated_after_stall
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

# Says from which ports text or a SYN has crossed an interface, when it is asked to. (Of a
# connection from before, its end may come later.)
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
    old = packet[0] >> 4 == 4
    at = (packet[0] & 15) * 4 if old else 40
    if packet[9 if old else 6] == 6:
        length = int.from_bytes(packet[2:4] if old else packet[4:6], "big")
        text = (length if old else 40 + length) - at - (packet[at + 12] >> 4) * 4
        if text > 0 or packet[at + 13] & 2:
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
    with row("server", "hub", "sky", "terminal", "client") as boxes, contextlib.ExitStack() as all_:
        _, first, sky, second, _ = boxes
        if mtu is None:
            all_.enter_context(gateway(sky, file, *SATELLITE))
        else:
            sky.ip(f"link set to-terminal mtu {mtu}")
            second.ip(f"link set to-sky mtu {mtu}")
        here = all_.enter_context(hub(first, file, ends))
        there = all_.enter_context(terminal(second, file, ends))
        yield boxes, (here, there)


def hub(box: Box, file: Path, ends: tuple[str, str]) -> contextlib.AbstractContextManager[Gateway]:
    """Have a box be the hub."""
    links = ("--interface", "lan=to-server", "--interface", "satellite=to-sky")
    own = ("--address", ends[0], "--peer", ends[1])
    return gateway(box, file, "--gateway", "hub", *links, *own)


def terminal(
    box: Box, file: Path, ends: tuple[str, str]
) -> contextlib.AbstractContextManager[Gateway]:
    """Have a box be the terminal."""
    links = ("--interface", "satellite=to-sky", "--interface", "home=to-client")
    own = ("--address", ends[1], "--peer", ends[0])
    return gateway(box, file, "--gateway", "terminal", *links, *own)


@pytest.mark.parametrize("ends", ENDS, ids=["IPv4", "IPv6"])
def test_connections_of_both_ip_versions_are_multiplexed(file: Path, ends: tuple[str, str]) -> None:
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


def test_hundreds_of_multiplexed_connections_complete(file: Path) -> None:
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
def test_stopping_gateway_resets_every_host_connection(file: Path, which: int) -> None:
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
def test_multiplexed_segments_fit_a_smaller_path_mtu(file: Path, ends: tuple[str, str]) -> None:
    with office(file, ends, mtu=1300) as ((server, _, _, _, client), running):
        listen(server)
        for address in SERVER:
            fetch(client, address)
        hub = running[0].end()["gateways"][0]
    assert hub["connections"]["split"] == 2
    # It learned once, and a timeout is not how.
    assert hub["facing"]["timeouts"] == 0


@pytest.mark.parametrize("ends", ENDS, ids=["IPv4", "IPv6"])
@repeated_after_stall
def test_connections_open_before_the_peer_gateway_starts(file: Path, ends: tuple[str, str]) -> None:
    with (
        row("server", "hub", "sky", "terminal", "client") as (server, first, sky, second, client),
        gateway(sky, file, *SATELLITE),
        terminal(second, file, ends) as there,
    ):
        listen(server)
        # The first waits for the other gateway, 3 s, and then opens as without.
        for least, most in [(2.9, 4.5), (0.0, 1.5)]:
            begin = time.monotonic()
            peer = client.python(WAITS, SERVER[0])
            assert peer.stdout is not None
            assert peer.stdout.readline() == "connected\n"
            assert least < time.monotonic() - begin < most
        fetch(client, SERVER[0])
        wait_until(
            lambda: any("does not answer" in line for line in there.log_lines()), "it is told"
        )
        with hub(first, file, ends) as here:
            # It is asked again, as connections come, and then carries them. (Before, both split
            # each for itself.)
            before = 0

            def answers() -> bool:
                nonlocal before
                fetch(client, SERVER[0], 1_000)
                before += 1
                return any("gateway answers" in line for line in there.log_lines())

            wait_until(answers, "it is told")
            listens = sky.python(LISTENS, "to-hub")
            assert listens.stdout is not None
            assert listens.stdout.readline() == "listening\n"
            for address in SERVER:
                fetch(client, address)
            listens.send_signal(signal.SIGTERM)
            ports = json.loads(listens.stdout.readline())
            told = here.end()["gateways"][0]
    assert ports == [3135]
    assert told["multiplex"]["opened"] == 1
    assert told["connections"]["split"] == before + 2


def test_mismatched_multiplex_counts_are_reported(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.toml"
    other.write_text(OFFICE.replace("multiplex = 2", "multiplex = 1"), encoding="utf-8")
    with (
        row("server", "hub", "sky", "terminal", "client") as (server, first, sky, second, client),
        gateway(sky, file, *SATELLITE),
        hub(first, other, ENDS[0]) as here,
        terminal(second, file, ENDS[0]) as there,
    ):
        listen(server)
        waits = client.python(WAITS, SERVER[0])
        assert waits.stdout is not None
        assert waits.stdout.readline() == "connected\n"
        # The second persistent connection is refused; the first carries both.
        fetch(client, SERVER[0])
        wait_until(lambda: any("refuses some" in line for line in there.log_lines()), "it is told")
        wait_until(lambda: any("opens more" in line for line in here.log_lines()), "it is told")
        told = here.end()["gateways"][0]
    assert told["multiplex"]["opened"] == 1
    assert told["connections"]["split"] == 2


def test_check_notes_a_gateway_address_of_this_machine(file: Path) -> None:
    with row("server", "hub", "sky") as (_, first, _):
        for own, noted in [("10.1.0.2", True), ("fd00:1::2", True), ("10.1.0.250", False)]:
            peer = "10.4.0.250" if "." in own else "fd00:4::fa"
            links = "--interface lan=to-server --interface satellite=to-sky"
            line = f"{file} --gateway hub {links} --address {own} --peer {peer} --check"
            told = first.run(*GATEWAY, *line.split())
            assert (f"note: {own} is this machine's own address" in told) == noted
