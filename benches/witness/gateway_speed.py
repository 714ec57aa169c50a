"""Speed of a split gateway beside kernel forwarding and PEPsal, on one machine.

    BENTPIPE_PEPSAL=PROGRAM python benches/witness/gateways.py speed

Three machines (network namespaces) are joined by veth pairs; the one in the middle forwards, or
runs a gateway. The kinds alternate, and medians over the turns are printed: Gbit/s with iperf3 over
1 and 50 connections, the processor time of the gateway, round trips (ping) meanwhile, and
connections per second. Root, iperf3, ping and nft are needed. Without BENTPIPE_PEPSAL, which names
PEPsal's program (https://github.com/CNES/pepsal), it is left out.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from python.boxes import Box, gateway, row, wait_until  # noqa: E402

SECONDS = 4
SCENARIO = """
name = "speed"
duration = "60 s"
hosts = { server = {}, client = {} }
gateways.hub = { kind = "split", facing = "satellite" }
[links.lan]
between = ["server", "hub"]
rate = "1 Gbit/s"
delay = "1 ms"
[links.satellite]
between = ["hub", "client"]
rate = "1 Gbit/s"
delay = "1 ms"
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk", size = "1 MB" }
"""
SIDES = ("--gateway", "hub", "--interface", "lan=to-server", "--interface", "satellite=to-client")
SERVER = "10.1.0.1"

# PEPsal's rules (conf/pepsal.nft), for both interfaces and all connections.
RULES = """
table inet mangle {
    chain INTERCEPT {
        meta l4proto tcp tproxy ip to 127.0.0.1:5000 meta mark set ct mark accept
    }
    chain PREROUTING {
        type filter hook prerouting priority mangle; policy accept;
        ip version 4 ct mark 0xc9 accept
        ip version 4 ct mark 0xc8 jump INTERCEPT
        ip version 4 iifname { "to-server", "to-client" } meta l4proto tcp ct state new \
            ct mark set 0xc8 jump INTERCEPT
    }
}
"""

# Opens and closes connections for some seconds, eight at a time, and prints how many.
OPENS = """
import socket, sys, threading, time
end, counts = time.monotonic() + float(sys.argv[2]), []
def opens():
    count = 0
    while time.monotonic() < end:
        with socket.create_connection((sys.argv[1], 80), timeout=20) as peer:
            peer.recv(1)
        count += 1
    counts.append(count)
threads = [threading.Thread(target=opens) for _ in range(8)]
for each in threads:
    each.start()
for each in threads:
    each.join()
print(sum(counts))
"""
# Accepts and closes connections.
ACCEPTS = """
import socket
listening = socket.create_server(("", 80), backlog=4000)
print("listening", flush=True)
while True:
    try:
        listening.accept()[0].close()
    except ConnectionAbortedError:
        pass
"""


def processor_seconds(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def forwarding(_hub: Box, _folder: Path) -> Iterator[int | None]:
    """Have the kernel forward."""
    yield None


@contextlib.contextmanager
def split(hub: Box, folder: Path) -> Iterator[int | None]:
    """Have the split gateway run. `BENTPIPE_GATEWAY` names its program, or the package's runs."""
    file = folder / "speed.toml"
    file.write_text(SCENARIO, encoding="utf-8")
    with gateway(hub, file, *SIDES) as running:
        yield running.process.pid


@contextlib.contextmanager
def pepsal(hub: Box, _folder: Path) -> Iterator[int | None]:
    """Have PEPsal run, with its rules."""
    hub.ip("rule add fwmark 200 lookup 100")
    hub.ip("route add local 0.0.0.0/0 dev lo table 100")
    hub.run("nft", RULES)
    process = hub.start(os.environ["BENTPIPE_PEPSAL"], "-p", "5000", "-c", "2000")
    try:
        wait_until(lambda: ":5000" in hub.run("ss", "-lnt"), "PEPsal listens")
        yield process.pid
    finally:
        process.kill()
        hub.run("nft", "delete table inet mangle")
        hub.ip("rule del fwmark 200 lookup 100")
        hub.ip("route flush table 100")


KINDS: dict[str, Callable[[Box, Path], contextlib.AbstractContextManager[int | None]]] = {
    "kernel forwarding": forwarding,
    "split": split,
    "PEPsal": pepsal,
}
WORDS = {"down": ["-R"], "up": [], "50 down": ["-R", "-P", "50"], "50 up": ["-P", "50"]}


def transfer(client: Box, pid: int | None, words: list[str]) -> dict[str, float]:
    """Return rate, processor time and round trips of one transfer."""
    before = processor_seconds(pid) if pid else 0.0
    pinging = client.start("ping", "-i", "0.02", "-w", str(SECONDS), SERVER)
    text = client.run("iperf3", "-J", "-c", SERVER, "-t", str(SECONDS), *words)
    used = processor_seconds(pid) - before if pid else 0.0
    out, _ = pinging.communicate()
    rate = json.loads(text)["end"]["sum_received"]["bits_per_second"] / 1e9
    lines = [line for line in out.splitlines() if "time=" in line]
    trips = sorted(float(line.split("time=")[1].split()[0]) for line in lines)
    found = {"Gbit/s": rate, "cores": used / SECONDS}
    if trips:
        found["ping median ms"] = statistics.median(trips)
        found["ping p99 ms"] = trips[int(len(trips) * 0.99) - 1]
    return found


def main(turns: int = 3) -> None:
    """Print the medians of each kind."""
    kinds = [name for name in KINDS if name != "PEPsal" or "BENTPIPE_PEPSAL" in os.environ]
    found: dict[tuple[str, str, str], list[float]] = {}
    with row("server", "hub", "client") as boxes, tempfile.TemporaryDirectory() as folder:
        server, hub, client = boxes
        # A full pipe would block it.
        server.start("iperf3", "-s", "--logfile", "/dev/null")
        accepting = server.python(ACCEPTS)
        assert accepting.stdout is not None
        assert accepting.stdout.readline() == "listening\n"
        for _ in range(turns):
            for name in kinds:
                with KINDS[name](hub, Path(folder)) as pid:
                    for what, words in WORDS.items():
                        try:
                            values = transfer(client, pid, words)
                        except (AssertionError, subprocess.TimeoutExpired) as error:
                            print(f"{name}, {what}: {str(error)[:200]}", file=sys.stderr)
                            continue
                        for unit, value in values.items():
                            found.setdefault((name, what, unit), []).append(value)
                    try:
                        opened = int(client.run(sys.executable, "-c", OPENS, SERVER, str(SECONDS)))
                    except (AssertionError, subprocess.TimeoutExpired) as error:
                        print(f"{name}, connections: {str(error)[-200:]}", file=sys.stderr)
                        continue
                    key = (name, "connections", "per second")
                    found.setdefault(key, []).append(opened / SECONDS)
    for (name, what, unit), values in found.items():
        print(f"{name}, {what}: {statistics.median(values):.3g} {unit}")
