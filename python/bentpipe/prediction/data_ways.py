"""Which way the data of an application goes: what its window, its losses and its ACKs are about."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bentpipe.prediction.quantities import in_base_unit

if TYPE_CHECKING:
    from bentpipe.prediction.changes import Table

# Whose data, or most of it, comes from the host that was asked. A user of a mix asks for more than
# he sends, too.
_ASKING: Final = frozenset({"web", "video", "request-response", "mix"})
# Both ends send what may be limited.
_CONVERSING: Final = frozenset({"request-response", "mix", "voice", "ping"})
_DATAGRAMS: Final = frozenset({"voice", "ping", "carousel"})
# ITU-T G.711 and G.729, bit/s; RFC 3550 section 5.1.
_CODECS_BPS: Final = {"g711": 64_000, "g729": 8_000}
_RTP_BYTES: Final = 12


@dataclass(frozen=True, kw_only=True)
class DataWay:
    """The way of an application's data.

    `from_server`: most of it comes from the host that the flow leads "to". `two_way`: both send.
    """

    from_server: bool
    two_way: bool
    over_tcp: bool


def data_way(app: Table) -> DataWay:
    """Return which way the data of a flow's application goes, whoever opens connections."""
    kind = app["kind"]
    # Which way files go, of what has files; what says nothing sends.
    direction = app.get("direction") or "upload"
    datagrams = kind in _DATAGRAMS or (kind == "packets" and app["transport"] == "udp")
    return DataWay(
        from_server=kind in _ASKING or direction == "download",
        two_way=kind in _CONVERSING or direction == "both",
        over_tcp=not datagrams,
    )


@dataclass(frozen=True, kw_only=True)
class Datagrams:
    """What an application sends that has packets of one size at a rate of its own.

    `payload_bytes`: what a packet carries behind UDP's or ICMP's header. `offered_bps`: what its
    goodput counts while it is at it, if all arrives.
    """

    payload_bytes: int
    offered_bps: float


def datagrams(app: Table) -> Datagrams | None:
    """Return what a call, or a source of echoes or of packets, sends.

    None of what has no packets of one size, at one interval, by UDP or ICMP.
    """
    if app["kind"] == "ping":
        size = int(app["size_bytes"])
        # What is counted is what comes back.
        return Datagrams(payload_bytes=size, offered_bps=8.0 * size / app["interval_s"])
    if app["kind"] == "voice":
        speech = math.ceil(_CODECS_BPS[app["codec"]] * app["packet_s"] / 8.0)
        size = speech + _RTP_BYTES
        return Datagrams(payload_bytes=size, offered_bps=2 * 8.0 * size / app["packet_s"])
    if app["kind"] == "packets" and app["transport"] == "udp" and app["on"] is None:
        return _packets(app)
    return None


def _packets(app: Table) -> Datagrams | None:
    # What is drawn is written as a distribution: "exponential(20 ms)".
    size, interval_s = in_base_unit(app["size"]), in_base_unit(app["interval"])
    if not size or not interval_s:
        return None
    return Datagrams(payload_bytes=int(size), offered_bps=8.0 * size / interval_s)
