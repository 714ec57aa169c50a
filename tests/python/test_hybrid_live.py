"""A hybrid gateway between the kernel's own clients and servers, in real time."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe.emulation import Command

from .live import live

# At once or not at all: the run's end may end a program anywhere.
TELL = """
with open(sys.argv[1] + ".part", "w") as file:
    json.dump(told, file)
os.replace(sys.argv[1] + ".part", sys.argv[1])
"""

SERVER = (
    """
import hashlib, json, os, socket, sys, time

def serve(listener):
    s, _ = listener.accept()
    s.settimeout(60)
    return s

listener = socket.create_server(("", 7000), backlog=10)
text = bytes(range(251)) * 12_000

# Everything, and then its hash, on one connection; what comes the other way is hashed, too.
digest = hashlib.sha256()
if sys.argv[2] != "hears of the gateway":
    s = serve(listener)
    s.sendall(text)
    s.shutdown(socket.SHUT_WR)
    while part := s.recv(100_000):
        digest.update(part)
    s.close()

told = {"upload": digest.hexdigest()}
if sys.argv[2] != "stays":
    s = serve(listener)
    began = time.monotonic()
    try:
        while True:
            s.sendall(text)
    except OSError as error:
        told["error"] = type(error).__name__
    told["after_s"] = time.monotonic() - began
    s.close()
"""
    + TELL
)

HOST = (
    """
import hashlib, json, os, signal, socket, subprocess, sys, time

def connect():
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("server", 7000), timeout=60)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)

upload = os.urandom(20_000)
digest = hashlib.sha256()
count = 0
if sys.argv[2] != "hears of the gateway":
    s = connect()
    s.sendall(upload)
    s.shutdown(socket.SHUT_WR)
    while part := s.recv(100_000):
        digest.update(part)
        count += len(part)
    s.close()
told = {
    "count": count,
    "download": digest.hexdigest(),
    "upload": hashlib.sha256(upload).hexdigest(),
}
if sys.argv[2] == "vanishes":
    s = connect()
    while count < 3_500_000:
        count += len(s.recv(100_000))
    # Not a word more to the server: as one that is switched off.
    server = s.getpeername()[0]
    subprocess.run(["ip", "route", "replace", "blackhole", f"{server}/32"], check=True)
    time.sleep(8)
if sys.argv[2] == "is killed":
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        s = connect()
        while count < 3_500_000:
            count += len(s.recv(100_000))
        os.write(writing, b"!")
        time.sleep(60)
    os.read(reading, 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    time.sleep(2)
if sys.argv[2] == "hears of the gateway":
    s = connect()
    s.settimeout(6)
    late = 0
    deadline = time.monotonic() + 9
    try:
        while (left := deadline - time.monotonic()) > 0 and (part := s.recv(100_000)):
            digest.update(part)
            count += len(part)
            late += len(part) if left < 2 else 0
    except OSError as error:
        told["error"] = type(error).__name__
    told |= {"count": count, "late": late, "download": digest.hexdigest()}
# The run ends with this program: what is under way to the gateway arrives first.
time.sleep(0.5)
"""
    + TELL
)


def network(**gateway: object) -> dict[str, Any]:
    """Return a host that receives by satellite and sends by another way, and a gateway."""
    return {
        "name": "hybrid-live",
        "duration": "60 s",
        "hosts": {"server": {}, "host": {}},
        "gateways": {"hub": {"kind": "hybrid", "facing": "satellite", **gateway}},
        "links": {
            "lan": {"between": ["server", "hub"], "rate": "100 Mbit/s", "delay": "5 ms"},
            "satellite": {
                "between": ["hub", "host"],
                "forward": {"rate": "20 Mbit/s", "delay": "60 ms"},
                "return": {"rate": "1 Mbit/s", "delay": "10 ms"},
            },
        },
        "flows": {
            "download": {
                "from": "server",
                "to": "host",
                "app": {"kind": "bulk", "size": "3 MB"},
            }
        },
    }


def emulate(folder: Path, scenario: dict[str, Any], what: str) -> tuple[Any, Any, Any]:
    """Run server and host; return the result, and what each of them has told by the host's end."""
    programs, told = {}, {}
    for name, text in {"server": SERVER, "host": HOST}.items():
        program, told[name] = folder / f"{name}.py", folder / f"{name}.json"
        program.write_text(text)
        programs[name] = (sys.executable, str(program), str(told[name]), what)
    result = bentpipe.emulate(
        scenario,
        commands=[
            Command(host="server", words=programs["server"], waited_for=False),
            Command(host="host", words=programs["host"], waited_for=True),
        ],
    )
    texts = [told[name].read_text() if told[name].exists() else "null" for name in told]
    return result, *map(json.loads, texts)


GATEWAYS: dict[str, dict[str, object]] = {
    "the paper's timer": {"ack_every": 2},
    "adaptive": {"ack_every": 2, "adaptive_timeout": True, "receive_buffer": "1 MB"},
    "as a TCP": {"ack_every": 2, "receive_buffer": "1 MB", "tcp": {"recovery": "sack"}},
}


@live
@pytest.mark.parametrize("gateway", GATEWAYS)
def test_hybrid_gateway_transfers_intact_data_in_both_directions(
    tmp_path: Path, gateway: str
) -> None:
    result, server, host = emulate(tmp_path, network(**GATEWAYS[gateway]), "stays")
    assert result.status == 0
    text = bytes(range(251)) * 12_000
    assert host["count"] == len(text)
    assert host["download"] == hashlib.sha256(text).hexdigest()
    assert server["upload"] == host["upload"]
    (hub,) = result.summary.gateways
    assert hub.connections["tracked"] == 1
    assert hub.extra["to_host"]["segments"] >= len(text) // 1448
    assert hub.extra["acknowledgments"]["made"] > 0
    assert hub.bytes_held["max"] <= 1_000_001
    assert hub.bytes_held["now"] == 0


@live
@pytest.mark.skipif(shutil.which("ip") is None, reason="optional: there is no `ip`")
def test_server_is_reset_after_give_up_when_the_host_vanishes(tmp_path: Path) -> None:
    scenario = network(ack_every=2, give_up="3 s", adaptive_timeout=True)
    result, server, host = emulate(tmp_path, scenario, "vanishes")
    assert result.status == 0
    assert server["upload"] == host["upload"]
    # By RST, 3 s after the host's last word, not after the 15 minutes that Linux tries for itself.
    assert server["error"] == "ConnectionResetError"
    assert 3 <= server["after_s"] < 8
    (hub,) = result.summary.gateways
    assert hub.connections["given_up"] == 1
    assert hub.bytes_held["now"] == 0


@live
def test_server_is_reset_when_the_hosts_program_is_killed(tmp_path: Path) -> None:
    scenario = network(ack_every=2, adaptive_timeout=True)
    result, server, host = emulate(tmp_path, scenario, "is killed")
    assert result.status == 0
    assert server["upload"] == host["upload"]
    # The host's kernel resets what nobody will read any more, and the gateway passes that on.
    assert server["error"] in ("ConnectionResetError", "BrokenPipeError")
    assert server["after_s"] < 6
    (hub,) = result.summary.gateways
    assert hub.connections["given_up"] == 0
    assert hub.bytes_held["now"] == 0


@live
def test_connection_survives_a_crash_of_an_empty_gateway(tmp_path: Path) -> None:
    scenario = network(
        ack_every=2, adaptive_timeout=True, crashes=[{"at": "5 s", "lasts": "300 ms"}]
    )
    result, _, host = emulate(tmp_path, scenario, "hears of the gateway")
    assert result.status == 0
    # Nothing is lost on the satellite: what the server was told of arrives, the rest it sends
    # again, through a gateway that has not seen the connection begin.
    assert "error" not in host
    assert host["late"] > 0
    text = bytes(range(251)) * 12_000
    sent = text * (1 + host["count"] // len(text))
    assert host["download"] == hashlib.sha256(sent[: host["count"]]).hexdigest()
    (hub,) = result.summary.gateways
    assert hub.extra["crashes"]["count"] == 1
    assert hub.extra["crashes"]["connections_lost"] == 1
    assert hub.bytes_held["now"] == 0


@live
def test_data_acknowledged_by_a_crashed_gateway_is_lost(
    tmp_path: Path,
) -> None:
    scenario = network(
        ack_every=2, adaptive_timeout=True, crashes=[{"at": "5 s", "lasts": "300 ms"}]
    )
    # Packets sent upwards in the 400 ms before the crash are lost; the server has an ACK for them.
    scenario["links"]["satellite"]["forward"]["outages"] = [{"at": "4.6 s", "lasts": "400 ms"}]
    result, _, host = emulate(tmp_path, scenario, "hears of the gateway")
    assert result.status == 0
    # The host waits for what it misses, and hears nothing; what it has is right.
    assert host["error"] == "TimeoutError"
    assert host["count"] > 0
    assert host["late"] == 0
    text = bytes(range(251)) * 12_000
    sent = text * (1 + host["count"] // len(text))
    assert host["download"] == hashlib.sha256(sent[: host["count"]]).hexdigest()
    (hub,) = result.summary.gateways
    assert hub.extra["crashes"]["connections_lost"] == 1
