"""Two gateways with few persistent connections, and one of them is killed, or out of reach."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from .boxes import Box, Gateway, fetch, gateway, listen, live, row, wait_until
from .test_gateway_multiplex import (
    ENDS,
    OFFICE,
    SATELLITE,
    SERVER,
    WAITS,
    hub,
    office,
    terminal,
)

pytestmark = live

# As quick as a test wants it: lost after 2 s of silence and four questions, of 500 ms each.
QUICK = 'tcp = { keep_alive = { idle = "2 s", interval = "500 ms", probes = 4 } }'

# Sends back what it gets, as it comes, until nobody sends any more.
ECHOES = """
import socket
listening = socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True)
print("listening", flush=True)
peer, _ = listening.accept()
while text := peer.recv(1 << 16):
    peer.sendall(text)
"""
# Asks ten times a second, for so long, and says how long the longest answer took.
TALKS = """
import socket, sys, time
with socket.create_connection((sys.argv[1], 80), timeout=30) as peer:
    print("connected", flush=True)
    end, longest = time.monotonic() + float(sys.argv[2]), 0
    while time.monotonic() < end:
        begin = time.monotonic()
        peer.sendall(b"x" * 1000)
        left = 1000
        while left:
            left -= len(peer.recv(left))
        longest = max(longest, time.monotonic() - begin)
        time.sleep(0.1)
print(longest)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("vigil") / "office.toml"
    file.write_text(OFFICE, encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("vigil") / "quick.toml"
    file.write_text(OFFICE.replace("multiplex = 2", f"multiplex = 2, {QUICK}"), encoding="utf-8")
    return file


def idle_connection(client: Box) -> subprocess.Popen[str]:
    """Open a connection and leave it idle."""
    peer = client.python(WAITS, SERVER[0])
    assert peer.stdout is not None
    assert peer.stdout.readline() == "connected\n"
    return peer


def connect_time_s(client: Box) -> float:
    """Open a connection and return how long that took."""
    begin = time.monotonic()
    idle_connection(client)
    return time.monotonic() - begin


def assert_no_peer_failures(told: list[dict[str, Any]]) -> None:
    """See that no persistent connection has failed, of two gateways, before the first was ended."""
    assert told[0]["multiplex"]["failed"] == 0
    assert [each["multiplex"]["silent"] for each in told] == [0, 0]


def wait_for_log(which: Gateway, what: str) -> None:
    wait_until(
        lambda: any(what in line for line in which.log_lines()), f"{what}: {which.log_lines()}"
    )


@pytest.mark.parametrize("ends", ENDS, ids=["IPv4", "IPv6"])
def test_restarted_gateway_is_detected_at_once(file: Path, ends: tuple[str, str]) -> None:
    with office(file, ends) as ((server, first, _, _, client), (here, there)):
        listen(server)
        waiting = [idle_connection(client) for _ in range(3)]
        here.kill()
        begin = time.monotonic()
        with hub(first, file, ends) as again:
            said = [each.communicate(timeout=10)[0] for each in waiting]
            after = time.monotonic() - begin
            wait_for_log(there, "restarted")
            wait_for_log(there, "gateway answers")
            fetch(client, SERVER[0])
            told = again.end()["gateways"][0]
        ended = there.end()["gateways"][0]
    assert said == ["reset\n"] * 3
    # Most of it is the start of Python.
    assert after < 5
    assert told["connections"]["split"] == 1
    assert ended["multiplex"]["reset"] == 3
    assert ended["multiplex"]["silent"] == 0


@pytest.mark.parametrize("ends", ENDS, ids=["IPv4", "IPv6"])
def test_hosts_of_a_restarted_gateway_are_reset(file: Path, ends: tuple[str, str]) -> None:
    with office(file, ends) as ((server, _, _, second, client), (_, there)):
        listen(server)
        waiting = [idle_connection(client) for _ in range(3)]
        there.kill()
        # Theirs knows nothing of them any more, and they say nothing: the other one asks them.
        with terminal(second, file, ends):
            said = [each.communicate(timeout=10)[0] for each in waiting]
    assert said == ["reset\n"] * 3


def test_dead_gateway_is_bypassed_until_it_returns(quick: Path) -> None:
    with office(quick, ENDS[0]) as ((server, first, _, _, client), (here, there)):
        listen(server)
        waiting = idle_connection(client)
        here.kill()
        # Nobody has missed it yet: an answer is waited for, for 3 s. The machine forwards.
        assert 2.5 < connect_time_s(client) < 6
        wait_for_log(there, "silent")
        for _ in range(3):
            assert connect_time_s(client) < 1.5
        fetch(client, SERVER[0])
        # Its connection was lost with the gateway, and it is told.
        assert waiting.communicate(timeout=20)[0] == "reset\n"
        wait_for_log(there, "silent for too long")
        fetch(client, SERVER[0])
        with hub(first, quick, ENDS[0]) as again:
            wait_for_log(there, "gateway answers")
            for address in SERVER:
                fetch(client, address)
            told = again.end()["gateways"][0]
        ended = there.end()["gateways"][0]
    assert told["connections"]["split"] == 2
    assert told["multiplex"]["opened"] >= 1
    assert ended["multiplex"]["silent"] >= 1
    assert ended["multiplex"]["reset"] == 1


@pytest.mark.parametrize("ends", ENDS, ids=["IPv4", "IPv6"])
@pytest.mark.parametrize("where", ["here", "further on"])
def test_icmp_unreachable_marks_the_peer_gateway_down(
    file: Path, ends: tuple[str, str], where: str
) -> None:
    with office(file, ends) as ((server, _, sky, second, client), (here, there)):
        listen(server)
        waiting = idle_connection(client)
        # Packets of the other gateway that are in flight now would be a sign of life.
        time.sleep(0.5)
        router = second if where == "here" else sky
        version = "-6" if ":" in ends[0] else "-4"
        router.ip(f"{version} route add unreachable {ends[0]}")
        # Else it would be asked, and waited for, for 3 s.
        assert connect_time_s(client) < 1.5
        wait_for_log(there, "silent")
        assert connect_time_s(client) < 1.5
        router.ip(f"{version} route delete unreachable {ends[0]}")
        wait_for_log(there, "gateway answers")
        fetch(client, SERVER[0])
        assert waiting.poll() is None
        told = [each.end()["gateways"][0] for each in (here, there)]
    assert_no_peer_failures(told)


def test_suspended_gateway_keeps_its_connections(file: Path) -> None:
    # A suspended machine is not dead; it has sent no probes meanwhile.
    with office(file, ENDS[0]) as ((server, _, _, _, client), (here, there)):
        listen(server)
        waiting = idle_connection(client)
        here.process.send_signal(signal.SIGSTOP)
        time.sleep(6)
        here.process.send_signal(signal.SIGCONT)
        fetch(client, SERVER[0])
        assert waiting.poll() is None
        # The notice of the cause precedes the notice about the other gateway.
        wait_for_log(here, "the process did not run for")
        assert re.search(
            r": the process did not run for [5-9]\.\d s: it was stopped", here.log_lines()[0]
        )
        assert not any("the process did not run" in line for line in there.log_lines())
        told = [each.end()["gateways"][0] for each in (here, there)]
    assert_no_peer_failures(told)


@pytest.mark.parametrize("seconds", [1, 5, 10])
def test_temporary_link_outage_keeps_connections(file: Path, seconds: int) -> None:
    with office(file, ENDS[0]) as ((server, first, sky, _, client), running):
        echoes = server.python(ECHOES)
        assert echoes.stdout is not None
        assert echoes.stdout.readline() == "listening\n"
        talks = client.python(TALKS, SERVER[0], str(seconds + 4))
        assert talks.stdout is not None
        assert talks.stdout.readline() == "connected\n"
        time.sleep(1)
        # Nothing is as small as this bucket. (Where an interface goes down, its routes are gone.)
        ends = [(sky, "to-hub"), (first, "to-sky")]
        for box, cable in ends:
            bucket = f"qdisc add dev {cable} root tbf rate 8 burst 1 limit 1"
            box.run("tc", *bucket.split())
        time.sleep(seconds)
        for box, cable in ends:
            box.run("tc", "qdisc", "del", "dev", cable, "root")
        longest = float(talks.communicate(timeout=30)[0])
        told = [each.end()["gateways"][0] for each in running]
    assert_no_peer_failures(told)
    # The next question is 5 s off at most.
    assert seconds < longest < seconds + 6.5


def test_connections_survive_a_satellite_restart(file: Path) -> None:
    with (
        row("server", "hub", "sky", "terminal", "client") as (server, first, sky, second, client),
        gateway(sky, file, *SATELLITE) as satellite,
        hub(first, file, ENDS[0]) as here,
        terminal(second, file, ENDS[0]) as there,
    ):
        listen(server)
        waiting = idle_connection(client)
        satellite.kill()
        time.sleep(2)
        with gateway(sky, file, *SATELLITE):
            fetch(client, SERVER[0])
            assert waiting.poll() is None
            told = [each.end()["gateways"][0] for each in (here, there)]
    assert_no_peer_failures(told)
