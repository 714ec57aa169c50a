"""Paragraphs of the report on karir1999, with the numbers of a run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bentpipe.studies.karir1999 import cells, open_settings
from bentpipe.studies.karir1999.cells import GATEWAYS, paper
from bentpipe.studies.karir1999.evidence import jain
from bentpipe.studies.open_settings import committed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bentpipe.studies.karir1999.evidence import Evidence
    from bentpipe.studies.open_settings import Number


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return the report's paragraphs with the numbers of this run."""
    return (_windows(evidence), _round_trip(evidence), _beyond(evidence))


def _windows(evidence: Evidence) -> str:
    rows = committed("karir1999")
    search = open_settings.SEARCH
    most = len(search.published)
    fits = [row for row in rows if row.within == most]
    stated = open_settings.measure_stated(evidence)
    found = open_settings.measure_found(evidence)
    setting = found.setting
    spans = {
        name: _span(row.setting[name] for row in fits)
        for name in ("lan_delay_ms", "window", "large_window", "middle_window")
    }
    shares = [
        int(setting["window"]) / cells.STATED_WINDOW,
        int(setting["large_window"]) / cells.LARGE_WINDOW,
    ]
    return (
        f"With the windows that the paper states, {stated.within} of its {most} numbers are within "
        f"tolerance: the satellite carries {stated.measured['satellite_kbps']:.0f} kbit/s without "
        f"gateways and {stated.measured['large_kbps']:.0f} with large windows, not 500 and 800 to "
        f"900. A search over {len(rows)} settings of delays, windows, queues and losses (table A9) "
        f"finds {len(fits)} with all of them: {spans['lan_delay_ms']} ms between server and "
        f"gateway, windows of {spans['window']} B, large windows of {spans['large_window']} B "
        f"between the hosts and {spans['middle_window']} B between the gateways, no losses. The "
        f"nearest (table A8) has {shares[0]:.0%} of the paper's 64 Kbyte and {shares[1]:.0%} of "
        "its 195 Kbyte: what the paper states is the size of buffers, and OPNET's hosts kept less "
        "than that in flight. Between the gateways, at least half of 195 Kbyte must have been "
        "used: capacity over half a second needs 96 Kbyte."
    )


def _span(values: Iterable[Number]) -> str:
    found = sorted({float(each) for each in values})
    return f"{found[0]:g}" if len(found) == 1 else f"{found[0]:g} to {found[-1]:g}"


def _round_trip(evidence: Evidence) -> str:
    rtt = evidence.rtt_ms(paper(GATEWAYS))
    slow = evidence.flow(cells.SLOW).goodput_bps / evidence.flow(paper(GATEWAYS)).goodput_bps
    return (
        f"The server's round trip with gateways is {rtt:.0f} ms: twice the LAN's "
        f"{cells.LAN_DELAY_MS:g} ms and the wait for a second segment, because a gateway "
        "acknowledges what it takes when it takes it. The paper's 75 ms are a distance or a load "
        "between server and gateway that it doesn't give; the search takes the distance. A "
        "processor that takes twice a full packet's time for every packet leaves "
        f"{slow:.2f} of the goodput: of three packets that pass it, one is an ACK. An early answer "
        "saves the LAN's round trip only, unless persistent connections are open already: the "
        "first data waits at the gateway while the part over the satellite opens."
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
