"""Paragraphs of the report on gaid1998, with the numbers of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bentpipe.studies.gaid1998.cells import (
    DURATION_S,
    FITTED,
    LOSS_SEEDS,
    METHODS,
    NEARBY,
    NETWORKS,
    NOW,
    SELECTIVE,
    STANDARD_SENT_MB,
    THEN,
    TIMER,
    UNLIMITED,
    Download,
    Open,
    RemedyDownload,
    anticipating,
    bulk,
    freed_at_once,
    lossy,
    standard,
    traced,
    with_parameters,
)
from bentpipe.studies.gaid1998.comparison import goodput_bps
from bentpipe.studies.gaid1998.open_settings import SEARCH, setting_of
from bentpipe.studies.gaid1998.stalls import timer_stalls
from bentpipe.studies.open_settings import committed

if TYPE_CHECKING:
    from bentpipe.studies.gaid1998.evidence import Evidence


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return the report's paragraphs with the numbers of this run."""
    return (
        _remark_open(),
        _remark_t1(evidence),
        _remark_limit(evidence),
        _remark_windows(evidence),
        _remark_recovery(evidence),
        _remark_table(evidence),
    )


def _remark_open() -> str:
    rows = committed("gaid1998")
    most = max(row.within for row in rows)
    best = [row for row in rows if row.within == most]
    delays = sorted({int(row.setting["delay_ms"]) for row in best})
    segments = sorted({int(row.setting["segment_bytes"]) for row in best})
    used = next(row for row in rows if row.setting == setting_of(FITTED))
    near = [row for row in rows if int(row.setting["delay_ms"]) <= NEARBY.delay_ms]
    faster = sum(SEARCH.published["ack-timeout"].met(row.measured) for row in near)
    return (
        f"What the paper leaves open was searched jointly over {len(rows)} settings (figure A2, "
        f"table A15). {len(best)} of them meet {most} of {len(SEARCH.published)} claims, and all "
        "but window-over-t1 hold with the one that is used: segments of "
        f"{FITTED.mss_bytes} bytes, {FITTED.queue_packets} packets in the modem's queue, "
        f"{FITTED.delay_ms} ms to the server, delayed ACKs, all sent that the gateway has. It "
        f"gives {used.measured['sent_mbyte']:.2f} Mbyte in set 1. The best settings have segments "
        f"of {_listed(segments)} bytes and {_listed(delays)} ms to the server. With the server "
        f"nearby, at most {NEARBY.delay_ms} ms away, sets 4 and 5 mostly bring the whole load in "
        f"100 s: {faster} of {len(near)} settings there meet the claim ack-timeout, and none meets "
        f"{most} claims. So the paper's order of sets 3 to 5 asks for a distant server, or for "
        "more load than its 7% imply."
    )


def _listed(values: Sequence[int]) -> str:
    return " or ".join(str(value) for value in values)


def _remark_t1(evidence: Evidence) -> str:
    cell = freed_at_once()
    rtt = evidence.curve(cell, "download.measured_rtt").known().between(50.0, 100.0)
    t1_s = standard(1).window_bytes / (1e6 * STANDARD_SENT_MB / DURATION_S)
    longest_s = 2e-3 * FITTED.delay_ms + standard(1).ack_timeout_s
    return (
        "The formula of section 3, window/T1, and the 7 Mbyte of section 6.3.1 cannot both be of "
        f"one window: 64 kbyte at 7 Mbyte in 100 s are filled once in {t1_s:.2f} s, a round trip "
        "by satellite and modem. T1 is the server's round trip to the gateway, at most "
        f"{longest_s:.2f} s here with the ACK timeout. If the window counts only data that the "
        f"gateway itself has not acknowledged, the server measures {1e3 * float(rtt.mean()):.0f} "
        f"ms and sends {evidence.sent_mb(cell):.1f} Mbyte, and window/T1 holds with that T1. The "
        "gateway's store then has no bound that the paper states."
    )


def _remark_limit(evidence: Evidence) -> str:
    host = {number: evidence.received_bytes(standard(number)) / 1e6 for number in (2, 3, 4, 5)}
    made = [evidence.counted(standard(number), "acknowledgments", "made") for number in (4, 5)]
    return (
        f"In set 2 the host receives {8e-2 * host[2]:.2f} Mbit/s, more than the 400 kbit/s that "
        "the paper set out to match. From set 3 on the start of the transfer decides: 64 kbyte no "
        "longer limit, the server's congestion window grows with every ACK of the gateway, and "
        f"the load is 1 Mbyte/s. Sets 3, 4 and 5 bring {host[3]:.1f}, {host[4]:.1f} and "
        f"{host[5]:.1f} of about 100 Mbyte. An ACK timeout of 10 ms gives the server more ACKs "
        f"(made by the gateway itself: {made[0]} in set 4, {made[1]} in set 5; all others come "
        "with an ACK of the host). With endless data it is "
        f"{_mbyte(evidence, bulk(5))} instead of {_mbyte(evidence, bulk(4))} Mbyte. With a server "
        f"nearby both sets bring {_mbyte(evidence, with_parameters(5, NEARBY))} of the load, and "
        f"with endless data {_mbyte(evidence, bulk(5, NEARBY))} instead of "
        f"{_mbyte(evidence, bulk(4, NEARBY))}. Figure A10 has the timeout in every set."
    )


def _mbyte(evidence: Evidence, cell: Download) -> str:
    return f"{evidence.received_bytes(cell) / 1e6:.1f}"


def _remark_windows(evidence: Evidence) -> str:
    def amounts(factor: float) -> str:
        received = (
            evidence.received_bytes(anticipating(number, factor)) / 1e6 for number in (1, 2, 3, 4)
        )
        return ", ".join(f"{amount:.1f}" for amount in received)

    return (
        "How far the gateway sends beyond the host's window is open (section 4.2: not required to "
        "conform to it in all cases). If it sends all it has, the host's window hardly counts, and "
        "sets 3 and 4 differ little. With two windows at most, sets 1 to 4 bring "
        f"{amounts(2.0)} Mbyte, with eight {amounts(8.0)}, with sixteen {amounts(16.0)} "
        "(figure A6)."
    )


def _remark_recovery(evidence: Evidence) -> str:
    def kbps(recovery: str, open_: Open = FITTED, *, endless: bool = False) -> str:
        seeds = (lossy(recovery, seed, open_=open_, bulk=endless) for seed in LOSS_SEEDS)
        rates = [evidence.throughput_bps(cell) / 1e3 for cell in seeds if evidence.has(cell)]
        return f"{min(rates):.0f} to {max(rates):.0f}"

    bulky, loaded = (timer_stalls(evidence, traced(bulk=endless)) for endless in (True, False))
    return (
        "Why a congestion window at the gateway does worse than the timer with the paper's load "
        "(fast-retransmit-congestion; figures A11 and A12): two different things limit. The "
        "timer's gateway gains one window of the host per stall, whatever the segment. A "
        "congestion window with 1% lost allows a rate in proportion to the segment. With segments "
        f"of {NEARBY.mss_bytes} bytes and a server nearby the two are about equal, so that small "
        f"things decide: timer {kbps(TIMER, NEARBY, endless=True)} and congestion window "
        f"{kbps(SELECTIVE, NEARBY, endless=True)} kbit/s with endless data, "
        f"{kbps(TIMER, NEARBY)} and {kbps(SELECTIVE, NEARBY)} with the paper's load. The packet "
        "traces show why the load changes the timer's rate only. An application that reads packets "
        "reads after the ACK has left. While data flow, the host advertises one segment less than "
        "its buffer, in a stall all of it, and cycles of stalls end sooner: there are "
        f"{loaded.cycles} of them in {100 * loaded.share:.0f}% of the time, with endless data "
        f"{bulky.cycles} in {100 * bulky.share:.0f}%. With segments of {FITTED.mss_bytes} bytes "
        f"the order is clear: timer {kbps(TIMER)}, congestion window {kbps(SELECTIVE)}; selective "
        "recovery without a congestion window, on a channel of its own as the paper's gateway has "
        f"it, gives {kbps(UNLIMITED)} kbit/s."
    )


def _remark_table(evidence: Evidence) -> str:
    best = {}
    for network in NETWORKS:
        for hosts in ("papers", "today"):
            rates = {
                method: goodput_bps(
                    evidence, RemedyDownload(method=method, network=network, hosts=hosts, loss=1e-3)
                )
                for method in METHODS
            }
            name = max(rates, key=lambda method: rates[method])
            gain = rates[name] / max(rates["nothing"], 1.0)
            best[network, hosts] = f"{name} ({rates[name] / 1e6:.1f} Mbit/s, {gain:.0f} times)"
    return (
        "Which remedy to take (figure A1), with 0.1% of the packets lost on the satellite: on the "
        f"paper's network {best[THEN, 'papers']} for the papers' end hosts and "
        f"{best[THEN, 'today']} for today's; on the network of 2026 {best[NOW, 'papers']} and "
        f"{best[NOW, 'today']}. The times are those of doing nothing."
    )
