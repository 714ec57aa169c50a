"""Paragraphs of the report on gaid1998, with the numbers of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bentpipe.studies.gaid1998.cells import (
    FITTED,
    METHODS,
    NETWORKS,
    NOW,
    THEN,
    Open,
    RemedyDownload,
    anticipating,
    bulk,
    freed_at_once,
    standard,
    with_parameters,
)
from bentpipe.studies.gaid1998.comparison import goodput_bps

if TYPE_CHECKING:
    from bentpipe.studies.gaid1998.evidence import Evidence


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return the report's paragraphs with the numbers of this run."""
    return (
        _remark_open(evidence),
        _remark_t1(evidence),
        _remark_limit(evidence),
        _remark_windows(evidence),
        _remark_table(evidence),
    )


def _sent(evidence: Evidence, open_: Open) -> str:
    return f"{evidence.sent_mb(with_parameters(open_)):.1f}"


def _remark_open(evidence: Evidence) -> str:
    unbounded = replace(FITTED, held_by_host=False)
    long_queue = replace(FITTED, queue_packets=1000)
    return (
        "The paper's 7 Mbyte are what a window of 64 kbyte brings that is freed only by what the "
        f"host acknowledges, behind a modem with a short queue ({_sent(evidence, FITTED)} Mbyte; "
        "figure A2): 64 kbyte in the time that a segment takes by satellite and its ACK in the "
        "modem's queue. Whether segments are of 512 or 1460 bytes hardly matters, nor whether ACKs "
        "are delayed. If the window counted only what the gateway itself has not acknowledged, as "
        "the paper's formula window/T1 has it, the server would send "
        f"{_sent(evidence, unbounded)} Mbyte, and what the gateway holds would grow without end. "
        f"With a long queue at the modem it is {_sent(evidence, long_queue)} Mbyte: ACKs wait for "
        "seconds there."
    )


def _remark_limit(evidence: Evidence) -> str:
    rates = {number: evidence.throughput_bps(standard(number)) / 1e6 for number in (2, 3, 4, 5)}
    return (
        f"In set 2 the host receives {rates[2]:.2f} Mbit/s, more than the 400 kbit/s that the "
        "paper set out to match. From set 3 on the gateway's window no longer limits: the "
        f"application's load does ({rates[3]:.2f}, {rates[4]:.2f} and {rates[5]:.2f} Mbit/s of "
        f"about 8), "
        "so that the host's larger window of set 4 and the shorter ACK timeout of set 5 change "
        "nothing after the start. With as much to send as goes the satellite would limit, and the "
        f"shorter timeout bring {evidence.received_bytes(bulk(5)) / 1e6:.1f} rather than "
        f"{evidence.received_bytes(bulk(4)) / 1e6:.1f} Mbyte, of slow start alone: once the host's "
        "ACKs come out of the modem every 16 ms, they carry the gateway's long before 200 ms are "
        "over "
        f"(of set 4 {evidence.counted(standard(4), 'acknowledgments', 'made')} of the gateway's "
        f"own, "
        f"of set 5 {evidence.counted(standard(5), 'acknowledgments', 'made')})."
    )


def _remark_t1(evidence: Evidence) -> str:
    cell = freed_at_once()
    rtt = evidence.curve(cell, "download.measured_rtt").known().between(50.0, 100.0)
    return (
        "The formula of section 3, window/T1, and the 7 Mbyte of section 6.3.1 cannot both be of "
        "one window. "
        "64 kbyte in 100 s of 7 Mbyte are filled once in 0.9 s, which is a round trip by "
        "satellite and modem; "
        "the formula has the server's round trip to the gateway, and with the ACK timeout of 200 "
        "ms that is "
        f"{2 * FITTED.delay_ms + 200} ms at most. In the packet trace it is "
        f"{1e3 * float(rtt.mean()):.0f} ms: "
        "no ACK of the gateway's waits for its timeout, because the modem lets one of the host's "
        "out every 50 "
        "ms, which carries it. With a window that counts only what the gateway itself has not "
        "acknowledged, "
        f"the formula holds with that T1: {evidence.sent_mb(cell):.1f} Mbyte. So window-over-t1 "
        f"does not hold, "
        "and no setting of what is left open makes it hold beside standard-seven."
    )


def _remark_windows(evidence: Evidence) -> str:
    def amounts(factor: float) -> str:
        received = (
            evidence.received_bytes(anticipating(number, factor)) / 1e6 for number in (1, 2, 3, 4)
        )
        return ", ".join(f"{amount:.1f}" for amount in received)

    return (
        "Larger windows raise the throughput from set 1 to 2 and to 3; sets 3 and 4 are alike, to "
        "the byte: a gateway that sends as far beyond the host's window as there is something to "
        "send does not ask how large it is, and the load is all there is. How far it sends the "
        "paper leaves open (it need not conform to the window in all cases). With two of its "
        f"windows at most, sets 1 to 4 bring {amounts(2.0)} Mbyte, and with eight {amounts(8.0)}: "
        "then each larger window counts, and set 1 is far from 7 Mbyte; with sixteen, "
        f"{amounts(16.0)} (figure A6)."
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
