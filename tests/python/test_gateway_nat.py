"""Gateways on machines with NAT and stateful firewalls (nftables)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from .boxes import Box, gateway, live, row
from .commands import GATEWAY_PROGRAM
from .test_gateway import HUB, SERVER, SPLIT, gateway_state, write_scenario


def _obstacle() -> str | None:
    if shutil.which("nft") is None:
        return "nft: not installed"
    rules = "table ip n { chain p { type nat hook postrouting priority 100; masquerade; }; }"
    words = ["unshare", "--net", "nft", rules]
    tried = subprocess.run(words, capture_output=True, text=True, check=False)
    return None if tried.returncode == 0 else f"no nftables with NAT: {tried.stderr.strip()}"


OBSTACLE = _obstacle()
if OBSTACLE is not None and os.environ.get("BENTPIPE_WITNESSES") == "required":
    raise RuntimeError(OBSTACLE)
pytestmark = [live, pytest.mark.skipif(OBSTACLE is not None, reason=str(OBSTACLE))]

# Answers each connection with the peer's address and what it sent.
SERVES = """
import socket, threading
listening = socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True)
print("listening", flush=True)
def serve(peer, address):
    with peer:
        content = b"".join(iter(lambda: peer.recv(1 << 16), b""))
        peer.sendall(address.removeprefix("::ffff:").encode() + b" " + content)
while True:
    peer, address = listening.accept()
    threading.Thread(target=serve, args=(peer, address[0]), daemon=True).start()
"""
ASKS = """
import socket, sys
with socket.create_connection((sys.argv[1], 80), timeout=8) as peer:
    content = bytes(range(256)) * 400
    peer.sendall(content)
    peer.shutdown(socket.SHUT_WR)
    address, _, answer = b"".join(iter(lambda: peer.recv(1 << 16), b"")).partition(b" ")
assert answer == content, len(answer)
print(address.decode())
"""
NAT = """
table inet nat {{
    chain postrouting {{
        type nat hook postrouting priority srcnat; policy accept;
        oifname "{side}" masquerade
    }}
}}
"""
# What one side opens passes, and its answers. The gateway's devices are the one addition.
FIREWALL = """
table inet filter {{
    chain forward {{
        type filter hook forward priority filter; policy drop;
        ct state invalid drop
        ct state established,related accept
        iifname "{inside}" accept
        iifname "bentpipe*" accept
    }}
    chain input {{
        type filter hook input priority filter; policy drop;
        ct state established,related accept
        icmpv6 type {{ nd-neighbor-solicit, nd-neighbor-advert }} accept
    }}
}}
"""


def add_rules(box: Box, rules: str) -> None:
    box.run("nft", rules)


def serve(box: Box) -> None:
    serving = box.python(SERVES)
    assert serving.stdout is not None
    assert serving.stdout.readline() == "listening\n"


def ask(box: Box, address: str) -> str:
    """Transfer bytes both ways; return the address that the server has seen."""
    return box.run(sys.executable, "-c", ASKS, address).strip()


@pytest.mark.parametrize("side", ["lan", "satellite"])
def test_masquerade_on_either_side_works(tmp_path: Path, side: str) -> None:
    """Before, no packet passed, not even pings."""
    with row("server", "hub", "client") as (server, hub, client):
        # The hosts behind NAT are those of the other side.
        inside, outside = (client, server) if side == "lan" else (server, client)
        serve(outside)
        add_rules(hub, NAT.format(side=f"to-{outside.name}"))
        # The outer host has no route back.
        outside.ip(f"route del 10.{2 if side == 'lan' else 1}.0.0/24")
        address = {"lan": ("10.1.0.1", "fd00:1::1"), "satellite": ("10.2.0.2", "fd00:2::2")}[side]
        own = {"lan": ("10.1.0.2", "fd00:1::2"), "satellite": ("10.2.0.1", "fd00:2::1")}[side]
        with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
            for _ in range(3):
                for to, expected in zip(address, own, strict=True):
                    assert ask(inside, to) == expected
            inside.run("ping", "-c", "2", "-W", "3", address[0])
            # The machine's own connections, too.
            assert ask(hub, address[0]) == own[0]
            said = running.end()
        assert said["gateways"][0]["connections"]["split"] == 6
        assert gateway_state(hub) == []
        assert "bentpipe" not in hub.run("nft", "list", "tables")


def test_rules_made_later_are_noticed(tmp_path: Path) -> None:
    with row("server", "hub", "client") as (server, hub, client):
        serve(server)
        with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
            assert ask(client, SERVER[0]) == "10.2.0.2"
            add_rules(hub, NAT.format(side="to-server"))
            server.ip("route del 10.2.0.0/24")
            # A SYN is sent again after the zone was made.
            for _ in range(4):
                try:
                    seen = ask(client, SERVER[0])
                    break
                except AssertionError:
                    continue
            assert seen == "10.1.0.2"
            assert any("zone of their own" in line for line in running.log_lines())


@pytest.mark.parametrize("masquerade", [False, True], ids=["firewall", "firewall-and-nat"])
def test_a_stateful_firewall_works(tmp_path: Path, masquerade: bool) -> None:
    with row("server", "hub", "client") as (server, hub, client):
        serve(server)
        serve(client)
        add_rules(hub, FIREWALL.format(inside="to-client"))
        if masquerade:
            add_rules(hub, NAT.format(side="to-server"))
        with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
            for address in SERVER:
                ask(client, address)
            # From outside, nothing is let in.
            with pytest.raises(AssertionError, match="timed out"):
                ask(server, "10.2.0.2")
            # The machine's own connections are let out and back.
            ask(hub, "10.2.0.2")
            ask(hub, SERVER[0])
            said = running.end()
    assert said["gateways"][0]["connections"]["split"] == 2


# As the systemd unit: an unprivileged user with one capability, which programs started inherit, and
# the device for everybody, as udev has it.
UNPRIVILEGED = (
    "unshare", "--mount", "sh", "-e", "-c",
    'mount -t tmpfs none /dev/net; mknod -m 666 /dev/net/tun c 10 200; exec "$@"', "sh",
    "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs",
    "--bounding-set=-all,+net_admin", "--inh-caps=-all,+net_admin",
    "--ambient-caps=-all,+net_admin",
)  # fmt: skip


@pytest.mark.skipif(
    not GATEWAY_PROGRAM.exists() or shutil.which("setpriv") is None,
    reason="bentpipe-gateway is not built (make setup), or setpriv is not installed",
)
def test_an_unprivileged_gateway_sets_its_zone() -> None:
    """The rules are made later, when the gateway has dropped its privileges."""
    with (
        # The user has to reach the files.
        tempfile.TemporaryDirectory() as folder,
        row("server", "hub", "client") as (server, hub, client),
    ):
        Path(folder).chmod(0o755)
        program = shutil.copy(GATEWAY_PROGRAM, folder)
        file = write_scenario(Path(folder), SPLIT)
        serve(server)
        with gateway(hub, file, *HUB, command=(*UNPRIVILEGED, program)) as running:
            add_rules(hub, NAT.format(side="to-server"))
            server.ip("route del 10.2.0.0/24")
            for _ in range(4):
                try:
                    seen = ask(client, SERVER[0])
                    break
                except AssertionError:
                    continue
            assert seen == "10.1.0.2"
            assert any("zone of their own" in line for line in running.log_lines())
            running.end()
        assert "bentpipe" not in hub.run("nft", "list", "tables")
