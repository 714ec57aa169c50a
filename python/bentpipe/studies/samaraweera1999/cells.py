"""The runs of samaraweera1999, and additional ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from bentpipe.scenario import Scenario

_FOLDER: Final = Path(__file__).parent

# Section 3.4.
FORWARD_BPS: Final = 10_000_000
PACKET_BYTES: Final = 1064
PAYLOAD_BYTES: Final = 1024
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
}
PAPERS: Final = (UNMODIFIED, COMPRESSION, SUPPRESSION, COMPACTION)

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
class Timer:
    """The retransmission timer, which the paper does not specify.

    `counted_from` is "acknowledgment" if every ACK restarts it (RFC 6298 section 5), or
    "oldest-segment" if it runs from the transmission of each segment (RFC 793 section 3.7).
    """

    counted_from: str = "acknowledgment"
    minimum_s: float = 2.0


TIMERS: Final = tuple(
    Timer(counted_from=counted_from, minimum_s=minimum_s)
    for counted_from in ("acknowledgment", "oldest-segment")
    for minimum_s in (1.0, 1.5, 2.0, 3.0)
)


@dataclass(frozen=True, kw_only=True)
class Download:
    """One to three downloads by satellite.

    `rule` is "reno" for the paper's TCP, else the window rule of a current TCP. `stagger_s` is the
    time between the sessions' starts. `disturbance` applies to current TCP.
    """

    method: str = UNMODIFIED
    return_bps: int = SLOW_BPS
    sessions: int = 1
    rule: str = "reno"
    stagger_s: float = 0.0
    queue: str | None = None
    disturbance: str = CLEAN
    seed: int = 1
    timer: Timer = field(default_factory=Timer)
    duration_s: int = DURATION_S
    sampled: bool = True

    def scenario(self) -> Scenario:
        """Return the download as a scenario."""
        keys: dict[str, object] = {
            "duration": f"{self.duration_s} s",
            "seed": self.seed,
            f"{_RETURN}.rate": f"{self.return_bps} bit/s",
            **METHODS[self.method],
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
            keys["hosts.server.tcp.rto_from"] = self.timer.counted_from
            keys["hosts.server.tcp.minimum_rto"] = f"{round(1e3 * self.timer.minimum_s)} ms"
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


def timed(download: Download, timer: Timer) -> Download:
    """Return the same with another retransmission timer."""
    return replace(download, timer=timer)


# Figure 8.
FAST: Final = Download(return_bps=FAST_BPS)


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


def timer_downloads() -> list[Download]:
    """Return the runs for which the paper states timeouts."""
    return [
        *(single(method) for method in PAPERS),
        *(shared(method, FIGURE_12_BPS) for method in PAPERS),
    ]


def every_cell(quick: bool) -> list[Download]:
    """Return every run of the study; `quick` has fewer return rates and window rules."""
    rates = QUICK_RATES_BPS if quick else RETURN_RATES_BPS
    rules = TODAYS_RULES[:1] if quick else TODAYS_RULES
    cells = [single(method) for method in METHODS]
    cells += [timed(download, timer) for timer in TIMERS for download in timer_downloads()]
    cells.append(FAST)
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
