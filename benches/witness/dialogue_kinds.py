"""Kinds of dialogues for dialogue.py: behaviour of the peer and the application."""

from __future__ import annotations

import heapq
from typing import Final

from dialogue_peer import Peer, Received, Segment, Way

# Duration of a dialogue, in seconds.
LONGEST_S: Final = 3.0


def sender(peer: Peer) -> None:
    """Let the kernel send over a path that loses and reorders segments and loses ACKs."""
    dice = peer.dice
    full = peer.mss - (12 if peer.stamps else 0)
    loss = dice.choice((0.0, 0.02, 0.05, 0.1, 0.2))
    reordering = dice.choice((0.0, 0.0, 0.05))
    lost_acks = dice.choice((0.0, 0.0, 0.1))
    delays = dice.random() < 0.3
    # Draws happen only with ECN, so that other kinds keep their random streams.
    marks = dice.choice((0.02, 0.1, 0.3)) if peer.ecn else 0.0
    echoes = False
    total = min(dice.choice((3, 8, 20, 40, 80)) * full, 100_000)
    chunk = dice.choice((total, 5 * full))
    left = total - min(chunk, total)
    peer.write(total - left)
    received = Received()
    # The round trip varies: if all were equal, microseconds would decide which is the minimum.
    there, back = Way(peer.round_trip_s / 2, dice), Way(peer.round_trip_s / 2, dice)
    # (time, serial number, a segment that arrives or the content of an acknowledgment)
    under_way: list[tuple[float, int, Segment | tuple[int, list[tuple[int, int]], bool]]] = []
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
        # One at a time, so that the kernel's response is recorded when it leaves.
        if under_way and under_way[0][0] <= peer.now_s():
            at_s, _, event = heapq.heappop(under_way)
            if isinstance(event, Segment):
                if event.start <= received.next:
                    peer.echo = event.stamp  # RFC 7323 section 4.3
                # RFC 3168 section 6.1.3: ECE is repeated until the sender confirms with CWR.
                echoes &= not event.reduced
                echoes |= peer.ecn and event.capable and dice.random() < marks
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
                said = (received.next, blocks[: 3 - peer.stamps] if peer.sack else [], echoes)
                heapq.heappush(under_way, (back.takes(at_s), count, said))
            else:
                peer.send("E." if event[2] else ".", 1, 0, event[0], blocks=event[1])
                if left > 0 and dice.random() < 0.5:
                    peer.write(min(chunk, left))
                    left -= chunk
        if left > 0 and not under_way:
            peer.write(min(chunk, left))
            left -= chunk
    if dice.random() < 0.5:
        peer.close()
    peer.wait(0.25)


def receiver(peer: Peer) -> None:
    """Send reordered and duplicate segments, and gaps that are filled in the end."""
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
    """Exchange requests and replies, with windows that close, and a FIN from either side."""
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
    """Close the window while the kernel has data to send, and answer its probes or not."""
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
        # Acknowledges some or all of the received data, or nothing new.
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
    """Abort the connection: a RST from either side, in the window or not, and packets after it."""
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
            # Sequence numbers: the next, within the window, beyond it, and old; with or without an
            # acknowledgment.
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
    """Close from both sides, in any order, with FINs that are lost, late, or repeated."""
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
