"""Rare kinds of dialogues for dialogue.py: clocks that step, sequence numbers that wrap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dialogue_kinds import conversation, receiver, sender, window

if TYPE_CHECKING:
    from dialogue_peer import Peer


def backwards(peer: Peer) -> None:
    """Send with timestamps that step back or far ahead, or are missing (RFC 7323 section 5)."""
    dice = peer.dice
    start = known = 1
    # Lead of the latest accepted timestamp over the current time.
    ahead_ms = 0
    for _ in range(dice.randint(5, 16)):
        what = dice.choice(("text", "text", "ahead", "again", "reset", "fin", "bare", "write"))
        later_ms = ahead_ms + dice.choice((0, 0, 0, 0, -1_500, -5_000, 300, 100_000, 1 << 29))
        stamped = dice.random() < 0.9
        taken = not stamped or later_ms >= ahead_ms
        length = dice.choice((10, 100, peer.mss - 12))
        if what == "write":
            peer.write(dice.choice((10, 3 * peer.mss)))
            peer.wait(peer.round_trip_s)
            known = peer.highest
        if what == "reset":
            # A RST beyond RCV.NXT does not end the connection (RFC 9293 section 3.10.7.4).
            peer.send("R", start + 1_000, 0, known, later_ms=later_ms, stamped=stamped)
        elif what == "fin":
            # A FIN ahead of a gap, beyond all data that follows.
            peer.send("F.", 40_000, 0, known, later_ms=later_ms, stamped=stamped)
        elif what in ("bare", "write"):
            peer.send(".", start, 0, known, later_ms=later_ms, stamped=stamped)
        else:
            at = start
            if what == "ahead":
                at += dice.choice((10, length))
            elif what == "again":
                at = max(1, start - length)
            peer.send("P.", at, length, known, later_ms=later_ms, stamped=stamped)
            if taken and at == start:
                start += length
        if taken and stamped and what in ("text", "bare", "write"):
            ahead_ms = later_ms
        peer.wait(dice.choice((0.0005, 0.005, 0.06, 0.3)))
        if dice.random() < 0.3:
            peer.read(100_000)
    peer.wait(0.3)


def wrapping(peer: Peer) -> None:
    """Run a receiver or conversation dialogue in which the peer's sequence numbers wrap."""
    peer.dice.choice((receiver, receiver, conversation, early_fin))(peer)


def early_fin(peer: Peer) -> None:
    """Send a FIN, with or without data, ahead of the segments that fill the gap, in any order."""
    dice = peer.dice
    lengths = [dice.choice((1, 100, peer.mss, peer.mss)) for _ in range(dice.randint(2, 6))]
    segments, at = [], 1
    for length in lengths:
        segments.append((at, length, "P." if dice.random() < 0.5 else "."))
        at += length
    segments.append((at, dice.choice((0, 0, 50)), "F."))
    end = at + segments[-1][1] + 1
    order = list(segments)
    dice.shuffle(order)
    order += [dice.choice(segments) for _ in range(dice.randint(0, 3))]
    if dice.random() < 0.3:
        peer.write(dice.choice((10, 3 * peer.mss)))
    closed = False
    for start, length, flags in [*order, *segments]:
        peer.send(flags, start, length, dice.choice((1, peer.highest)))
        peer.wait(dice.choice((0.0005, 0.003, 0.05, 0.2)))
        if not closed and dice.random() < 0.3:
            peer.read(dice.choice((100, 100_000)))
        if dice.random() < 0.07:
            peer.close()
            closed = True
    peer.wait(0.1)
    peer.close()
    peer.wait(0.1)
    peer.send(".", end, 0, peer.highest)
    peer.wait(0.1)


def tiny(peer: Peer) -> None:
    """Exchange segments shorter than 536 bytes in both directions."""
    if peer.mss < 100:
        peer.dice.choice((conversation, receiver, window))(peer)
    else:
        peer.dice.choice((sender, sender, conversation, receiver, window))(peer)


def shrinking(peer: Peer) -> None:
    """Shrink the window below data that was sent or is to be sent (RFC 9293 section 3.8.6)."""
    dice = peer.dice
    full, known = peer.mss, 1
    written = 0
    for _ in range(dice.randint(2, 4)):
        amount = dice.choice((full, 4 * full, 10 * full))
        peer.write(amount)
        written += amount
        peer.wait(dice.choice((0.001, peer.round_trip_s)))
        for _ in range(dice.randint(1, 3)):
            sent = peer.highest
            known = max(known, dice.choice((known, max(1, sent - full), sent)))
            room = dice.choice((0, 1, full // 2, full, 2 * full, 3 * full, 20 * full))
            peer.send(".", 1, 0, known, window=peer.window_field(room))
            peer.wait(dice.choice((0.001, 0.05, 0.4, 0.8)))
    while known <= written and peer.now_s() < 6:
        known = peer.highest
        peer.send(".", 1, 0, known)
        peer.wait(peer.round_trip_s)
    peer.wait(0.05)
