"""Split gateways between the kernel's own clients and servers, in real time."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

import bentpipe
from bentpipe.comparison import compare
from bentpipe.emulation import Command
from bentpipe.scenario import Scenario

from .live import live, repeated_after_stall

SERVER = """
import asyncio, hashlib, socket, ssl, struct, sys

async def upload(reader, writer):
    # To the end, and then an answer: the other direction is still open.
    digest = hashlib.sha256(await reader.read()).hexdigest()
    writer.write(digest.encode())
    await writer.drain()
    writer.close()

async def download(reader, writer):
    writer.write(bytes(range(251)) * 12_000)
    await writer.drain()
    writer.close()

async def echo(reader, writer):
    while data := await reader.read(1000):
        writer.write(data)
    writer.close()

async def reset(reader, writer):
    await reader.read(1)
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()

async def page(reader, writer):
    await reader.readuntil(b"\\r\\n\\r\\n")
    body = b"<html>" + b"x" * 200_000
    head = f"HTTP/1.1 200 OK\\r\\nContent-Length: {len(body)}\\r\\nConnection: close\\r\\n\\r\\n"
    writer.write(head.encode() + body)
    await writer.drain()
    writer.close()

async def main():
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    kinds = [(7000, upload), (7001, download), (7002, reset), (7003, echo)]
    servers = [await asyncio.start_server(each, "", port, backlog=2000) for port, each in kinds]
    servers.append(await asyncio.start_server(page, "", 7443, ssl=context))
    await asyncio.gather(*(each.serve_forever() for each in servers))

asyncio.run(main())
"""

CLIENT = """
import asyncio, hashlib, os, socket, subprocess, sys, time

def connect(port):
    deadline = time.monotonic() + 20
    while True:
        try:
            return socket.create_connection(("server", port), timeout=30)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)

def whole(s):
    parts = []
    while part := s.recv(100_000):
        parts.append(part)
    return b"".join(parts)

s = connect(7000)
text = os.urandom(2_000_000)
s.sendall(text)
s.shutdown(socket.SHUT_WR)
assert whole(s).decode() == hashlib.sha256(text).hexdigest(), "upload"

assert whole(connect(7001)) == bytes(range(251)) * 12_000, "download"

try:
    socket.create_connection(("server", 7999), timeout=30)
    raise SystemExit("a closed port answers")
except ConnectionRefusedError:
    pass

s = connect(7002)
s.sendall(b"x")
try:
    assert s.recv(1) == b"", "it was to reset"
    raise SystemExit("closed, not reset")
except ConnectionResetError:
    pass

async def one(n):
    reader, writer = await asyncio.open_connection("server", 7003)
    text = f"{n:06}".encode() * 20
    writer.write(text)
    assert await reader.readexactly(len(text)) == text, n
    writer.close()

async def many():
    await asyncio.gather(*(one(n) for n in range(1000)))

asyncio.run(many())

if sys.argv[1] == "curl":
    page = subprocess.run(["curl", "-sk", "--max-time", "30", "https://server:7443/"],
                          capture_output=True, check=True).stdout
    assert page == b"<html>" + b"x" * 200_000, "page"
"""


def network(gateways: int, **settings: object) -> dict[str, Any]:
    """Return a short satellite link between gateways: two that split, or one and a router."""
    split = {"kind": "split", "facing": "satellite", **settings}
    return {
        "name": "split-live",
        "duration": "60 s",
        "hosts": {"server": {}, "client": {}},
        "gateways": {"hub": split, "terminal": split if gateways == 2 else {}},
        "links": {
            "lan": {"between": ["server", "hub"], "rate": "100 Mbit/s", "delay": "1 ms"},
            "satellite": {"between": ["hub", "terminal"], "rate": "20 Mbit/s", "delay": "25 ms"},
            "home": {"between": ["terminal", "client"], "rate": "100 Mbit/s", "delay": "1 ms"},
        },
        "flows": {
            "download": {
                "from": "server",
                "to": "client",
                "app": {"kind": "bulk", "size": "4 MB"},
            }
        },
    }


ONE: Final = network(1)
TWO: Final = network(2)
PERSISTENT: Final = network(2, multiplex=4)


@live
@pytest.mark.parametrize("between", [ONE, TWO, PERSISTENT], ids=["one", "two", "persistent"])
def test_kernel_programs_connect_through_split_gateways(
    tmp_path: Path, between: dict[str, Any]
) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1"]
    words += ["-subj", "/CN=server"]
    made = [*words, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    server, client = tmp_path / "server.py", tmp_path / "client.py"
    server.write_text(SERVER)
    client.write_text(CLIENT)
    curl = "curl" if shutil.which("curl") else "none"
    result = bentpipe.emulate(
        between,
        commands=[
            Command(
                host="server",
                words=(sys.executable, str(server), str(certificate), str(key)),
                waited_for=False,
            ),
            Command(host="client", words=(sys.executable, str(client), curl), waited_for=True),
        ],
    )
    assert result.status == 0
    for gateway in result.summary.gateways:
        assert gateway.connections["split"] >= 1_000
        assert gateway.connections["open_max"] >= 500
        assert gateway.connections["refused"] == 0


@live
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="iperf3 is not installed")
@pytest.mark.parametrize(
    "between",
    [ONE, TWO, pytest.param(PERSISTENT, marks=pytest.mark.slow)],
    ids=["one", "two", "persistent"],
)
@pytest.mark.parametrize("way", ["", "--reverse"], ids=["up", "down"])
def test_iperf3_fills_the_link_in_both_directions(
    tmp_path: Path, between: dict[str, Any], way: str
) -> None:
    heard = tmp_path / "iperf3.json"
    # Until the server listens: it may take a moment.
    client = (
        "for _ in 1 2 3 4 5 6 7 8 9 10; do "
        f"iperf3 -c server -t 3 -O 1 {way} --json > {heard} && exit 0; sleep 0.2; done; exit 1"
    )
    bentpipe.emulate(
        between,
        commands=[
            Command(host="server", words=("iperf3", "-s"), waited_for=False),
            Command(host="client", words=("sh", "-c", client), waited_for=True),
        ],
    )
    received = json.loads(heard.read_text())["end"]["sum_received"]["bits_per_second"]
    # 1448 of 1500 bytes are the stream's; persistent connections have their frames besides.
    most = 20e6 * 1448 / 1500
    assert 0.9 * most < received < 1.02 * most


@live
@pytest.mark.parametrize("between", [ONE, TWO, PERSISTENT], ids=["one", "two", "persistent"])
@repeated_after_stall
def test_live_split_transfer_matches_the_simulation(between: dict[str, Any]) -> None:
    comparison = compare(Scenario.of(between))
    real = comparison.emulated.flow()
    assert (real.outcome, real.bytes_delivered) == ("finished", 4_000_000)
    # Nothing is random here.
    (difference,) = comparison.differences.values()
    assert difference.transfer_time is not None
    assert abs(difference.transfer_time) < 0.05
