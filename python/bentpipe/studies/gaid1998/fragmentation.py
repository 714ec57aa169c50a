"""IP fragmentation over the networks of table 1 (section 2.3), and ARP on the server's LAN."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bentpipe.studies.columns import add, empty
from bentpipe.studies.gaid1998.cells import (
    FITTED,
    LARGE_SEGMENT_BYTES,
    LOSS_RATE,
    SELECTIVE,
    Download,
    Open,
)
from bentpipe.studies.study import Table

if TYPE_CHECKING:
    from bentpipe.scenario import Scenario
    from bentpipe.studies.gaid1998.evidence import Evidence

# Table 1: network, MTU in bytes, and the name that a scenario takes for it.
NETWORKS: Final = (
    # Less the header of the modem's tunnel.
    ("Hyperchannel", 65_535, "65515 B"),
    ("16 Mbits/s token ring", 17_914, "token-ring-16"),
    ("4 Mbits/s token ring (IEEE 802.5)", 4_464, "token-ring-4"),
    ("FDDI", 4_352, "fddi"),
    ("Ethernet", 1_500, "ethernet"),
    ("IEEE 802.3/802.2", 1_492, "ieee-802.3"),
    ("X.25", 576, "x.25"),
    ("Point-to-point (low delay)", 296, "point-to-point"),
)
_PACKET_BYTES: Final = LARGE_SEGMENT_BYTES + 40
# A fragment repeats the IP header, and its data are a multiple of 8 bytes.
_IP_HEADER_BYTES: Final = 20
_UNIT_BYTES: Final = 8
ARP_TIMEOUTS: Final = ("60 s", "1 s")


@dataclass(frozen=True, kw_only=True)
class Fragmented:
    """Set 2 with packets of 1500 bytes that the satellite link fragments; SACK at the gateway."""

    mtu: str
    loss: float

    def scenario(self) -> Scenario:
        """Return the download over this network."""
        download = Download(
            number=2,
            open=_large_segments(delay_ms=FITTED.delay_ms),
            recovery=SELECTIVE,
            satellite_loss=self.loss,
        )
        return download.scenario().with_settings(
            {"links.satellite.mtu": self.mtu, "links.satellite.fragment": True}
        )


@dataclass(frozen=True, kw_only=True)
class OnEthernet:
    """Set 1 with the server on an Ethernet; with ARP, if `arp_timeout` is not empty."""

    framed: bool
    arp_timeout: str = ""

    def scenario(self) -> Scenario:
        """Return the download on this LAN."""
        download = Download(number=1, open=_large_segments(delay_ms=1))
        settings: dict[str, object] = {"probes.series": ["download.sent_segment"]}
        if self.framed:
            settings["links.lan.framing"] = "ethernet"
        if self.arp_timeout:
            settings["links.lan.arp"] = {"timeout": self.arp_timeout}
        return download.scenario().with_settings(settings)


def fragmentation_cells() -> Sequence[Fragmented | OnEthernet]:
    """Return every run of the tables."""
    return [
        *(Fragmented(mtu=mtu, loss=loss) for _, _, mtu in NETWORKS for loss in (0.0, LOSS_RATE)),
        *_lans().values(),
    ]


def fragments(mtu_bytes: int) -> int:
    """Return the number of fragments of a full packet."""
    if mtu_bytes >= _PACKET_BYTES:
        return 1
    data = (mtu_bytes - _IP_HEADER_BYTES) // _UNIT_BYTES * _UNIT_BYTES
    return -(-(_PACKET_BYTES - _IP_HEADER_BYTES) // data)


def mtu_table(evidence: Evidence) -> Table:
    """Return table 1, with what fragmentation costs."""
    columns = empty(
        "network",
        "MTU (bytes)",
        "fragments of 1500 bytes",
        "packets lost (%)",
        "received without loss (Mbyte)",
        "received with 1% loss (Mbyte)",
    )
    for name, mtu_bytes, mtu in NETWORKS:
        count = fragments(mtu_bytes)
        received = [
            evidence.received_bytes(Fragmented(mtu=mtu, loss=loss)) / 1e6
            for loss in (0.0, LOSS_RATE)
        ]
        add(
            columns,
            name,
            mtu_bytes,
            count,
            100 * (1 - (1 - LOSS_RATE) ** count),
            *received,
        )
    return Table(
        id="1",
        title="Value of the MTU depending on the network",
        caption="Networks and MTUs are the paper's; the other columns are of set 2 with segments "
        "of 1460 bytes and SACK at the gateway, if the satellite link had that MTU. One lost "
        "fragment loses the packet, the argument of section 2.4: with 1% of the fragments lost, "
        "packets are lost as computed here, and less is received. The larger packets of the first "
        "four networks are not used, since the server's LAN is an Ethernet.",
        columns=columns,
    )


def arp_table(evidence: Evidence) -> Table:
    """Return the table of the server's LAN with and without ARP."""
    columns = empty("LAN", "first segment sent (ms)", "received in 100 s (Mbyte)")
    for name, cell in _lans().items():
        first_s = float(evidence.curve(cell, "download.sent_segment").known().times_s[0])
        add(columns, name, 1e3 * first_s, evidence.received_bytes(cell) / 1e6)
    return Table(
        id="A14",
        title="ARP on the server's LAN",
        caption="Set 1 with segments of 1460 bytes and the server on an Ethernet, 1 ms from the "
        "gateway. The paper loads its ARP tables from files (section 2.2): addresses are known. "
        "With ARP, the first packet waits for a request and its answer, and so does one that "
        "finds an address older than the timeout.",
        columns=columns,
    )


def _large_segments(*, delay_ms: int) -> Open:
    return replace(FITTED, mss_bytes=LARGE_SEGMENT_BYTES, delay_ms=delay_ms)


def _lans() -> dict[str, OnEthernet]:
    """Return the LANs of the table, by what the reader sees."""
    return {
        "no framing, addresses known": OnEthernet(framed=False),
        "Ethernet, addresses known": OnEthernet(framed=True),
        **{
            f"Ethernet, ARP, timeout {timeout}": OnEthernet(framed=True, arp_timeout=timeout)
            for timeout in ARP_TIMEOUTS
        },
    }
