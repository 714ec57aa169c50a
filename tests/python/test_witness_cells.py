"""bentpipe against ns-2: random transfers, loss-free, with listed losses, and with short queues."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

from .conftest import load_script

witness = load_script(Path(__file__).parents[2] / "benches" / "witness" / "cells.py")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not witness.ns2.available(), reason="ns-2 is not installed"),
]

CELLS = range(100)
TOLERANCE = 0.02


def test_every_loss_free_cell_is_within_2_percent_of_ns2() -> None:
    beyond = [
        (cell, each)
        for cell, each in witness.differences("loss-free", CELLS)
        if abs(each) > TOLERANCE
    ]
    assert not beyond, "\n".join(f"{each:+.2%} {cell}" for cell, each in beyond)


@pytest.mark.parametrize("variant", witness.ns2.RECOVERIES)
@pytest.mark.parametrize("kind", ["listed losses", "short queue"])
def test_half_of_the_cells_with_losses_are_within_2_percent(kind: str, variant: str) -> None:
    # Of the others, docs/validation/ns2.md has the rules that differ.
    of = [abs(each) for cell, each in witness.differences(kind, CELLS) if cell.variant == variant]
    assert statistics.median(of) < TOLERANCE
