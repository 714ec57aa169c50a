"""Real gateways with more connections than usual: idle ones, and SYNs that nobody answers."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from .boxes import fetch, gateway, listen, live, row, wait_until
from .test_gateway import HUB, SERVER, SPLIT, write_scenario
from .test_gateway_control import controlled, told
from .test_gateway_program import COMMANDS

pytestmark = live

PROGRAM, PACKAGE = COMMANDS["program"], COMMANDS["package"]
IDLE = 10_000
# Opens connections, sends and receives a few bytes on each, and keeps them open.
OPENS = """
import asyncio, resource, socket, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (20_000, 20_000))
count = int(sys.argv[2])
async def main():
    slots = asyncio.Semaphore(100)
    kept = []
    async def one():
        async with slots:
            reader, writer = await asyncio.open_connection(sys.argv[1], 81, limit=1024)
            writer.write(b"x" * 500)
            await reader.readexactly(500)
            kept.append((reader, writer))
    await asyncio.gather(*(one() for _ in range(count)))
    print(len(kept), flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    for _, writer in kept:
        writer.write(b"y" * 500)
    for reader, _ in kept:
        assert await reader.readexactly(500) == b"y" * 500
    print("answered", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
asyncio.run(main())
"""
ANSWERS = """
import asyncio, resource
resource.setrlimit(resource.RLIMIT_NOFILE, (20_000, 20_000))
async def serve(reader, writer):
    while text := await reader.read(1000):
        writer.write(text)
async def main():
    server = await asyncio.start_server(serve, "", 81, limit=1024, backlog=4000)
    print("listening", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
# Sends SYNs from addresses to which nobody has a route.
FLOODS = """
import random, socket, struct, sys
def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
target = socket.inet_aton(sys.argv[1])
for number in range(int(sys.argv[2])):
    source = struct.pack("!I", 0x0A630000 + random.randrange(1 << 16))
    port = random.randrange(1024, 65536)
    tcp = struct.pack("!HHIIBBHHH", port, 80, number, 0, 5 << 4, 2, 65535, 0, 0)
    total = checksum(source + target + struct.pack("!HH", 6, 20) + tcp)
    tcp = tcp[:16] + struct.pack("!H", total) + tcp[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 40, 0, 0, 64, 6, 0) + source + target
    raw.sendto(ip + tcp, (sys.argv[1], 0))
"""


def memory_kb(pid: int, field: str = "VmRSS") -> int:
    """Return the resident memory of a process; with "VmHWM", its maximum so far."""
    lines = Path(f"/proc/{pid}/status").read_text("ascii").splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith(field)))


@pytest.mark.parametrize("command", [PROGRAM, PACKAGE], ids=["program", "package"])
def test_thousands_of_idle_connections_are_split_in_little_memory(
    tmp_path: Path, command: Sequence[str]
) -> None:
    """They take 3 kB each once they were idle for 20 s, and go on afterwards."""
    with row("server", "hub", "client") as (server, hub, client):
        serving = server.python(ANSWERS)
        assert serving.stdout is not None
        assert serving.stdout.readline() == "listening\n"
        with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB, command=command) as running:
            before = memory_kb(running.process.pid)
            asking = client.python(OPENS, SERVER[0], str(IDLE))
            assert asking.stdout is not None
            assert asking.stdin is not None
            assert asking.stdout.readline() == f"{IDLE}\n"
            wait_until(
                lambda: (memory_kb(running.process.pid) - before) / IDLE < 3,
                "3 kB per idle connection",
            )
            assert memory_kb(running.process.pid, "VmHWM") < 256 << 10
            # All wake up.
            asking.stdin.write("\n")
            asking.stdin.flush()
            assert asking.stdout.readline() == "answered\n"
            # RFC 9293 section 3.8.6.3: the last data is acknowledged within half a second.
            time.sleep(1.0)
            said = running.end()
    [hub_said] = said["gateways"]
    assert hub_said["connections"]["split"] == IDLE
    assert hub_said["connections"]["refused"] == 0
    # There and back, twice.
    assert hub_said["hosts"]["bytes_delivered"] + hub_said["facing"]["bytes_delivered"] == (
        4 * 500 * IDLE
    )


def test_syns_that_nobody_answers_leave_others_split(tmp_path: Path) -> None:
    """Before, 2,100 of them kept all other connections from being split for a minute."""
    with row("server", "hub", "client") as (server, hub, client):
        listen(server)
        with gateway(hub, write_scenario(tmp_path, SPLIT), *HUB) as running:
            client.run(sys.executable, "-c", FLOODS, SERVER[0], "5000")
            for _ in range(10):
                fetch(client, SERVER[0], 20_000)
            said = running.end()
    counted = said["gateways"][0]["connections"]
    assert counted["refused"] == 0
    assert counted["split"] > 4_000


def test_a_flood_of_syns_is_limited_counted_and_reported(tmp_path: Path) -> None:
    """With little memory, the oldest half-open connections make room for others."""
    text = SPLIT.replace('facing = "satellite"', 'facing = "satellite", memory = "8 MiB"')
    with row("server", "hub", "client") as (server, hub, client):
        listen(server)
        with controlled(hub, tmp_path, text=text) as (running, path):

            def given_up() -> int:
                """Return how many connections were given up, after one more was opened."""
                fetch(client, SERVER[0], 20_000)
                counters = told(path, "status")["counters"]["hub"]
                return int(counters["connections.half_open_given_up"])

            client.run(sys.executable, "-c", FLOODS, SERVER[0], "3000")
            # A second later, the oldest ones are given up.
            wait_until(lambda: given_up() > 0, "room for a new connection")
            lines = running.log_lines()
            said = running.end()
    counted = said["gateways"][0]["connections"]
    limit = (8 << 20) // 8 // 5_092
    opened = counted["split"] - counted["half_open_given_up"]
    assert opened <= limit + 11
    assert counted["refused_half_open"] == counted["refused"] > 1_000
    assert any("wait for an answer" in line for line in lines), lines
