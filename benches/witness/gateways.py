"""Simulated and real gateways compared, in the networks of docs/gateway.md.

    python benches/witness/gateways.py [NETWORK ...]

Without arguments, all networks are run. Five machines (network namespaces) are used: the kernel's
server and client, two that run gateways or forward packets, and one that runs the satellite link.
Each network transfers a file and fifteen requests, three to twelve seconds each. Root is needed.
`gateways.py speed` measures the speed of one machine instead, beside kernel forwarding and PEPsal:
see `gateway_speed`. `gateways.py attacks` measures response times under attack: see
`gateway_attacks`.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from python.boxes import gateway, row  # noqa: E402

import bentpipe  # noqa: E402

SCENARIO = """
name = "network"
duration = "100 s"
hosts.server.tcp = {{ profile = "linux" }}
hosts.client.tcp = {{ profile = "linux" }}
gateways.hub = {hub}
gateways.terminal = {terminal}
[links.lan]
between = ["server", "hub"]
rate = "1 Gbit/s"
delay = "50 us"
[links.satellite]
between = ["hub", "terminal"]
{satellite}
[links.home]
between = ["terminal", "client"]
rate = "1 Gbit/s"
delay = "50 us"
[flows.flow]
{flow}
"""
ROUTER = '{ kind = "router" }'


def split(more: str = "") -> str:
    """Return a split gateway with additional settings."""
    return '{ kind = "split", facing = "satellite"' + (", " + more if more else "") + " }"


def both(more: str = "") -> tuple[str, str]:
    """Return a split gateway for both ends."""
    return split(more), split(more)


def link(forward: str, back: str, delay_ms: int, *, more: str = "", back_more: str = "") -> str:
    """Return both directions of the satellite link."""
    ways = (("forward", forward, more), ("return", back, back_more))
    return "\n".join(
        f'{way} = {{ rate = "{rate}", delay = "{delay_ms} ms"{", " + what if what else ""} }}'
        for way, rate, what in ways
    )


def lost(share: str) -> str:
    """Return an error model with this loss rate."""
    return f"errors = {{ packet_loss_rate = {share} }}"


def queue(packets: int) -> str:
    """Return a queue limit of so many packets."""
    return f'queue = {{ kind = "drop-tail", limit = "{packets} packets" }}'


def rule(name: str) -> str:
    """Return a split gateway with a window rule."""
    return split(f'tcp = {{ congestion_control = "{name}" }}')


HYBRID = '{ kind = "hybrid", facing = "satellite", tcp = {}, receive_buffer = "256 kB" }'
WARM = both("multiplex = 4, warm_path = true")
EARLY = both('set_up = "early", close = "early"')
SUPPRESSED = 'acks = { kind = "suppression" }'

# The gateways, the satellite link, bytes of the file, bytes of a reply.
NETWORKS: dict[str, tuple[tuple[str, str], str, int, int]] = {
    "geo": (both(), link("25 Mbit/s", "3 Mbit/s", 270, more=queue(600)), 10_000_000, 50_000),
    "hybla": (
        (rule("hybla"), split()),
        link("40 Mbit/s", "4 Mbit/s", 260, more=lost("1e-4")),
        20_000_000,
        50_000,
    ),
    "leo": (both(), link("80 Mbit/s", "20 Mbit/s", 18, more=queue(300)), 30_000_000, 100_000),
    "bbr": (
        (rule("bbr"), split()),
        link("40 Mbit/s", "10 Mbit/s", 65, more=lost("1e-3")),
        15_000_000,
        50_000,
    ),
    "hybrid": ((HYBRID, ROUTER), link("2 Mbit/s", "64 kbit/s", 250), 1_500_000, 20_000),
    "persistent": (WARM, link("10 Mbit/s", "1 Mbit/s", 250), 5_000_000, 50_000),
    "tiny-queue": (
        (rule("reno"), split()),
        link("512 kbit/s", "128 kbit/s", 280, more=queue(20)),
        600_000,
        10_000,
    ),
    "suppression": (
        (split(), ROUTER),
        link("15 Mbit/s", "32 kbit/s", 260, back_more=SUPPRESSED),
        5_000_000,
        20_000,
    ),
    "westwood": (
        (rule("westwood"), split()),
        link("30 Mbit/s", "10 Mbit/s", 25, more=lost("2e-3")),
        10_000_000,
        50_000,
    ),
    "codel": (
        both(),
        link("8 Mbit/s", "2 Mbit/s", 120, more='queue = { kind = "codel" }'),
        6_000_000,
        30_000,
    ),
    "early": (EARLY, link("20 Mbit/s", "2 Mbit/s", 150), 8_000_000, 40_000),
}

RECEIVES = """
import socket, time
listening = socket.create_server(("", 5001))
print("listening", flush=True)
peer, _ = listening.accept()
got = 0
while text := peer.recv(1 << 20):
    got, at = got + len(text), time.monotonic()
print(got, at, flush=True)
"""
SENDS = """
import socket, sys, time
begin = time.monotonic()
peer = socket.create_connection((sys.argv[1], 5001), timeout=60)
peer.sendall(bytes(int(sys.argv[2])))
peer.shutdown(socket.SHUT_WR)
print(begin, flush=True)
peer.recv(1)
"""
ANSWERS = """
import socket, sys
listening = socket.create_server(("", 5002))
print("listening", flush=True)
peer, _ = listening.accept()
while True:
    left = 300
    while left:
        text = peer.recv(left)
        if not text:
            sys.exit()
        left -= len(text)
    peer.sendall(bytes(int(sys.argv[1])))
"""
ASKS = """
import json, socket, sys, time
peer = socket.create_connection((sys.argv[1], 5002), timeout=60)
took = []
for _ in range(15):
    begin, left = time.monotonic(), int(sys.argv[2])
    peer.sendall(bytes(300))
    while left:
        left -= len(peer.recv(left))
    took.append(time.monotonic() - begin)
print(json.dumps(took))
"""


def simulated(file: Path) -> dict[str, Any]:
    """Return the results of the flow in a simulated run."""
    [flow] = json.loads(bentpipe.run(file).summary_json)["flows"]
    return dict(flow)


def live(file: Path, gateways: tuple[str, str], what: str, length: int) -> float:
    """Return the seconds that the file took, or a reply on average."""
    addresses = ("10.1.0.250", "10.4.0.250")
    plays = {
        "hub": ("--interface", "lan=to-server", "--interface", "satellite=to-sky"),
        "terminal": ("--interface", "satellite=to-sky", "--interface", "home=to-client"),
    }
    ends = ("--interface", "hub=to-hub", "--interface", "terminal=to-terminal")
    with (
        row("server", "hub", "sky", "terminal", "client") as boxes,
        contextlib.ExitStack() as running,
    ):
        server, hub, sky, terminal, client = boxes
        running.enter_context(gateway(sky, file, "--link", "satellite", *ends))
        own = [("--address", a, "--peer", b) for a, b in (addresses, addresses[::-1])]
        for box, text, speaks in zip((hub, terminal), gateways, own, strict=True):
            if text != ROUTER:
                more = speaks if "multiplex" in text else ()
                words = ("--gateway", box.name, *plays[box.name], *more)
                running.enter_context(gateway(box, file, *words))
        # Time to establish persistent connections.
        time.sleep(1.5)
        listens, program = (client, RECEIVES) if what == "file" else (server, ANSWERS)
        listening = listens.python(program, str(length))
        assert listening.stdout is not None
        assert listening.stdout.readline() == "listening\n"
        if what == "answers":
            took = client.run(sys.executable, "-c", ASKS, "10.1.0.1", str(length))
            return mean(json.loads(took))
        sending = server.python(SENDS, "10.4.0.2", str(length))
        assert sending.stdout is not None
        begin = float(sending.stdout.readline())
        got, end = listening.stdout.readline().split()
        assert int(got) == length
        return float(end) - begin


def main(wanted: list[str]) -> None:
    """Run the requested networks, and print a line for each."""
    with tempfile.TemporaryDirectory() as folder:
        for name in wanted or NETWORKS:
            gateways, satellite, size, answer = NETWORKS[name]
            file_app = f'app = {{ kind = "bulk", size = "{size} B" }}'
            asked = f'request = "300 B", response = "{answer} B", requests = 15'
            flows = {
                "file": f'from = "server"\nto = "client"\n{file_app}',
                "answers": 'from = "client"\nto = "server"\n'
                f'app = {{ kind = "request-response", {asked} }}',
            }
            for what, flow in flows.items():
                text = SCENARIO.format(
                    hub=gateways[0], terminal=gateways[1], satellite=satellite, flow=flow
                )
                file = Path(folder) / f"{name}-{what}.toml"
                file.write_text(text, encoding="utf-8")
                told = simulated(file)
                if what == "file":
                    run = told["finish_s"] - told["start_s"]
                else:
                    run = told["responses"]["time_ms"]["mean"] / 1e3
                took = live(file, gateways, what, size if what == "file" else answer)
                print(f"{name}, {what}: {run:.3f} s, live {took:.3f} s, {took / run - 1:+.1%}")


if __name__ == "__main__":
    if sys.argv[1:] == ["speed"]:
        import gateway_speed

        gateway_speed.main()
    elif sys.argv[1:] == ["attacks"]:
        import gateway_attacks

        gateway_attacks.main()
    else:
        main(sys.argv[1:])
