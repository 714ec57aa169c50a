"""Stalls of the gateway's timer after a loss, from a record of every ACK that it receives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.studies.gaid1998.cells import DURATION_S

if TYPE_CHECKING:
    from bentpipe.studies.gaid1998.cells import Download
    from bentpipe.studies.gaid1998.evidence import Evidence

# The gateway's timer: without a new ACK for this long, it expires.
TIMEOUT_S: Final = 0.2
# Progress that lasts longer than this between two stalls ends a cycle.
_CALM_S: Final = 0.45


@dataclass(frozen=True, kw_only=True)
class Stalls:
    """Cycles of stalls in a run: the timer expires again as soon as the host has what was missing.

    * `share`: share of the time spent in such cycles.
    * `cycles`: number of cycles; `rounds`: stalls in all of them.
    * `gain_bytes`: median of what the host acknowledges from one stall to the next of its cycle.
    * `round_s`: median time from one stall to the next.
    """

    share: float
    cycles: int
    rounds: int
    gain_bytes: float
    round_s: float
    window_bytes: int

    def __str__(self) -> str:
        return (
            f"{100 * self.share:.0f}% of the time in {self.cycles} cycles of {self.rounds} stalls, "
            f"{self.gain_bytes / 1e3:.1f} kbyte every {self.round_s:.2f} s"
        )


def timer_stalls(evidence: Evidence, cell: Download) -> Stalls:
    """Return the stalls of a traced run."""
    acknowledged = evidence.curve(cell, "hub.acknowledged").known()
    grows = np.flatnonzero(np.diff(acknowledged.values) > 0.0) + 1
    times, values = acknowledged.times_s[grows], acknowledged.values[grows]
    long = np.flatnonzero(np.diff(times) > TIMEOUT_S)
    starts, ends, at = times[long], times[long + 1], values[long]
    # Whether a stall follows the one before within the same cycle.
    follows = np.append(False, starts[1:] - ends[:-1] <= _CALM_S)
    heads = np.flatnonzero(~follows)
    tails = np.append(heads[1:], len(starts)) - 1
    within = np.flatnonzero(follows)
    return Stalls(
        share=float((ends[tails] - starts[heads]).sum()) / DURATION_S,
        cycles=len(heads),
        rounds=len(starts),
        gain_bytes=float(np.median(at[within] - at[within - 1])),
        round_s=float(np.median(starts[within] - starts[within - 1])),
        window_bytes=cell.host_window_bytes,
    )
