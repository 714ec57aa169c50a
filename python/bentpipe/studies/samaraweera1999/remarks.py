"""Paragraphs of the report on samaraweera1999, with the numbers of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.open_settings import committed
from bentpipe.studies.samaraweera1999 import cells, open_settings
from bentpipe.studies.samaraweera1999.cells import METHODS, NAMES, today
from bentpipe.studies.samaraweera1999.comparison import goodput_table

if TYPE_CHECKING:
    from bentpipe.studies.samaraweera1999.evidence import Evidence


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return the report's paragraphs with the numbers of this run."""
    return (
        _remark_setting(evidence),
        _remark_timer(evidence),
        _remark_open(evidence),
        _remark_tcp(evidence),
        _remark_today(evidence),
    )


def _remark_setting(evidence: Evidence) -> str:
    rows = committed("samaraweera1999")
    most = max(row.within for row in rows)
    best = [row.setting for row in rows if row.within == most]
    floors = [float(setting["minimum_s"]) for setting in best]
    framing = [int(setting["framing_bytes"]) for setting in best]
    ours = open_settings.measure_ours(evidence).measured
    return (
        f"Of {len(rows)} settings of what the paper leaves open, {len(best)} give {most} of ten "
        "values of sections 4 to 8 (table A1). All time each segment from its transmission (RFC "
        "793), not from the last ACK (RFC 6298), and start with two segments, although section 3 "
        f"says one. Their shortest timeouts are {min(floors):g} to {max(floors):g} s, and their "
        f"return links add {min(framing)} to {max(framing)} bytes to a packet; PPP adds 4 to 8. "
        "The study has the one with the smallest deviations: ACKs become "
        f"{ours['reduction']:.0%} shorter (paper: ~70%), suppression passes compression at "
        f"{ours['suppression_crossing_mb']:.2f} MB (1.2) and compaction after "
        f"{ours['compaction_crossing_s']:.1f} s (4)."
    )


def _remark_timer(evidence: Evidence) -> str:
    plain = cells.single(cells.UNMODIFIED)
    longest = evidence.direction(plain, "return").queue_max_packets
    three = cells.shared(cells.COMPRESSION, cells.FIGURE_12_BPS)
    rows = committed("samaraweera1999")
    published = open_settings.SEARCH.published
    both = sum(
        published["compression times out"].met(row.measured)
        and published["three sessions: the others do not"].met(row.measured)
        for row in rows
    )
    return (
        f"One session: its ACKs queue up ({longest} at most), and its round trip grows by almost a "
        "second a second; but they still arrive at equal distances, and a timer that each of them "
        "restarts never expires. Three sessions: a session's ACKs come in blocks, behind those of "
        "the others. With each segment timed, three sessions with header compression time out, too "
        f"({evidence.timeouts(three)} times), and the paper's do not. {both} of {len(rows)} "
        "settings give both: compressed ACKs wait about as long for a modem of 9.6 kbit/s and one "
        "session as for 32 kbit/s and three, because the buffer of each session bounds them."
    )


def _remark_open(evidence: Evidence) -> str:
    first = cells.staggered(cells.DROP_TAIL, cells.SLOW_BPS)
    at = float(evidence.sent(first).at(first.stagger_s)) / 1e6
    return (
        "The paper leaves open, too, the queues of the satellite and the return interface (they "
        f"hold everything, but for figure 10, {cells.SHORT_QUEUE_PACKETS} packets) and when the "
        f"sessions of figure 10 begin ({cells.STAGGERS_S[0]:g} to {cells.STAGGERS_S[-1]:g} s "
        f"apart: by then the one before, with {at:.1f} MB sent, has long filled the pipe)."
    )


def _remark_tcp(evidence: Evidence) -> str:
    changes = cells.tcp_changes()
    plain = today(cells.UNMODIFIED, cells.SLOW_BPS, "reno")
    names = ("an ACK for 64", "an ACK for 64, bytes counted")
    goodputs = {"unmodified": plain, **{name: changes[name] for name in names}}
    paced_fast = (cells.FAST, cells.FAST_PACED, cells.FAST_PACED_AT_RATE)
    peaks = [evidence.burst_peak(each) for each in paced_fast]
    compaction = cells.single(cells.COMPACTION)
    spaced, paced = (
        evidence.largest_burst(each)
        for each in (cells.single(cells.SPACING), cells.paced_compaction())
    )
    return (
        "Changes of TCP instead of the return link (table A7), in Mbit/s at 9.6 kbit/s: "
        f"{goodput_table(evidence, goodputs)}. A sender that paces, the alternative to ACK spacing "
        "of section 7, reduces the largest growth of the satellite interface's queue in 20 ms from "
        f"{evidence.largest_burst(compaction):.0f} packets with compaction to {paced:.0f} (ACK "
        f"spacing: {spaced:.0f}), and slow start's queue from {peaks[0]:.0f} to {peaks[1]:.0f} "
        f"packets, or to {peaks[2]:.0f} if it knows the link's rate (figure A6)."
    )


def _remark_today(evidence: Evidence) -> str:
    slow = {NAMES[method]: today(method, cells.SLOW_BPS, "cubic") for method in METHODS}
    return (
        "With today's TCP (CUBIC, SACK, timestamps, delayed ACKs, a modem queue of 100 packets) at "
        f"9.6 kbit/s, in Mbit/s: {goodput_table(evidence, slow)}. Timestamps change with every "
        "ACK, so that RFC 1144 does not compress them: its packets are sent unchanged. "
        "Compaction's two bytes for what was acknowledged hold 22 delayed ACKs of 1448-byte "
        "segments, not 60: at 16 tunnelled ACKs a second, 8.4 Mbit/s is the most, and what exceeds "
        "it waits. Spacing adds its own delay, and after a loss it prolongs a long round trip."
    )
