"""Closed-form models of TCP on an asymmetric path, vectorised on numpy arrays.

=============  ====================================================  =====================
module         what it predicts                                      loss
=============  ====================================================  =====================
`obata2000`    transfer time and throughput, as the paper prints it  none
`delayed_ack`  the same, corrected: exact round by round             none
`lakshman`     average over one congestion-window cycle              buffer overflow only
`mathis`       long-run throughput                                   light, no timeouts
`padhye`       long-run throughput (PFTK)                            with timeouts
`cardwell`     expected time of a short transfer                     with timeouts
`cubic`        long-run throughput of CUBIC                          light, no timeouts
`hybla`        long-run throughput of Hybla                          light, no timeouts
`http`         load time of a web page: `obata2000` over HTTP        none
`limits`       which of four limits binds, and each one's value      none
=============  ====================================================  =====================

Every function takes keyword arguments only, with the unit in the name, broadcasts them against
each other, and returns float64 arrays or a frozen dataclass of them. It raises ValueError on an
argument outside its range and on shapes that do not broadcast. `AsymmetricPath` describes
the two links. No throughput exceeds `AsymmetricPath.capacity_bps`.
"""

from __future__ import annotations

from . import cardwell, cubic, delayed_ack, http, hybla, lakshman, mathis, obata2000, padhye
from .cardwell import CardwellPrediction
from .delayed_ack import DelayedAckPrediction
from .http import Handshake, PagePrediction
from .lakshman import LakshmanPrediction
from .limits import Limits, limits
from .obata2000 import Obata2000Prediction
from .path import AsymmetricPath

__all__ = [
    "AsymmetricPath",
    "CardwellPrediction",
    "DelayedAckPrediction",
    "Handshake",
    "LakshmanPrediction",
    "Limits",
    "Obata2000Prediction",
    "PagePrediction",
    "cardwell",
    "cubic",
    "delayed_ack",
    "http",
    "hybla",
    "lakshman",
    "limits",
    "mathis",
    "obata2000",
    "padhye",
]
