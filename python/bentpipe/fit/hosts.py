"""Settings of the hosts that show in a capture."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from bentpipe.fit.connection import ACK, SYN, Connection
from bentpipe.fit.estimate import Estimate
from bentpipe.fit.sender import mss_of

# An advertised window that changes by less than this share is that of a fixed buffer.
_FIXED: Final = 0.05
# Share of the time during which data in flight are close to the window, to call it the limit.
_LIMITING: Final = 0.5
_CLOSE: Final = 0.9
_MOST_INITIAL: Final = 100


def host_estimates(connection: Connection) -> Iterator[Estimate]:
    """Yield the settings of both hosts."""
    name = connection.path.name

    def stated(key: str, value: float | str, unit: str, method: str) -> Estimate:
        return Estimate(key=f"host.{key}", value=value, unit=unit, source=name, method=method)

    own, peer = connection.options
    syn = "in the SYN segments" if own and peer else "in the segments"
    yield stated("mss", float(mss_of(connection)), "B", f"payload of a full segment, {syn}")
    yield stated("ip", "v6" if connection.is_v6 else "v4", "", "in the segments")
    stamps = "on" if connection.has_timestamps else "off"
    yield stated("timestamps", stamps, "", "in the segments")
    if own is not None and peer is not None:
        sack = "on" if own.sack_permitted and peer.sack_permitted else "off"
        yield stated("sack", sack, "", "in both SYN segments")
        scaled = own.window_scale is not None and peer.window_scale is not None
        yield stated("window_scaling", "on" if scaled else "off", "", "in both SYN segments")
        if scaled:
            yield stated("window_scale", float(peer.window_scale or 0), "", "of the receiver")
    elif len(connection.acks.sack_segment):
        yield stated("sack", "on", "", "in the segments")
    first = _initial_window(connection)
    if first is not None:
        yield stated(
            "initial_window", float(first), "segments", "segments before the first acknowledgment"
        )
    yield from _receive_window(connection)


def _initial_window(connection: Connection) -> int | None:
    """Return the segments sent before data were acknowledged, if a capture shows them.

    At the receiver, these are the segments that arrive within half a round trip of the first.
    """
    if connection.options[0] is None or connection.options[1] is None:
        return None
    data, acks = connection.data, connection.acks
    sent = data.is_data & (data.offset >= 0)
    if not sent.any():
        return None
    begin = data.time_s[sent][0]
    if connection.at_sender is False:
        handshake = [each for each in connection.handshake_s if each is not None]
        if not handshake or max(handshake) <= 0:
            return None
        until = begin + max(handshake) / 2
    else:
        answered = acks.time_s[(acks.acknowledged > 0) & (acks.flags & (SYN | ACK) == ACK)]
        if not len(answered):
            return None
        until = float(answered[0])
    early = sent & (data.time_s < until)
    size = int((data.offset + data.payload)[early].max())
    count = -(-size // mss_of(connection))
    return count if 1 <= count <= _MOST_INITIAL else None


def _receive_window(connection: Connection) -> Iterator[Estimate]:
    """Yield the receive buffer if its window is fixed, or if it limits the data in flight."""
    name = connection.path.name
    acks, data = connection.acks, connection.data
    usable = (acks.flags & SYN == 0) & (acks.flags & ACK != 0)
    if connection.options[1] is None or usable.sum() < 10:
        return
    window = acks.window[usable]
    largest = int(window.max())
    usual = float(np.median(window))
    fixed = usual > 0 and abs(largest / usual - 1) < _FIXED and window[0] > (1 - _FIXED) * largest
    if fixed:
        yield Estimate(
            key="receiver.receive_buffer",
            value=float(largest),
            low=float(usual),
            high=float(largest),
            unit="B",
            source=name,
            method="largest advertised window, which hardly changes",
        )
    else:
        yield Estimate(
            key="receiver.receive_window",
            value=float(largest),
            unit="B",
            source=name,
            method="largest advertised window, which grows: buffer auto-tuning",
        )
    # Data in flight, as far as the capture shows it.
    sent = data.is_data & (data.offset >= 0)
    if connection.at_sender is False or not sent.any():
        return
    times = data.time_s[sent]
    ends = np.maximum.accumulate((data.offset + data.payload)[sent])
    last = np.searchsorted(acks.time_s, times, side="right") - 1
    known = last >= 0
    right = np.maximum.accumulate(acks.acknowledged + acks.window)[last[known]]
    mss = mss_of(connection)
    share = float(np.mean(ends[known] > right - 2 * mss)) if known.any() else 0.0
    if share > _LIMITING:
        yield Estimate(
            key="receiver.window_limited",
            value=share,
            unit="1",
            source=name,
            method="share of the segments that fill the advertised window",
        )
