"""Estimates of a path and its hosts from a capture."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.fit.captures import Progress, read_capture
from bentpipe.fit.connection import ACK, SYN, Connection, Floats
from bentpipe.fit.estimate import Estimate, bootstrap, median, ratio
from bentpipe.fit.hosts import host_estimates
from bentpipe.fit.losses import Losses, losses_of
from bentpipe.fit.measurement import FORWARD, RETURN, Delays, Direction, Measurement, Transfer
from bentpipe.fit.probes import loss_estimates
from bentpipe.fit.rates import (
    FULL_PACKET_BITS,
    RateEstimate,
    ReturnLoad,
    released_load,
    return_load,
    saturated_rate,
)
from bentpipe.fit.receiver import ReceiverView, receiver_view
from bentpipe.fit.sender import SenderView, sender_view

if TYPE_CHECKING:
    from bentpipe.fit.passages import Passages

# Segments per acknowledgment beyond which acknowledgments are missing: RFC 5681 allows two.
_MANY_SEGMENTS: Final = 2.5
# Queuing time in transmission times of an acknowledgment, up to which a filter keeps the queue.
_FILTERED: Final = 8.0
# Drops at queuing times that differ by more than this share are not those of a full queue.
_DROP_SPREAD: Final = 0.3
# Deliveries over which the rate of the data is averaged to see what the link carries at least.
_CARRIED: Final = 50
# Points of a line in a figure.
_POINTS: Final = 2000


def measure_capture(path: Path, progress: Progress | None = None) -> Measurement:
    """Read a capture and return what it tells.

    Raises
    ------
    RequestError
        The file is no capture, or has no transfer in it.
    """
    connection = read_capture(path, progress)
    data: Direction = RETURN if connection.sender_opened else FORWARD
    back: Direction = FORWARD if data == RETURN else RETURN
    place = {True: "sender", False: "receiver", None: "path, between both ends"}[
        connection.at_sender
    ]
    notes = list(connection.notes)
    if connection.at_sender is None:
        notes.append(
            "the capture is from neither end: it is used as one at the sender, and delays are "
            "those beyond the capture point"
        )
    if connection.at_sender is False:
        view: SenderView | ReceiverView | None = receiver_view(connection)
    else:
        view = sender_view(connection)
    estimates: list[Estimate] = list(host_estimates(connection))
    reasons: dict[str, str] = {}
    if view is None:
        reasons[f"{data}.rate"] = "too few segments were delivered"
        delays = _handshake(connection, data)
    elif isinstance(view, SenderView):
        found, reasons = _from_sender(view, connection, data, back)
        estimates += found
        delays = _handshake(connection, data)
        if view.reports.is_clean.any():
            delays.append(_sender_delays(view, connection, data))
    else:
        found, reasons = _from_receiver(view, connection, data, back)
        estimates += found
        delays = [*_handshake(connection, data), *_receiver_delays(view, connection, data)]
    reasons["forward.delay"] = f"a capture at one end ({place}) shows round trips only"
    word = "upload" if data == RETURN else "download"
    count = len(connection.data.time_s) + len(connection.acks.time_s)
    return Measurement(
        path=path,
        kind="capture",
        summary=f"{word} captured at the {place}, {count:,} segments in "
        f"{connection.duration_s:.1f} s",
        estimates=tuple(estimates),
        delays=tuple(delays),
        reasons=reasons,
        transfer=_transfer(connection, view, data),
        notes=tuple(notes),
    )


def _from_sender(
    view: SenderView, connection: Connection, data: Direction, back: Direction
) -> tuple[list[Estimate], dict[str, str]]:
    """Return estimates and what is not determined, from a capture at the sender."""
    name = connection.path.name
    reports, passages = view.reports, view.passages
    queued = passages.queued_s[reports.newest]
    few_s = 4 * float(np.median(np.diff(reports.time_s))) if len(queued) > 1 else 0.0
    waits = queued > min(few_s, float(np.quantile(queued, 0.5)))
    load = return_load(reports.time_s, reports.length, reports.bytes, waits)
    rate = saturated_rate(passages, return_limited=load.is_limited)
    estimates, reasons = _rates(rate, load, data, back, name, _carried(passages))
    if load.is_limited:
        reasons[f"{data}.queue"] = (
            "the link of the acknowledgments was full: round trips show the sum of both queues"
        )
        losses = losses_of(passages, packet_s=None)
    else:
        losses = losses_of(passages, packet_s=_packet_s(rate))
        if rate is not None:
            waited_s = _shortest_waited(view, connection, data, rate)
            losses = replace(losses, full_s=losses.full_s + waited_s)
    _add_losses(losses, passages, rate, data, name, estimates, reasons)
    if not _has_sack(connection):
        reasons[f"{data}.loss"] = (
            "without selective acknowledgments, retransmissions do not show what was lost"
        )
        estimates = [each for each in estimates if not each.key.startswith(f"{data}.loss")]
    typical_s = float(np.quantile(queued, 0.25))
    segments = reports.segments.astype(np.float64)
    _add_acks(load, segments, typical_s, back, name, estimates, reasons)
    reasons[f"{back}.loss"] = "a lost acknowledgment does not show at the sender of the data"
    return estimates, reasons


def _from_receiver(
    view: ReceiverView, connection: Connection, data: Direction, back: Direction
) -> tuple[list[Estimate], dict[str, str]]:
    """Return estimates and what is not determined, from a capture at the receiver."""
    name = connection.path.name
    passages = view.passages
    rate = saturated_rate(passages, noise_s=view.tick_s or 0.0)
    load = ReturnLoad(is_limited=False, rate=None, at_least_bps=_mean_rate(view))
    if view.tick_s is not None and len(view.release_s):
        acks = connection.acks
        load = released_load(
            view.release_s - view.release_queued_s,
            view.release_rtt_s,
            8.0 * acks.length[view.release_ack].astype(np.float64),
            len(np.unique(acks.timestamp[acks.is_pure_ack])),
            tick_s=view.tick_s,
            mean_bps=_mean_rate(view),
        )
    estimates, reasons = _rates(rate, load, data, back, name, _carried(passages))
    losses = losses_of(passages, packet_s=_packet_s(rate) if view.tick_s is not None else None)
    _add_losses(losses, passages, rate, data, name, estimates, reasons)
    if view.tick_s is None:
        reasons[f"{data}.queue"] = "without timestamps, arrivals do not show queuing times"
    if load.is_limited:
        # Segments that arrived per acknowledgment that reached the sender.
        per_ack = np.full(3, np.sum(~passages.is_lost) / max(1, len(view.release_s)))
        _add_acks(load, per_ack, load.queued_s, back, name, estimates, reasons)
    reasons[f"{back}.loss"] = "a lost acknowledgment does not show at the receiver of the data"
    return estimates, reasons


def _shortest_waited(
    view: SenderView, connection: Connection, data: Direction, rate: RateEstimate
) -> float:
    """Return the queuing time in the shortest round trip of data, by that of the handshake.

    Segments leave in pairs and more, so that even the shortest round trip may include a wait.
    """
    for each in _handshake(connection, data):
        sizes = (each.forward_bytes, each.return_bytes)
        own = sizes[0] if data == FORWARD else sizes[1]
        longer_s = (FULL_PACKET_BITS - 8 * own) / rate.value
        return max(0.0, view.shortest_s - each.least_s - longer_s)
    return 0.0


def _mean_rate(view: ReceiverView) -> float:
    """Return the mean rate of the acknowledgments that were sent."""
    if len(view.ack_time_s) < 2 or view.ack_time_s[-1] <= view.ack_time_s[0]:
        return 0.0
    taken = float(view.ack_time_s[-1] - view.ack_time_s[0])
    return float(8 * view.ack_length[1:].sum() / taken)


def _carried(passages: Passages) -> float:
    """Return the highest rate at which data were delivered over many packets."""
    seen = np.flatnonzero(~np.isnan(passages.seen_s))
    bits = 8.0 * np.cumsum(np.where(passages.is_lost, 0, passages.length))[seen]
    times = passages.seen_s[seen]
    span = min(_CARRIED, len(seen) - 1)
    if span < 1:
        return 0.0
    taken = times[span:] - times[:-span]
    fine = taken > 0
    if not fine.any():
        return 0.0
    return float(np.quantile((bits[span:] - bits[:-span])[fine] / taken[fine], 0.9))


def _has_sack(connection: Connection) -> bool:
    own, peer = connection.options
    if own is None or peer is None:
        return len(connection.acks.sack_segment) > 0
    return own.sack_permitted and peer.sack_permitted


def _packet_s(rate: RateEstimate | None) -> float | None:
    return None if rate is None else FULL_PACKET_BITS / rate.value


def _rates(
    rate: RateEstimate | None,
    load: ReturnLoad,
    data: Direction,
    back: Direction,
    name: str,
    carried_bps: float,
) -> tuple[list[Estimate], dict[str, str]]:
    estimates: list[Estimate] = []
    reasons: dict[str, str] = {}
    for key, found in ((f"{data}.rate", rate), (f"{back}.rate", load.rate)):
        if found is None:
            continue
        estimates.append(
            Estimate(
                key=key,
                value=found.value,
                low=found.low,
                high=found.high,
                unit="bit/s",
                source=name,
                method=found.method,
                weight=1e6 * found.is_saturated + found.trains,
            )
        )
    if rate is None:
        limit = "the link of the acknowledgments was full" if load.is_limited else "no queue formed"
        reasons[f"{data}.rate"] = f"{limit}, so that the data never had the rate of their link"
    if rate is None and carried_bps:
        estimates.append(
            Estimate(
                key=f"{data}.rate.least",
                value=carried_bps,
                unit="bit/s",
                source=name,
                method="highest rate of data over many acknowledgments",
            )
        )
    reasons[f"{back}.queue"] = (
        "drops of acknowledgments do not show"
        if load.is_limited
        else "acknowledgments never filled it"
    )
    if load.rate is None and load.at_least_bps:
        estimates.append(
            Estimate(
                key=f"{back}.rate.least",
                value=load.at_least_bps,
                unit="bit/s",
                source=name,
                method="rate of the acknowledgments that arrived in quick succession",
            )
        )
    if load.rate is None:
        reasons[f"{back}.rate"] = "acknowledgments never filled their link" + (
            f" (at least {load.at_least_bps / 1e3:.3g} kbit/s)" if load.at_least_bps else ""
        )
    return estimates, reasons


def _add_losses(
    losses: Losses,
    passages: Passages,
    rate: RateEstimate | None,
    data: Direction,
    name: str,
    estimates: list[Estimate],
    reasons: dict[str, str],
) -> None:
    """Add the random losses and the queue."""
    key = f"{data}.queue"
    if losses.is_mixed:
        reasons[f"{data}.loss"] = (
            f"{losses.random:,} of {losses.packets:,} packets were lost, and queuing times are "
            "unknown: losses of a full queue cannot be told from others"
        )
    else:
        estimates += loss_estimates(
            f"{data}.loss", losses, name, "packets while the queue had room"
        )
    if rate is None or losses.queue_drops is None:
        reasons.setdefault(key, "queuing times are unknown")
        return
    packet_s = FULL_PACKET_BITS / rate.value
    if not losses.queue_drops:
        known = passages.queued_s[~np.isnan(passages.queued_s)]
        longest = float(np.quantile(known, 0.999)) / packet_s if len(known) else 0.0
        estimates.append(
            Estimate(
                key=f"{key}.least",
                value=longest,
                unit="packets",
                source=name,
                method="longest queuing time, times the rate",
            )
        )
        reasons.setdefault(
            key, f"the queue was never full; it held {longest:.0f} packets of 1500 B at most"
        )
        return
    # The packet before a drop waited for all but the last one, and for a part of that.
    packets = losses.full_s / packet_s + 0.5
    value, low, high = bootstrap(packets, median)
    spread = np.subtract(*np.quantile(losses.full_s, [0.9, 0.1])) / np.median(losses.full_s)
    if len(packets) >= 10 and spread > _DROP_SPREAD:
        reasons[f"{data}.queue.kind"] = (
            f"drops occurred at queuing times that differ by {spread:.0%}: the queue may drop "
            "early (active queue management)"
        )
    estimates.append(
        Estimate(
            key=key,
            value=value,
            low=min(low, value - 1),
            high=max(high, value + 1),
            unit="packets",
            source=name,
            method=f"queuing times around {losses.queue_drops:,} drops, times the rate; bootstrap",
            weight=losses.queue_drops,
        )
    )


def _add_acks(
    load: ReturnLoad,
    segments: Floats,
    typical_s: float,
    back: Direction,
    name: str,
    estimates: list[Estimate],
    reasons: dict[str, str],
) -> None:
    """Add what thins acknowledgments out: their link, a filter in front of it, or the receiver."""
    if len(segments) < 2:
        return
    mean, low, high = bootstrap(np.column_stack([segments, np.ones_like(segments)]), ratio)
    estimates.append(
        Estimate(
            key=f"{back}.segments_per_ack",
            value=mean,
            low=low,
            high=high,
            unit="1",
            source=name,
            method="mean over the acknowledgments that report data; bootstrap",
            weight=len(segments),
        )
    )
    if mean < _MANY_SEGMENTS:
        return
    if not load.is_limited or load.rate is None:
        usual = float(np.median(segments))
        if usual >= 3:
            estimates.append(
                Estimate(
                    key="receiver.ack_every",
                    value=float(round(usual)),
                    low=float(np.quantile(segments, 0.25)),
                    high=float(np.quantile(segments, 0.75)),
                    unit="1",
                    source=name,
                    method="median of the segments per acknowledgment, and its quartiles",
                    weight=len(segments),
                )
            )
        return
    ack_s = 8 * 52 / load.rate.value
    if typical_s / ack_s <= _FILTERED:
        estimates.append(
            Estimate(
                key=f"{back}.acks",
                value="filter",
                unit="",
                source=name,
                method=f"{mean:.1f} segments per acknowledgment, which waits for "
                f"{typical_s / ack_s:.1f} others",
            )
        )
    else:
        reasons[f"{back}.acks"] = (
            f"{mean:.1f} segments per acknowledgment: a filter and a full queue of acknowledgments "
            "cannot be told apart at this end"
        )


def _handshake(connection: Connection, data: Direction) -> list[Delays]:
    """Return the round trip of the handshake, with the shortest packets that there are."""
    to_sender, to_receiver = connection.handshake_s
    if to_sender is None or to_receiver is None:
        return []
    lengths = []
    for way in (connection.data, connection.acks):
        syn = way.length[way.flags & SYN != 0]
        lengths.append(int(syn[0]) if len(syn) else 60)
    # The capture is at an end: the other delay is the round trip. The final ACK is shorter.
    opener = connection.data if connection.sender_opened else connection.acks
    if connection.at_sender is connection.sender_opened:
        pass
    else:
        third = opener.length[(opener.flags & (SYN | ACK)) == ACK]
        lengths[0 if connection.sender_opened else 1] = int(third[0]) if len(third) else 52
    forward, back = lengths if data == FORWARD else lengths[::-1]
    return [
        Delays(
            way="both",
            delay_s=np.asarray([to_sender + to_receiver]),
            time_s=np.zeros(1),
            forward_bytes=forward,
            return_bytes=back,
            source=connection.path.name,
            method="handshake",
        )
    ]


def _sender_delays(view: SenderView, connection: Connection, data: Direction) -> Delays:
    clean = view.reports.is_clean
    rtt_s = view.reports.rtt_s[clean]
    shortest = np.flatnonzero(clean)[np.argmin(rtt_s)]
    full = int(view.passages.length[view.reports.newest[shortest]])
    ack = int(view.reports.length[shortest])
    forward, back = (full, ack) if data == FORWARD else (ack, full)
    return Delays(
        way="both",
        delay_s=rtt_s,
        time_s=view.reports.time_s[clean],
        forward_bytes=forward,
        return_bytes=back,
        source=connection.path.name,
        method=f"shortest of {len(rtt_s):,} round trips of data",
    )


def _receiver_delays(view: ReceiverView, connection: Connection, data: Direction) -> list[Delays]:
    if not len(view.release_rtt_s) or view.tick_s is None:
        return []
    whole_s = view.release_rtt_s + view.release_queued_s
    ack = int(connection.acks.length[view.release_ack[np.argmin(whole_s)]])
    full = int(np.median(view.passages.length))
    forward, back = (full, ack) if data == FORWARD else (ack, full)
    return [
        Delays(
            way="both",
            delay_s=whole_s,
            time_s=view.release_s,
            forward_bytes=forward,
            return_bytes=back,
            source=connection.path.name,
            method=f"shortest of {len(view.release_rtt_s):,} round trips of timestamps",
        )
    ]


def _transfer(
    connection: Connection, view: SenderView | ReceiverView | None, data: Direction
) -> Transfer:
    if connection.at_sender is False:
        way = connection.data
        own = way.is_data & (way.offset >= 0)
        times = way.time_s[own]
        delivered = np.maximum.accumulate((way.offset + way.payload)[own])
    else:
        times = connection.acks.time_s
        delivered = np.maximum.accumulate(connection.acks.acknowledged)
    rtt_time, rtt = np.zeros(0), np.zeros(0)
    if isinstance(view, SenderView):
        rtt_time, rtt = view.reports.time_s, view.reports.rtt_s
    elif view is not None:
        rtt_time, rtt = view.release_s, view.release_rtt_s + view.release_queued_s
    # The opener's clock begins half a round trip before the other end sees its SYN.
    to_opener = connection.handshake_s[0 if connection.sender_opened else 1]
    late_s = (to_opener or 0.0) / 2
    few = max(1, len(times) // _POINTS)
    some = max(1, len(rtt) // _POINTS)
    return Transfer(
        direction=data,
        duration_s=connection.duration_s,
        time_s=times[::few] + late_s,
        delivered_bytes=np.maximum(0.0, delivered[::few].astype(np.float64)),
        rtt_time_s=rtt_time[::some] + late_s,
        rtt_s=rtt[::some],
        at_sender=connection.at_sender is not False,
    )
