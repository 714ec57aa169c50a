"""Every run of karir1999."""

from __future__ import annotations

from dataclasses import replace

from bentpipe.studies.karir1999.cells import (
    ANSWERS,
    CLIENT_RTT,
    CROWD,
    FLEET,
    HANDOVERS,
    INDEPENDENT,
    LAN_LOSS,
    LARGE_SWEEP,
    LARGE_WINDOWS,
    NETWORKS,
    OPEN,
    PAGES,
    SAME_RULE,
    SATELLITE,
    SLOW,
    SMALL_MEMORY,
    TERRESTRIAL,
    WARM_ANSWERS,
    WINDOWS,
    WITHOUT_DELAY,
    Cell,
    Download,
    opened,
    paper,
    table,
)
from bentpipe.studies.karir1999.open_settings import found


def every_cell(quick: bool) -> list[Cell]:
    """Return every run of the study; `quick` leaves out the table's highest rate."""
    cells: list[Cell] = [paper(network) for network in NETWORKS]
    cells += [found(network) for network in NETWORKS]
    cells += [opened(network, variant) for network in NETWORKS for variant in OPEN]
    cells += [
        Download(network=network, window=window)
        for network in (TERRESTRIAL, SATELLITE)
        for window in WINDOWS
    ]
    cells += [Download(network=LARGE_WINDOWS, window=window) for window in LARGE_SWEEP]
    cells += [*INDEPENDENT, *LAN_LOSS, SLOW, *CROWD, *WITHOUT_DELAY, *CLIENT_RTT]
    cells += [
        *table(quick),
        *SAME_RULE,
        *ANSWERS,
        *WARM_ANSWERS,
        *FLEET,
        SMALL_MEMORY,
        *PAGES,
        *HANDOVERS,
    ]
    cells += [replace(cell, delay_ms=25) for cell in SAME_RULE]
    return list(dict.fromkeys(cells))
