"""The runs of samaraweera1999, and additional ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from bentpipe.scenario import Scenario

_FOLDER: Final = Path(__file__).parent

# Section 3.4.
FORWARD_BPS: Final = 10_000_000
PACKET_BYTES: Final = 1064
PAYLOAD_BYTES: Final = 1024
PAYLOAD_BPS: Final = FORWARD_BPS * PAYLOAD_BYTES // PACKET_BYTES
ROUND_TRIP_S: Final = 0.48
# 10 Mbit/s for 480 ms.
PIPE_BYTES: Final = 600_000
PIPE_SEGMENTS: Final = PIPE_BYTES // PACKET_BYTES
BUFFER_BYTES: Final = 720_000
SLOW_BPS: Final = 9_600
FAST_BPS: Final = 430_000
LOW_MARK: Final = 4
HIGH_MARK: Final = 60

UNMODIFIED: Final = "unmodified"
COMPRESSION: Final = "compression"
SUPPRESSION: Final = "suppression"
COMPACTION: Final = "compaction"
SPACING: Final = "spacing"
FILTER: Final = "filter"
RECONSTRUCTION: Final = "reconstruction"

_RETURN: Final = "links.dvb.return"
_MARKS: Final = {f"{_RETURN}.acks.low": LOW_MARK, f"{_RETURN}.acks.high": HIGH_MARK}
# Methods on the return link: the paper's five, current ones, and those of RFC 3449.
METHODS: Final[Mapping[str, Mapping[str, object]]] = {
    UNMODIFIED: {},
    COMPRESSION: {f"{_RETURN}.compression": "rfc1144"},
    SUPPRESSION: {f"{_RETURN}.acks.kind": "suppression", **_MARKS},
    COMPACTION: {f"{_RETURN}.acks.kind": "compaction", **_MARKS},
    SPACING: {f"{_RETURN}.acks.kind": "compaction", **_MARKS, f"{_RETURN}.acks.spacing": True},
    FILTER: {f"{_RETURN}.acks.kind": "filter"},
    RECONSTRUCTION: {f"{_RETURN}.acks.kind": "reconstruction"},
}
NAMES: Final = {
    UNMODIFIED: "unmodified",
    COMPRESSION: "header compression",
    SUPPRESSION: "suppression",
    COMPACTION: "compaction",
    SPACING: "compaction with spacing",
    FILTER: "CAKE's ACK filter",
    RECONSTRUCTION: "suppression and reconstruction",
    "v42bis": "V.42bis",
}
PAPERS: Final = (UNMODIFIED, COMPRESSION, SUPPRESSION, COMPACTION)
# Section 3.3: a modem's data compression, which the paper does not simulate.
V42BIS: Final = "v42bis"
V42BIS_KEYS: Final[Mapping[str, object]] = {f"{_RETURN}.compression": "v42bis"}

FIGURE_12_BPS: Final = 32_000
# Figure 11: 9.6 kbit/s to 430 kbit/s.
RETURN_RATES_BPS: Final = (9_600, 14_400, 19_200, 28_800, 32_000, 64_000, 128_000, 256_000, 430_000)
QUICK_RATES_BPS: Final = (9_600, 32_000, 128_000, 430_000)
DURATION_S: Final = 60

# Figure 10. "Each session started with a time gap of 10ms (after the previous session has reached
# the bandwidth delay product of the network)": these times in seconds, plus 10 ms. The exact time
# decides which session suffers the losses, so that six are simulated.
STAGGERS_S: Final = (18.01, 18.51, 19.01, 19.51, 20.01, 20.51)
STAGGERED_DURATION_S: Final = 140
STAGGERED_RATES_BPS: Final = (SLOW_BPS, FAST_BPS)
# A short queue of the satellite interface: a third of the bandwidth-delay product.
SHORT_QUEUE_PACKETS: Final = 200
# "May be optimized to limit the number of unsuppressed ACKs only up to 3" (section 5). Without the
# limit, a loss fills the modem's queue for minutes.
FEW_DUPLICATES: Final = 3
DROP_TAIL: Final = "drop-tail"
QUEUES: Final[Mapping[str, Mapping[str, object]]] = {
    DROP_TAIL: {},
    "red": {},
    "early-random-drop": {},
    "fair": {},
}
QUEUE_NAMES: Final = {
    DROP_TAIL: "drop-tail",
    "red": "RED",
    "early-random-drop": "early random drop",
    "fair": "fair queueing (DRR)",
}

# Changes of both ends' TCP, without any on the return link: sections 3.1 and 7, and BSD's clock.
_SERVER: Final = "hosts.server.tcp"
_CLIENT: Final = "hosts.client.tcp"
PACED: Final = "paced"
PACED_AT_RATE: Final = "paced at the link's rate"
COARSE: Final = "coarse timer"
TCP_CHANGES: Final[Mapping[str, Mapping[str, object]]] = {
    # The sender's alternative to ACK spacing (section 7): the window opens over a round trip.
    PACED: {f"{_SERVER}.pacing": "on"},
    PACED_AT_RATE: {f"{_SERVER}.pacing": f"{PAYLOAD_BPS} bit/s"},
    COARSE: {f"{_SERVER}.timer_granularity": "500 ms"},
    **{
        f"an ACK for {every}{', bytes counted' if growth == 'byte-counting' else ''}": {
            f"{_CLIENT}.ack_every": every,
            f"{_CLIENT}.delayed_ack": "500 ms",
            f"{_SERVER}.slow_start": growth,
            f"{_SERVER}.congestion_avoidance": (
                "byte-counting" if growth == "byte-counting" else "per-acknowledgment"
            ),
        }
        for every in (2, 8, 64)
        for growth in ("standard", "byte-counting")
    },
}

# Beyond the paper: the sender's window rules of the table.
TODAYS_RULES: Final = ("cubic", "bbr1", "bbr3")
RULE_NAMES: Final = {
    "reno": "Reno, 1999",
    "cubic": "CUBIC",
    "bbr1": "BBR 1",
    "bbr3": "BBR 3",
}
TABLE_RATES_BPS: Final = (9_600, 32_000, 128_000, 430_000)
# A return link on which nothing is dropped, even with an upload beside the download.
WIDE_BPS: Final = 4_000_000
# Number of runs where packets are lost at random.
LOSS_SEEDS: Final = (1, 2, 3, 4, 5)
LOSS_RATE: Final = 1e-3
# Disturbances of current TCP: none, losses on the satellite, an upload beside the download.
CLEAN: Final = "clean"
LOSSES: Final = "losses"
TWO_WAY: Final = "two-way"
DISTURBANCES: Final = (CLEAN, LOSSES, TWO_WAY)


@dataclass(frozen=True, kw_only=True)
class Open:
    """Settings of TCP and of the return link that the paper leaves open.

    * `counted_from`: "acknowledgment" if every ACK restarts the retransmission timer (RFC 6298
      section 5), or "oldest-segment" if it runs from the transmission of each segment (RFC 793
      section 3.7).
    * `minimum_s`: the shortest retransmission timeout.
    * `initial_segments`: the initial window. The paper says one segment; BSD's first ACK opened it
      to two before the first data.
    * `framing_bytes`: bytes that the return link adds to each packet.

    The defaults are one of the settings with the most published values (`open_settings.csv`).
    """

    counted_from: str = "oldest-segment"
    minimum_s: float = 3.0
    initial_segments: int = 2
    framing_bytes: int = 6

    @property
    def setting(self) -> dict[str, str | int | float]:
        """The values by name, as in `open_settings.csv`."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Download:
    """One to three downloads by satellite.

    `tcp_change` is a key of `TCP_CHANGES`, or empty. `rule` is "reno" for the paper's TCP, else the
    window rule of a current TCP. `stagger_s` is the time between the sessions' starts.
    `disturbance` applies to current TCP.
    """

    method: str = UNMODIFIED
    tcp_change: str = ""
    return_bps: int = SLOW_BPS
    sessions: int = 1
    rule: str = "reno"
    stagger_s: float = 0.0
    queue: str | None = None
    disturbance: str = CLEAN
    seed: int = 1
    left_open: Open = field(default_factory=Open)
    duration_s: int = DURATION_S
    sampled: bool = True

    def scenario(self) -> Scenario:
        """Return the download as a scenario."""
        keys: dict[str, object] = {
            "duration": f"{self.duration_s} s",
            "seed": self.seed,
            f"{_RETURN}.rate": f"{self.return_bps} bit/s",
            **(V42BIS_KEYS if self.method == V42BIS else METHODS[self.method]),
            **(TCP_CHANGES[self.tcp_change] if self.tcp_change else {}),
        }
        for session in range(2, self.sessions + 1):
            flow = f"flows.session-{session}"
            keys |= {f"{flow}.from": "server", f"{flow}.to": "client", f"{flow}.app.kind": "bulk"}
            keys[f"{flow}.start"] = f"{round(1e3 * self.stagger_s * (session - 1))} ms"
        if self.queue is not None:
            keys["links.dvb.forward.queue.kind"] = self.queue
            keys["links.dvb.forward.queue.limit"] = f"{SHORT_QUEUE_PACKETS} packets"
            keys[f"{_RETURN}.acks.duplicates"] = FEW_DUPLICATES
        if self.rule != "reno":
            for host in ("server", "client"):
                keys[f"hosts.{host}.tcp.congestion_control"] = self.rule
        if self.disturbance == LOSSES:
            keys["links.dvb.forward.errors.packet_loss_rate"] = LOSS_RATE
        elif self.disturbance == TWO_WAY:
            upload = "flows.upload"
            keys |= {f"{upload}.from": "client", f"{upload}.to": "server"}
            keys[f"{upload}.app.kind"] = "bulk"
            # 0.5 Mbit/s: half of the wide link, so that the upload does not congest it.
            keys["hosts.client.tcp.send_buffer"] = "32 kB"
        if self.rule == "reno":
            keys[f"{_SERVER}.rto_from"] = self.left_open.counted_from
            keys[f"{_SERVER}.minimum_rto"] = f"{round(1e3 * self.left_open.minimum_s)} ms"
            keys[f"{_SERVER}.initial_window"] = f"{self.left_open.initial_segments} segments"
            if self.left_open.framing_bytes:
                keys[f"{_RETURN}.framing"] = f"{self.left_open.framing_bytes} B"
        keys["probes.series"] = list(self._series())
        file = "dvb.toml" if self.rule == "reno" else "today.toml"
        return Scenario(path=_FOLDER / file).with_settings(keys)

    def _series(self) -> Sequence[str]:
        flows = [f"session-{session}" for session in range(1, self.sessions + 1)]
        series = [f"{flow}.delivered" for flow in flows]
        if self.sampled:
            series += [f"{flow}.{what}" for flow in flows for what in ("congestion_window", "sent")]
            series += ["dvb.forward.queue", "dvb.forward.queue_bytes", "dvb.return.queue"]
        return series


def single(method: str) -> Download:
    """Return figures 3 to 7's download."""
    return Download(method=method)


def with_open(download: Download, left_open: Open) -> Download:
    """Return the same with other values of what the paper leaves open."""
    return replace(download, left_open=left_open)


# Figure 8, and the same with a sender that paces its segments.
FAST: Final = Download(return_bps=FAST_BPS)
FAST_PACED: Final = replace(FAST, tcp_change=PACED)
FAST_PACED_AT_RATE: Final = replace(FAST, tcp_change=PACED_AT_RATE)


def shared(method: str, return_bps: int) -> Download:
    """Return three sessions that start together, of figures 9, 11 and 12."""
    return Download(method=method, return_bps=return_bps, sessions=3)


def staggered(queue: str, return_bps: int, stagger_s: float = STAGGERS_S[0]) -> Download:
    """Return figure 10's three sessions, with the satellite interface's queue."""
    return Download(
        method=SPACING,
        return_bps=return_bps,
        sessions=3,
        stagger_s=stagger_s,
        queue=queue,
        duration_s=STAGGERED_DURATION_S,
        sampled=stagger_s == STAGGERS_S[0],
    )


def today(method: str, return_bps: int, rule: str, disturbance: str = CLEAN) -> Download:
    """Return a single download of the table, or with a return link that is not congested."""
    return Download(
        method=method,
        return_bps=return_bps,
        rule=rule,
        disturbance=disturbance,
        sampled=rule == "reno" and disturbance == CLEAN,
    )


def undisturbed_return(method: str, rule: str, disturbance: str) -> list[Download]:
    """Return runs with a wide return link; every seed if losses are random."""
    download = today(method, WIDE_BPS, rule, disturbance)
    if disturbance != LOSSES:
        return [download]
    return [replace(download, seed=seed) for seed in LOSS_SEEDS]


def tcp_changes() -> dict[str, Download]:
    """Return one download with each change of TCP, and nothing modified on the return link."""
    return {name: Download(tcp_change=name, sampled=False) for name in TCP_CHANGES}


def paced_compaction() -> Download:
    """Return a download with compaction whose sender paces, as section 7 suggests."""
    return replace(single(COMPACTION), tcp_change=PACED)


def modem() -> list[Download]:
    """Return one download and three with a modem's data compression."""
    return [single(V42BIS), shared(V42BIS, FIGURE_12_BPS)]


def every_cell(quick: bool) -> list[Download]:
    """Return every run of the study; `quick` has fewer return rates and window rules."""
    rates = QUICK_RATES_BPS if quick else RETURN_RATES_BPS
    rules = TODAYS_RULES[:1] if quick else TODAYS_RULES
    cells = [single(method) for method in METHODS]
    cells += [FAST, FAST_PACED, FAST_PACED_AT_RATE, *tcp_changes().values(), *modem()]
    # With compression and no queue, for the length of an ACK.
    cells.append(replace(FAST, method=COMPRESSION))
    cells.append(paced_compaction())
    cells += [shared(method, rate) for method in METHODS for rate in rates]
    cells += [
        staggered(queue, rate, stagger_s)
        for queue in QUEUES
        for rate in STAGGERED_RATES_BPS
        for stagger_s in STAGGERS_S
    ]
    for method in METHODS:
        cells += [today(method, rate, "reno") for rate in TABLE_RATES_BPS]
        cells += [today(method, rate, rule) for rule in rules for rate in TABLE_RATES_BPS]
        cells += [
            each
            for rule in rules
            for disturbance in DISTURBANCES
            for each in undisturbed_return(method, rule, disturbance)
        ]
    return list(dict.fromkeys(cells))
