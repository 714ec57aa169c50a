"""What a kernel's TCP answers to a random peer, written down as packetdrill scripts.

    python3 benches/witness/dialogue.py FOLDER [--kind sender] [--seeds 1-96]
    target/release/bentpipe-testkit run FOLDER

A socket of the running kernel listens behind a TUN device, in a network namespace of its own; this
program is its peer, and its application. What goes in and what comes out is written as a script
that `bentpipe-testkit run` holds against our own TCP, the kernel's window and recovery after each
packet as comments (docs/packetdrill.md). In real time, three seconds a dialogue, a dozen at a time;
root is needed. It ends no process but those it has started, and touches no device but its own.
"""

from __future__ import annotations

import argparse
import errno
import fcntl
import heapq
import os
import random
import select
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

LOCAL: Final = "192.168.0.1"
REMOTE: Final = "192.0.2.1"
PORTS: Final = (5555, 8080)
LONGEST_S: Final = 3.0
AT_ONCE: Final = 12
# The first event of a script, in seconds; the runner's own begins at 0.
OFFSET_S: Final = 0.05
# Timers of the kernel go in ticks of 4 ms, and coarser ones the longer they are.
TOLERANCE_US: Final = 35_000

# What packetdrill's own scripts set (google/packetdrill, gtests/net/common/defaults.sh), as far as
# it decides anything here.
SYSCTLS: Final = {
    "tcp_rmem": "4096 540000 15728640",
    "tcp_wmem": "4096 262144 4194304",
    "tcp_slow_start_after_idle": "0",
    "tcp_ecn": "0",
}
FLAGS: Final = {"F": 1, "S": 2, "R": 4, "P": 8, ".": 16}
MSS, SCALE, SACK_OK, SACK, STAMPS = 2, 3, 4, 5, 8
# What scripts call the kernel's first timestamp.
FIRST_STAMP: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A segment of the kernel's: positions as scripts have them, relative to the SYNs."""

    at_s: float
    start: int
    length: int
    fin: bool
    # Its timestamp, as the script has it.
    stamp: int = 0


@dataclass(kw_only=True)
class Peer:
    """The host on the other side of the device, and what it has written down."""

    tun: int
    dice: random.Random
    begun_s: float
    first: int
    mss: int
    sack: bool
    scaled: bool
    round_trip_s: float
    window_bytes: int
    buffer: int | None
    stamps: bool
    # The kernel's first timestamp, and the one to be echoed, as the script has it.
    kernels_stamp: int | None = None
    echo: int = 0
    connection: socket.socket | None = None
    kernels_first: int | None = None
    # After the last that the kernel has sent, its FIN included.
    highest: int = 1
    lines: list[str] = field(default_factory=list)
    _stamp: int = 0

    def now_s(self) -> float:
        """Return the time since the beginning."""
        return time.monotonic() - self.begun_s

    def say(self, at_s: float, what: str) -> None:
        """Write a line of the script."""
        self.lines.append(f"{at_s + OFFSET_S:.6f} {what}")

    def window_field(self, window_bytes: int | None = None) -> int:
        """Return the window field for so many bytes."""
        wanted = self.window_bytes if window_bytes is None else window_bytes
        if not self.scaled:
            return min(65535, wanted)
        return min(65535, max(1, wanted >> 7) if wanted else 0)

    def send(
        self,
        flags: str,
        start: int,
        length: int,
        acknowledgment: int,
        *,
        window: int | None = None,
        blocks: list[tuple[int, int]] | None = None,
    ) -> None:
        """Send a segment to the kernel, and note where its TCP stands then."""
        options, words = self._syn_options() if "S" in flags else (b"", [])
        if self.stamps:
            stamp = round(1000 * (self.now_s() + 1))
            echo = 0 if self.kernels_stamp is None else self.echo + self.kernels_stamp - FIRST_STAMP
            options += struct.pack("!BBBBII", 1, 1, STAMPS, 10, stamp, echo & 0xFFFFFFFF)
            words += ["nop", "nop", f"TS val {stamp} ecr {self.echo}"]
        if blocks:
            options += struct.pack("!BBBB", 1, 1, SACK, 2 + 8 * len(blocks))
            options += b"".join(struct.pack("!II", *map(self._theirs, block)) for block in blocks)
            words += ["nop", "nop", "sack " + " ".join(f"{left}:{right}" for left, right in blocks)]
        said = ",".join(words)
        field_ = self.window_field() if window is None else window
        known = self._theirs(acknowledgment) if "." in flags else 0
        bits = sum(FLAGS[flag] for flag in flags)
        header = struct.pack(
            "!HHIIBBHHH",
            *PORTS,
            (self.first + start) & 0xFFFFFFFF,
            known,
            (5 + len(options) // 4) << 4,
            bits,
            field_,
            0,
            0,
        )
        at_s = self.now_s()
        os.write(self.tun, _packet(header + options + b"x" * length))
        line = f"< {flags} {start}:{start + length}({length})"
        line += f" ack {acknowledgment}" if "." in flags else ""
        line += f" win {field_}" + (f" <{said}>" if said else "")
        self.say(at_s, line)
        if self.connection is not None and self.connection.fileno() >= 0:
            self.lines.append(_standing(self.connection))

    def hear(self, for_s: float) -> list[Segment]:
        """Wait for what the kernel sends, for so long at most, and write it down."""
        end_s = self.now_s() + for_s
        heard: list[Segment] = []
        while not heard:
            left_s = max(0.0, end_s - self.now_s())
            if not select.select([self.tun], [], [], left_s)[0]:
                break
            while (packet := _read(self.tun)) is not None:
                segment = self._note(packet)
                if segment is not None:
                    heard.append(segment)
        return heard

    def wait(self, for_s: float) -> None:
        """Let time pass; what comes is written down."""
        end_s = self.now_s() + for_s
        while (left_s := end_s - self.now_s()) > 0:
            self.hear(left_s)

    def write(self, length: int) -> None:
        """Let the kernel's application write."""
        assert self.connection is not None
        at_s = self.now_s()
        if self.connection.fileno() < 0:
            return
        try:
            written = self.connection.send(b"x" * length)
        except OSError as error:
            self.say(at_s, f"write(4, ..., {length}) = {_failed(error)}")
        else:
            self.say(at_s, f"write(4, ..., {length}) = {written}")

    def read(self, most: int) -> None:
        """Let the kernel's application read, if there is anything."""
        assert self.connection is not None
        at_s = self.now_s()
        try:
            got = len(self.connection.recv(most))
        except BlockingIOError:
            return
        except OSError as error:
            self.say(at_s, f"read(4, ..., {most}) = {_failed(error)}")
            return
        self.say(at_s, f"read(4, ..., {most}) = {got}")
        self.lines.append(_standing(self.connection))

    def close(self) -> None:
        """Let the kernel's application close."""
        assert self.connection is not None
        if self.connection.fileno() < 0:
            return
        self.say(self.now_s(), "close(4) = 0")
        self.connection.close()

    def shut(self) -> None:
        """Let the kernel's application send no more."""
        assert self.connection is not None
        if self.connection.fileno() < 0:
            return
        at_s = self.now_s()
        try:
            self.connection.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.say(at_s, f"shutdown(4, SHUT_WR) = {_failed(error)}")
        else:
            self.say(at_s, "shutdown(4, SHUT_WR) = 0")

    def _theirs(self, position: int) -> int:
        assert self.kernels_first is not None
        return (self.kernels_first + position) & 0xFFFFFFFF

    def _syn_options(self) -> tuple[bytes, list[str]]:
        options, said = struct.pack("!BBH", MSS, 4, self.mss), [f"mss {self.mss}"]
        if self.sack:
            options += bytes((SACK_OK, 2, 1, 1))
            said += ["sackOK", "nop", "nop"]
        if self.scaled:
            options += bytes((1, SCALE, 3, 7))
            said += ["nop", "wscale 7"]
        return options, said

    def _note(self, packet: bytes) -> Segment | None:
        if packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
            return None
        tcp = packet[(packet[0] & 15) * 4 : struct.unpack_from("!H", packet, 2)[0]]
        _, _, sequence, known, offset, bits, window = struct.unpack_from("!HHIIBBH", tcp)
        header = (offset >> 4) * 4
        length = len(tcp) - header
        if self.kernels_first is None:
            self.kernels_first = sequence
        start = (sequence - self.kernels_first) & 0xFFFFFFFF
        if length == self.mss - (12 if self.stamps else 0):
            # Full segments have PSH where the kernel's buffers end; the runner is lenient there.
            bits |= FLAGS["P"]
        flags = "".join(flag for flag in "SFRP." if bits & FLAGS[flag])
        line = f"> {flags} {start}:{start + length}({length})"
        line += f" ack {(known - self.first) & 0xFFFFFFFF}" if "." in flags else ""
        # Without a buffer that is set, what the window is depends on how large memory is.
        line += f" win {window}" if self.buffer is not None else ""
        options = self._options(tcp[20:header])
        at_s = self.now_s()
        self.say(at_s, line + (f" <{options}>" if options else ""))
        fin = "F" in flags
        if length + fin > 0 and "R" not in flags:
            self.highest = max(self.highest, start + length + fin)
        return Segment(at_s=at_s, start=start, length=length, fin=fin, stamp=self._stamp)

    def _options(self, raw: bytes) -> str:
        said, place = [], 0
        while place < len(raw) and raw[place]:
            kind = raw[place]
            if kind == 1:
                said.append("nop")
                place += 1
                continue
            length = raw[place + 1]
            data = raw[place + 2 : place + length]
            if kind == MSS:
                said.append(f"mss {struct.unpack('!H', data)[0]}")
            elif kind == SCALE:
                said.append(f"wscale {data[0]}")
            elif kind == SACK_OK:
                said.append("sackOK")
            elif kind == STAMPS:
                stamp, echo = struct.unpack("!II", data)
                if self.kernels_stamp is None:
                    self.kernels_stamp = stamp
                    self.echo = FIRST_STAMP
                self._stamp = FIRST_STAMP + (stamp - self.kernels_stamp & 0xFFFFFFFF)
                said.append(f"TS val {self._stamp} ecr {echo}")
            elif kind == SACK:
                ends = struct.unpack(f"!{len(data) // 4}I", data)
                ours = [(end - self.first) & 0xFFFFFFFF for end in ends]
                blocks = zip(ours[::2], ours[1::2], strict=True)
                said.append("sack " + " ".join(f"{left}:{right}" for left, right in blocks))
            place += length
        return ",".join(said)


def sender(peer: Peer) -> None:
    """Let the kernel send over a path that loses and reorders, and that loses ACKs."""
    dice = peer.dice
    full = peer.mss - (12 if peer.stamps else 0)
    loss = dice.choice((0.0, 0.02, 0.05, 0.1, 0.2))
    reordering = dice.choice((0.0, 0.0, 0.05))
    lost_acks = dice.choice((0.0, 0.0, 0.1))
    delays = dice.random() < 0.3
    total = min(dice.choice((3, 8, 20, 40, 80)) * full, 100_000)
    chunk = dice.choice((total, 5 * full))
    left = total - min(chunk, total)
    peer.write(total - left)
    received = Received()
    # The round trip is no constant: where all are equal, microseconds decide which is the shortest.
    there, back = Way(peer.round_trip_s / 2, dice), Way(peer.round_trip_s / 2, dice)
    # (when, which, a segment that arrives, or what an acknowledgment says)
    under_way: list[tuple[float, int, Segment | tuple[int, list[tuple[int, int]]]]] = []
    count = held = 0
    while peer.now_s() < LONGEST_S:
        due_s = min(under_way[0][0] if under_way else peer.now_s() + 1.2, LONGEST_S)
        for segment in peer.hear(max(0.0, due_s - peer.now_s())):
            if segment.length + segment.fin == 0 or dice.random() < loss:
                continue
            late_s = peer.round_trip_s / 4 if dice.random() < reordering else 0.0
            count += 1
            heapq.heappush(under_way, (there.takes(segment.at_s) + late_s, count, segment))
        if not under_way and peer.now_s() >= due_s and left <= 0 and received.next > total:
            break
        # One at a time, so that what the kernel sends for it is noted when it leaves.
        if under_way and under_way[0][0] <= peer.now_s():
            at_s, _, event = heapq.heappop(under_way)
            if isinstance(event, Segment):
                if event.start <= received.next:
                    peer.echo = event.stamp  # RFC 7323 section 4.3
                twice = received.take(event.start, event.start + event.length + event.fin)
                if delays and not received.ahead and twice is None:
                    held += 1
                    if held < 2 and under_way:
                        continue
                held = 0
                if dice.random() < lost_acks:
                    continue
                blocks = ([twice] if twice else []) + received.ahead
                count += 1
                said = (received.next, blocks[: 3 - peer.stamps] if peer.sack else [])
                heapq.heappush(under_way, (back.takes(at_s), count, said))
            else:
                peer.send(".", 1, 0, event[0], blocks=event[1])
                if left > 0 and dice.random() < 0.5:
                    peer.write(min(chunk, left))
                    left -= chunk
        if left > 0 and not under_way:
            peer.write(min(chunk, left))
            left -= chunk
    if dice.random() < 0.5:
        peer.close()
    peer.wait(0.25)


@dataclass
class Way:
    """One direction of a path: what enters it leaves in the same order, after about so long."""

    takes_s: float
    dice: random.Random
    _last_s: float = 0.0

    def takes(self, at_s: float) -> float:
        """Return when that leaves it which enters now."""
        delay_s = self.takes_s * self.dice.uniform(1.0, 1.1)
        self._last_s = max(self._last_s, at_s + delay_s)
        return self._last_s


@dataclass
class Received:
    """What a receiver has: all before `next`, and blocks ahead of it, the latest first."""

    next: int = 1
    ahead: list[tuple[int, int]] = field(default_factory=list)

    def take(self, start: int, end: int) -> tuple[int, int] | None:
        """Take a segment in; return what of it is here already, if that is all."""
        if end <= self.next or any(left <= start and end <= right for left, right in self.ahead):
            return start, end
        start = max(start, self.next)
        touching = [block for block in self.ahead if block[0] <= end and start <= block[1]]
        apart = [block for block in self.ahead if block not in touching]
        whole = (min([start, *(b[0] for b in touching)]), max([end, *(b[1] for b in touching)]))
        self.ahead = [whole, *apart]
        for left, right in sorted(self.ahead):
            if left <= self.next < right:
                self.next = right
        self.ahead = [block for block in self.ahead if block[0] > self.next]
        return None


def receiver(peer: Peer) -> None:
    """Send what is reordered, doubled, and has holes that are filled in the end."""
    dice = peer.dice
    reads = dice.choice((0.0, 0.3, 1.0))
    room = peer.buffer or 200_000
    sent: list[tuple[int, int]] = []
    top = 1
    for _ in range(dice.randint(5, 25)):
        length = dice.choice((peer.mss, peer.mss, peer.mss, dice.randint(1, peer.mss)))
        what = dice.random()
        if 0.65 <= what < 0.8 and sent:
            start, length = dice.choice(sent)
        elif what >= 0.8 and sent:
            start = dice.randint(1, top)
        else:
            start = top if what < 0.5 else top + length
        top = max(top, start + length)
        if top > room:
            break
        sent.append((start, length))
        peer.send(dice.choice((".", "P.")), start, length, 1)
        peer.wait(dice.choice((0.0005, 0.002, 0.01, 0.06, 0.15)))
        if dice.random() < reads:
            peer.read(dice.choice((100, 1_000, 100_000)))
        peer.wait(0.002)
    peer.wait(0.25)
    if dice.random() < 0.3:
        return
    for start in range(1, top, peer.mss):
        peer.send(".", start, min(peer.mss, top - start), 1)
        peer.wait(dice.choice((0.0005, 0.003, 0.05)))
    peer.wait(0.2)
    peer.read(10_000_000)
    peer.wait(0.05)
    peer.send("F.", top, 0, 1)
    peer.wait(0.1)
    peer.close()
    peer.wait(0.1)


def conversation(peer: Peer) -> None:
    """Ask and let the kernel answer, with windows that close, and a FIN from either side."""
    dice = peer.dice
    start = known = 1
    for _ in range(dice.randint(3, 8)):
        length = dice.choice((10, 100, peer.mss))
        peer.send("P.", start, length, known)
        start += length
        peer.wait(dice.choice((0.001, 0.02)))
        peer.read(100_000)
        if dice.random() < 0.8:
            answer = dice.choice((10, 200, peer.mss, 3 * peer.mss))
            peer.write(answer)
            known += answer
        peer.wait(peer.round_trip_s)
        if dice.random() < 0.8:
            room = dice.choice((peer.window_bytes, peer.window_bytes, 0, 3 * peer.mss))
            peer.send(".", start, 0, known, window=peer.window_field(room))
            peer.wait(dice.choice((0.01, 0.4)))
    peer.send(".", start, 0, known)
    peer.wait(0.05)
    if dice.random() < 0.5:
        peer.close()
        peer.wait(peer.round_trip_s)
        peer.send(".", start, 0, known + 1)
        peer.wait(0.02)
        peer.send("F.", start, 0, known + 1)
        peer.wait(0.1)
    else:
        peer.send("F.", start, 0, known)
        peer.wait(0.1)
        peer.close()
        peer.wait(0.3)
        peer.send(".", start + 1, 0, known + 1)
        peer.wait(0.05)


def window(peer: Peer) -> None:
    """Close the window over what the kernel wants to send, and answer its probes, or not."""
    dice = peer.dice
    full = peer.mss
    start = known = 1
    written = 0
    for _ in range(dice.randint(1, 3)):
        amount = dice.choice((10, full - 1, 2 * full, 5 * full))
        peer.write(amount)
        written += amount
        peer.wait(peer.round_trip_s)
        sent = peer.highest
        # Some of what has come is acknowledged, all of it, or nothing new.
        known = dice.choice((sent, sent, sent, max(known, sent - full), known))
        room = dice.choice((0, 0, 0, 1, 100, full // 2, full))
        peer.send(".", start, 0, known, window=peer.window_field(room))
        if dice.random() < 0.5:
            amount = dice.choice((10, full, 3 * full))
            peer.write(amount)
            written += amount
        end_s = peer.now_s() + dice.choice((0.1, 0.5, 1.0, 1.7))
        answers = dice.choice((0.0, 0.5, 1.0))
        while (left_s := end_s - peer.now_s()) > 0:
            for segment in peer.hear(left_s):
                known = max(known, peer.highest if room and segment.length else known)
                if dice.random() < answers:
                    peer.wait(peer.round_trip_s / 2)
                    peer.send(".", start, 0, known, window=peer.window_field(room))
        if dice.random() < 0.5:
            peer.send("P.", start, 10, known, window=peer.window_field(room))
            start += 10
            peer.wait(0.06)
        peer.send(".", start, 0, known)
        peer.wait(peer.round_trip_s)
    while known <= written and peer.now_s() < 2 * LONGEST_S:
        peer.send(".", start, 0, peer.highest)
        known = peer.highest
        peer.wait(peer.round_trip_s)
    peer.send(".", start, 0, known)
    peer.wait(0.05)


def abort(peer: Peer) -> None:
    """End it by force: a RST from either side, in the window or not, and what comes after."""
    dice = peer.dice
    start = known = 1
    if dice.random() < 0.6:
        length = dice.choice((10, peer.mss))
        peer.send("P.", start, length, known)
        start += length
        peer.wait(dice.choice((0.001, 0.06)))
        if dice.random() < 0.5:
            peer.read(dice.choice((5, 100_000)))
    if dice.random() < 0.6:
        peer.write(dice.choice((10, peer.mss, 3 * peer.mss)))
        peer.wait(dice.choice((0.001, peer.round_trip_s)))
        known = dice.choice((known, peer.highest))
        peer.send(".", start, 0, known)
        peer.wait(0.01)
    for _ in range(dice.randint(1, 4)):
        what = dice.choice(("close", "reset", "reset", "syn", "far", "text", "fin", "shut"))
        if what == "close":
            peer.close()
        elif what == "shut":
            peer.shut()
        elif what == "reset":
            # The next, in the window, beyond it, old; with an acknowledgment or without.
            at = start + dice.choice((0, 0, 1, 1_000, 3_000_000, -1))
            peer.send(dice.choice(("R", "R.")), at, 0, known)
        elif what == "syn":
            peer.send("S", max(0, start + dice.choice((0, 100, -100))), 0, 0)
        elif what == "far":
            peer.send(".", start, 0, known + dice.choice((1, 100_000)))
        elif what == "text":
            length = dice.choice((1, peer.mss))
            peer.send("P.", start, length, known)
            start += length
        else:
            peer.send("F.", start, 0, known)
            start += 1
        peer.wait(dice.choice((0.001, 0.02, 0.3)))
    peer.wait(0.6)


def closing(peer: Peer) -> None:
    """Close from both sides, in any order, with FINs that are lost, late, or come again."""
    dice = peer.dice
    start = known = 1
    if dice.random() < 0.5:
        peer.write(dice.choice((10, peer.mss, 3 * peer.mss)))
        peer.wait(peer.round_trip_s)
    steps = ["close", "fin", "acknowledge", "again"]
    if dice.random() < 0.3:
        steps.insert(0, "shut")
    dice.shuffle(steps)
    fin: int | None = None
    for step in [*steps, "acknowledge", "fin", "text", "again"]:
        if step == "close":
            peer.close()
        elif step == "shut":
            peer.shut()
        elif step == "acknowledge":
            known = dice.choice((peer.highest, peer.highest, known))
            peer.send(".", start, 0, known)
        elif step == "fin":
            text = dice.choice((0, 0, 100))
            if fin is None:
                peer.send("F.", start, text, known)
                start += text + 1
                fin = start - 1
            else:
                peer.send("F.", fin, 0, known)
        elif step == "text":
            peer.send("P.", start, 10, known)
        elif step == "again":
            peer.send(".", max(1, start - 1), 0, known)
        peer.wait(dice.choice((0.001, 0.02, 0.3)))
    peer.wait(0.4)


KINDS: Final[dict[str, Callable[[Peer], None]]] = {
    "sender": sender,
    "stamped": sender,  # with timestamps
    "receiver": receiver,
    "buffer": receiver,  # with a buffer that the application has set
    "conversation": conversation,
    "window": window,
    "abort": abort,
    "closing": closing,
}


def record(kind: str, seed: int) -> str:
    """Hold one dialogue, in this process's own network namespace, and return the script."""
    # What keeps this program waiting would be written down as what the kernel does.
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(5))
    dice = random.Random(f"{kind} {seed}")
    tun = _device()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
    buffer = dice.choice((3_000, 8_000, 20_000, 100_000)) if kind == "buffer" else None
    if buffer is not None:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    listener.bind((LOCAL, PORTS[1]))
    listener.listen(1)
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
        stamps=kind == "stamped",
    )
    peer.send("S", 0, 0, 0, window=65535)
    peer.hear(0.2)
    peer.wait(peer.round_trip_s)
    peer.send(".", 1, 0, 1)
    peer.connection, _ = listener.accept()
    peer.connection.setblocking(False)
    peer.say(peer.now_s(), "accept(3, ..., ...) = 4")
    peer.wait(dice.choice((0.001, 0.03)))
    KINDS[kind](peer)
    release = os.uname().release.split("-")[0]
    opening = [
        f"// {kind} {seed}: what Linux {release} did (benches/witness/dialogue.py).",
        f"--tolerance_usecs={TOLERANCE_US}",
        "",
        "`./defaults.sh`",
        "",
        "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3",
        *(
            []
            if buffer is None
            else [f"+0 setsockopt(3, SOL_SOCKET, SO_RCVBUF, [{buffer}], 4) = 0"]
        ),
        "+0 bind(3, ..., ...) = 0",
        "+0 listen(3, 1) = 0",
    ]
    return "\n".join([*opening, *peer.lines]) + "\n"


def _device() -> int:
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
    for key, value in SYSCTLS.items():
        Path("/proc/sys/net/ipv4", key).write_text(value, encoding="ascii")
    Path("/proc/sys/net/ipv6/conf/dialogue/disable_ipv6").write_text("1", encoding="ascii")
    return tun


def _read(tun: int) -> bytes | None:
    try:
        return os.read(tun, 65535)
    except BlockingIOError:
        return None


def _packet(tcp: bytes) -> bytes:
    ends = socket.inet_aton(REMOTE) + socket.inet_aton(LOCAL)
    checked = _checksum(ends + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp)) + tcp)
    tcp = tcp[:16] + struct.pack("!H", checked) + tcp[18:]
    ip = struct.pack("!BBHHHBB", 0x45, 0, 20 + len(tcp), 0, 0x4000, 64, socket.IPPROTO_TCP)
    return ip + struct.pack("!H", _checksum(ip + b"\0\0" + ends)) + ends + tcp


def _checksum(data: bytes) -> int:
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _failed(error: OSError) -> str:
    name = errno.errorcode.get(error.errno or 0, "")
    return f"-1 {name} ({error.strerror})"


def _standing(connection: socket.socket) -> str:
    info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 104)
    words = struct.unpack_from("24I", info, 8)
    # SO_MEMINFO: what is taken of the receive buffer, and its size
    taken, size = struct.unpack_from("2I", connection.getsockopt(socket.SOL_SOCKET, 55, 36))
    return (
        f"// cwnd {words[18]}, ssthresh {words[17]}, state {info[1]}, unacked {words[4]}, "
        f"sacked {words[5]}, lost {words[6]}, retrans {words[7]}, reordering {words[20]}, "
        f"received into {taken} of {size}, threshold {words[14]}, segment {words[3]}"
    )


def main() -> int:
    """Record what was asked for, each dialogue in a process and a network namespace of its own."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=KINDS, default="sender")
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
