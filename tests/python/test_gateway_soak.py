"""A split gateway with one connection after the other: its memory stays flat."""

from __future__ import annotations

import os
import statistics
from pathlib import Path

import pytest

from .boxes import gateway, live, row
from .test_gateway import HUB, SERVER, SPLIT, write_scenario
from .test_gateway_load import memory_kb

pytestmark = live

# Answers what it receives, and closes first, so that the client's ports are free at once.
ANSWERS = """
import asyncio
async def serve(reader, writer):
    try:
        writer.write(await reader.readexactly(200))
        writer.close()
        await writer.wait_closed()
    except (OSError, asyncio.IncompleteReadError):
        pass
async def main():
    server = await asyncio.start_server(serve, "", 81, limit=1024, backlog=4000)
    print("listening", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
# Opens connections for some seconds, or until there were as many as asked for. Prints their number
# twice a second; the last line is followed by the end.
OPENS = """
import asyncio, sys, time
address, wanted, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
end, count = time.monotonic() + seconds, 0
async def opens():
    global count
    while count < wanted and time.monotonic() < end:
        count += 1
        reader, writer = await asyncio.open_connection(address, 81, limit=1024)
        writer.write(b"x" * 200)
        assert await reader.readexactly(200) == b"x" * 200
        assert await reader.read() == b""
        writer.close()
async def reports():
    while True:
        await asyncio.sleep(0.5)
        print(count, flush=True)
async def main():
    reporting = asyncio.create_task(reports())
    await asyncio.gather(*(opens() for _ in range(32)))
    reporting.cancel()
    print(count, flush=True)
asyncio.run(main())
"""


def soak(folder: Path, wanted: int, seconds: float) -> None:
    """Open connections, and compare the memory at the end with that after a quarter of them."""
    text = SPLIT.replace('facing = "satellite"', 'facing = "satellite", memory = "16 MiB"')
    with row("server", "hub", "client") as (server, hub, client):
        client.sysctl("net.ipv4.ip_local_port_range=1024 65000")
        serving = server.python(ANSWERS)
        assert serving.stdout is not None
        assert serving.stdout.readline() == "listening\n"
        with gateway(hub, write_scenario(folder, text), *HUB) as running:
            opening = client.python(OPENS, SERVER[0], str(wanted), str(seconds))
            assert opening.stdout is not None
            pid = running.process.pid
            samples = [(int(line), memory_kb(pid)) for line in opening.stdout]
            _, errors = opening.communicate()
            assert opening.returncode == 0, errors
            said = running.end()
    opened = samples[-1][0]
    counted = said["gateways"][0]["connections"]
    # Some are opened while the first ones in TIME-WAIT make room.
    assert counted["split"] + counted["refused"] == opened
    assert counted["refused"] == 0
    early = [memory for count, memory in samples if opened / 4 < count < opened / 2]
    late = [memory for count, memory in samples if count > opened * 3 / 4]
    before, after = statistics.median(early), statistics.median(late)
    # Shown by `pytest --capture=no`.
    print(f"{opened} connections: {before:.0f} kB, then {after:.0f} kB")
    assert after < before * 1.05 + 1_000, f"{before:.0f} kB, then {after:.0f} kB"


def test_memory_is_flat_over_thousands_of_connections(tmp_path: Path) -> None:
    soak(tmp_path, 12_000, 20)


@pytest.mark.slow
def test_memory_is_flat_over_an_hour(tmp_path: Path) -> None:
    """`BENTPIPE_SOAK_SECONDS` shortens the hour."""
    soak(tmp_path, 10_000_000, float(os.environ.get("BENTPIPE_SOAK_SECONDS", "3600")))
