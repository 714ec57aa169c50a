"""Real gateways where the way takes shorter packets than the hosts agreed on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from .boxes import Box, fetch, gateway, listen, live, row
from .test_gateway import HYBRID, SPLIT, write_scenario

pytestmark = live

TIMER = HYBRID.replace("tcp = {}", 'retransmission_timeout = "200 ms"')
KINDS = pytest.mark.parametrize(
    "text", [SPLIT, HYBRID, TIMER], ids=["split", "hybrid", "hybrid by the timer"]
)


def reduce_mtu(one: Box, other: Box) -> None:
    """Set the MTU of the cable between two boxes to 1,300 bytes."""
    one.ip(f"link set to-{other.name} mtu 1300")
    other.ip(f"link set to-{one.name} mtu 1300")


def interface_options(router: str) -> tuple[str, ...]:
    sides = ("--interface", "lan=to-server", "--interface", f"satellite=to-{router}")
    return ("--gateway", "hub", *sides)


@KINDS
@pytest.mark.parametrize("where", ["further on", "here"])
def test_acknowledged_data_is_resegmented_to_the_path_mtu(
    tmp_path: Path, text: str, where: str
) -> None:
    with row("server", "hub", "router", "house", "client") as boxes:
        server, hub, router, house, client = boxes
        listen(server)
        listen(client)
        with gateway(hub, write_scenario(tmp_path, text), *interface_options("router")) as running:
            if where == "here":
                # Servers were told of segments for 1,500 bytes: this machine's kernel is to say it.
                reduce_mtu(hub, router)
            else:
                reduce_mtu(router, house)
            # Opened from either side, of either version, there and back.
            fetch(client, "10.1.0.1")
            fetch(server, "10.4.0.2")
            fetch(client, "fd00:1::1")
            fetch(server, "fd00:4::2")
            said = running.end()
    [told] = said["gateways"]
    assert said["refused"] == {}
    assert told["bytes_held"]["now"] == 0
    if text == SPLIT:
        assert told["connections"]["split"] == 4
        assert told["packets"]["icmp_errors"] > 0
        return
    assert told["connections"]["tracked"] == 4
    assert told["connections"]["given_up"] == told["connections"]["reset"] == 0
    to_host = told["to_host"]
    assert to_host["icmp_errors"] > 0
    # Only the first segments were cut; after the ICMP error the server sends shorter ones.
    assert 0 < to_host["parts"] < 4 * 300_000 // 1448 // 2


# Sends datagrams that nobody may cut, until it is told that they are too long.
DATAGRAMS = """
import socket, sys, time
box = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
# IP_MTU_DISCOVER: IP_PMTUDISC_DO, in ip(7).
box.setsockopt(socket.IPPROTO_IP, 10, 2)
box.connect((sys.argv[1], 9))
try:
    for _ in range(50):
        box.send(bytes(1400))
        time.sleep(0.1)
    print("not told")
except OSError as error:
    # IP_MTU of a connected socket.
    print(error.strerror, box.getsockopt(socket.IPPROTO_IP, 14))
"""


def test_kernel_icmp_errors_reach_other_senders(tmp_path: Path) -> None:
    with (
        row("server", "hub", "router", "client") as (server, hub, router, _),
        gateway(hub, write_scenario(tmp_path, SPLIT), *interface_options("router")) as running,
    ):
        reduce_mtu(hub, router)
        out = server.run(sys.executable, "-c", DATAGRAMS, "10.3.0.2")
        assert out == "Message too long 1300\n"
        [told] = running.end()["gateways"]
    assert told["packets"]["icmp_errors"] == 0


SEARCHING = SPLIT.replace('congestion_control = "hybla"', 'path_mtu_discovery = "black-hole"')


@pytest.mark.parametrize(
    "text", [SEARCHING, HYBRID, TIMER], ids=["split", "hybrid", "hybrid by the timer"]
)
def test_gateway_detects_a_path_mtu_black_hole(tmp_path: Path, text: str) -> None:
    with row("server", "hub", "router", "house", "client") as (server, hub, router, house, client):
        listen(server)
        listen(client)
        with gateway(hub, write_scenario(tmp_path, text), *interface_options("router")) as running:
            # A device drops what is longer than it takes, and who has sent it thinks that it went.
            house.ip(f"link set to-{router.name} mtu 1300")
            # veth passes joined segments on whole, whatever the MTU; others divide them before.
            router.ip(f"link set to-{house.name} gso_max_segs 1")
            fetch(client, "10.1.0.1")
            fetch(server, "fd00:4::2")
            said = running.end()
    [told] = said["gateways"]
    assert told["bytes_held"]["now"] == 0
    if text == SEARCHING:
        assert told["connections"]["split"] == 2
        assert told["packets"]["icmp_errors"] == 0
        return
    assert told["connections"]["given_up"] == told["connections"]["reset"] == 0
    assert told["to_host"]["icmp_errors"] == 0
    assert told["to_host"]["parts"] > 0
