"""The peer of dialogue.py: the host at the other side of the device, and its recording."""

from __future__ import annotations

import errno
import os
import random
import select
import socket
import struct
import time
from dataclasses import dataclass, field
from typing import Final

LOCAL: Final = "192.168.0.1"
REMOTE: Final = "192.0.2.1"
PORTS: Final = (5555, 8080)
# Time of the script's first event, in seconds; the runner's own time begins at 0.
OFFSET_S: Final = 0.05
FLAGS: Final = {"F": 1, "S": 2, "R": 4, "P": 8, ".": 16, "E": 64, "W": 128}
# Values of the ECN field of the IP header.
MARKS: Final = {"noecn": 0, "ect1": 1, "ect0": 2, "ce": 3}
MSS, SCALE, SACK_OK, SACK, STAMPS = 2, 3, 4, 5, 8
# The kernel's first timestamp as the script states it.
FIRST_STAMP: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class Segment:
    """A segment sent by the kernel, with sequence numbers relative to the SYNs, as in scripts."""

    at_s: float
    start: int
    length: int
    fin: bool
    # Timestamp value as printed in the script (the kernel's first one is FIRST_STAMP).
    stamp: int = 0
    # Whether the segment is ECN-capable (ECT), and whether it has CWR.
    capable: bool = False
    reduced: bool = False


@dataclass(kw_only=True)
class Peer:
    """The host on the other side of the device, and the script recorded so far."""

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
    ecn: bool = False
    # Sequence number of the peer's SYN in the script; all others are relative to it.
    base: int = 0
    # The script's file descriptor of the socket.
    number: int = 4
    # The kernel's first timestamp, and the timestamp to echo as in the script.
    kernels_stamp: int | None = None
    echo: int = 0
    connection: socket.socket | None = None
    kernels_first: int | None = None
    # The kernel's SND.NXT: the end of all it has sent, its FIN included.
    highest: int = 1
    lines: list[str] = field(default_factory=list)
    _stamp: int = 0

    def now_s(self) -> float:
        """Return the time since the start."""
        return time.monotonic() - self.begun_s

    def say(self, at_s: float, what: str) -> None:
        """Write a line of the script."""
        self.lines.append(f"{at_s + OFFSET_S:.6f} {what}")

    def window_field(self, window_bytes: int | None = None) -> int:
        """Return the window field for a number of bytes."""
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
        mark: str | None = None,
        later_ms: int = 0,
        stamped: bool = True,
    ) -> None:
        """Send a segment to the kernel, and record the state of its TCP afterwards.

        With timestamps, the segment's is `later_ms` ahead of the time, or missing if it is not
        `stamped`.
        """
        options, words = self._syn_options() if "S" in flags else (b"", [])
        if self.stamps and stamped:
            stamp = (round(1000 * (self.now_s() + 1)) + later_ms) & 0xFFFFFFFF
            echo = 0 if self.kernels_stamp is None else self.echo + self.kernels_stamp - FIRST_STAMP
            options += struct.pack("!BBBBII", 1, 1, STAMPS, 10, stamp, echo & 0xFFFFFFFF)
            words += ["nop", "nop", f"TS val {stamp} ecr {self.echo}"]
        if blocks:
            options += struct.pack("!BBBB", 1, 1, SACK, 2 + 8 * len(blocks))
            options += b"".join(struct.pack("!II", *map(self._kernels, block)) for block in blocks)
            words += ["nop", "nop", "sack " + " ".join(f"{left}:{right}" for left, right in blocks)]
        said = ",".join(words)
        field_ = self.window_field() if window is None else window
        known = self._kernels(acknowledgment) if "." in flags else 0
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
        tcp = _checked(header + options + b"x" * length)
        os.write(self.tun, _packet(tcp, socket.IPPROTO_TCP, MARKS[mark or "noecn"]))
        line = f"< [{mark}] " if mark else "< "
        base = self.base if "S" in flags else 0
        line += f"{flags} {_named(base + start)}:{_named(base + start + length)}({length})"
        line += f" ack {acknowledgment}" if "." in flags else ""
        line += f" win {field_}" + (f" <{said}>" if said else "")
        self.say(at_s, line)
        if self.connection is not None and self.connection.fileno() >= 0:
            self.lines.append(_standing(self.connection))

    def refuse(self, mtu: int, start: int, length: int) -> None:
        """Send an ICMP error of a router whose next link is too narrow for a segment."""
        ends = socket.inet_aton(LOCAL) + socket.inet_aton(REMOTE)
        packet = struct.pack("!BBHHHBBH", 0x45, 0, 40 + length, 0, 0x4000, 64, 6, 0) + ends
        packet += struct.pack("!HHI", *reversed(PORTS), self._kernels(start))
        said = struct.pack("!BBHHH", 3, 4, 0, 0, mtu) + packet
        said = said[:2] + struct.pack("!H", _checksum(said)) + said[4:]
        at_s = self.now_s()
        os.write(self.tun, _packet(said, socket.IPPROTO_ICMP, 0))
        self.say(
            at_s,
            f"< icmp unreachable frag_needed mtu {mtu} [{start}:{start + length}({length})]",
        )
        if self.connection is not None:
            self.lines.append(_standing(self.connection))

    def hear(self, for_s: float) -> list[Segment]:
        """Wait up to `for_s` for segments of the kernel, and record them."""
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
        """Let time pass and record the segments that arrive."""
        end_s = self.now_s() + for_s
        while (left_s := end_s - self.now_s()) > 0:
            self.hear(left_s)

    def write(self, length: int, *, more: bool = False) -> None:
        """Let the kernel's application write, with or without the flag that more data follows."""
        assert self.connection is not None
        at_s = self.now_s()
        if self.connection.fileno() < 0:
            return
        call = f"write({self.number}, ..., {length})"
        if more:
            call = f"send({self.number}, ..., {length}, MSG_MORE)"
        try:
            written = self.connection.send(b"x" * length, socket.MSG_MORE if more else 0)
        except OSError as error:
            self.say(at_s, f"{call} = {_failed(error)}")
        else:
            self.say(at_s, f"{call} = {written}")

    def set(self, level: str, name: str, value: int) -> None:
        """Set an option of the kernel's socket."""
        assert self.connection is not None
        at_s = self.now_s()
        known = socket.SOL_SOCKET if level == "SOL_SOCKET" else socket.IPPROTO_TCP
        self.connection.setsockopt(known, getattr(socket, name), value)
        self.say(at_s, f"setsockopt({self.number}, {level}, {name}, [{value}], 4) = 0")

    def read(self, most: int) -> None:
        """Let the kernel's application read available data."""
        assert self.connection is not None
        at_s = self.now_s()
        try:
            got = len(self.connection.recv(most))
        except BlockingIOError:
            return
        except OSError as error:
            self.say(at_s, f"read({self.number}, ..., {most}) = {_failed(error)}")
            return
        self.say(at_s, f"read({self.number}, ..., {most}) = {got}")
        self.lines.append(_standing(self.connection))

    def close(self) -> None:
        """Let the kernel's application close."""
        assert self.connection is not None
        if self.connection.fileno() < 0:
            return
        self.say(self.now_s(), f"close({self.number}) = 0")
        self.connection.close()

    def shut(self) -> None:
        """Let the kernel's application close its sending side."""
        assert self.connection is not None
        if self.connection.fileno() < 0:
            return
        at_s = self.now_s()
        try:
            self.connection.shutdown(socket.SHUT_WR)
        except OSError as error:
            self.say(at_s, f"shutdown({self.number}, SHUT_WR) = {_failed(error)}")
        else:
            self.say(at_s, f"shutdown({self.number}, SHUT_WR) = 0")

    def _kernels(self, position: int) -> int:
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
            # Full segments have PSH where the kernel's buffers end; the runner ignores that
            # difference.
            bits |= FLAGS["P"]
        flags = "".join(flag for flag in "SFRPEW." if bits & FLAGS[flag])
        mark = packet[1] & 3
        line = "> "
        if self.ecn and length > 0:
            line += f"[{next(word for word, bits_ in MARKS.items() if bits_ == mark)}] "
        line += f"{flags} {start}:{start + length}({length})"
        base = self.base if "S" in flags else 0
        line += f" ack {_named(base + known - self.first)}" if "." in flags else ""
        # Without a fixed buffer, the window depends on the machine's memory.
        line += f" win {window}" if self.buffer is not None else ""
        options = self._options(tcp[20:header])
        at_s = self.now_s()
        self.say(at_s, line + (f" <{options}>" if options else ""))
        fin = "F" in flags
        if length + fin > 0 and "R" not in flags:
            self.highest = max(self.highest, start + length + fin)
        return Segment(
            at_s=at_s,
            start=start,
            length=length,
            fin=fin,
            stamp=self._stamp,
            capable=mark != 0,
            reduced="W" in flags,
        )

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
                ours = [_named(end - self.first) for end in ends]
                blocks = zip(ours[::2], ours[1::2], strict=True)
                said.append("sack " + " ".join(f"{left}:{right}" for left, right in blocks))
            place += length
        return ",".join(said)


@dataclass
class Way:
    """One direction of a path: it preserves the order and has a varying delay."""

    takes_s: float
    dice: random.Random
    _last_s: float = 0.0

    def takes(self, at_s: float) -> float:
        """Return the time at which a packet leaves that enters now."""
        delay_s = self.takes_s * self.dice.uniform(1.0, 1.1)
        self._last_s = max(self._last_s, at_s + delay_s)
        return self._last_s


@dataclass
class Received:
    """State of a receiver: all bytes before `next`, and blocks beyond it, the latest first."""

    next: int = 1
    ahead: list[tuple[int, int]] = field(default_factory=list)

    def take(self, start: int, end: int) -> tuple[int, int] | None:
        """Add a segment; return its duplicate part if it has no new data."""
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


def _named(position: int) -> int:
    return position & 0xFFFFFFFF


def _read(tun: int) -> bytes | None:
    try:
        return os.read(tun, 65535)
    except BlockingIOError:
        return None


def _checked(tcp: bytes) -> bytes:
    ends = socket.inet_aton(REMOTE) + socket.inet_aton(LOCAL)
    checked = _checksum(ends + struct.pack("!BBH", 0, socket.IPPROTO_TCP, len(tcp)) + tcp)
    return tcp[:16] + struct.pack("!H", checked) + tcp[18:]


def _packet(payload: bytes, protocol: int, mark: int) -> bytes:
    ends = socket.inet_aton(REMOTE) + socket.inet_aton(LOCAL)
    ip = struct.pack("!BBHHHBB", 0x45, mark, 20 + len(payload), 0, 0x4000, 64, protocol)
    return ip + struct.pack("!H", _checksum(ip + b"\0\0" + ends)) + ends + payload


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
    # SO_MEMINFO: memory used of the receive buffer, and the buffer's size.
    taken, size = struct.unpack_from("2I", connection.getsockopt(socket.SOL_SOCKET, 55, 36))
    return (
        f"// cwnd {words[18]}, ssthresh {words[17]}, state {info[1]}, unacked {words[4]}, "
        f"sacked {words[5]}, lost {words[6]}, retrans {words[7]}, reordering {words[20]}, "
        f"received into {taken} of {size}, threshold {words[14]}, segment {words[3]}"
    )
