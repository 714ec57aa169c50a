"""The report's paragraphs on gaid1998, with a run's numbers in them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bentpipe.studies.gaid1998.cells import (
    FITTED,
    METHODS,
    NETWORKS,
    NOW,
    THEN,
    Beyond,
    Open,
    opened,
    standard,
)
from bentpipe.studies.gaid1998.comparison import goodput_bps

if TYPE_CHECKING:
    from bentpipe.studies.gaid1998.evidence import Evidence


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return the report's paragraphs, with this run's numbers in them."""
    return (_remark_open(evidence), _remark_limit(evidence), _remark_table(evidence))


def _sent(evidence: Evidence, open_: Open) -> str:
    return f"{evidence.sent_mb(opened(open_)):.1f}"


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
        f"satellite does ({rates[3]:.2f}, {rates[4]:.2f} and {rates[5]:.2f} Mbit/s of its 10, "
        "headers not counted), so that the host's larger window of set 4 and the shorter ACK "
        "timeout of set 5 change little. The server here has as much to send as goes; the paper's "
        "application offers about 8 Mbit/s."
    )


def _remark_table(evidence: Evidence) -> str:
    best = {}
    for network in NETWORKS:
        for hosts in ("papers", "today"):
            rates = {
                method: goodput_bps(
                    evidence, Beyond(method=method, network=network, hosts=hosts, loss=1e-3)
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
