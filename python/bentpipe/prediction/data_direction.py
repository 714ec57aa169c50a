"""Direction of an application's data, on which its window, losses and ACKs depend."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bentpipe.kinds import Application, applications
from bentpipe.prediction.quantities import in_base_unit

if TYPE_CHECKING:
    from bentpipe.prediction.changes import Table

# A user of a mix receives more than they send.
_MIX: Final = Application(
    from_server=True, two_way=True, datagrams=False, keeps_sending=False, role="other"
)
# ITU-T G.711 and G.729, bit/s; RFC 3550 section 5.1.
_CODECS_BPS: Final = {"g711": 64_000, "g729": 8_000}
_RTP_BYTES: Final = 12


@dataclass(frozen=True, kw_only=True)
class DataDirection:
    """Direction of an application's data.

    `from_server`: most of it comes from the host that the flow leads "to". `two_way`: both send.
    """

    from_server: bool
    two_way: bool
    over_tcp: bool


def data_direction(app: Table) -> DataDirection:
    """Return the direction of an application's data, whichever end opens the connection."""
    kind = applications().get(app["kind"], _MIX)
    # Direction of the files; an application without this key uploads.
    direction = app.get("direction") or "upload"
    return DataDirection(
        from_server=kind.from_server or direction == "download",
        two_way=kind.two_way or direction == "both",
        over_tcp=not kind.datagrams and app.get("transport") not in ("udp", "quic"),
    )


@dataclass(frozen=True, kw_only=True)
class Datagrams:
    """Packets of one size that an application sends at a fixed rate.

    `payload_bytes`: bytes of a packet behind the UDP or ICMP header. `offered_bps`: goodput while
    the application sends, if every packet arrives.
    """

    payload_bytes: int
    offered_bps: float


def datagrams(app: Table) -> Datagrams | None:
    """Return the packets of a call, or of a source of echoes or packets.

    None unless the packets have one size and one interval, and go by UDP or ICMP.
    """
    of_kind = _DATAGRAMS.get(app["kind"])
    return None if of_kind is None else of_kind(app)


def _of_echoes(app: Table) -> Datagrams:
    size = int(app["size_bytes"])
    # Goodput counts the replies.
    return Datagrams(payload_bytes=size, offered_bps=8.0 * size / app["interval_s"])


def _of_speech(app: Table) -> Datagrams:
    speech = math.ceil(_CODECS_BPS[app["codec"]] * app["packet_s"] / 8.0)
    size = speech + _RTP_BYTES
    return Datagrams(payload_bytes=size, offered_bps=2 * 8.0 * size / app["packet_s"])


def _of_packets(app: Table) -> Datagrams | None:
    if app["transport"] != "udp" or app["on"] is not None:
        return None
    # A random size or interval is a distribution, such as "exponential(20 ms)".
    size, interval_s = in_base_unit(app["size"]), in_base_unit(app["interval"])
    if not size or not interval_s:
        return None
    return Datagrams(payload_bytes=int(size), offered_bps=8.0 * size / interval_s)


# The datagrams of each application that may have a fixed rate.
_DATAGRAMS: Final[Mapping[str, Callable[[Table], Datagrams | None]]] = {
    "ping": _of_echoes,
    "voice": _of_speech,
    "packets": _of_packets,
}
