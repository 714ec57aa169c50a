"""Closed-form models of TCP on an asymmetric path, vectorised on numpy arrays.

=================  ==================================================  =======================
module             what it predicts                                    loss
=================  ==================================================  =======================
`obata2000`        transfer time and throughput, as printed            none
`mathis`           long-run throughput                                 light, no timeouts
`padhye`           long-run throughput                                 with timeouts
`limits`           which of four limits binds, and each one's value    none
=================  ==================================================  =======================

Every function takes keyword arguments only, with the unit in the name, broadcasts them against
each other, and returns float64 arrays or a frozen dataclass of them. `AsymmetricPath` describes
the two links. No throughput exceeds `AsymmetricPath.capacity_bps`.
"""

from __future__ import annotations

from . import mathis, obata2000, padhye
from .limits import Limits, limits
from .obata2000 import Obata2000Prediction
from .path import AsymmetricPath

__all__ = [
    "AsymmetricPath",
    "Limits",
    "Obata2000Prediction",
    "limits",
    "mathis",
    "obata2000",
    "padhye",
]
