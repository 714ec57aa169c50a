"""bentpipe against Linux's own TCP: bytes received in each cell (docs/validation/linux.md)."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from .conftest import load_script

SCRIPT = Path(__file__).parents[2] / "benches" / "witness" / "linux.py"


witness = load_script(SCRIPT)
RECORD: Any = witness.recorded()


# Seeds of a simulated range.
SEEDS = 20


@functools.cache
def _over_seeds(name: str) -> Any:
    cell = next(cell for cell in witness.CELLS if cell.name == name)
    return witness.over_seeds(cell, seeds=SEEDS)


@functools.cache
def _simulated(name: str) -> Any:
    return witness.simulate(next(cell for cell in witness.CELLS if cell.name == name))


def _cells(*, lossy: bool) -> list[Any]:
    return [cell for cell in witness.CELLS if bool(cell.loss) == lossy and cell.seed == 1]


def _cases(*, lossy: bool, beyond: Mapping[str, str] = witness.BEYOND) -> list[Any]:
    """Return the cells, once each, but for those beyond their bounds."""
    chosen = [cell for cell in _cells(lossy=lossy) if cell.name not in beyond]
    return [pytest.param(cell, id=cell.name) for cell in chosen]


def _ranges(beyond: Mapping[str, str], outside: Mapping[str, str]) -> list[Any]:
    """Return the cells beyond their bounds; those outside the range, too, have to fail."""
    return [
        pytest.param(
            cell,
            id=cell.name,
            marks=[pytest.mark.xfail(reason=outside[cell.name], strict=True)]
            if cell.name in outside
            else [],
        )
        for cell in _cells(lossy=False)
        if cell.name in beyond
    ]


def test_every_cell_is_recorded() -> None:
    assert sorted(RECORD) == sorted(cell.name for cell in witness.CELLS)
    assert set(witness.BEYOND) <= set(RECORD)


def test_evidence_states_the_number_of_cells_within_bounds() -> None:
    evidence = (SCRIPT.parents[2] / "docs" / "evidence.md").read_text(encoding="utf-8")
    said = " ".join(evidence.split())
    lossless = len(_cells(lossy=False))
    cells = lossless + len(_cells(lossy=True))
    assert f"in {cells - len(witness.BEYOND)} of {cells} measured cells" in said
    assert f"in {lossless - len(witness.DROPPED_BEYOND)} of {lossless}" in said


@pytest.mark.parametrize("cell", _cases(lossy=False))
def test_delivered_bytes_match_linux(cell: Any) -> None:
    linux = RECORD[cell.name]["received"]
    ours = _simulated(cell.name)["received"]
    assert len(linux) == cell.duration_s
    assert len(ours) == cell.duration_s / witness.INTERVAL_S
    assert abs(witness.difference(ours, linux, cell)) <= witness.BOUNDS[cell.group]


@pytest.mark.parametrize("cell", _cases(lossy=False, beyond=witness.DROPPED_BEYOND))
def test_queue_drops_match_linux(cell: Any) -> None:
    linux = RECORD[cell.name]["dropped"]
    ours = _simulated(cell.name)["dropped"]
    assert witness.dropped_alike(ours, linux), f"{ours} dropped, Linux {linux}"


# The range is widened by the cell's bound at both ends.
@pytest.mark.parametrize("cell", _ranges(witness.BEYOND, witness.OUTSIDE))
def test_linux_goodput_lies_in_the_simulated_range(cell: Any) -> None:
    linux = witness.goodput_bps(RECORD[cell.name]["received"], cell)
    # With fixed timing, the cell is beyond its bound.
    fixed = _simulated(cell.name)["received"]
    assert (
        abs(witness.difference(fixed, RECORD[cell.name]["received"], cell))
        > witness.BOUNDS[cell.group]
    )
    ours = _over_seeds(cell.name).goodput_bps("download")
    assert ours.contains(linux, within=witness.BOUNDS[cell.group]), f"{ours}, Linux {linux}"


@pytest.mark.parametrize("cell", _ranges(witness.DROPPED_BEYOND, witness.DROPPED_OUTSIDE))
def test_linux_drops_lie_in_the_simulated_range(cell: Any) -> None:
    linux = RECORD[cell.name]["dropped"]
    assert not witness.dropped_alike(_simulated(cell.name)["dropped"], linux)
    ours = witness.drops_over_seeds(_over_seeds(cell.name))
    assert ours.contains(linux), f"{ours}, Linux {linux}"


def test_quantiles_beyond_the_sample_size_are_omitted() -> None:
    wake_ups = load_script(SCRIPT.with_name("wake_ups.py"))
    # 40 delays of 1 to 40 us: two exceed the 95% quantile, none or one a higher one.
    cells = wake_ups.row("delay", [1e-6 * (1 + place) for place in range(40)]).split(" | ")
    assert cells[1:3] == ["40", "1"]
    assert cells[-3:] == ["38", "–", "– |"]


@pytest.mark.parametrize("cell", _cases(lossy=True))
def test_mean_with_losses_matches_linux(cell: Any) -> None:
    linux, ours = witness.lossy_means(cell, RECORD)
    assert abs(ours / linux - 1) <= witness.BOUNDS[cell.group]


# One or two of each group, where the kernel's result depends least on the machine's timing.
LIVE = (
    "first-cubic-10M-100ms-83",
    "buffers-bbr-25M-600ms-1250",
    "buffers-reno-60M-500ms-1250",
    "loss-cubic-10M-560ms-466-0.002-1",
    "return-reno-12M-500ms-500-48k",
    "plain-reno-4M-560ms-186",
)


@pytest.mark.slow
@pytest.mark.skipif(witness.obstacle() is not None, reason=str(witness.obstacle()))
@pytest.mark.skipif(not witness.PROGRAM.exists(), reason="bentpipe-live is not built (make setup)")
@pytest.mark.parametrize("name", LIVE)
def test_linux_delivery_matches_the_record(name: str) -> None:
    cell = next(cell for cell in witness.CELLS if cell.name == name)
    report = witness.measure(cell)
    late_us = report["lateness_us"][1]
    if late_us > 2_000:
        pytest.skip(f"the relay was late: 99 of 100 packets by up to {late_us} us")
    before = RECORD[cell.name]["received"]
    bound = witness.BOUNDS[cell.group]
    assert abs(witness.difference(report["received"], before, cell)) <= bound
    ours = witness.simulate(cell)["received"]
    assert abs(witness.difference(ours, report["received"], cell)) <= 2 * bound
