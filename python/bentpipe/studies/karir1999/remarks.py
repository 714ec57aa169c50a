"""Paragraphs of the report on karir1999, with the numbers of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bentpipe.studies.karir1999 import cells
from bentpipe.studies.karir1999.cells import (
    GATEWAYS,
    LARGE_WINDOWS,
    SATELLITE,
    TERRESTRIAL,
    Download,
    opened,
    paper,
)
from bentpipe.studies.karir1999.evidence import jain

if TYPE_CHECKING:
    from bentpipe.studies.karir1999.evidence import Evidence


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return the report's paragraphs with the numbers of this run."""
    return (_windows(evidence), _round_trip(evidence), _beyond(evidence))


def _windows(evidence: Evidence) -> str:
    satellite = evidence.link_bps(paper(SATELLITE)) / 1e3
    large = evidence.link_bps(paper(LARGE_WINDOWS)) / 1e3
    low = {
        window: (
            evidence.link_bps(Download(network=SATELLITE, window=window)) / 1e3,
            evidence.rtt_ms(Download(network=TERRESTRIAL, window=window)),
        )
        for window in (28_672, 32_768)
    }
    listed = " and ".join(
        f"{window / 1024:.0f} KiB {kbps:.0f} kbit/s and {rtt:.0f} ms"
        for window, (kbps, rtt) in low.items()
    )
    near = {
        window: evidence.link_bps(Download(network=LARGE_WINDOWS, window=window)) / 1e3
        for window in cells.LARGE_SWEEP
    }
    fits = " and ".join(
        f"{window / 1024:.0f} KiB ({kbps:.0f} kbit/s)"
        for window, kbps in near.items()
        if 760.0 <= kbps <= 940.0
    )
    short = [
        evidence.rtt_ms(opened(network, "queue of 20 packets"))
        for network in (TERRESTRIAL, SATELLITE, LARGE_WINDOWS)
    ]
    lossy = [
        evidence.link_bps(opened(network, "losses on the link, 0.1%")) / 1e3
        for network in (SATELLITE, LARGE_WINDOWS)
    ]
    return (
        f"With the windows that the paper states, the satellite carries {satellite:.0f} kbit/s "
        f"without gateways and {large:.0f} with large windows, not 500 and 800 to 900: 64 Kbyte in "
        f"half a second are 1 Mbit/s. Of smaller windows (figure A2), {listed} in the terrestrial "
        "network: the paper's simulator seems to have used half of its buffer. For large windows "
        f"its numbers need {fits or 'none of the sweep'}, a quarter to a third of the 195 Kbyte "
        "set. Of what else the paper leaves open (figure A1), a queue of 20 packets alone brings "
        f"its round trips ({short[0]:.0f}, {short[1]:.0f} and {short[2]:.0f} ms), and losing one "
        f"packet in a thousand brings {lossy[0]:.0f} and {lossy[1]:.0f} kbit/s; nothing that we "
        "tried brings both with the stated windows."
    )


def _round_trip(evidence: Evidence) -> str:
    rtt = evidence.rtt_ms(paper(GATEWAYS))
    slow = evidence.flow(cells.SLOW).goodput_bps / evidence.flow(paper(GATEWAYS)).goodput_bps
    return (
        f"The server's round trip with gateways is {rtt:.0f} ms here: the LAN's two and a full "
        "packet's time, for a gateway acknowledges what it takes when it takes it, and what it has "
        "no room for isn't sent. The paper's 75 ms are a distance or a load between server and "
        "gateway that it doesn't give. A processor that takes twice a full packet's time for every "
        f"packet leaves {slow:.2f} of the goodput, not the half that we expected: of three packets "
        "that pass it, one is an ACK, so that it is 1 / (2 x 1.5). And an early answer saves the "
        "LAN's round trip only: the first data waits at the gateway while the part over the "
        "satellite opens, as it would have waited at the client."
    )


def _beyond(evidence: Evidence) -> str:
    parts = []
    for cell in cells.FLEET:
        index = jain([flow.goodput_bps for flow in evidence.flows(cell)])
        end = evidence.end_s(cell)
        held = evidence.most(cell, "bytes_promised", "max") / 2**20
        memory = f", {held:.0f} MiB promised" if held else ""
        parts.append(
            f"{cells.REMEDY_NAMES[cell.remedy]}: {index:.3f}, done after {end:.0f} s{memory}"
        )
    low = [replace(cell, delay_ms=25) for cell in cells.SAME_RULE]
    plain, split = (evidence.flow(cell).goodput_bps / 1e6 for cell in low)
    return (
        "Twenty downloads of 5 Mbyte over 10 Mbit/s, Jain's index: " + "; ".join(parts) + ". Over "
        f"a low orbit's 25 ms the split gains nothing either: {split:.2f} and {plain:.2f} Mbit/s."
    )
