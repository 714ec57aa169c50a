"""Machines to be gateways between: network namespaces, joined by veth pairs, gone with the test."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import IO, Any

import pytest

from bentpipe import _native

# Commands that a test machine needs: a veth pair, and the rules that divert packets.
_TRIED = """
ip link add one0 type veth peer name two0
ip rule add iif one0 lookup main suppress_ifgroup 7
"""


def _obstacle() -> str | None:
    missing = [name for name in ("ip", "nsenter", "unshare") if shutil.which(name) is None]
    if missing:
        return f"{', '.join(missing)}: not installed"
    obstacle = _native.emulation_obstacle() or _native.gateway_obstacle()
    if obstacle is not None:
        return obstacle
    tried = subprocess.run(
        ["unshare", "--net", "sh", "-e", "-c", _TRIED], capture_output=True, text=True, check=False
    )
    return None if tried.returncode == 0 else f"no veth pairs, or no rules: {tried.stderr.strip()}"


OBSTACLE = _obstacle()
# Tests that need namespaces, veth pairs and TUN devices are skipped without them; the reason is
# printed.
live = pytest.mark.skipif(OBSTACLE is not None, reason=str(OBSTACLE))

# The command that a gateway runs: the package's, or the program that BENTPIPE_GATEWAY names.
_PROGRAM = os.environ.get("BENTPIPE_GATEWAY")
GATEWAY = [_PROGRAM] if _PROGRAM else [sys.executable, "-m", "bentpipe", "gateway"]

# Nothing here takes longer, on any machine.
PATIENCE = 30.0


class Box:
    """A machine: a network namespace, which is there as long as a process that sleeps in it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._sleeper = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo in; exec sleep 300"], stdout=subprocess.PIPE
        )
        assert self._sleeper.stdout is not None
        assert self._sleeper.stdout.readline() == b"in\n"
        self.pid = self._sleeper.pid
        self._started: list[subprocess.Popen[str]] = []
        self.ip("link set lo up")
        # Addresses are usable at once: nobody else has them.
        self.sysctl("net.ipv6.conf.all.accept_dad=0", "net.ipv6.conf.default.accept_dad=0")

    def within(self, *words: str) -> list[str]:
        """Return the command that runs these words inside."""
        return ["nsenter", "--net", "--target", str(self.pid), *words]

    def run(self, *words: str) -> str:
        done = subprocess.run(
            self.within(*words), capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        assert done.returncode == 0, f"{self.name}: {' '.join(words)}: {done.stderr}"
        return done.stdout

    def ip(self, line: str) -> str:
        return self.run("ip", *line.split())

    def sysctl(self, *settings: str) -> None:
        lines = [
            f"echo {value} > /proc/sys/{name.replace('.', '/')}"
            for name, _, value in (each.partition("=") for each in settings)
        ]
        self.run("sh", "-c", "; ".join(lines))

    def python(self, program: str, *words: str) -> subprocess.Popen[str]:
        """Start a program of Python's inside."""
        return self.start(sys.executable, "-c", program, *words)

    def start(self, *words: str) -> subprocess.Popen[str]:
        started = subprocess.Popen(
            self.within(*words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(started)
        return started

    def end(self) -> None:
        started: list[subprocess.Popen[Any]] = [*self._started, self._sleeper]
        for process in started:
            if process.poll() is None:
                process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout, process.stderr):
                if stream is not None:
                    with contextlib.suppress(BrokenPipeError):
                        stream.close()


def join(one: Box, other: Box, number: int, *, mtu: int = 1500) -> None:
    """Put a cable between two boxes, 10.NUMBER.0.0/24 and fd00:NUMBER::/64, .1 and .2.

    At each end it is called as the box at the other.
    """
    one.ip(
        f"link add to-{other.name} mtu {mtu} type veth peer name to-{one.name} mtu {mtu} "
        f"netns {other.pid}"
    )
    for host, (box, peer) in enumerate(((one, other), (other, one)), start=1):
        box.ip(f"address add 10.{number}.0.{host}/24 dev to-{peer.name}")
        box.ip(f"address add fd00:{number}::{host}/64 dev to-{peer.name} nodad")
    for box, peer in ((one, other), (other, one)):
        box.ip(f"link set to-{peer.name} up")


def join_in_chain(boxes: list[Box]) -> None:
    """Join boxes in a chain, each with routes to all; those between forward."""
    for number, (one, other) in enumerate(pairwise(boxes), start=1):
        join(one, other, number)
    for at, box in enumerate(boxes):
        if 0 < at < len(boxes) - 1:
            box.sysctl("net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        for number in range(1, len(boxes)):
            # The cables before the one on the left, and behind the one on the right.
            via = (at, 1) if number < at else (at + 1, 2) if number > at + 1 else None
            if via is not None:
                box.ip(f"route add 10.{number}.0.0/24 via 10.{via[0]}.0.{via[1]}")
                box.ip(f"-6 route add fd00:{number}::/64 via fd00:{via[0]}::{via[1]}")


@contextlib.contextmanager
def row(*names: str) -> Iterator[list[Box]]:
    """Make boxes in a row."""
    boxes: list[Box] = []
    try:
        boxes += [Box(name) for name in names]
        join_in_chain(boxes)
        yield boxes
    finally:
        for box in boxes:
            box.end()


class Gateway:
    """A `bentpipe-gateway` that is ready."""

    def __init__(self, box: Box, *words: str, command: Sequence[str]) -> None:
        environment = f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}"
        self.process = box.start(
            "env",
            environment,
            *command,
            *words,
            "--json",
        )
        self.said: list[str] = []
        self._later = b""
        for line in _stream(self.process.stderr):
            self.said.append(line.strip())
            if line.strip().endswith("ready"):
                return
        raise AssertionError("\n".join(self.said))

    def log_lines(self) -> list[str]:
        """Return the lines logged since the gateway was ready."""
        stream = _stream(self.process.stderr)
        while select.select([stream], [], [], 0)[0] and (more := os.read(stream.fileno(), 1 << 16)):
            self._later += more
        lines = self._later.decode().splitlines()
        return [line.removeprefix("bentpipe-gateway: ") for line in lines]

    def end(self, number: int = signal.SIGTERM) -> dict[str, Any]:
        """End it with a signal, and return what it says."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=PATIENCE)
        assert self.process.returncode == 0, err
        said: dict[str, Any] = json.loads(out)
        return said

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def kill_with_watchdog(self) -> None:
        """Kill it with its second process, which would remove the rules."""
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        children = [(task / "children").read_text("ascii").split() for task in tasks]
        for child in (int(each) for all_of_task in children for each in all_of_task):
            os.kill(child, signal.SIGKILL)
        self.kill()


@contextlib.contextmanager
def gateway(
    box: Box, file: Path, *words: str, command: Sequence[str] = GATEWAY
) -> Iterator[Gateway]:
    """Have a box be a gateway, or a link, for a while."""
    started = Gateway(box, str(file), *words, command=command)
    try:
        yield started
    finally:
        started.kill()


def _stream(stream: IO[str] | None) -> IO[str]:
    assert stream is not None
    return stream


# Sends back what it got, behind its hash, once all of it is there.
SERVER = """
import hashlib, socket, sys, threading
family = socket.AF_INET6
listening = socket.create_server(("::", 80), family=family, dualstack_ipv6=True, backlog=200)
print("listening", flush=True)
def serve(peer):
    with peer:
        content = b"".join(iter(lambda: peer.recv(1 << 16), b""))
        peer.sendall(hashlib.sha256(content).digest() + content)
while True:
    threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()
"""

# Sends that many bytes, compares what comes back, and says how long the way back took.
CLIENT = """
import hashlib, random, socket, sys, time
content = random.Random(int(sys.argv[2])).randbytes(int(sys.argv[2]))
with socket.create_connection((sys.argv[1], 80), timeout=20) as peer:
    peer.sendall(content)
    peer.shutdown(socket.SHUT_WR)
    answer = b"".join(iter(lambda: peer.recv(1 << 16), b""))
assert answer == hashlib.sha256(content).digest() + content, len(answer)
print("right")
"""


def listen(box: Box) -> None:
    """Start the server of bytes in a box."""
    server = box.python(SERVER)
    assert _stream(server.stdout).readline() == "listening\n"


def fetch(box: Box, address: str, length: int = 300_000) -> None:
    """Send bytes to the server and have them back, all the same."""
    assert box.run(sys.executable, "-c", CLIENT, address, str(length)) == "right\n"


def wait_until(condition: Any, what: str) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.02)
