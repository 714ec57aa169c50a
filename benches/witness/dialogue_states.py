"""More kinds of dialogues for dialogue.py: opening, waiting, and changes of state."""

from __future__ import annotations

import heapq
import socket

from dialogue_kinds import sender
from dialogue_peer import PORTS, REMOTE, Peer, Received


def notified(peer: Peer) -> None:
    """Send or receive over a path that marks packets instead of dropping them (RFC 3168)."""
    dice = peer.dice
    if dice.random() < 0.6:
        sender(peer)
        return
    start = 1
    for _ in range(dice.randint(5, 20)):
        length = dice.choice((peer.mss, peer.mss, 100))
        mark = dice.choice(("ect0", "ect0", "ect0", "ce", "noecn", "ect1"))
        flags = dice.choice((".", "P."))
        if "E" in peer.lines[-1].partition("(")[0] and dice.random() < 0.7:
            flags = "W" + flags  # it has heard of the mark
        lost = dice.random() < 0.1
        peer.send(flags, start + (100 if lost else 0), length, 1, mark=mark)
        if not lost:
            start += length
        peer.wait(dice.choice((0.0005, 0.002, 0.01, 0.06)))
        if dice.random() < 0.3:
            peer.read(dice.choice((1_000, 100_000)))
        if dice.random() < 0.1:
            peer.write(dice.choice((10, peer.mss)))
            peer.wait(peer.round_trip_s)
            peer.send(dice.choice((".", "E.")), start, 0, peer.highest)
    peer.wait(0.3)


def keep_alive(peer: Peer) -> None:
    """Let the kernel send keep-alives to a silent peer, which answers them or not."""
    dice = peer.dice
    start = 1
    settings = [
        ("SOL_SOCKET", "SO_KEEPALIVE", 1),
        ("SOL_TCP", "TCP_KEEPIDLE", dice.choice((1, 1, 2))),
        ("SOL_TCP", "TCP_KEEPINTVL", dice.choice((1, 1, 2))),
        ("SOL_TCP", "TCP_KEEPCNT", dice.choice((1, 2, 3, 8))),
    ]
    if dice.random() < 0.4:
        settings.append(("SOL_TCP", "TCP_USER_TIMEOUT", dice.choice((500, 1_500, 2_500, 4_000))))
    dice.shuffle(settings)
    for each in settings:
        peer.set(*each)
        peer.wait(dice.choice((0.0, 0.01, 0.3)))
    answers = dice.choice((0.0, 0.5, 0.8, 1.0))
    known = 1
    while peer.now_s() < 6.5:
        what = dice.choice(("wait", "wait", "text", "write", "wait"))
        if what == "text":
            peer.send("P.", start, 10, known)
            start += 10
        elif what == "write":
            peer.write(10)
        end_s = peer.now_s() + dice.choice((0.5, 1.5, 3.0))
        while (left_s := end_s - peer.now_s()) > 0:
            for _ in peer.hear(left_s):
                if dice.random() < answers:
                    peer.wait(peer.round_trip_s / 2)
                    known = peer.highest
                    peer.send(".", start, 0, known)


def gathering(peer: Peer) -> None:
    """Let the kernel's application write small amounts with each option that gathers them."""
    dice = peer.dice
    known = 1
    for _ in range(dice.randint(6, 16)):
        what = dice.choice(("write", "write", "write", "more", "option", "acknowledge", "wait"))
        if what in ("write", "more"):
            full = peer.mss
            length = dice.choice((1, 10, 100, full // 2, full - 1, full, full + 1, 3 * full + 7))
            peer.write(length, more=what == "more")
        elif what == "option":
            name = dice.choice(("TCP_NODELAY", "TCP_CORK"))
            peer.set("SOL_TCP", name, dice.choice((0, 1)))
        elif what == "acknowledge":
            known = peer.highest
            peer.send(".", 1, 0, known)
        peer.wait(dice.choice((0.0005, 0.005, 0.05, 0.25)))
    peer.set("SOL_TCP", "TCP_CORK", 0)
    peer.wait(0.05)
    peer.send(".", 1, 0, peer.highest)
    peer.wait(0.05)
    peer.close()
    peer.wait(0.05)


def idle(peer: Peer) -> None:
    """Let the kernel's application write after an idle time (tcp_slow_start_after_idle)."""
    dice = peer.dice
    for _ in range(dice.randint(2, 4)):
        peer.write(min(dice.choice((1, 5, 15, 30, 60)) * peer.mss, 100_000))
        while segments := peer.hear(0.05 + 2 * peer.round_trip_s):
            peer.wait(peer.round_trip_s)
            each = dice.choice((1, 2, len(segments)))
            for segment in segments[each - 1 :: each]:
                peer.send(".", 1, 0, segment.start + segment.length)
            if peer.lines[-1].startswith("//"):
                peer.send(".", 1, 0, peer.highest)
        peer.wait(dice.choice((0.05, 0.25, 0.5, 1.0, 1.6)))
    peer.wait(0.05)


def unused(peer: Peer) -> None:
    """Let the application use less than the window for a long time, and then much (RFC 2861)."""
    dice = peer.dice
    peer.round_trip_s = min(peer.round_trip_s, 0.05)
    for _ in range(dice.randint(2, 3)):
        _write_and_acknowledge(peer, dice.choice((15, 30, 60)) * peer.mss)
        most = dice.choice((1, 5, 20)) * peer.mss
        for _ in range(dice.randint(1, 9)):
            _write_and_acknowledge(peer, dice.randint(1, most))
            peer.wait(dice.choice((0.0, 0.03, 0.12)))
    _write_and_acknowledge(peer, 60 * peer.mss)


def _write_and_acknowledge(peer: Peer, length: int) -> None:
    """Let the application write, and acknowledge every second segment a round trip later."""
    peer.write(min(length, 100_000))
    while segments := peer.hear(0.03):
        peer.wait(peer.round_trip_s)
        for segment in segments[1:-1:2]:
            peer.send(".", 1, 0, segment.start + segment.length)
        peer.send(".", 1, 0, peer.highest)


def path_mtu(peer: Peer) -> None:
    """Limit the path MTU, with or without ICMP errors."""
    dice = peer.dice
    mtu = dice.choice((1492, 1400, 1000, 600))
    says = dice.choice((0.4, 1.0, 1.0))
    total = dice.choice((1, 3, 8, 20)) * peer.mss
    begins = dice.choice((0, 0, 5)) * peer.mss
    peer.write(total)
    received = Received()
    under_way: list[tuple[float, int, int, tuple[int, list[tuple[int, int]]] | None]] = []
    count = 0
    while peer.now_s() < 3.0 and received.next <= total:
        due_s = min(under_way[0][0] if under_way else peer.now_s() + 1.2, 3.0)
        for segment in peer.hear(max(0.0, due_s - peer.now_s())):
            count += 1
            length = segment.length
            if length == 0:
                continue
            if length + 40 > mtu and segment.start > begins:
                if dice.random() < says:
                    entry = (segment.at_s + peer.round_trip_s / 2, count, segment.start, None)
                    heapq.heappush(under_way, entry)
                continue
            twice = received.take(segment.start, segment.start + length)
            blocks = ([twice] if twice else []) + received.ahead
            said = (received.next, blocks[:3] if peer.sack else [])
            entry = (segment.at_s + peer.round_trip_s, count, 0, said)
            heapq.heappush(under_way, entry)
        if under_way and under_way[0][0] <= peer.now_s():
            _, _, start, heard = heapq.heappop(under_way)
            if heard is None:
                # The last segment is shorter than the MSS.
                peer.refuse(mtu, start, min(peer.mss, total + 1 - start))
            else:
                peer.send(".", 1, 0, heard[0], blocks=heard[1])
    peer.wait(0.2)


def opening(peer: Peer, listener: socket.socket) -> None:
    """Open a connection to the kernel, with SYNs and replies that are lost, late, or wrong."""
    dice = peer.dice
    peer.send("S", 0, 0, 0, window=65535)
    start = 1
    for _ in range(dice.randint(1, 4)):
        peer.wait(dice.choice((0.02, 0.3, 0.7, 1.3, 2.2)))
        what = dice.choice(("wait", "syn", "other", "ahead", "old", "wrong"))
        if what == "syn":
            peer.send("S", 0, 0, 0, window=65535)
        elif what == "other":
            peer.send("S", dice.choice((70_000, 100_000)), 0, 0, window=65535)
        elif what == "ahead":
            peer.send("S.", 0, 0, 1)
        elif what == "old":
            peer.send(".", 0, 0, 1)
        elif what == "wrong":
            peer.send(".", 1, 0, dice.choice((2, 0, 5_000)))
    length = dice.choice((0, 0, 10, peer.mss))
    peer.send("P." if length else ".", start, length, 1)
    start += length
    peer.wait(0.01)
    listener.setblocking(False)
    try:
        peer.connection, _ = listener.accept()
    except BlockingIOError:
        return
    peer.connection.setblocking(False)
    peer.say(peer.now_s(), "accept(3, ..., ...) = 4")
    _exchange(peer, start)


def calling(peer: Peer, caller: socket.socket) -> None:
    """Let the kernel open the connection, and answer late, wrongly, or with a simultaneous SYN."""
    dice = peer.dice
    caller.setblocking(False)
    at_s = peer.now_s()
    caller.connect_ex((REMOTE, PORTS[0]))
    peer.number = 3
    peer.say(at_s, "connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)")
    peer.hear(0.1)
    for _ in range(dice.randint(0, 3)):
        peer.wait(dice.choice((0.02, 0.3, 0.7, 1.3)))
        what = dice.choice(("wait", "wait", "syn", "wrong", "text", "reset"))
        if what == "syn":
            peer.send("S", 0, 0, 0, window=65535)
        elif what == "wrong":
            peer.send("S.", 0, 0, dice.choice((0, 2, 5_000)))
        elif what == "text":
            peer.send(".", 1, 10, dice.choice((1, 2)))
        elif what == "reset" and dice.random() < 0.3:
            peer.send("R.", 0, 0, dice.choice((1, 2)))
    peer.wait(dice.choice((0.02, 0.1, 0.3)))
    peer.send("S.", 0, 0, 1)
    peer.wait(dice.choice((0.001, 0.05)))
    peer.connection = caller
    _exchange(peer, 1)


def _exchange(peer: Peer, start: int) -> None:
    """Let both ends send data."""
    dice = peer.dice
    if dice.random() < 0.7:
        peer.write(dice.choice((10, peer.mss, 12 * peer.mss)))
    peer.wait(dice.choice((0.05, 0.4, 1.2)))
    peer.send("P.", start, 10, peer.highest)
    start += 10
    peer.wait(0.06)
    peer.write(12 * peer.mss)
    peer.wait(dice.choice((0.05, 0.5)))
    peer.send(".", start, 0, peer.highest)
    peer.wait(0.1)
