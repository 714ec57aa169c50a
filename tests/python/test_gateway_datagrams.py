"""Datagrams that a host sends many at a time (UDP_SEGMENT) pass a gateway unchanged."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .boxes import gateway, live, row
from .test_gateway import HUB, SERVER, SPLIT, write_scenario

pytestmark = live

# Receives until nothing comes for a second.
RECEIVES = """
import hashlib, socket
receiving = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
receiving.bind(("::", 5005))
receiving.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
print("listening", flush=True)
datagrams = []
receiving.settimeout(20)
while True:
    try:
        datagrams.append(receiving.recv(70_000))
    except TimeoutError:
        break
    receiving.settimeout(1)
print(len(datagrams), hashlib.sha256(b"".join(sorted(datagrams))).hexdigest())
"""
# IP_MTU_DISCOVER: with IP_PMTUDISC_DONT, half of the datagrams may be fragmented, so that their
# identifications matter.
SENDS = """
import hashlib, os, socket, sys, time
UDP_SEGMENT, IP_MTU_DISCOVER = 103, 10
datagrams = []
for family, address in ((socket.AF_INET, sys.argv[1]), (socket.AF_INET6, sys.argv[2])):
    sending = socket.socket(family, socket.SOCK_DGRAM)
    sending.connect((address, 5005))
    for length in (100, 1200, 1452):
        sending.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, length)
        for number in range(10):
            if family == socket.AF_INET:
                sending.setsockopt(socket.IPPROTO_IP, IP_MTU_DISCOVER, number % 2)
            pieces = [os.urandom(length) for _ in range(20)] + [os.urandom(length // 2)]
            sending.send(b"".join(pieces))
            datagrams += pieces
            time.sleep(0.002)
print(len(datagrams), hashlib.sha256(b"".join(sorted(datagrams))).hexdigest())
"""


@pytest.mark.parametrize("with_gateway", [False, True], ids=["kernel", "gateway"])
def test_datagrams_sent_together_arrive_unchanged(tmp_path: Path, with_gateway: bool) -> None:
    with row("server", "hub", "client") as (server, hub, client):
        receiving = server.python(RECEIVES)
        assert receiving.stdout is not None
        assert receiving.stdout.readline() == "listening\n"
        # Neighbours are found, which takes a second on new cables; few datagrams wait for that.
        for address in SERVER:
            client.run("ping", "-c", "1", "-W", "5", address)
        if with_gateway:
            with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
                sent = client.run(sys.executable, "-c", SENDS, *SERVER)
                assert receiving.stdout.readline() == sent
                assert running.end()["packets_in"] >= 2 * 3 * 10 * 21
        else:
            sent = client.run(sys.executable, "-c", SENDS, *SERVER)
            assert receiving.stdout.readline() == sent
        assert int(sent.split()[0]) == 2 * 3 * 10 * 21
