"""A second gateway machine that takes over when the first one fails."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

from .boxes import Box, fetch, gateway, join, listen, live
from .test_gateway import SPLIT, write_scenario

pytestmark = live

CLIENT = "10.2.0.2"
SERVER = "10.1.0.1"


@contextlib.contextmanager
def two_ways() -> Iterator[dict[str, Box]]:
    """Make a server and a client with two machines between them, of which routes prefer the first.

    A route whose interface goes down disappears, as with a routing protocol.
    """
    boxes: dict[str, Box] = {}
    try:
        for name in ("server", "client", "hub", "spare"):
            boxes[name] = Box(name)
        server, client = boxes["server"], boxes["client"]
        for number, name in ((1, "hub"), (3, "spare")):
            between = boxes[name]
            join(server, between, number)
            join(between, client, number + 1)
            between.sysctl("net.ipv4.ip_forward=1")
            server.ip(f"route add {CLIENT} via 10.{number}.0.2 metric {number}")
            client.ip(f"route add {SERVER} via 10.{number + 1}.0.1 metric {number}")
        # The ends have one address each, whichever way is used.
        boxes["spare"].ip(f"route add {SERVER} via 10.3.0.1")
        boxes["spare"].ip(f"route add {CLIENT} via 10.4.0.2")
        server.ip(f"address add {SERVER}/32 dev lo")
        client.ip(f"address add {CLIENT}/32 dev lo")
        for box in boxes.values():
            box.sysctl("net.ipv4.conf.all.rp_filter=0")
        yield boxes
    finally:
        for box in boxes.values():
            box.end()


HOLDER = """
import socket, sys
peer = socket.create_connection((sys.argv[1], 80), timeout=20, source_address=(sys.argv[2], 0))
print("connected", flush=True)
sys.stdin.readline()
"""


def test_the_spare_splits_when_the_first_machine_has_failed(tmp_path: Path) -> None:
    sides = ("--interface", "lan=to-server", "--interface", "satellite=to-client")
    words = ("--gateway", "hub", *sides)
    file = write_scenario(tmp_path, SPLIT)
    with two_ways() as boxes:
        server, client, hub, spare = (boxes[name] for name in ("server", "client", "hub", "spare"))
        # Sources are the ends' own addresses.
        client.ip(f"route replace {SERVER} via 10.2.0.1 src {CLIENT} metric 1")
        client.ip(f"route replace {SERVER} via 10.4.0.1 src {CLIENT} metric 3")
        listen(server)
        with gateway(hub, file, *words) as first, gateway(spare, file, *words) as second:
            fetch(client, SERVER)
            open_connection = client.start(sys.executable, "-c", HOLDER, SERVER, CLIENT)
            assert open_connection.stdout is not None
            assert open_connection.stdout.readline() == "connected\n"
            # The machine fails: its process, and its interfaces.
            first.kill()
            for name in ("to-server", "to-client"):
                hub.ip(f"link set {name} down")
            server.ip("link set to-hub down")
            client.ip("link set to-hub down")
            for _ in range(3):
                fetch(client, SERVER)
            [told] = second.end()["gateways"]
            assert told["connections"]["split"] == 3
        # The kernel of the spare forwards without its gateway.
        fetch(client, SERVER)
        # The first machine is back.
        for name in ("to-server", "to-client"):
            hub.ip(f"link set {name} up")
        server.ip("link set to-hub up")
        client.ip("link set to-hub up")
        server.ip(f"route add {CLIENT} via 10.1.0.2 metric 1")
        client.ip(f"route add {SERVER} via 10.2.0.1 src {CLIENT} metric 1")
        with gateway(hub, file, *words) as first:
            fetch(client, SERVER)
            assert first.end()["gateways"][0]["connections"]["split"] == 1
