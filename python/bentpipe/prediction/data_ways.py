"""Which way the data of an application goes: what its window, its losses and its ACKs are about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from bentpipe.prediction.changes import Table

# Whose data, or most of it, comes from the host that was asked. A user of a mix asks for more than
# he sends, too.
_ASKING: Final = frozenset({"web", "video", "request-response", "mix"})
# Both ends send what may be limited.
_CONVERSING: Final = frozenset({"request-response", "mix", "voice", "ping"})
_DATAGRAMS: Final = frozenset({"voice", "ping", "carousel"})


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
