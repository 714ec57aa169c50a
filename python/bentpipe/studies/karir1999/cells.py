"""The runs of karir1999, and additional ones."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bentpipe.scenario import Scenario, ready_made

_FOLDER: Final = Path(__file__).parent

LINK_BPS: Final = 1_536_000
FILE_BYTES: Final = 50_000_000
ROUND_TRIP_S: Final = 0.5
STATED_WINDOW: Final = 65_535
LARGE_WINDOW: Final = 195_000

TERRESTRIAL: Final = "terrestrial"
SATELLITE: Final = "satellite"
LARGE_WINDOWS: Final = "large-windows"
GATEWAYS: Final = "gateways"
NETWORKS: Final = (TERRESTRIAL, SATELLITE, LARGE_WINDOWS, GATEWAYS)
NAMES: Final = {
    TERRESTRIAL: "terrestrial",
    SATELLITE: "satellite, no gateways",
    LARGE_WINDOWS: "satellite, large windows",
    GATEWAYS: "satellite, enhanced gateways",
}

_GATEWAYS: Final = ("hub", "terminal")
# TCP between the gateways: "large windows option was used just between them".
_MIDDLE: Final[Mapping[str, object]] = {
    "congestion_control": "reno",
    "recovery": "sack",
    "mss": "1460 B",
    "timestamps": False,
    "send_buffer": f"{LARGE_WINDOW} B",
    "receive_buffer": f"{LARGE_WINDOW} B",
}
_TO_HOSTS: Final[Mapping[str, object]] = {
    "congestion_control": "reno",
    "recovery": "reno",
    "mss": "1460 B",
    "timestamps": False,
    "sack": False,
    "window_scaling": False,
    "send_buffer": f"{STATED_WINDOW} B",
    "receive_buffer": f"{STATED_WINDOW} B",
}

# Delay between server and gateway, which the paper does not give: the setting that the search in
# `open_settings.py` finds. Other networks of the study share it.
LAN_DELAY_MS: Final = 30.0

# The numbers of the paper's text: the least and the most.
PAPER_KBPS: Final = {SATELLITE: (500.0, 500.0), LARGE_WINDOWS: (800.0, 900.0)}
PAPER_RTT_MS: Final = {
    TERRESTRIAL: (150.0, 150.0),
    # "Slightly greater than 500ms".
    SATELLITE: (500.0, 600.0),
    LARGE_WINDOWS: (500.0, 600.0),
    GATEWAYS: (75.0, 75.0),
}
# Times by which downloads with gateways are faster.
PAPER_FASTER: Final = {SATELLITE: (3.0, 4.0), LARGE_WINDOWS: (2.0, 3.0)}

# Memory of a gateway by default.
DEFAULT_MEMORY_MIB: Final = 256

# Parameters that the paper does not state: name, and settings.
AS_STATED: Final = "as stated"
OPEN: Final[Mapping[str, Mapping[str, object]]] = {
    AS_STATED: {},
    "every segment acknowledged": {"hosts.client.tcp.delayed_ack": "off"},
    "queue of 20 packets": {"links.satellite.queue.limit": "20 packets"},
    "initial threshold 32 KiB": {"hosts.server.tcp.initial_slow_start_threshold": "32 KiB"},
    "losses on the link, 0.1%": {"links.satellite.errors.packet_loss_rate": 0.001},
    "segments of 512 bytes": {"hosts.server.tcp.mss": "512 B", "hosts.client.tcp.mss": "512 B"},
    "windows halved": {},
}
HALVED: Final = "windows halved"

# Effective windows to try, in bytes; OPNET's default may be any of them.
WINDOWS: Final = (16_384, 24_576, 28_672, 32_768, 40_960, 49_152, STATED_WINDOW)
LARGE_SWEEP: Final = (40_960, 49_152, 57_344, STATED_WINDOW, 97_500, LARGE_WINDOW)


@dataclass(frozen=True, kw_only=True)
class Download:
    """The paper's download.

    `window` is that of the hosts, bytes; None is the paper's value. `middle_window` is that between
    the gateways. `lan_delay_ms` is the delay between server and gateway, `client_delay_ms` that
    between gateway and client. `variant` is one of `OPEN`. `link_loss` is the loss rate on the
    satellite link, `lan_loss` that between server and gateway. `service_ms` is the hub's time for a
    packet. `without_delay` takes the satellite's delay away. With `uploads`, the client sends 1 MB
    as well, so that it measures round trips.
    """

    network: str = GATEWAYS
    window: int | None = None
    middle_window: int = LARGE_WINDOW
    lan_delay_ms: float = LAN_DELAY_MS
    client_delay_ms: float = 1.0
    queue_packets: int = 100
    link_loss: float = 0.0
    without_delay: bool = False
    uploads: bool = False
    variant: str = AS_STATED
    lan_loss: float = 0.0
    service_ms: float = 0.0
    enhanced_hosts: bool = False
    clients: int = 1
    sampled: bool = False

    def scenario(self) -> Scenario:
        """Return the download as a scenario."""
        keys: dict[str, object] = {}
        window = self.window
        if window is None:
            window = LARGE_WINDOW if self.network == LARGE_WINDOWS else STATED_WINDOW
            if self.variant == HALVED:
                window //= 2
        for host in ("server", "client"):
            tcp = f"hosts.{host}.tcp"
            keys |= {f"{tcp}.receive_buffer": f"{window} B", f"{tcp}.send_buffer": f"{window} B"}
            keys[f"{tcp}.window_scaling"] = window > STATED_WINDOW or self.enhanced_hosts
            if self.enhanced_hosts:
                keys |= {f"{tcp}.recovery": "sack", f"{tcp}.sack": True, f"{tcp}.timestamps": True}
                for buffer in ("receive_buffer", "send_buffer"):
                    keys[f"{tcp}.{buffer}"] = f"{LARGE_WINDOW} B"
        if self.network == TERRESTRIAL or self.without_delay:
            keys["links.satellite.delay"] = "0 s"
        if self.network == GATEWAYS:
            for gateway in _GATEWAYS:
                table = f"gateways.{gateway}"
                keys |= {f"{table}.kind": "split", f"{table}.facing": "satellite"}
                keys |= {f"{table}.tcp.{key}": value for key, value in _MIDDLE.items()}
                keys |= {f"{table}.host_tcp.{key}": value for key, value in _TO_HOSTS.items()}
                for buffer in ("send_buffer", "receive_buffer"):
                    keys[f"{table}.tcp.{buffer}"] = f"{self.middle_window} B"
                    if self.window is not None:
                        keys[f"{table}.host_tcp.{buffer}"] = f"{self.window} B"
            if self.service_ms:
                keys["gateways.hub.processing.time"] = f"{self.service_ms:g} ms"
                keys["gateways.hub.processing.queue"] = "50 packets"
        keys["links.lan.delay"] = f"{self.lan_delay_ms:g} ms"
        keys["links.office.delay"] = f"{self.client_delay_ms:g} ms"
        keys["links.satellite.queue.limit"] = f"{self.queue_packets} packets"
        if self.link_loss:
            keys["links.satellite.errors.packet_loss_rate"] = self.link_loss
        if self.lan_loss:
            keys["links.lan.forward.errors.packet_loss_rate"] = self.lan_loss
        if self.uploads:
            app = {"kind": "bulk", "size": "1 MB"}
            keys["flows.upload"] = {"from": "client", "to": "server", "start": "60 s", "app": app}
        if self.clients > 1:
            keys["hosts.client.count"] = self.clients
            keys["flows.download.app.size"] = f"{FILE_BYTES // self.clients} B"
        keys |= OPEN[self.variant]
        if self.sampled:
            keys["probes.series"] = [
                "download.sent",
                "download.smoothed_rtt",
                "satellite.forward.utilization",
            ]
            if self.network == GATEWAYS:
                keys["probes.series"] = [*keys["probes.series"], "hub.buffered"]  # type: ignore[misc]
        return Scenario(path=_FOLDER / "t1.toml").with_settings(keys)


def paper(network: str) -> Download:
    """Return one of the paper's four."""
    return Download(network=network, sampled=True)


def opened(network: str, variant: str) -> Download:
    """Return one of the four with another value of an unstated parameter."""
    return paper(network) if variant == AS_STATED else Download(network=network, variant=variant)


# Twice a full packet's time on the link.
SLOW_MS: Final = round(2e3 * 8 * 1500 / LINK_BPS, 3)
INDEPENDENT: Final = (paper(GATEWAYS), Download(network=GATEWAYS, enhanced_hosts=True))
LAN_LOSS: Final = (
    Download(network=GATEWAYS, lan_loss=0.001, enhanced_hosts=True),
    Download(network=LARGE_WINDOWS, lan_loss=0.001, enhanced_hosts=True),
)
SLOW: Final = Download(network=GATEWAYS, service_ms=SLOW_MS)
# Without the satellite's delay nothing is left of the order of the networks: a control.
WITHOUT_DELAY: Final = tuple(
    Download(network=network, without_delay=True)
    for network in (SATELLITE, LARGE_WINDOWS, GATEWAYS)
)
CLIENT_RTT: Final = tuple(
    Download(network=network, uploads=True) for network in (GATEWAYS, SATELLITE, LARGE_WINDOWS)
)
CROWD: Final = tuple(Download(network=network, clients=10) for network in (GATEWAYS, SATELLITE))

# Beyond the paper.
RATES_BPS: Final = (1_536_000, 10_000_000, 100_000_000)
ERROR_RATES: Final = (0.0, 1e-7, 1e-6)
HOSTS: Final = ("1999", "today")
REMEDIES: Final = ("none", "hybla", "split", "split-hybla", "split-one", "hybrid")
PERSISTENT: Final = "split-persistent"
REMEDY_NAMES: Final = {
    "none": "nothing",
    "hybla": "Hybla end to end",
    "split": "two gateways, CUBIC",
    "split-hybla": "two gateways, Hybla",
    "split-one": "one gateway at the hub, Hybla",
    "hybrid": "hybrid gateway at the hub, Hybla",
    PERSISTENT: "two gateways, Hybla, 4 persistent",
}
SIZES: Final = (50_000_000, 200_000)


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """One cell of the table that is not in the paper.

    `memory_mib` is the gateways' memory; 0 is the default. With `later`, a second flow begins after
    5 s, when persistent connections are open. `hosts` is "1999" (Reno, 64 Kbyte windows, no SACK)
    or "today" (CUBIC, SACK, 6 MiB). `set_up` is the time at which a gateway answers. With
    `handovers`, the satellite link is that of the scenario leo-handover instead of the
    geostationary one. `pages` is the number of pages that are read one after the other, instead of
    a file.
    """

    remedy: str
    hosts: str = "today"
    rate_bps: int = 10_000_000
    bit_error_rate: float = 0.0
    size_bytes: int = SIZES[0]
    set_up: str = "end-to-end"
    flows: int = 1
    delay_ms: int = 250
    handovers: bool = False
    pages: int = 0
    memory_mib: int = 0
    later: bool = False

    def scenario(self) -> Scenario:
        """Return the cell as a scenario."""
        keys: dict[str, object] = {
            "links.satellite.rate": f"{self.rate_bps} bit/s",
            "links.satellite.delay": f"{self.delay_ms} ms",
            "links.satellite.errors.bit_error_rate": self.bit_error_rate,
            "flows.download.app.size": f"{self.size_bytes} B",
        }
        if self.hosts == "1999":
            for host in ("server", "client"):
                tcp = f"hosts.{host}.tcp"
                keys |= {
                    f"{tcp}.congestion_control": "reno",
                    f"{tcp}.recovery": "newreno",
                    f"{tcp}.sack": False,
                    f"{tcp}.timestamps": False,
                    f"{tcp}.window_scaling": False,
                    f"{tcp}.send_buffer": "65535 B",
                    f"{tcp}.initial_window": "2 segments",
                    f"{tcp}.minimum_rto": "1 s",
                    f"{tcp}.rto_rule": "rfc6298",
                }
        if self.remedy == "hybla":
            keys["hosts.server.tcp.congestion_control"] = "hybla"
        for gateway in _GATEWAYS:
            if self.remedy.startswith("split") and not (
                self.remedy == "split-one" and gateway == "terminal"
            ):
                table = f"gateways.{gateway}"
                rule = "cubic" if self.remedy == "split" else "hybla"
                keys |= {
                    f"{table}.kind": "split",
                    f"{table}.facing": "satellite",
                    f"{table}.tcp.congestion_control": rule,
                    f"{table}.set_up": self.set_up,
                }
                if self.memory_mib:
                    keys[f"{table}.memory"] = f"{self.memory_mib} MiB"
        if self.remedy == PERSISTENT:
            for gateway in _GATEWAYS:
                table = f"gateways.{gateway}"
                keys |= {f"{table}.multiplex": 4, f"{table}.warm_path": True}
        if self.remedy == "hybrid":
            # Twice the data in flight; the gateway sends beyond the host's window.
            window = max(64_000, round(2 * ROUND_TRIP_S * self.rate_bps / 8))
            keys |= {
                "gateways.hub.kind": "hybrid",
                "gateways.hub.facing": "satellite",
                "gateways.hub.tcp.congestion_control": "hybla",
                "gateways.hub.receive_buffer": f"{window} B",
            }
        if self.handovers:
            keys = {key: keys[key] for key in keys if not key.startswith("links.satellite")}
            keys |= _handovers()
        if self.pages:
            app = {"kind": "web", "page": "3gpp", "pages": self.pages, "reading": "1 s"}
            keys["flows.download"] = {"from": "client", "to": "server", "app": app}
            del keys["flows.download.app.size"]
        if self.later:
            app = {"kind": "bulk", "size": f"{self.size_bytes} B"}
            keys["flows.later"] = {"from": "server", "to": "client", "start": "5 s", "app": app}
        if self.flows > 1:
            keys["hosts.client.count"] = self.flows
        return Scenario(path=_FOLDER / "beyond.toml").with_settings(keys)


def _handovers() -> dict[str, object]:
    """Return the settings that change the satellite link into that of leo-handover."""
    text = ready_made()["leo-handover"].read_text(encoding="utf-8")
    link = dict(tomllib.loads(text)["links"]["satellite"])
    del link["between"]
    link["errors"] = dict(link["errors"])
    return {"links.satellite": {"between": list(_GATEWAYS), **link}}


def table(quick: bool) -> list[Remedy]:
    """Return the table's cells."""
    rates = RATES_BPS[:2] if quick else RATES_BPS
    return [
        Remedy(remedy=remedy, hosts=hosts, rate_bps=rate, bit_error_rate=errors, size_bytes=size)
        for size in SIZES
        for hosts in HOSTS
        for remedy in REMEDIES
        for rate in rates
        for errors in ERROR_RATES
    ]


SAME_RULE: Final = tuple(Remedy(remedy=remedy) for remedy in ("none", "split"))
ANSWERS: Final = tuple(
    Remedy(remedy=remedy, set_up=set_up, size_bytes=1_000)
    for remedy, set_up in (("none", "end-to-end"), ("split", "end-to-end"), ("split", "early"))
)
WARM_ANSWERS: Final = tuple(
    Remedy(remedy=PERSISTENT, set_up=set_up, size_bytes=1_000, later=True)
    for set_up in ("end-to-end", "early")
)
FLEET: Final = tuple(
    Remedy(remedy=remedy, flows=20, size_bytes=5_000_000)
    for remedy in (*REMEDIES[:4], "hybrid", PERSISTENT)
)
# A memory that the fleet would exceed.
SMALL_MEMORY: Final = Remedy(remedy="split", flows=20, size_bytes=5_000_000, memory_mib=8)
PAGES: Final = tuple(
    Remedy(remedy=remedy, hosts=hosts, bit_error_rate=errors, pages=20)
    for hosts in HOSTS
    for remedy in (*REMEDIES, PERSISTENT)
    for errors in ERROR_RATES
)
HANDOVERS: Final = tuple(
    # Longer than a slot, so that a handover happens during the transfer.
    Remedy(remedy=remedy, hosts=hosts, handovers=True, size_bytes=500_000_000)
    for hosts in HOSTS
    for remedy in REMEDIES
)

Cell = Download | Remedy
