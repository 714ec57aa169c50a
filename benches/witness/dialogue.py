"""Responses of the kernel's TCP to a random peer, recorded as packetdrill scripts.

    python3 benches/witness/dialogue.py FOLDER [--kind sender] [--seeds 1-96]
    target/release/bentpipe-testkit run FOLDER

A socket of the running kernel listens behind a TUN device, in its own network namespace. This
program is its peer and its application. The packets in both directions are written as a script that
`bentpipe-testkit run` compares with our own TCP. The kernel's window and recovery state after each
packet are recorded as comments (docs/validation/packetdrill.md).

A dialogue takes three seconds of real time; a dozen run in parallel. Root is needed. The program
ends only processes that it has started, and uses only its own devices.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import random
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

import dialogue_kinds as kinds
import dialogue_odd as odd
import dialogue_states as states
from dialogue_peer import LOCAL, PORTS, REMOTE, Peer

AT_ONCE: Final = 12
# The kernel's timers have ticks of 4 ms, and a coarser resolution the longer they are.
TOLERANCE_US: Final = 35_000

# Settings of packetdrill's own scripts (google/packetdrill, gtests/net/common/defaults.sh) that
# matter here.
SYSCTLS: Final = {
    "tcp_rmem": "4096 540000 15728640",
    "tcp_wmem": "4096 262144 4194304",
    "tcp_slow_start_after_idle": "0",
    "tcp_ecn": "0",
}

KINDS: Final[dict[str, Callable[[Peer], None]]] = {
    "sender": kinds.sender,
    "stamped": kinds.sender,  # with the timestamp option
    "receiver": kinds.receiver,
    "buffer": kinds.receiver,  # with a buffer that the application has set
    "conversation": kinds.conversation,
    "window": kinds.window,
    "abort": kinds.abort,
    "closing": kinds.closing,
    "notified": states.notified,
    "keep-alive": states.keep_alive,
    "gathering": states.gathering,
    "idle": states.idle,
    "unused": states.unused,
    "path-mtu": states.path_mtu,
    "backwards": odd.backwards,  # timestamp values step back or far ahead
    "wrapping": odd.wrapping,
    "early-fin": odd.early_fin,
    "tiny": odd.tiny,
    "shrinking": odd.shrinking,
}
# Kinds that open the connection themselves, with a listening socket or one that connects.
OPENINGS: Final[dict[str, Callable[[Peer, socket.socket], None]]] = {
    "opening": states.opening,
    "calling": states.calling,
}
# Further settings by kind.
SETTINGS: Final = {
    "notified": ("tcp_ecn", "1"),
    "idle": ("tcp_slow_start_after_idle", "1"),
    "unused": ("tcp_slow_start_after_idle", "1"),
}


def record(kind: str, seed: int) -> str:
    """Run one dialogue in this process's own network namespace, and return the script."""
    # A delay of this program would be recorded as a delay of the kernel.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    dice = random.Random(f"{kind} {seed}")
    tun = _device(kind)
    own = socket.socket()
    own.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    own.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    buffer = dice.choice((3_000, 8_000, 20_000, 100_000)) if kind == "buffer" else None
    if buffer is not None:
        own.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    own.bind((LOCAL, PORTS[1]))
    if kind != "calling":
        own.listen(1)
    scaled = dice.random() < 0.75
    peer = Peer(
        tun=tun,
        dice=dice,
        begun_s=time.monotonic(),
        first=dice.getrandbits(32),
        mss=dice.choice((1000, 1000, 1460, 536)),
        sack=dice.random() < 0.8,
        scaled=scaled,
        round_trip_s=dice.choice((0.02, 0.05, 0.1, 0.1, 0.3)),
        window_bytes=2_000_000 if scaled else 60_000,
        buffer=buffer,
        stamps=kind in ("stamped", "backwards"),
        ecn=kind == "notified",
    )
    if kind == "tiny":
        peer.mss = dice.choice((48, 64, 100, 128, 256, 400, 535))
    if kind == "wrapping":
        peer.first = peer.base = (1 << 32) - dice.choice((1, 2, 500, 3_000, 10_000))
    if kind in OPENINGS:
        OPENINGS[kind](peer, own)
    else:
        _handshake(peer, own)
        KINDS[kind](peer)
    release = os.uname().release.split("-")[0]
    opening = [
        f"// {kind} {seed}: what Linux {release} did (benches/witness/dialogue.py).",
        f"--tolerance_usecs={TOLERANCE_US}",
        "",
        "`./defaults.sh`",
        *(f"`sysctl -q net.ipv4.{key}={value}`" for key, value in _settings(kind)),
        "",
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
    ]
    if buffer is not None:
        opening.append(f"+0 setsockopt(3, SOL_SOCKET, SO_RCVBUF, [{buffer}], 4) = 0")
    if kind == "calling":
        opening.append("+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0")
    else:
        opening += ["+0 bind(3, ..., ...) = 0", "+0 listen(3, 1) = 0"]
    return "\n".join([*opening, *peer.lines]) + "\n"


def _handshake(peer: Peer, listener: socket.socket) -> None:
    asks = peer.ecn and peer.dice.random() < 0.9
    peer.send("SEW" if asks else "S", 0, 0, 0, window=65535)
    peer.hear(0.2)
    peer.wait(peer.round_trip_s)
    peer.send(".", 1, 0, 1)
    peer.connection, _ = listener.accept()
    peer.connection.setblocking(False)
    peer.say(peer.now_s(), "accept(3, ..., ...) = 4")
    peer.wait(peer.dice.choice((0.001, 0.03)))


def _settings(kind: str) -> list[tuple[str, str]]:
    return [SETTINGS[kind]] if kind in SETTINGS else []


def _device(kind: str) -> int:
    tun = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    tunsetiff, without_header = 0x400454CA, 0x1001
    fcntl.ioctl(tun, tunsetiff, struct.pack("16sH", b"dialogue", without_header))
    for words in (
        "link set lo up",
        f"addr add {LOCAL}/16 dev dialogue",
        "link set dialogue up",
        f"route add {REMOTE}/32 dev dialogue",
    ):
        subprocess.run(["ip", *words.split()], check=True)
    for key, value in [*SYSCTLS.items(), *_settings(kind)]:
        Path("/proc/sys/net/ipv4", key).write_text(value, encoding="ascii")
    Path("/proc/sys/net/ipv6/conf/dialogue/disable_ipv6").write_text("1", encoding="ascii")
    return tun


def main() -> int:
    """Record the requested dialogues, each in its own process and network namespace."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=[*KINDS, *OPENINGS], default="sender")
    parser.add_argument("--seeds", default="1-24", metavar="FIRST-LAST")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    first, _, last = arguments.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if arguments.here:
        target = arguments.folder / f"{arguments.kind}-{seeds[0]}.pkt"
        target.write_text(record(arguments.kind, seeds[0]), encoding="ascii")
        return 0
    if os.geteuid() != 0 or not Path("/dev/net/tun").exists() or shutil.which("unshare") is None:
        print("dialogue.py: needs root, /dev/net/tun and unshare", file=sys.stderr)
        return 2
    arguments.folder.mkdir(parents=True, exist_ok=True)
    command = ["unshare", "--net", sys.executable, __file__, str(arguments.folder), "--here"]
    command += ["--kind", arguments.kind, "--seeds"]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        ended = pool.map(lambda seed: subprocess.run([*command, str(seed)], check=False), seeds)
        failed = sum(each.returncode != 0 for each in ended)
    print(f"{len(seeds) - failed} of {len(seeds)} recorded in {arguments.folder}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
