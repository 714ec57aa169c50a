"""Gateways that hang, that are killed, or that receive signals that they do not expect."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .boxes import Box, fetch, gateway, listen, live, row, wait_until
from .test_gateway import HUB, SERVER, SPLIT, gateway_state, write_scenario

pytestmark = live

# Sends a little to each peer and waits for it, for ever.
GREETS = """
import socket, sys
listening = socket.create_server(("::", 81), family=socket.AF_INET6, dualstack_ipv6=True)
print("listening", flush=True)
kept = []
while len(kept) < int(sys.argv[1]):
    kept.append(listening.accept()[0])
    kept[-1].sendall(b"hello")
for peer in kept:
    try:
        print(peer.recv(100), flush=True)
    except ConnectionResetError:
        print("reset", flush=True)
"""
# Receives the greetings and waits for more, for ever.
WAITS = """
import socket, sys
peers = [socket.create_connection((address, 81), timeout=20) for address in sys.argv[1:]]
assert [peer.recv(5) for peer in peers] == [b"hello"] * len(peers)
for peer in peers:
    peer.settimeout(None)
print("waiting", flush=True)
for peer in peers:
    try:
        print(peer.recv(100), flush=True)
    except ConnectionResetError:
        print("reset", flush=True)
"""


@pytest.fixture
def boxes() -> Iterator[list[Box]]:
    with row("server", "hub", "client") as made:
        yield made


def open_silent_connections(server: Box, client: Box) -> list[subprocess.Popen[str]]:
    """Return the two ends of connections that are silent, over IPv4 and IPv6."""
    greeting = server.python(GREETS, str(len(SERVER)))
    assert greeting.stdout is not None
    assert greeting.stdout.readline() == "listening\n"
    waiting = client.python(WAITS, *SERVER)
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "waiting\n"
    return [greeting, waiting]


# Linux's SO_NETNS_COOKIE.
COOKIE = "import socket; print(int.from_bytes(socket.socket().getsockopt(1, 71, 8), sys.byteorder))"


def journal_of(hub: Box) -> Path:
    """Return the path of the journal of a gateway in a box."""
    cookie = hub.run(sys.executable, "-c", f"import sys; {COOKIE}").strip()
    return Path(f"/run/bentpipe-gateway/hub-{cookie}.connections")


def connections_in(journal: Path) -> int:
    """Return the number of connections in a journal: records of 40 bytes, 0 if free."""
    return sum(each != 0 for each in journal.read_bytes()[::40])


def ends_of(processes: list[subprocess.Popen[str]]) -> list[str]:
    return [process.communicate(timeout=20)[0] for process in processes]


def test_hosts_of_a_killed_gateway_are_reset_when_it_is_back(
    boxes: list[Box], tmp_path: Path
) -> None:
    """Without the journal, silent hosts would wait for ever."""
    server, hub, client = boxes
    file = write_scenario(tmp_path, SPLIT)
    with gateway(hub, file, *HUB) as running:
        silent = open_silent_connections(server, client)
        journal = journal_of(hub)
        wait_until(lambda: journal.exists() and connections_in(journal) == 2, "a journal of both")
        running.kill()
    listen(server)
    with gateway(hub, file, *HUB) as running:
        assert any("2 connections of a killed" in line for line in running.said), running.said
        assert ends_of(silent) == ["reset\n" * 2] * 2
        fetch(client, SERVER[0], 10_000)
        said = running.end()
    assert said["gateways"][0]["connections"]["split"] == 1
    # After an orderly end, nothing is left to reset.
    with gateway(hub, file, *HUB) as running:
        assert not any("killed" in line for line in running.said), running.said


def test_rules_of_a_killed_gateway_are_removed_at_once(boxes: list[Box], tmp_path: Path) -> None:
    server, hub, client = boxes
    listen(server)
    with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
        fetch(client, SERVER[0], 1000)
        running.kill()
        wait_until(lambda: gateway_state(hub) == [], "no rules")
        fetch(client, SERVER[0], 1000)


def test_the_kernel_forwards_while_a_gateway_hangs(boxes: list[Box], tmp_path: Path) -> None:
    server, hub, client = boxes
    listen(server)
    with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
        silent = open_silent_connections(server, client)
        os.kill(running.process.pid, signal.SIGSTOP)
        try:
            wait_until(lambda: "20002" not in hub.ip("rule"), "no rules")
            fetch(client, SERVER[0], 100_000)
        finally:
            os.kill(running.process.pid, signal.SIGCONT)
        # Its own connections are over.
        assert ends_of(silent) == ["reset\n" * 2] * 2
        wait_until(lambda: "20002" in hub.ip("rule"), "rules")
        fetch(client, SERVER[0], 100_000)
        lines = running.log_lines()
        said = running.end()
    assert any("does not respond" in line for line in lines), lines
    assert any("runs again: its connections are reset" in line for line in lines), lines
    assert said["gateways"][0]["connections"]["split"] == 3
    assert gateway_state(hub) == []


def test_unexpected_signals_have_no_effect(boxes: list[Box], tmp_path: Path) -> None:
    server, hub, client = boxes
    listen(server)
    with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
        for number in ("USR1", "USR2", "ALRM", "VTALRM", "IO", "PWR", "PIPE", "WINCH"):
            os.kill(running.process.pid, getattr(signal, f"SIG{number}"))
        fetch(client, SERVER[0], 10_000)
        said = running.end()
    assert said["gateways"][0]["connections"]["split"] == 1
