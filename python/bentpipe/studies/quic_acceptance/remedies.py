"""Files and pages over TCP and QUIC, with gateways, ACK methods and settings of the hosts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bentpipe.scenario import Scenario

_FOLDER: Final = Path(__file__).parent
_OUTAGES: Final = '[{ at = "2 s", lasts = "50 ms", every = "15 s" }]'
_STEPS: Final = (
    '[{ at = "2.05 s", delay = "28 ms" }, { at = "17.05 s", delay = "16 ms" },'
    ' { at = "32.05 s", delay = "24 ms" }]'
)
_GATEWAY_TCP: Final = (
    '{ congestion_control = "bbr", send_buffer = "32 MiB", receive_buffer = "32 MiB" }'
)


@dataclass(frozen=True, kw_only=True)
class Network:
    """A satellite network. Rates are in bit/s, `trip_ms` is its round trip."""

    name: str
    down_bps: int
    up_bps: int
    trip_ms: int = 600
    settings: tuple[tuple[str, object], ...] = ()

    @property
    def window_bytes(self) -> int:
        """The window of an earlier connection: what the path holds."""
        return self.down_bps * self.trip_ms // 8_000


GEO: Final = Network(name="GEO 50/5", down_bps=50_000_000, up_bps=5_000_000)
NETWORKS: Final = (
    GEO,
    Network(name="GEO 250/3", down_bps=250_000_000, up_bps=3_000_000),
    Network(name="GEO 20/0.064", down_bps=20_000_000, up_bps=64_000),
    # Handovers every 15 s, as in examples/gallery/leo-handover.toml.
    Network(
        name="LEO 100/10",
        down_bps=100_000_000,
        up_bps=10_000_000,
        trip_ms=62,
        settings=(
            ("links.satellite.forward.delay", "20 ms"),
            ("links.satellite.return.delay", "20 ms"),
            ("links.satellite.schedule", _STEPS),
            ("links.satellite.outages", _OUTAGES),
            ("links.satellite.forward.errors.packet_loss_rate", 0.0001),
        ),
    ),
)

FILE: Final = "file of 20 MB"
PAGE: Final = "page"
_LOADS: Final = {
    FILE: 'kind = "bulk", size = "20 MB", direction = "download"',
    PAGE: 'kind = "web", page = "web-almanac", pages = 1',
}
LOADS: Final = tuple(_LOADS)


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """A remedy: settings, and the transports that it is tried with.

    `resumes`: the server starts from the window of an earlier connection.
    """

    name: str
    settings: tuple[tuple[str, object], ...] = field(default=(), repr=False)
    transports: tuple[str, ...] = ("tcp", "quic")
    resumes: bool = False


_WINDOWS: Final = (
    ("hosts.client.quic.stream_window", "32 MiB"),
    ("hosts.server.quic.send_window", "32 MiB"),
)
_FEWER_ACKS: Final = (*_WINDOWS, ("hosts.server.quic.ack_threshold", 9))

NOTHING: Final = Remedy(name="nothing")
IN_THE_NETWORK: Final = (
    Remedy(
        name="split gateways",
        settings=tuple(
            (f"gateways.{gateway}.{key}", value)
            for gateway in ("hub", "terminal")
            for key, value in (
                ("kind", "split"),
                ("facing", "satellite"),
                ("tcp", _GATEWAY_TCP),
            )
        ),
    ),
    Remedy(
        name="hybrid gateway",
        settings=(
            ("gateways.hub.kind", "hybrid"),
            ("gateways.hub.facing", "satellite"),
            ("gateways.hub.receive_buffer", "4 MB"),
        ),
    ),
    Remedy(name="ACK filter", settings=(("links.satellite.return.acks", '{ kind = "filter" }'),)),
)
AT_THE_HOSTS: Final = (
    Remedy(name="windows of 32 MiB", settings=_WINDOWS, transports=("quic",)),
    Remedy(name="and an ACK after 9 packets", settings=_FEWER_ACKS, transports=("quic",)),
    Remedy(
        name="and BBR",
        settings=(*_FEWER_ACKS, ("hosts.server.quic.congestion_control", "bbr")),
        transports=("quic",),
    ),
    Remedy(
        name="and CUBIC with a saved path",
        settings=(*_FEWER_ACKS, ("hosts.server.quic.congestion_control", "cubic")),
        transports=("quic",),
        resumes=True,
    ),
)
REMEDIES: Final = (NOTHING, *IN_THE_NETWORK, *AT_THE_HOSTS)


@dataclass(frozen=True, kw_only=True)
class Remedied:
    """A file or a page over a network, with a remedy."""

    network: Network
    load: str
    transport: str
    remedy: Remedy = NOTHING

    def scenario(self) -> Scenario:
        """Return it as a scenario."""
        network, remedy = self.network, self.remedy
        keys: dict[str, object] = {
            "links.satellite.forward.rate": f"{network.down_bps} bit/s",
            "links.satellite.return.rate": f"{network.up_bps} bit/s",
            "flows.transfer.from": "client",
            "flows.transfer.to": "server",
            "flows.transfer.app": f'{{ {_LOADS[self.load]}, transport = "{self.transport}" }}',
            **dict(network.settings),
            **dict(remedy.settings),
        }
        if remedy.resumes:
            keys["hosts.server.resume"] = (
                f'{{ window = "{network.window_bytes} B", rtt = "{network.trip_ms} ms" }}'
            )
        return Scenario(path=_FOLDER / "access.toml").with_settings(keys)


def remedied(networks: tuple[Network, ...] = NETWORKS) -> list[Remedied]:
    """Return every load over these networks with every remedy."""
    return [
        Remedied(network=network, load=load, transport=transport, remedy=remedy)
        for network in networks
        for load in LOADS
        for remedy in REMEDIES
        for transport in remedy.transports
    ]
