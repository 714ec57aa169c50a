"""bentpipe against Linux's own congestion control: bytes received over time, cell by cell."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "benches" / "witness" / "linux.py"


def _witness() -> ModuleType:
    spec = importlib.util.spec_from_file_location("witness_linux", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Its dataclasses look themselves up there.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


witness: Any = _witness()
RECORD: Any = witness.recorded()


@pytest.mark.parametrize("cell", witness.CELLS, ids=lambda cell: cell.name)
def test_we_deliver_what_linux_delivered(cell: Any) -> None:
    linux = RECORD[cell.name]["linux"]["received"]
    ours = witness.simulate(cell)["received"]
    assert len(ours) == len(linux) == cell.duration_s / witness.INTERVAL_S
    assert abs(witness.difference(ours, linux, cell)) < witness.TOLERANCE


@pytest.mark.slow
@pytest.mark.skipif(witness.obstacle() is not None, reason=str(witness.obstacle()))
@pytest.mark.skipif(not witness.PROGRAM.exists(), reason="bentpipe-live is not built (make setup)")
def test_linux_still_delivers_what_is_recorded() -> None:
    cell = next(cell for cell in witness.CELLS if cell.name == "cubic-100")
    now = witness.measure(cell)["received"]
    before = RECORD[cell.name]["linux"]["received"]
    assert abs(witness.difference(now, before, cell)) < witness.TOLERANCE
