"""Real gateways with hundreds of connections at once, and with SYNs that mean nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from .boxes import fetch, gateway, listen, live, row
from .test_gateway import HUB, HYBRID, SERVER, SPLIT, write_scenario

pytestmark = live

# The first five bytes of a connection state its kind and length.
ENDS = """
import asyncio, hashlib, random, resource, socket, struct
resource.setrlimit(resource.RLIMIT_NOFILE, (4000, 4000))
def reset(writer):
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
    writer.transport.abort()
"""
SERVES = (
    ENDS
    + """
async def serve(reader, writer):
    try:
        kind, length = struct.unpack("!BI", await reader.readexactly(5))
        if kind == 1:
            writer.write(bytes(length))
            await asyncio.sleep(0.3)
            return reset(writer)
        if kind == 3:
            # A window of zero, for as long.
            await asyncio.sleep(2)
        content = random.Random(length).randbytes(length) if kind == 2 else await reader.read()
        writer.write(hashlib.sha256(content).digest() + content)
        writer.write_eof()
        await writer.drain()
        assert await reader.read() == b""
        writer.close()
    except (ConnectionError, asyncio.IncompleteReadError):
        writer.transport.abort()
async def main():
    listening = socket.create_server(
        ("::", 80), family=socket.AF_INET6, dualstack_ipv6=True, backlog=2000
    )
    server = await asyncio.start_server(serve, sock=listening, limit=4096, backlog=2000)
    print("listening", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
)
ASKS = (
    ENDS
    + """
import json, sys
told = {}
async def one(number):
    dice = random.Random(number)
    kind = number % 5
    length = dice.choice([0, 1, 1_000, 40_000, 400_000])
    address = sys.argv[1 + number % 2]
    reader, writer = await asyncio.open_connection(address, 80, limit=4096)
    content = dice.randbytes(length)
    writer.write(struct.pack("!BI", kind, length))
    if kind == 4:
        writer.write(content)
        await asyncio.sleep(dice.random() / 5)
        return reset(writer)
    if kind in (0, 3):
        # Both at once, or neither could go on: nobody has room for all of it.
        async def send():
            writer.write(content)
            writer.write_eof()
            await writer.drain()
        sending = asyncio.create_task(send())
    if kind == 2:
        # Nor does this one read at once.
        await asyncio.sleep(2)
    try:
        answer = await reader.read()
        assert kind != 1, "no reset"
    except ConnectionResetError:
        assert kind == 1, kind
        return
    assert hashlib.sha256(answer[32:]).digest() == answer[:32], (kind, length, len(answer))
    assert len(answer) == 32 + length, (kind, length, len(answer))
    if kind in (0, 3):
        await sending
        assert answer[32:] == content
    writer.close()
async def counted(number):
    async with asyncio.timeout(25):
        await one(number)
    told[number % 5] = told.get(number % 5, 0) + 1
async def main():
    await asyncio.gather(*(counted(number) for number in range(600)))
asyncio.run(main())
print(json.dumps(told, sort_keys=True))
"""
)


@pytest.mark.parametrize("text", [SPLIT, HYBRID], ids=["split", "hybrid"])
def test_hundreds_of_connections_leave_no_state(tmp_path: Path, text: str) -> None:
    with row("server", "hub", "client") as (server, hub, client):
        serving = server.python(SERVES)
        assert serving.stdout is not None
        assert serving.stdout.readline() == "listening\n"
        with gateway(hub, write_scenario(tmp_path, text), *HUB) as running:
            told = json.loads(client.run(sys.executable, "-c", ASKS, *SERVER))
            said = running.end()
    assert told == {str(kind): 120 for kind in range(5)}
    [hub_told] = said["gateways"]
    assert hub_told["connections"]["split" if text == SPLIT else "tracked"] == 600
    assert hub_told["connections"]["refused"] == 0
    assert hub_told["bytes_held"]["max"] > 1_000_000
    assert hub_told["bytes_held"]["now"] == 0
    assert said["refused"] == {}


# SYNs from many ports, and nothing else: as many as are asked for, or as 10 s suffice for.
FLOOD = """
import random, socket, struct, sys, time
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
dice = random.Random(1)
to = socket.inet_aton(sys.argv[1])
def checksum(of):
    total = sum(struct.unpack(f"!{len(of) // 2}H", of))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
end = time.monotonic() + 10
sent = 0
while sent < int(sys.argv[2]) and time.monotonic() < end:
    source = bytes([10, 77, dice.randrange(256), dice.randrange(256)])
    head = struct.pack("!HHIIBB", dice.randrange(1024, 65536), 80, dice.getrandbits(32), 0, 96, 2)
    rest = struct.pack("!H", 65535), struct.pack("!HBBH", 0, 2, 4, 1460)
    pseudo = source + to + struct.pack("!HH", 6, 24)
    sum_ = checksum(pseudo + head + rest[0] + bytes(2) + rest[1])
    segment = head + rest[0] + struct.pack("!H", sum_) + rest[1]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 44, 0, 0x4000, 64, 6, 0) + source + to
    raw.sendto(ip + segment, (sys.argv[1], 0))
    sent += 1
print(sent)
"""


@pytest.mark.parametrize("text", [SPLIT, HYBRID], ids=["split", "hybrid"])
def test_syn_flood_uses_bounded_memory(tmp_path: Path, text: str) -> None:
    bounded = text.replace('facing = "satellite"', 'facing = "satellite", memory = "16 MiB"')
    if text == HYBRID:
        bounded = bounded.replace('memory = "16 MiB"', "connections = 1000")
    with row("server", "hub", "client") as (server, hub, client):
        # Their answers go to nobody: the client is no router.
        hub.ip("route add 10.77.0.0/16 via 10.2.0.2")
        server.ip("route add 10.77.0.0/16 via 10.1.0.2")
        listen(server)
        with gateway(hub, write_scenario(tmp_path, bounded), *HUB) as running:

            def memory() -> int:
                """Return its memory, in KiB."""
                status = Path(f"/proc/{running.process.pid}/status").read_text(encoding="utf-8")
                [line] = [line for line in status.splitlines() if line.startswith("VmRSS")]
                return int(line.split()[1])

            before = memory()
            sent = int(client.run(sys.executable, "-c", FLOOD, SERVER[0], "30000"))
            grown = memory() - before
            # There is no room for it: it passes as it is.
            fetch(client, SERVER[0])
            # The operator is notified.
            said = "wait for an answer" if text == SPLIT else "table is full"
            assert any(said in line for line in running.log_lines()), running.log_lines()
            [told] = running.end()["gateways"]
    assert told["connections"]["refused"] > sent // 2
    # The packets that waited, most of all.
    assert grown < 16 << 10
