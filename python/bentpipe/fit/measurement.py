"""The common form of a measurement, of whichever kind of file."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from bentpipe.fit.connection import Floats
    from bentpipe.fit.estimate import Estimate

Direction = Literal["forward", "return"]
FORWARD: Final = "forward"
RETURN: Final = "return"


@dataclass(frozen=True, kw_only=True)
class Delays:
    """Delays of packets of one size there and one size back, queuing included.

    `way` is "both" for round trips, or the direction of one-way delays.
    """

    way: Literal["both", "forward", "return"]
    delay_s: Floats
    # Time of each since the beginning of the measurement.
    time_s: Floats
    # IP bytes of the packet in each direction.
    forward_bytes: int
    return_bytes: int
    source: str
    method: str
    # Resolution of the delays.
    resolution_s: float = 1e-6
    # The shortest one, if it is known better than from `delay_s`.
    shortest_s: float | None = None

    @property
    def least_s(self) -> float:
        """The shortest delay."""
        return float(np.min(self.delay_s)) if self.shortest_s is None else self.shortest_s


@dataclass(frozen=True, kw_only=True)
class Transfer:
    """A transfer of data that was measured, for the scenario's flow and the figure."""

    direction: Direction
    duration_s: float
    # Payload delivered, in bytes, over time.
    time_s: Floats
    delivered_bytes: Floats
    rtt_time_s: Floats
    rtt_s: Floats
    congestion_control: str | None = None
    connections: int = 1
    # Whether delivery was seen by its acknowledgment.
    at_sender: bool = False


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """Estimates from one file, and the reasons for those that it lacks."""

    path: Path
    kind: str
    # One line about the file.
    summary: str
    estimates: tuple[Estimate, ...] = ()
    delays: tuple[Delays, ...] = ()
    # Why the file does not determine a quantity, by its key.
    reasons: dict[str, str] = field(default_factory=dict)
    transfer: Transfer | None = None
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The file's name, as a source."""
        return self.path.name
