"""What a probe recorded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True, kw_only=True, eq=False)
class Series:
    """A probe's samples: equally long columns, and the values' unit."""

    times_s: NDArray[np.float64]
    values: NDArray[np.float64]
    unit: str
