"""The runs of gaid1998, and additional ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bentpipe.scenario import Scenario

_FOLDER: Final = Path(__file__).parent

DURATION_S: Final = 100
SATELLITE_BPS: Final = 10_000_000
SATELLITE_DELAY_S: Final = 0.25
STANDARD_WINDOW_BYTES: Final = 4096
SLOW_BPS: Final = 9_600
FAST_BPS: Final = 29_900
# Section 6.3.1: 7% of the application's load in 100 s.
STANDARD_SENT_MB: Final = 7.0
# The application's load of set 1: 7 Mbyte in 100 s are 7% of it.
STANDARD_LOAD_MBYTE_S: Final = 1.0
# Section 6: the rate that the commercial service claims.
COMMERCIAL_KBPS: Final = 400.0

# Headers of IP and TCP, and an ACK within another IP header.
_HEADER_BYTES: Final = 40
_TUNNELLED_ACK_BYTES: Final = 60
_HUB: Final = "gateways.hub"
_SATELLITE: Final = "links.satellite"
SETS: Final = (1, 2, 3, 4, 5)
# Parameters that tables 3 to 6 and section 6.3.5 vary: (host's window, gateway's window, modem, ACK
# timeout). Tables 5 and 6 name no modem: the faster one of the previous set is used.
_VARIED: Final[Mapping[int, tuple[int, int, int, int]]] = {
    1: (4_096, 64_000, SLOW_BPS, 200),
    2: (45_000, 64_000, FAST_BPS, 200),
    3: (45_000, 1_000_000, FAST_BPS, 200),
    4: (1_000_000, 1_000_000, FAST_BPS, 200),
    5: (1_000_000, 1_000_000, FAST_BPS, 10),
}
NAMES: Final[Mapping[int, str]] = {
    1: "standard",
    2: "faster modem, host window 45 kbyte",
    3: "gateway window 1000 kbyte",
    4: "host window 1000 kbyte, too",
    5: "ACK timeout 10 ms",
}
# Table 2 of the paper for the TCPs at both ends, and further quantities of its figures.
PROBES: Final = (
    "download.segment_delay",
    "download.received_segment",
    "download.acknowledged",
    "download.sent_segment",
    "download.delivered",
    "download.congestion_window",
    "download.measured_rtt",
    "download.rtt_deviation",
    "satellite.forward.utilization",
)
RECEIVED: Final = "hub.received"
HUB_PROBES: Final = (
    RECEIVED,
    "hub.sent",
    "hub.acknowledged",
    "hub.acknowledged_to_server",
    "hub.host_window",
    "hub.eligible",
    "hub.smoothed_rtt",
)
TRACED: Final = (RECEIVED, "hub.sent", "hub.acknowledged", "hub.host_window")
# Section 6 varies the load; it is open from this set on.
_FIRST_OF_OPEN_LOAD: Final = 3
FIRST: Final = ("download.sent_segment", "download.received_segment", "download.acknowledged")
REQUEST_RTT: Final = "requests.measured_rtt"
_REQUESTS: Final[Mapping[str, object]] = {
    "from": "host",
    "to": "server",
    "app": {"kind": "packets", "transport": "tcp", "size": "40 B", "interval": "500 ms"},
}


@dataclass(frozen=True, kw_only=True)
class Open:
    """Parameters that the paper does not state and all sets share.

    * `delay_ms`: delay between server and gateway.
    * `queue_packets`: length of the modem's queue.
    * `factor`: the gateway sends at most this many windows of the host; None is unlimited.
    * `held_by_host`: the gateway's window counts the data that the host has not acknowledged.
      Otherwise it counts only data that the gateway has not acknowledged to the server, and the
      gateway holds at most 8 MB.
    * `load_mbyte_s`: load of sets 3 to 5. Sets 1 and 2 have 1 Mbyte/s, since the 7 Mbyte of set 1
      are 7% of its load.
    """

    mss_bytes: int = 512
    queue_packets: int = 10
    delay_ms: int = 1
    delayed_ack: bool = True
    factor: float | None = None
    held_by_host: bool = True
    load_mbyte_s: float = STANDARD_LOAD_MBYTE_S


# Found by tools/search_open_settings.py: all claims of `open_settings.NUMBERS` but one hold.
FITTED: Final = Open(mss_bytes=1460, queue_packets=2, factor=8.0, load_mbyte_s=2.0)
# Another segment, to compare recoveries.
SMALL_SEGMENTS: Final = replace(FITTED, mss_bytes=512)

TIMER: Final = "timer"
ADAPTIVE: Final = "adaptive"
SELECTIVE: Final = "selective"
# Selective acknowledgments and fast retransmit, and no congestion window.
UNLIMITED: Final = "selective, no congestion window"
RECOVERIES: Final = (TIMER, ADAPTIVE, SELECTIVE, UNLIMITED)
LOSS_SEEDS: Final = (1, 2, 3, 4, 5)
LOSS_RATE: Final = 0.01
LARGE_SEGMENT_BYTES: Final = 1460
TRANSFER_BYTES: Final = 1_000_000
ACK_TIMEOUTS_MS: Final = (10, 50, 100, 200)
# Data that the gateway sends at most, in windows of the host: 1 is not beyond the window.
FACTORS: Final = (1.0, 2.0, 4.0, 8.0, 16.0, None)


@dataclass(frozen=True, kw_only=True)
class Download:
    """One of the paper's sets, or a variation of it.

    `loss` applies to every direction of every link, `satellite_loss` to the satellite's only. With
    `transfer`, the server sends that many bytes at once, otherwise the paper's load. With `bulk`,
    the server always has data to send, instead of the paper's load. `ack_timeout_ms` replaces the
    set's ACK timeout. If the host `asks`, it sends a short request twice a second. `sampled`
    records the series of the figures, `traced` every change of the gateway's. With `begins`, only
    the first seconds are run, with every change recorded.
    """

    number: int = 1
    gateway: bool = True
    open: Open = field(default_factory=Open)
    recovery: str = TIMER
    loss: float = 0.0
    satellite_loss: float = 0.0
    seed: int = 1
    transfer: int | None = None
    bulk: bool = False
    ack_timeout_ms: int | None = None
    sampled: bool = False
    asks: bool = False
    traced: bool = False
    begins: bool = False

    @property
    def window_bytes(self) -> int:
        """The window that the gateway offers the server."""
        return _VARIED[self.number][1]

    @property
    def host_window_bytes(self) -> int:
        """The host's receive buffer."""
        return _VARIED[self.number][0]

    @property
    def ack_timeout_s(self) -> float:
        """The gateway's ACK timeout."""
        milliseconds = self.ack_timeout_ms
        return 1e-3 * (_VARIED[self.number][3] if milliseconds is None else milliseconds)

    @property
    def satellite_s(self) -> float:
        """The time of a full segment on the satellite: transmission and propagation."""
        return SATELLITE_DELAY_S + 8.0 * (self.open.mss_bytes + _HEADER_BYTES) / SATELLITE_BPS

    @property
    def modem_s(self) -> float:
        """The time of an ACK on an idle modem line: transmission and propagation."""
        return 8.0 * _TUNNELLED_ACK_BYTES / _VARIED[self.number][2] + 1e-3

    @property
    def load_mbyte_s(self) -> float:
        """The application's load."""
        return (
            self.open.load_mbyte_s if self.number >= _FIRST_OF_OPEN_LOAD else STANDARD_LOAD_MBYTE_S
        )

    @property
    def store_bytes(self) -> int:
        """The gateway's memory."""
        return self.window_bytes if self.open.held_by_host else 8_000_000

    def scenario(self) -> Scenario:
        """Return the download as a scenario."""
        _, window, modem_bps, _ = _VARIED[self.number]
        keys: dict[str, object] = {
            "seed": self.seed,
            "hosts.host.tcp.receive_buffer": f"{self.host_window_bytes} B",
            "hosts.host.tcp.delayed_ack": "200 ms" if self.open.delayed_ack else "off",
            "links.lan.delay": f"{self.open.delay_ms} ms",
            f"{_SATELLITE}.return.rate": f"{modem_bps} bit/s",
            f"{_SATELLITE}.return.queue.limit": f"{self.open.queue_packets} packets",
            "flows.download.app.interval": f"exponential({1 / self.load_mbyte_s:g} ms)",
        }
        for host in ("server", "host"):
            keys[f"hosts.{host}.tcp.mss"] = f"{self.open.mss_bytes} B"
        series = list(PROBES) if self.sampled else []
        if self.gateway:
            keys |= {
                f"{_HUB}.receive_buffer": f"{window} B",
                f"{_HUB}.store": f"{self.store_bytes} B",
                f"{_HUB}.ack_timeout": f"{1e3 * self.ack_timeout_s:g} ms",
            }
            if self.recovery == TIMER:
                keys[f"{_HUB}.retransmission_timeout"] = "200 ms"
            elif self.recovery == ADAPTIVE:
                keys[f"{_HUB}.adaptive_timeout"] = True
            else:
                keys[f"{_HUB}.tcp.recovery"] = "sack"
                keys[f"{_HUB}.congestion_window"] = self.recovery == SELECTIVE
            if self.open.factor is not None:
                keys[f"{_HUB}.window_factor"] = self.open.factor
            series += TRACED if self.traced else HUB_PROBES if self.sampled else (RECEIVED,)
        else:
            keys[_HUB] = {"kind": "router"}
        if self.recovery in {SELECTIVE, UNLIMITED} or self.satellite_loss > 0.0:
            # The gateway uses SACK only if both ends support it.
            for host in ("server", "host"):
                keys[f"hosts.{host}.tcp.sack"] = True
        if self.satellite_loss > 0.0:
            keys[f"{_SATELLITE}.forward.errors.packet_loss_rate"] = self.satellite_loss
        if self.loss > 0.0:
            keys["links.lan.errors.packet_loss_rate"] = self.loss
            for way in ("forward", "return"):
                keys[f"{_SATELLITE}.{way}.errors.packet_loss_rate"] = self.loss
        if self.bulk:
            keys["flows.download.app"] = {"kind": "bulk"}
        if self.transfer is not None:
            keys["flows.download.app"] = {"kind": "bulk", "size": f"{self.transfer} B"}
            keys["duration"] = "2000 s"
        if self.asks:
            keys["flows.requests"] = dict(_REQUESTS)
            series.append(REQUEST_RTT)
        if self.begins:
            keys["duration"] = "5 s"
            series = [*FIRST, *(("hub.acknowledged",) if self.gateway else ())]
        if self.traced or self.begins:
            keys["probes.interval"] = "every-change"
        keys["probes.series"] = series
        return Scenario(path=_FOLDER / "hybrid.toml").with_settings(keys)


def standard(number: int) -> Download:
    """Return one of the paper's sets."""
    return Download(number=number, open=FITTED, sampled=True)


def plain(number: int = 1) -> Download:
    """Return one of the sets through a plain router."""
    return Download(number=number, gateway=False, open=FITTED, sampled=True)


def with_parameters(number: int, open_: Open) -> Download:
    """Return one of the sets with other values of the unstated parameters."""
    return Download(number=number, open=open_)


def freed_at_once() -> Download:
    """Return set 1 with a window that counts only data not acknowledged by the gateway.

    The server is further away and has endless data, so that neither its LAN nor the load limits.
    """
    freed = replace(FITTED, held_by_host=False, factor=None, delay_ms=25)
    return Download(number=1, open=freed, bulk=True, sampled=True)


def within_the_window() -> Download:
    """Return set 1 with a window freed at once, and a gateway that obeys the host's window."""
    return Download(number=1, open=replace(FITTED, held_by_host=False, factor=1.0))


def anticipating(number: int, factor: float | None) -> Download:
    """Return one of the sets, with this many windows of the host sent at most; None is all."""
    return with_parameters(number, replace(FITTED, factor=factor))


def adaptive() -> Download:
    """Return set 3 with a timeout that follows the round trips."""
    return Download(number=3, open=FITTED, recovery=ADAPTIVE)


def acknowledging(number: int, timeout_ms: int) -> Download:
    """Return one of the sets with another ACK timeout."""
    return Download(number=number, open=FITTED, ack_timeout_ms=timeout_ms)


def asking(number: int) -> Download:
    """Return one of the sets with requests of the host, so that it measures round trips, too."""
    return Download(number=number, open=FITTED, asks=True)


def lossy(recovery: str, seed: int, *, open_: Open = FITTED, bulk: bool = False) -> Download:
    """Return set 2 with losses on the satellite."""
    return Download(
        number=2,
        open=open_,
        recovery=recovery,
        satellite_loss=LOSS_RATE,
        seed=seed,
        bulk=bulk,
    )


def routed(seed: int) -> Download:
    """Return set 2 with losses on the satellite, through a plain router."""
    return replace(lossy(TIMER, seed), gateway=False)


def traced(*, bulk: bool) -> Download:
    """Return set 2 with losses and a record of every ACK at the gateway."""
    return replace(lossy(TIMER, 1, bulk=bulk), traced=True)


def first_segments(*, gateway: bool) -> Download:
    """Return the start of set 1, with every segment and every ACK recorded."""
    return Download(open=FITTED, gateway=gateway, begins=True)


def standard_load(number: int) -> Download:
    """Return one of the sets with the load of set 1."""
    return with_parameters(number, replace(FITTED, load_mbyte_s=STANDARD_LOAD_MBYTE_S))


def transfer(number: int, loss: float) -> Download:
    """Return a transfer of 1 Mbyte that ends."""
    return Download(number=number, open=FITTED, loss=loss, transfer=TRANSFER_BYTES)


# Beyond the paper: its network and a current one, with remedies at the gateway or on the return
# link, with the papers' end hosts and current ones.
THEN: Final = "1998"
NOW: Final = "2026"
NETWORKS: Final = (THEN, NOW)
_ROUTER: Final[Mapping[str, object]] = {_HUB: {"kind": "router"}}
_TODAYS: Final[Mapping[str, object]] = {
    "recovery": "sack",
    "congestion_control": "cubic",
    "receive_buffer": "6 MiB",
    "send_buffer": "6 MiB",
}
METHODS: Final[Mapping[str, Mapping[str, object]]] = {
    "nothing": _ROUTER,
    "ACK filter": {**_ROUTER, f"{_SATELLITE}.return.acks.kind": "filter"},
    "ACK compaction": {
        **_ROUTER,
        f"{_SATELLITE}.return.acks": {"kind": "compaction", "low": 4, "high": 60, "spacing": True},
    },
    "split": {_HUB: {"kind": "split", "facing": "satellite", "tcp": dict(_TODAYS)}},
    "hybrid, timer": {_HUB: {"kind": "hybrid", "facing": "satellite", "receive_buffer": "6 MiB"}},
    "hybrid, SACK": {
        _HUB: {
            "kind": "hybrid",
            "facing": "satellite",
            "receive_buffer": "6 MiB",
            "tcp": {"recovery": "sack", "congestion_control": "cubic"},
        }
    },
}
HOSTS: Final[Mapping[str, str]] = {"papers": "the papers' end hosts", "today": "today's end hosts"}
BEYOND_LOSSES: Final = (0.0, 1e-3)
BEYOND_DURATION_S: Final = 60


@dataclass(frozen=True, kw_only=True)
class RemedyDownload:
    """A download of the table that compares remedies."""

    method: str
    network: str
    hosts: str
    loss: float = 0.0

    def scenario(self) -> Scenario:
        """Return the download as a scenario."""
        modern = self.hosts == "today"
        keys: dict[str, object] = {
            "duration": f"{BEYOND_DURATION_S} s",
            "flows.download.app": {"kind": "bulk"},
            "probes.series": [],
        }
        if self.network == NOW:
            keys |= {
                "links.lan.rate": "1 Gbit/s",
                "links.lan.delay": "10 ms",
                f"{_SATELLITE}.forward.rate": "50 Mbit/s",
                f"{_SATELLITE}.return.rate": "1 Mbit/s",
                f"{_SATELLITE}.return.delay": "30 ms",
            }
        else:
            keys[f"{_SATELLITE}.return.rate"] = f"{FAST_BPS} bit/s"
        keys[f"{_SATELLITE}.return.queue.limit"] = "50 packets"
        if self.loss > 0.0:
            keys[f"{_SATELLITE}.forward.errors.packet_loss_rate"] = self.loss
        if modern:
            keys |= {"hosts.server.tcp": {}, "hosts.host.tcp": {}}
        else:
            keys |= {f"hosts.{host}.tcp.mss": "1024 B" for host in ("server", "host")}
            keys["hosts.host.tcp.receive_buffer"] = "45 kB"
        return Scenario(path=_FOLDER / "hybrid.toml").with_settings(
            {**keys, **METHODS[self.method]}
        )


def beyond_cells() -> list[RemedyDownload]:
    """Return every run of the table."""
    return [
        RemedyDownload(method=method, network=network, hosts=hosts, loss=loss)
        for network in NETWORKS
        for hosts in HOSTS
        for loss in BEYOND_LOSSES
        for method in METHODS
    ]
