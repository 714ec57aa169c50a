"""Search over what obata2000 leaves open in its ns-2 simulations, for figures 5 and 6.

The paper gives the receiver's timer for the formula (200 ms), not for ns-2, whose DelAck waits
100 ms by default. It does not define KByte. A window in segments can be rounded down, to the
nearest, or up. ns-2's applications send whole packets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.studies.judging import Expectation
from bentpipe.studies.obata2000.cells import (
    AXIS_BPS,
    FIGURE_5,
    FIGURE_6,
    FILE_KBYTES,
    SEGMENT_BYTES,
    WINDOWS_KBYTES,
    Network,
    Transfer,
    figure_cells,
)
from bentpipe.studies.obata2000.evidence import Evidence, formula_bps
from bentpipe.studies.open_settings import OpenSettings, Published, Setting, grid

if TYPE_CHECKING:
    from bentpipe.results import RunResult

# "Completely consistent": what can be told apart in print.
PRINT: Final = 0.02

SETTINGS: Final = grid(
    simulated_timer_ms=(100, 200),
    formula_timer_ms=(100, 200),
    kbyte=(1000, 1024),
    window=("down", "nearest", "up"),
    file=("bytes", "whole segments"),
)

_ROUND: Final = {"down": np.floor, "nearest": np.rint, "up": np.ceil}


def cells(setting: Setting) -> list[Transfer]:
    """Return the transfers of figures 5 and 6, with a setting of the search."""
    curves = {**FIGURE_5, **FIGURE_6}.values()
    return list(dict.fromkeys(each for curve in curves for each in curve_cells(setting, curve)))


def curve_cells(setting: Setting, network: Network) -> list[Transfer]:
    """Return the transfers of one curve: the paper's windows, and W_sat down and up."""
    kbyte = int(setting["kbyte"])
    at_saturation = figure_cells(network, kbyte)
    named = [_transfer(setting, network, kbytes) for kbytes in WINDOWS_KBYTES]
    others = [
        replace(named[0], window_segments=each.window_segments)
        for each in at_saturation
        if abs(each.window_segments - network.saturation_window()) < 1.0
    ]
    return list(dict.fromkeys(named + others))


def _transfer(setting: Setting, network: Network, kbytes: int) -> Transfer:
    """Return the transfer with one of the paper's windows."""
    kbyte = int(setting["kbyte"])
    file_bytes = FILE_KBYTES * kbyte
    if setting["file"] == "whole segments":
        file_bytes = -(-file_bytes // SEGMENT_BYTES) * SEGMENT_BYTES
    return Transfer(
        network=replace(network, delayed_ack_s=int(setting["simulated_timer_ms"]) / 1e3),
        window_segments=int(_ROUND[str(setting["window"])](kbytes * kbyte / SEGMENT_BYTES)),
        file_bytes=file_bytes,
    )


def measure(setting: Setting, outcomes: Mapping[Transfer, RunResult]) -> dict[str, float]:
    """Return how the formula and the simulation compare with a setting."""
    evidence = Evidence(outcomes)
    transfers = cells(setting)
    simulated = np.array([evidence.simulated_bps(each) for each in transfers])
    timer_s = int(setting["formula_timer_ms"]) / 1e3
    formula = formula_bps(transfers, delayed_ack_s=timer_s)
    relative = np.abs(formula / simulated - 1.0)
    of_axis = np.abs(formula - simulated) / AXIS_BPS

    def in_order(curves: Sequence[Network]) -> int:
        count = 0
        for kbytes in WINDOWS_KBYTES:
            rates = [evidence.simulated_bps(_transfer(setting, each, kbytes)) for each in curves]
            count += all(low < high for low, high in pairwise(rates))
        return count

    return {
        "cells": len(transfers),
        "within_2_percent": int(np.sum(relative <= PRINT)),
        "share_within_2_percent": float(np.mean(relative <= PRINT)),
        "median_error": float(np.median(relative)),
        "largest_error": float(relative.max()),
        "within_2_percent_of_axis": int(np.sum(of_axis <= PRINT)),
        "share_within_2_percent_of_axis": float(np.mean(of_axis <= PRINT)),
        "largest_error_of_axis": float(of_axis.max()),
        "delay_order_windows": in_order(list(FIGURE_5.values())),
        "bandwidth_order_windows": in_order(list(FIGURE_6.values())[::-1]),
    }


_EVERY: Final = Expectation(at_least=1.0)
_WINDOWS: Final = Expectation(at_least=len(WINDOWS_KBYTES))

SEARCH: Final = OpenSettings(
    settings=SETTINGS,
    published={
        "every cell within 2%": Published(columns=("share_within_2_percent",), expect=_EVERY),
        "every cell within 2% of the axis": Published(
            columns=("share_within_2_percent_of_axis",), expect=_EVERY
        ),
        "delay-order": Published(columns=("delay_order_windows",), expect=_WINDOWS),
        "bandwidth-order": Published(columns=("bandwidth_order_windows",), expect=_WINDOWS),
    },
    cells=cells,
    measure=measure,
)
