"""Paragraphs of the report on samaraweera1999, with the numbers of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.samaraweera1999 import cells
from bentpipe.studies.samaraweera1999.cells import METHODS, NAMES, today
from bentpipe.studies.samaraweera1999.comparison import goodput_table

if TYPE_CHECKING:
    from bentpipe.studies.samaraweera1999.evidence import Evidence


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return the report's paragraphs with the numbers of this run."""
    return (_remark_timer(evidence), _remark_open(evidence), _remark_today(evidence))


def _remark_timer(evidence: Evidence) -> str:
    plain = cells.single(cells.UNMODIFIED)
    longest = evidence.direction(plain, "return").queue_max_packets
    each_timed = cells.timed(plain, cells.Timer(counted_from="oldest-segment", minimum_s=1.0))
    return (
        "What times out depends on the retransmission timer, which the paper doesn't describe "
        "(figure A1). One session: its ACKs queue up, and its round trip grows by almost a second "
        "a second; but they still arrive, every 33 ms, and a timer that each of them restarts (RFC "
        f"6298, and BSD before it) never expires, though {longest} ACKs come to wait. If each "
        "segment is timed from when it left, as RFC 793 has it, it does "
        f"({evidence.timeouts(each_timed)} times in 60 s). Three sessions: a session's ACKs come "
        "in blocks, behind those of the others, and the pauses between blocks are longer than the "
        "timeout, whichever timer. With a floor of 2 s and a timer that ACKs restart, all that "
        "the paper says of three sessions holds; with 1 s, compaction without spacing times out "
        "at 32 kbit/s: three windows in the satellite interface's queue alone take 1.3 s, and "
        "the segments sent again after a needless timeout bring thousands of duplicate ACKs, none "
        "of which may be removed. With each segment timed, three sessions with header compression "
        "time out, too, which the paper's don't. No timer that we tried reproduces both."
    )


def _remark_open(evidence: Evidence) -> str:
    first = cells.staggered(cells.DROP_TAIL, cells.SLOW_BPS)
    at = float(evidence.sent(first).at(first.stagger_s)) / 1e6
    return (
        "What the paper leaves open, and we chose: the retransmission timer (RFC 6298 with a floor "
        "of 2 s), the queues of the satellite and the return interface (they hold everything, but "
        f"for figure 10, {cells.SHORT_QUEUE_PACKETS} packets), when the sessions of figure 10 "
        f"begin ({cells.STAGGERS_S[0]:g} to {cells.STAGGERS_S[-1]:g} s apart: by then the one "
        f"before, with {at:.1f} MB sent, has "
        "long filled the pipe), and framing on the return link (none, but for header "
        "compression's own)."
    )


def _remark_today(evidence: Evidence) -> str:
    slow = {NAMES[method]: today(method, cells.SLOW_BPS, "cubic") for method in METHODS}
    return (
        "With today's TCP (CUBIC, SACK, timestamps, delayed ACKs, a modem queue of 100 packets) at "
        f"9.6 kbit/s, in Mbit/s: {goodput_table(evidence, slow)}. Timestamps change with every "
        "ACK, so that RFC 1144 does not compress them: its packets go as they are. Compaction's "
        "two bytes for what was acknowledged hold 22 delayed ACKs of 1448-byte segments, not 60: "
        "at 16 tunnelled ACKs a second, 8.4 Mbit/s is the most, and what exceeds it waits. Spacing "
        "adds its own delay, and after a loss lets a long round trip last longer."
    )
