"""Paragraphs of the report on gaid1998, with the numbers of a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from bentpipe.studies.gaid1998.cells import (
    DURATION_S,
    FITTED,
    LOSS_SEEDS,
    METHODS,
    NETWORKS,
    NOW,
    SELECTIVE,
    SMALL_SEGMENTS,
    STANDARD_SENT_MB,
    THEN,
    TIMER,
    UNLIMITED,
    Download,
    Open,
    RemedyDownload,
    anticipating,
    freed_at_once,
    lossy,
    standard,
    standard_load,
    traced,
)
from bentpipe.studies.gaid1998.comparison import goodput_bps
from bentpipe.studies.gaid1998.open_settings import SEARCH, setting_of
from bentpipe.studies.gaid1998.stalls import timer_stalls
from bentpipe.studies.open_settings import Number, committed

if TYPE_CHECKING:
    from bentpipe.studies.gaid1998.evidence import Evidence


# A difference that shows in a figure.
_CLEAR: Final = 1.02


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
    used = next(row for row in rows if row.setting == setting_of(FITTED))
    heavy = sum(row.setting["load_mbyte_s"] == FITTED.load_mbyte_s for row in best)
    clear = [row for row in best if row.measured["set_4_over_3"] > _CLEAR]
    return (
        f"What the paper leaves open was searched jointly over {len(rows)} settings (figure A2, "
        f"table A15). {len(best)} of them meet {most} of {len(SEARCH.published)} claims, all but "
        "window-over-t1; none meets all. The one with the server on a LAN (figure 9) that comes "
        f"nearest to 7 Mbyte is used: segments of {FITTED.mss_bytes} bytes, "
        f"{FITTED.queue_packets} packets in the modem's queue, {FITTED.delay_ms} ms to the server, "
        f"delayed ACKs, up to {FITTED.factor:g} of the host's windows sent, and "
        f"{FITTED.load_mbyte_s:g} Mbyte/s of load from set 3 on. It gives "
        f"{used.measured['sent_mbyte']:.2f} Mbyte in set 1. {heavy} of the {len(best)} settings "
        "have that load, which is more than the satellite link carries. Set 4 brings more than "
        f"set 3 by over {_CLEAR - 1:.0%} in {len(clear)} of them, where the gateway sends "
        f"{_listed(row.setting['windows_sent'] for row in clear)} windows of the host at most. So "
        "the paper's order of sets 3 to 5 asks for a gateway that goes beyond the host's window "
        "within a limit, and for a load that the link cannot carry."
    )


def _listed(values: Iterable[Number]) -> str:
    return " or ".join(sorted({str(value).removesuffix(".0") for value in values}))


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
        f"gateway itself has not acknowledged, a server {cell.open.delay_ms} ms away measures "
        f"{1e3 * float(rtt.mean()):.0f} ms and sends {evidence.sent_mb(cell):.1f} Mbyte, and "
        "window/T1 holds with that T1. The gateway's store then has no bound that the paper "
        "states."
    )


def _remark_limit(evidence: Evidence) -> str:
    made = [evidence.counted(standard(number), "acknowledgments", "made") for number in (4, 5)]
    heavy, light = (
        ", ".join(_mbyte(evidence, cell(number)) for number in (3, 4, 5))
        for cell in (standard, standard_load)
    )
    return (
        f"In set 2 the host receives {evidence.throughput_bps(standard(2)) / 1e6:.2f} Mbit/s, more "
        "than the 400 kbit/s that the paper set out to match. From set 3 on, 64 kbyte no longer "
        f"limit. With {FITTED.load_mbyte_s:g} Mbyte/s of load, more than the satellite link "
        f"carries, sets 3, 4 and 5 bring {heavy} Mbyte. With the load of set 1 they bring {light}: "
        "all of it, so that neither the host's window nor the ACK timeout counts. The ACK timeout "
        "counts in slow start only, where the server's window grows with every ACK (made by the "
        f"gateway itself: {made[0]} in set 4, {made[1]} in set 5; all others come with an ACK of "
        f"the host). Figure A10 has the timeout in every set."
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
        f"of {FITTED.mss_bytes} bytes the two are about equal, so that small things decide: "
        f"with endless data {kbps(TIMER, endless=True)} (timer) and "
        f"{kbps(SELECTIVE, endless=True)} kbit/s (congestion window), with the paper's load "
        f"{kbps(TIMER)} and {kbps(SELECTIVE)}. The packet traces show why the load changes the "
        "timer's rate. An application that reads packets reads after the ACK has left. While data "
        "flow, the host advertises one segment less than its buffer, in a stall all of it, and "
        f"cycles of stalls end sooner: there are {loaded.cycles} of them in "
        f"{100 * loaded.share:.0f}% of the time, with endless data {bulky.cycles} in "
        f"{100 * bulky.share:.0f}%. With segments of {SMALL_SEGMENTS.mss_bytes} bytes the order is "
        f"clear: {kbps(TIMER, SMALL_SEGMENTS)} and {kbps(SELECTIVE, SMALL_SEGMENTS)}. Selective "
        "recovery without a congestion window, on a channel of its own as the paper's gateway has "
        f"it, gives {kbps(UNLIMITED)} and {kbps(UNLIMITED, SMALL_SEGMENTS)} kbit/s."
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
