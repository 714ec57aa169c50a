"""All runs of the study."""

from __future__ import annotations

from collections.abc import Sequence

from bentpipe.studies.gaid1998.cells import (
    ACK_TIMEOUTS_MS,
    FACTORS,
    FITTED,
    LOSS_RATE,
    LOSS_SEEDS,
    RECOVERIES,
    SETS,
    SMALL_SEGMENTS,
    Download,
    RemedyDownload,
    acknowledging,
    adaptive,
    anticipating,
    asking,
    beyond_cells,
    first_segments,
    freed_at_once,
    lossy,
    plain,
    routed,
    standard,
    standard_load,
    traced,
    transfer,
    within_the_window,
)
from bentpipe.studies.gaid1998.centre import Centre, centre_cells
from bentpipe.studies.gaid1998.fragmentation import Fragmented, OnEthernet, fragmentation_cells
from bentpipe.studies.gaid1998.future import FutureWork, future_cells

Cell = Download | RemedyDownload | Centre | FutureWork | Fragmented | OnEthernet


def every_cell(quick: bool) -> Sequence[Cell]:
    """Return every run of the study; `quick` simulates fewer seeds."""
    seeds = LOSS_SEEDS[:2] if quick else LOSS_SEEDS
    cells: list[Cell] = [standard(number) for number in SETS]
    cells += [plain(number) for number in (1, 2, 4)]
    cells += [freed_at_once(), within_the_window(), adaptive()]
    cells += [first_segments(gateway=gateway) for gateway in (False, True)]
    cells += [asking(number) for number in SETS]
    cells += [anticipating(number, factor) for factor in FACTORS for number in SETS[:4]]
    cells += [acknowledging(number, timeout) for timeout in ACK_TIMEOUTS_MS for number in SETS[:4]]
    cells += [standard_load(number) for number in (3, 4, 5)]
    cells += [
        lossy(recovery, seed, open_=open_, bulk=endless)
        for recovery in RECOVERIES
        for open_ in (FITTED, SMALL_SEGMENTS)
        for endless in (False, True)
        for seed in seeds
    ]
    cells += [routed(seed) for seed in seeds]
    cells += [traced(bulk=endless) for endless in (False, True)]
    cells += [transfer(number, loss) for number in SETS for loss in (0.0, LOSS_RATE)]
    cells += beyond_cells()
    cells += centre_cells()
    cells += future_cells()
    cells += fragmentation_cells()
    return list(dict.fromkeys(cells))
