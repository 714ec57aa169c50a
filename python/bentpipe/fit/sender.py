"""A capture at the sender: transmissions, their fates, and the acknowledgments that arrive."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.fit.passages import Passages

if TYPE_CHECKING:
    from bentpipe.fit.connection import Bools, Connection, Floats, Ints

# A delivery that is reported sooner than this share of the shortest round trip after a
# retransmission is that of an earlier transmission.
_EARLIEST_REPORT: Final = 0.9


@dataclass(frozen=True, kw_only=True)
class Transmissions:
    """Transmissions of segments, in order of time: with retransmissions, several of a segment."""

    # Segment: index of a part of the stream, at most one MSS long.
    segment: Ints
    time_s: Floats
    length: Ints
    is_lost: Bools
    is_known: Bools
    # Index of the acknowledgment that reports the delivery; -1 if none does.
    report: Ints


@dataclass(frozen=True, kw_only=True)
class Reports:
    """Acknowledgments that report deliveries, in order of time."""

    time_s: Floats
    # IP length of the acknowledgment.
    length: Ints
    # Segments that it reports, and the IP bytes of these.
    segments: Ints
    bytes: Ints
    # The transmission that it reports and that was sent last.
    newest: Ints
    rtt_s: Floats
    # Whether that segment was sent once: other round trips are ambiguous (Karn).
    is_clean: Bools


@dataclass(frozen=True, kw_only=True)
class SenderView:
    """What a capture at the sender shows."""

    transmissions: Transmissions
    reports: Reports
    # All acknowledgments without data that arrive.
    ack_time_s: Floats
    ack_length: Ints
    passages: Passages
    # The shortest round trip of data.
    shortest_s: float


def mss_of(connection: Connection) -> int:
    """Return the payload of a full segment, from the handshake or else from the segments."""
    offered = [each.mss for each in connection.options if each is not None and each.mss]
    if len(offered) == 2:
        return max(1, min(offered) - (12 if connection.has_timestamps else 0))
    payload = connection.data.payload[connection.data.is_data]
    usual = payload[payload <= np.quantile(payload, 0.9)] if len(payload) else payload
    sizes, counts = np.unique(usual, return_counts=True)
    most = int(sizes[np.argmax(counts)]) if len(sizes) else 1448
    return most if most <= 9000 else 1448


def sender_view(connection: Connection) -> SenderView | None:
    """Return what a capture at the sender shows, or None if no data was acknowledged."""
    data, acks = connection.data, connection.acks
    own = data.is_data & (data.offset >= 0)
    if not own.any() or not len(acks.time_s):
        return None
    mss = mss_of(connection)
    # Segmentation offload hands over many segments at once.
    pieces = -(-data.payload[own] // mss)
    at = np.repeat(np.flatnonzero(own), pieces)
    number = np.arange(len(at)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    offset = data.offset[at] + number * mss
    payload = np.minimum(mss, data.payload[at] - number * mss)
    ends = offset + payload
    highest = np.maximum.accumulate(ends)
    is_new = offset >= np.concatenate([[np.int64(0)], highest[:-1]])
    starts, stops = offset[is_new], ends[is_new]
    segment = np.searchsorted(starts, offset, side="right") - 1
    order = np.flatnonzero(segment >= 0)
    segment, time_s = segment[order], data.time_s[at][order]
    length = (payload + (data.length - data.payload)[at])[order]

    report = _reports_of(connection, starts, stops)
    once = np.bincount(segment, minlength=len(starts)) == 1
    first = np.full(len(starts), np.inf)
    np.minimum.at(first, segment, time_s)
    reported = report < len(acks.time_s)
    report_s = np.where(reported, acks.time_s[np.clip(report, 0, len(acks.time_s) - 1)], np.inf)
    clean = once & reported
    if not clean.any():
        return None
    shortest_s = max(1e-9, float(np.min((report_s - first)[clean])))

    # The last transmission that can be the one that was delivered.
    possible = time_s <= report_s[segment] - _EARLIEST_REPORT * shortest_s
    possible |= once[segment]
    delivering = np.full(len(starts), -1)
    np.maximum.at(delivering, segment[possible], np.flatnonzero(possible))
    index = np.arange(len(segment))
    is_lost = index < delivering[segment]
    is_delivered = (index == delivering[segment]) & reported[segment]
    transmissions = Transmissions(
        segment=segment,
        time_s=time_s,
        length=length,
        is_lost=is_lost,
        is_known=is_lost | is_delivered,
        report=np.where(is_delivered, report[segment], -1),
    )
    reports = _reports(transmissions, acks.time_s, acks.length, once)
    pure = acks.is_pure_ack
    queued_s = np.full(len(segment), np.nan)
    seen_s = np.full(len(segment), np.nan)
    queued_s[reports.newest] = np.maximum(0.0, reports.rtt_s - shortest_s)
    seen_s[reports.newest] = reports.time_s
    return SenderView(
        transmissions=transmissions,
        reports=reports,
        ack_time_s=acks.time_s[pure],
        ack_length=acks.length[pure],
        passages=Passages(
            length=length,
            entered_s=time_s,
            is_lost=is_lost,
            is_known=transmissions.is_known,
            seen_s=seen_s,
            queued_s=queued_s,
        ),
        shortest_s=shortest_s,
    )


def _reports_of(connection: Connection, starts: Ints, stops: Ints) -> Ints:
    """Return the index of the first ACK that reports each segment; their number if none does."""
    acks = connection.acks
    none = len(acks.time_s)
    report = np.searchsorted(np.maximum.accumulate(acks.acknowledged), stops, side="left")
    report = report.astype(np.int64)
    # A block usually repeats one before it, with more at its end or its beginning.
    known: dict[int, int] = {}
    firsts = np.searchsorted(starts, acks.sack_from, side="left")
    lasts = np.searchsorted(stops, acks.sack_to, side="right")
    for first, last, at in zip(
        firsts.tolist(), lasts.tolist(), acks.sack_segment.tolist(), strict=True
    ):
        done = known.get(first, first)
        if last <= done:
            continue
        known[first] = last
        part = report[done:last]
        np.minimum(part, at, out=part)
    return np.minimum(report, none)


def _reports(transmissions: Transmissions, times: Floats, lengths: Ints, once: Bools) -> Reports:
    """Return the acknowledgments that report deliveries, with the round trips that they measure."""
    delivered = np.flatnonzero(transmissions.report >= 0)
    # In order of the acknowledgment, and of the time of sending within one.
    delivered = delivered[np.argsort(transmissions.report[delivered], kind="stable")]
    report = transmissions.report[delivered]
    ends = np.flatnonzero(np.diff(report, append=-1))
    counts = np.diff(ends, prepend=-1)
    total = np.cumsum(transmissions.length[delivered])
    newest = delivered[ends]
    time_s = times[report[ends]]
    return Reports(
        time_s=time_s,
        length=lengths[report[ends]],
        segments=counts,
        bytes=np.diff(total[ends], prepend=0),
        newest=newest,
        rtt_s=time_s - transmissions.time_s[newest],
        is_clean=once[transmissions.segment[newest]],
    )
