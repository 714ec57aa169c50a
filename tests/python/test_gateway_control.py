"""A gateway that runs, as its operator sees it: control socket, metrics, reloading, draining."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from .boxes import GATEWAY, Box, Gateway, fetch, gateway, join, listen, live, row, wait_until
from .commands import GATEWAY_PROGRAM
from .test_gateway import HUB, SERVER, SPLIT, gateway_state, write_scenario

pytestmark = [
    live,
    pytest.mark.skipif(
        not GATEWAY_PROGRAM.exists(), reason="bentpipe-gateway is not built (make setup)"
    ),
]

PROGRAM: Final = [str(GATEWAY_PROGRAM)]


@pytest.fixture
def boxes() -> Iterator[list[Box]]:
    with row("server", "hub", "client") as made:
        listen(made[0])
        yield made


@contextlib.contextmanager
def controlled(
    hub: Box, folder: Path, *words: str, text: str = SPLIT, command: list[str] = PROGRAM
) -> Iterator[tuple[Gateway, Path]]:
    """Run a gateway with a control socket."""
    path = folder / "control"
    file = write_scenario(folder, text)
    with gateway(hub, file, *HUB, "--socket", str(path), *words, command=command) as running:
        yield running, path


def ask(path: Path, *requests: str) -> list[dict[str, Any]]:
    """Return the answers to requests, which are lines."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(20)
        client.connect(str(path))
        client.sendall("".join(f"{each}\n" for each in requests).encode())
        stream = client.makefile()
        return [json.loads(stream.readline()) for _ in requests]


def told(path: Path, request: str, **fields: Any) -> dict[str, Any]:
    [answer] = ask(path, json.dumps({"request": request, **fields}))
    assert answer.pop("ok") is True, answer
    return answer


def by_command(path: Path, *words: str) -> str:
    done = subprocess.run(
        [*PROGRAM, *words, "--socket", str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


# Connects and says so. For each line on standard input, sends it and prints the answer to all of
# them at the end of the input.
HOLDER = """
import hashlib, socket, sys
peer = socket.create_connection((sys.argv[1], 80), timeout=20)
print("connected", flush=True)
sent = b""
for line in sys.stdin:
    sent += line.encode()
    peer.sendall(line.encode())
    print("sent", flush=True)
peer.shutdown(socket.SHUT_WR)
answer = b"".join(iter(lambda: peer.recv(1 << 16), b""))
assert answer == hashlib.sha256(sent).digest() + sent
print("right", flush=True)
"""


# Opens and closes 600 connections as fast as it can, and says how many.
OPENER = """
import socket, sys
for count in range(600):
    with socket.create_connection((sys.argv[1], 80), timeout=20):
        pass
print(count + 1)
"""

# Opens a connection and waits for an answer to a byte.
HOLDER_ONCE = """
import socket, sys
with socket.create_connection((sys.argv[1], 80), timeout=5) as peer:
    peer.settimeout(3)
    peer.sendall(b"x")
    peer.recv(1)
"""


@contextlib.contextmanager
def held_connection(client: Box) -> Iterator[subprocess.Popen[str]]:
    """Have a connection open."""
    holder = client.python(HOLDER, SERVER[0])
    assert holder.stdout is not None
    assert holder.stdout.readline() == "connected\n"
    yield holder
    if holder.poll() is None:
        holder.kill()


def end_of(holder: subprocess.Popen[str]) -> str:
    out, err = holder.communicate("more\n", timeout=20)
    return out.splitlines()[-1] if out else err


def test_connections_are_listed_with_both_legs(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, client = boxes
    with controlled(hub, tmp_path) as (_, path):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert told(path, "connections") == {"connections": [], "next": None}
        with held_connection(client), held_connection(client) as holder:
            assert holder.stdin is not None
            holder.stdin.write("a line\n")
            holder.stdin.flush()
            wait_until(
                lambda: (
                    sum(
                        each["legs"][1]["delivered_bytes"]
                        for each in told(path, "connections")["connections"]
                    )
                    == len("a line\n")
                ),
                "the line is there",
            )
            first = told(path, "connections", limit=1)
            assert first["next"] == 1
            second = told(path, "connections", first=1)
            assert second["next"] is None
            both = first["connections"] + second["connections"]
            assert len({each["opener"] for each in both}) == 2
            for each in both:
                assert each["responder"] == "10.1.0.1:80"
                assert each["treatment"] == "split"
                assert 0 < each["age_s"] < 30
                client_leg, server_leg = each["legs"]
                assert (client_leg["is_facing"], server_leg["is_facing"]) == (True, False)
                for leg in each["legs"]:
                    assert leg["state"] == "established"
                    assert leg["congestion_window_bytes"] >= 10 * 1400
                    assert leg["held_bytes"] == 0
                    assert 0 < leg["round_trip_s"] < 5
            text = by_command(path, "connections")
            assert text.count("10.1.0.1:80") == 4
            assert text.splitlines()[0].split()[:3] == ["opened", "by", "to"]
            status = told(path, "status")
            assert status["gauges"]["hub"]["connections.open"] == 2
            assert "gateway hub: lan is to-server (MTU 1500)" in status["sides"]
            assert "connections.split" in by_command(path, "status")


def test_idle_connections_are_listed_after_they_were_suspended(
    boxes: list[Box], tmp_path: Path
) -> None:
    _, hub, client = boxes
    with controlled(hub, tmp_path) as (_, path), held_connection(client) as holder:
        time.sleep(21)
        [only] = told(path, "connections")["connections"]
        assert only["idle_s"] > 20
        assert only["legs"][0]["state"] == "established"
        assert end_of(holder) == "right"


def test_several_clients_are_served_at_once_and_bad_requests_are_refused(
    boxes: list[Box], tmp_path: Path
) -> None:
    with controlled(boxes[1], tmp_path) as (running, path):
        with socket.socket(socket.AF_UNIX) as silent:
            silent.connect(str(path))
            refused = ask(
                path,
                "nonsense",
                '{"request": "explode"}',
                "[]",
                '{"request": "connections", "limit": 100000}',
                '{"request": "drain"}',
                '{"request": "connections", "first": -1}',
            )
            assert [each["ok"] for each in refused] == [False] * 6
            assert refused[1]["error"] == 'no request is "explode"'
            assert refused[3]["error"] == "limit: expected 1 to 1000"
            assert told(path, "status")["draining"] is False
        # Another gateway does not take the socket away.
        other = subprocess.run(
            boxes[0].within(
                *PROGRAM, str(tmp_path / "box.toml"), "--gateway", "hub",
                "--interface", "lan=lo", "--interface", "satellite=to-hub", "--socket", str(path),
            ),
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert other.returncode == 2
        assert f"--socket {path}: file exists" in other.stderr
        assert told(path, "status")["uptime_s"] > 0
        running.end()
        assert not path.exists()
    # The socket of a killed gateway is replaced.
    with controlled(boxes[1], tmp_path) as (running, path):
        running.kill()
        assert path.exists()
    with controlled(boxes[1], tmp_path) as (_, path):
        assert told(path, "status")["uptime_s"] > 0


@pytest.mark.parametrize("command", [PROGRAM, GATEWAY], ids=["program", "package"])
def test_a_hangup_reloads_the_file_without_resets(
    boxes: list[Box], tmp_path: Path, command: list[str]
) -> None:
    _, hub, client = boxes
    with (
        controlled(hub, tmp_path, command=command) as (running, path),
        held_connection(client) as holder,
    ):

        def counted(name: str) -> int:
            return int(told(path, "status")["counters"]["hub"][name])

        def reload(text: str) -> str:
            before = len(running.log_lines())
            write_scenario(tmp_path, text)
            running.process.send_signal(signal.SIGHUP)
            wait_until(lambda: len(running.log_lines()) > before, "it is reloaded")
            return running.log_lines()[before]

        fetch(client, SERVER[0])
        assert counted("connections.split") == 2
        passing = SPLIT.replace('"split",', '"split", except = { ports = [80] },', 1)
        assert passing != SPLIT
        assert reload(passing).startswith("the scenario was read again")
        fetch(client, SERVER[0])
        assert (counted("connections.split"), counted("connections.passed")) == (2, 1)
        # A refused file keeps the settings.
        refusal = reload(passing.replace("ports = [80]", "ports = [0.5]"))
        assert refusal.startswith("the scenario was not read again, and all settings stay: ")
        assert "except" in refusal
        fetch(client, SERVER[0])
        assert counted("connections.passed") == 2
        refusal = reload(SPLIT.replace('kind = "split"', 'kind = "hybrid"', 1))
        assert "takes effect after a restart" in refusal
        write_scenario(tmp_path, SPLIT)
        assert by_command(path, "reload") == "new connections have the settings of the file\n"
        fetch(client, SERVER[0])
        assert counted("connections.split") == 3
        # The first connection has lived through all of this.
        assert end_of(holder) == "right"


@pytest.mark.parametrize("command", [PROGRAM, GATEWAY], ids=["program", "package"])
def test_a_gateway_ends_when_its_terminal_is_closed(
    boxes: list[Box], tmp_path: Path, command: list[str]
) -> None:
    _, hub, _ = boxes
    terminal, inside = os.openpty()
    line = hub.within(*command, str(write_scenario(tmp_path, SPLIT)), *HUB)
    with subprocess.Popen(line, stdin=inside, stdout=subprocess.DEVNULL) as running:
        try:
            wait_until(lambda: len(gateway_state(hub)) == 18, "it is set up")
            running.send_signal(signal.SIGHUP)
            assert running.wait(timeout=10) == 0
        finally:
            running.kill()
    os.close(terminal)
    os.close(inside)
    assert gateway_state(hub) == []


def test_drain_lets_connections_end_and_forwards_new_ones(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, client = boxes
    with controlled(hub, tmp_path) as (running, path), held_connection(client) as holder:
        assert by_command(path, "drain", "--within", "60 s").endswith(", 1 are left\n")
        assert told(path, "status")["draining"] is True
        fetch(client, SERVER[0])
        counters = told(path, "status")["counters"]["hub"]
        assert counters["connections.split"] == 1
        assert counters["connections.passed_draining"] == 1
        assert running.process.poll() is None
        assert end_of(holder) == "right"
        out, _ = running.process.communicate(timeout=10)
        assert running.process.returncode == 0
        assert json.loads(out)["gateways"][0]["connections"]["aborted"] == 0
    assert gateway_state(hub) == []


def test_sigterm_drains_within_a_bound(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, client = boxes
    with (
        controlled(hub, tmp_path, "--drain", "2 s") as (running, _),
        held_connection(client) as holder,
    ):
        began = time.monotonic()
        running.process.send_signal(signal.SIGTERM)
        time.sleep(1)
        assert running.process.poll() is None
        fetch(client, SERVER[0])
        running.process.communicate(timeout=10)
        assert running.process.returncode == 0
        assert 1.9 < time.monotonic() - began < 6
        # It was reset.
        assert "ConnectionReset" in end_of(holder) or "Broken" in end_of(holder)
    # A second signal ends it at once.
    with controlled(hub, tmp_path, "--drain", "60 s") as (running, _), held_connection(client):
        running.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        assert running.process.poll() is None
        running.end()


METRICS = """
import sys, urllib.request
print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode(), end="")
"""


def values(text: str) -> dict[str, float]:
    """Return the metrics in a text by name and labels."""
    lines = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in lines}


def test_metrics_are_served_and_survive_a_restart(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, client = boxes
    state = tmp_path / "statistics.json"
    taken = 'bentpipe_gateway_connections_taken_total{gateway="hub",treatment="split"}'
    for run in (1, 2):
        words = ("--metrics", "127.0.0.1:9435", "--statistics", str(state))
        with controlled(hub, tmp_path, *words) as (running, path):
            before = values(by_command(path, "metrics"))
            assert before.get(taken, 0) == run - 1
            fetch(client, SERVER[0])
            text = hub.run(sys.executable, "-c", METRICS, "http://127.0.0.1:9435/metrics")
            by_unix = subprocess.run(
                ["curl", "--silent", "--unix-socket", path, "http://gateway/metrics"],
                capture_output=True, text=True, check=True,
            ).stdout  # fmt: skip
            assert set(values(by_unix)) == set(values(text))
            found = values(text)
            assert found[taken] == run
            leg = 'bentpipe_gateway_leg_bytes_total{gateway="hub",leg="%s"}'
            assert found[leg % "facing"] >= run * 300_000
            assert found[leg % "hosts"] >= run * 300_000
            assert found["bentpipe_gateway_lateness_seconds_count"] > run * 200
            for side in ("facing", "hosts"):
                bucket = f'round_trip_seconds_count{{gateway="hub",leg="{side}"}}'
                assert found[f"bentpipe_gateway_{bucket}"] == run
            assert found['bentpipe_gateway_held_bytes{gateway="hub"}'] == 0
            assert found["bentpipe_gateway_draining"] == 0
            running.end()
    saved = json.loads(state.read_text())
    assert saved["counters"]["hub"]["connections.split"] == 2
    state.write_text("damaged")
    file = str(tmp_path / "box.toml")
    done = subprocess.run(
        hub.within(*PROGRAM, file, *HUB, "--statistics", str(state)),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith(f"bentpipe: --statistics {state}: ")
    done = subprocess.run(
        hub.within(*PROGRAM, file, *HUB, "--metrics", "0.0.0.0:9435"),
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.startswith("bentpipe: --metrics 0.0.0.0:9435: expected a loopback address")


def test_the_service_manager_is_told(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, _ = boxes
    name = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name)
        manager.settimeout(10)

        def signs(seconds: float) -> list[str]:
            end, found = time.monotonic() + seconds, []
            while (left := end - time.monotonic()) > 0:
                if select.select([manager], [], [], left)[0]:
                    found += manager.recv(4096).decode().splitlines()
            return found

        environment = ["env", f"NOTIFY_SOCKET={name}", "WATCHDOG_USEC=400000"]
        with controlled(hub, tmp_path, command=[*environment, *PROGRAM]) as (running, _):
            found = signs(1.5)
            assert found.count("READY=1") == 1
            # At least twice per timeout.
            assert found.count("WATCHDOG=1") >= 8
            running.process.send_signal(signal.SIGHUP)
            found = [each.split("=")[0] for each in signs(0.6)]
            assert [each for each in found if each != "WATCHDOG"] == [
                "RELOADING", "MONOTONIC_USEC", "READY",
            ]  # fmt: skip
            # A gateway that hangs gives no sign, and the service manager restarts it.
            os.kill(running.process.pid, signal.SIGSTOP)
            signs(0.2)
            assert signs(1) == []
            os.kill(running.process.pid, signal.SIGCONT)
            assert "WATCHDOG=1" in signs(1)
            running.end()
            assert "STOPPING=1" in signs(0.2)


def test_lists_of_addresses_are_read_again_with_the_file(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, client = boxes
    listed = tmp_path / "passed.txt"
    listed.write_text("# sites with a gateway of their own\n192.0.2.0/24\n\nfd00:1::/64 # server\n")
    text = SPLIT.replace('"split",', '"split", except = { addresses_file = "passed.txt" },', 1)
    with controlled(hub, tmp_path, text=text) as (_, path):

        def counted() -> tuple[int, int]:
            counters = told(path, "status")["counters"]["hub"]
            return counters["connections.split"], counters["connections.passed"]

        for address in SERVER:
            fetch(client, address)
        # IPv6 is in the list, IPv4 is not.
        assert counted() == (1, 1)
        listed.write_text("10.1.0.0/24\n")
        told(path, "reload")
        for address in SERVER:
            fetch(client, address)
        assert counted() == (2, 2)
        listed.write_text("10.1.0.0/24\n10.1.0.1/24\n")
        [answer] = ask(path, '{"request": "reload"}')
        assert answer["ok"] is False
        assert (
            'passed.txt:2: expected an address or a prefix such as "192.0.2.0/24", got "10.1.0'
            in (answer["error"])
        )
        write_scenario(tmp_path, text.replace("except", "only").replace(
            'addresses_file = "passed.txt"', 'addresses = ["10.2.0.2"], ports = [80]'
        ))  # fmt: skip
        told(path, "reload")
        # The client is in the list, so that both versions differ in their hosts only.
        for address in SERVER:
            fetch(client, address)
        assert counted() == (3, 3)


@pytest.mark.parametrize("form", ["json", "text"])
def test_log_lines_have_time_level_and_connection(
    boxes: list[Box], tmp_path: Path, form: str
) -> None:
    _, hub, client = boxes
    words = ("--log", form, "--log-level", "debug")
    file = str(write_scenario(tmp_path, SPLIT))
    running = hub.start(*PROGRAM, file, *HUB, *words, "--json")
    wait_until(lambda: len(gateway_state(hub)) == 18, "it is set up")
    fetch(client, SERVER[0])
    # Nobody listens there.
    with contextlib.suppress(AssertionError):
        client.run(sys.executable, "-c", METRICS, "http://10.1.0.1:81/")
    time.sleep(0.3)
    running.terminate()
    _, err = running.communicate(timeout=10)
    assert running.returncode == 0, err
    lines = err.splitlines()
    if form == "json":
        events = [json.loads(line) for line in lines]
        assert {"timestamp", "level", "message"} <= {*events[0]}
        [split] = [
            each for each in events
            if each["message"] == "a connection is split" and each["responder"] == "10.1.0.1:80"
        ]  # fmt: skip
        assert split["level"] == "DEBUG"
        assert split["opener"].startswith("10.2.0.2:")
        [failed] = [each for each in events if each["message"] == "a connection has failed"]
        assert failed["level"] == "INFO"
        assert (failed["responder"], failed["reason"]) == ("10.1.0.1:81", "the host refuses it")
        [ended] = [
            each for each in events
            if each["message"] == "a connection has ended" and each["responder"] == "10.1.0.1:80"
        ]  # fmt: skip
        assert ended["from_opener_bytes"] == 300_000
        assert ended["from_responder_bytes"] == 300_032
        assert any(each["message"].startswith("gateway hub: lan is") for each in events)
    else:
        pattern = r"\d{4}-\d\d-\d\dT[\d:.]+Z +DEBUG a connection is split opener=10.2.0.2:\d+ "
        assert any(re.match(pattern + "responder=10.1.0.1:80$", line) for line in lines), err
    refused = subprocess.run(
        hub.within(*PROGRAM, file, *HUB, "--log", "xml"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert refused.stderr == "bentpipe: --log xml: expected text or json\n"


def test_floods_of_log_lines_are_bounded(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, client = boxes
    file = str(write_scenario(tmp_path, SPLIT))
    running = hub.start(*PROGRAM, file, *HUB, "--log", "text", "--log-level", "debug", "--json")
    wait_until(lambda: len(gateway_state(hub)) == 18, "it is set up")
    began = time.monotonic()
    opened = client.run(sys.executable, "-c", OPENER, SERVER[0])
    assert int(opened) == 600
    time.sleep(1.2)
    running.terminate()
    _, err = running.communicate(timeout=10)
    lines = err.splitlines()
    # 200 lines per second, and the lines of other events.
    seconds = time.monotonic() - began
    assert 200 <= len(lines) < 200 * (seconds + 2)
    assert any("messages were dropped: too many at once" in line for line in lines)


def test_threads_keep_only_the_privileges_that_they_need(boxes: list[Box], tmp_path: Path) -> None:
    _, hub, client = boxes
    with controlled(hub, tmp_path, "--metrics", "127.0.0.1:9435") as (running, path):
        fetch(client, SERVER[0])
        told(path, "status")
        net_admin = 1 << 12

        def effective() -> set[int]:
            found = set()
            for thread in Path(f"/proc/{running.process.pid}/task").iterdir():
                status = (thread / "status").read_text()
                [bits] = re.findall(r"^CapPrm:\s*(\w+)$", status, re.MULTILINE)
                assert re.search(r"^NoNewPrivs:\s*1$", status, re.MULTILINE)
                found.add(int(bits, 16))
            return found

        # The engine's thread changes routes and rules; all others need nothing.
        wait_until(lambda: effective() == {0, net_admin}, "privileges are dropped")
        # It still restores what others change, reloads, and removes its rules at the end.
        told(path, "reload")
        running.end()
    assert gateway_state(hub) == []


def test_answers_around_the_gateway_are_reported(boxes: list[Box], tmp_path: Path) -> None:
    server, hub, client = boxes
    # A second cable: the server's answers return by it, around the gateway.
    join(server, client, 9)
    server.ip("route replace 10.2.0.0/24 via 10.9.0.2")
    for box, peer in ((server, "client"), (client, "server")):
        box.sysctl(
            *(f"net.ipv4.conf.{name}.rp_filter=0" for name in ("all", f"to-{peer}", "to-hub"))
        )
    with controlled(hub, tmp_path) as (running, path):
        with contextlib.suppress(AssertionError):
            client.run(sys.executable, "-c", HOLDER_ONCE, SERVER[0])
        wait_until(
            lambda: told(path, "status")["counters"]["hub"]["packets.answered_around"] > 0,
            "it is counted",
        )
        wait_until(
            lambda: any("routes are asymmetric" in line for line in running.log_lines()),
            "it is reported",
        )
