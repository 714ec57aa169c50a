"""bentpipe against Linux's own TCP: what was received, cell by cell of docs/linux.md."""

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


@functools.cache
def _simulated(name: str) -> Any:
    return witness.simulate(next(cell for cell in witness.CELLS if cell.name == name))


def _cases(*, lossy: bool, beyond: Mapping[str, str] = witness.BEYOND) -> list[Any]:
    """Return the cells, once each; those beyond their bounds have to fail, and say why."""
    chosen = [cell for cell in witness.CELLS if bool(cell.loss) == lossy and cell.seed == 1]
    return [
        pytest.param(
            cell,
            id=cell.name,
            marks=[pytest.mark.xfail(reason=beyond[cell.name], strict=True)]
            if cell.name in beyond
            else [],
        )
        for cell in chosen
    ]


def test_every_cell_is_recorded() -> None:
    assert sorted(RECORD) == sorted(cell.name for cell in witness.CELLS)
    assert set(witness.BEYOND) <= set(RECORD)


def test_the_readme_says_how_many_are_within_their_bounds() -> None:
    readme = (SCRIPT.parents[2] / "README.md").read_text(encoding="utf-8")
    said = " ".join(readme.split())
    lossless = len(_cases(lossy=False))
    cells = lossless + len(_cases(lossy=True))
    assert f"in {cells - len(witness.BEYOND)} of {cells} measured cells" in said
    assert f"in {lossless - len(witness.DROPPED_BEYOND)} of {lossless}" in said


@pytest.mark.parametrize("cell", _cases(lossy=False))
def test_we_deliver_what_linux_delivered(cell: Any) -> None:
    linux = RECORD[cell.name]["received"]
    ours = _simulated(cell.name)["received"]
    assert len(linux) == cell.duration_s
    assert len(ours) == cell.duration_s / witness.INTERVAL_S
    assert abs(witness.difference(ours, linux, cell)) <= witness.BOUNDS[cell.group]


@pytest.mark.parametrize("cell", _cases(lossy=False, beyond=witness.DROPPED_BEYOND))
def test_the_queue_drops_what_it_drops_of_linuxs(cell: Any) -> None:
    linux = RECORD[cell.name]["dropped"]
    ours = _simulated(cell.name)["dropped"]
    assert witness.dropped_alike(ours, linux), f"{ours} dropped, Linux {linux}"


@pytest.mark.parametrize("cell", _cases(lossy=True))
def test_with_losses_our_mean_is_linuxs(cell: Any) -> None:
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
def test_linux_still_delivers_what_is_recorded(name: str) -> None:
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
