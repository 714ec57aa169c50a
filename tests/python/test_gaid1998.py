"""The study of gaid1998, as a quick run makes it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from bentpipe.studies import get
from bentpipe.studies.gaid1998.cells import EVERY_OPEN, FITTED, every_cell, standard
from bentpipe.studies.gaid1998.future import MEMORIES, WINDOWS

FIGURES = ("12", *(str(n) for n in range(16, 45)), *(f"A{n}" for n in range(1, 10)))


STUDY = "gaid1998"


def test_every_figure_is_written(has_figures: bool) -> None:
    assert has_figures


def test_bounded_memory_figure_equals_the_example_sweep() -> None:
    sweep = Path(__file__).parents[2] / "examples" / "hybrid-memory.toml"
    hub = tomllib.loads(sweep.read_text())["axes"]["gateways"]["hub"]
    assert (tuple(hub["memory"]), tuple(hub["receive_buffer"])) == (MEMORIES, WINDOWS)


@pytest.mark.parametrize(
    "id_",
    [
        "window-over-t",
        "window-over-measured-t1",
        "standard-seven",
        "standard-faster",
        "standard-not-satellite",
        "forty-times",
        "slow-start",
        "duplicates",
        "duplicates-why",
        "zero-window",
        "acknowledged-ahead",
        "merely-the-same",
        "host-window",
        "rtt-apart",
        "everything",
        "bounded",
        "fast-retransmit",
    ],
)
def test_confirmed_claims_hold(claims: dict[str, Any], id_: str) -> None:
    assert claims[id_]["holds"], claims[id_]


@pytest.mark.parametrize("id_", ["window-over-t1", "larger-windows", "ack-timeout"])
def test_refuted_claims_do_not_hold(claims: dict[str, Any], id_: str) -> None:
    assert not claims[id_]["holds"], claims[id_]


def test_cells_are_unique_and_include_the_quick_ones() -> None:
    cells = every_cell(quick=False)
    assert len(cells) == len(set(cells))
    assert set(every_cell(quick=True)) <= set(cells)
    assert FITTED in EVERY_OPEN


def test_standard_windows_equal_the_papers() -> None:
    windows = [(standard(n).host_window_bytes, standard(n).window_bytes) for n in range(1, 6)]
    assert windows == [
        (4_096, 64_000),
        (45_000, 64_000),
        (45_000, 1_000_000),
        (1_000_000, 1_000_000),
        (1_000_000, 1_000_000),
    ]
    assert [standard(n).ack_timeout_s for n in range(1, 6)] == [0.2, 0.2, 0.2, 0.2, 0.01]


def test_claim_ids_are_unique() -> None:
    study = get("gaid1998")
    assert len({claim.id for claim in study.claims}) == len(study.claims)
