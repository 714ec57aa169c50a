"""The study of karir1999, as a quick run makes it."""

from __future__ import annotations

from typing import Any

import pytest

from bentpipe.studies.karir1999.cells import NETWORKS, OPEN, every_cell, opened, paper

FIGURES = ("3", "4", "5", "6", "7", "A1", "A2", "A3", "A4", "A5", "A6", "A7")


STUDY = "karir1999"


def test_every_figure_is_written(has_figures: bool) -> None:
    assert has_figures


@pytest.mark.parametrize(
    "id_",
    [
        "terrestrial-capacity",
        "gateways-capacity",
        "order",
        "utilisation-like-terrestrial",
        "utilisation-shortest",
        "rtt-order",
        "one-window",
        "independent-of-hosts",
        "faster-recovery",
        "back-pressure",
        "background",
        "same-rule-gains-nothing",
        "memory-bounded",
    ],
)
def test_confirmed_claims_hold(claims: dict[str, Any], id_: str) -> None:
    assert claims[id_]["holds"], claims[id_]


@pytest.mark.parametrize(
    "id_", ["satellite-500", "large-windows-850", "rtt-terrestrial", "download-gateways"]
)
def test_claims_inconsistent_with_the_stated_windows_fail(claims: dict[str, Any], id_: str) -> None:
    # 64 Kbyte over half a second are 1 Mbit/s. Should it ever hold, the windows are not as stated.
    assert not claims[id_]["holds"], claims[id_]


def test_parameters_unspecified_in_the_paper_are_swept() -> None:
    cells = every_cell(True)
    assert all(opened(network, variant) in cells for network in NETWORKS for variant in OPEN)
    assert all(paper(network) in cells for network in NETWORKS)
