"""A split gateway under attack: what it does for a client whose packets are its own.

`python benches/witness/gateways.py attacks` prints the response times.
"""

from __future__ import annotations

import statistics
import sys
from pathlib import Path

import pytest

from .boxes import fetch, gateway, listen, live, row
from .test_gateway import CLIENT, HUB, SERVER, SPLIT, write_scenario

pytestmark = live

# Sends packets of one kind until its input ends, then prints how many. The resets and corrupt
# segments are for an open connection, whose ports are known to the attacker.
ATTACKS = """
import os, random, select, socket, struct, sys
kind, source, target, port = sys.argv[1], *map(socket.inet_aton, sys.argv[2:4]), int(sys.argv[4])
def checksum(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff
def ip(payload, source=source, identification=0, fragment=0x4000):
    length = 20 + len(payload)
    return struct.pack("!BBHHHBBH", 0x45, 0, length, identification, fragment, 64, 6, 0) \\
        + source + target + payload
def tcp(port, sequence, flags, data=b"", source=source, offset=5, right=True):
    header = struct.pack("!HHIIBBHHH", port, 80, sequence, 1, offset << 4, flags, 65535, 0, 0)
    text = header + data + b"\\0" * (len(data) % 2)
    pseudo = source + target + struct.pack("!HH", 6, 20 + len(data))
    total = checksum(pseudo + text) ^ (0 if right else 0x5555)
    return header[:16] + struct.pack("!H", total) + header[18:] + data
def elsewhere():
    return struct.pack("!I", 0x0A630000 + random.randrange(1 << 16))
def syns():
    origin = elsewhere()
    yield ip(tcp(random.randrange(1024, 65536), number(), 2, source=origin), source=origin)
def resets():
    yield ip(tcp(port, number(), 4))
def fragments():
    # Three pieces of one segment, of which the second overlaps the others with other bytes.
    whole = tcp(port, number(), 24, os.urandom(1400))
    mark = random.randrange(1 << 16)
    yield ip(whole[:800], identification=mark, fragment=0x2000)
    yield ip(os.urandom(800), identification=mark, fragment=0x2000 | 50)
    yield ip(whole[800:], identification=mark, fragment=100)
def corrupt():
    yield ip(tcp(port, number(), 24, os.urandom(200), right=False))
    yield ip(tcp(port, number(), 24, os.urandom(40), offset=random.randrange(16)))
    yield ip(tcp(random.randrange(65536), number(), random.randrange(256), os.urandom(20)))
def number():
    return random.randrange(1 << 32)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
raw.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
packets, count = {each.__name__: each for each in (syns, resets, fragments, corrupt)}[kind], 0
prepared = [packet for _ in range(4000) for packet in packets()]
print("sends", flush=True)
while not select.select([sys.stdin], [], [], 0)[0]:
    for packet in prepared[:64]:
        raw.sendto(packet, (sys.argv[3], 0))
    prepared = prepared[64:] + prepared[:64]
    count += 64
print(count, flush=True)
"""
# Answers each request on port 81, and echoes on port 80.
ANSWERS = """
import socket, threading
listening = socket.create_server(("", 81), backlog=200)
print("listening", flush=True)
while True:
    peer, _ = listening.accept()
    with peer:
        if peer.recv(100):
            peer.sendall(b"y" * 1000)
"""
# Holds a connection to port 80 and prints its port; then opens connections to port 81 one after the
# other, and prints how long each took to be answered. At the end, the first one is used.
ASKS = """
import hashlib, os, socket, sys, time
address, count = sys.argv[1], int(sys.argv[2])
held = socket.create_connection((address, 80), timeout=20)
content = os.urandom(50_000)
held.sendall(content)
print(held.getsockname()[1], flush=True)
sys.stdin.readline()
for _ in range(count):
    begin = time.monotonic()
    with socket.create_connection((address, 81), timeout=20) as peer:
        peer.sendall(b"x" * 100)
        answer = b"".join(iter(lambda: peer.recv(4000), b""))
    assert answer == b"y" * 1000, len(answer)
    print(1e3 * (time.monotonic() - begin), flush=True)
    time.sleep(0.01)
print("held", flush=True)
sys.stdin.readline()
more = os.urandom(50_000)
held.sendall(more)
held.shutdown(socket.SHUT_WR)
echo = b"".join(iter(lambda: held.recv(1 << 16), b""))
content += more
assert echo == hashlib.sha256(content).digest() + content, len(echo)
print("right", flush=True)
"""
KINDS = ("syns", "resets", "fragments", "corrupt")


def response_times(folder: Path, kind: str | None, count: int) -> tuple[list[float], int]:
    """Return a client's response times in milliseconds, and the number of the attacker's packets.

    The client's open connection must survive, and its bytes must be right.
    """
    with row("server", "hub", "client") as (server, hub, client):
        listen(server)
        answering = server.python(ANSWERS)
        assert answering.stdout is not None
        assert answering.stdout.readline() == "listening\n"
        with gateway(hub, write_scenario(folder, SPLIT), *HUB) as running:
            asking = client.python(ASKS, SERVER[0], str(count))
            assert asking.stdin is not None
            assert asking.stdout is not None
            port = asking.stdout.readline().strip()
            sent, times = 0, []
            if kind is not None:
                attacking = client.start(
                    sys.executable, "-c", ATTACKS, kind, CLIENT[0], SERVER[0], port
                )
                assert attacking.stdout is not None
                assert attacking.stdout.readline() == "sends\n"
            asking.stdin.write("\n")
            asking.stdin.flush()
            while (line := asking.stdout.readline()) not in ("held\n", ""):
                times.append(float(line))
            if kind is not None:
                out, _ = attacking.communicate("\n")
                sent = int(out)
            out, errors = asking.communicate("\n")
            assert out == "right\n", errors
            fetch(client, SERVER[0], 100_000)
            [told] = running.end()["gateways"]
    assert told["connections"]["refused_by_host"] == 0
    # SYNs from nowhere are given up, and some corrupt segments are SYNs.
    assert kind in ("syns", "corrupt") or told["connections"]["aborted"] == 0
    assert told["connections"]["split"] >= count + 2
    return times, sent


@pytest.mark.parametrize("kind", KINDS)
def test_a_client_is_served_during_an_attack(tmp_path: Path, kind: str) -> None:
    times, sent = response_times(tmp_path, kind, 100)
    assert len(times) == 100
    assert sent > 5_000
    # Without packets lost: the first retransmission of a SYN is sent after 1 s.
    assert statistics.median(times) < 500
