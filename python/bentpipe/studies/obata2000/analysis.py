"""Figures, measurements and remarks from the outcomes of the cells."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bentpipe.studies.obata2000.evidence import Comparison, Evidence
from bentpipe.studies.obata2000.figures import figures
from bentpipe.studies.obata2000.measurements import measure
from bentpipe.studies.study import Analysis, Outcomes

if TYPE_CHECKING:
    from bentpipe.studies.obata2000.cells import Transfer


def analyse(outcomes: Outcomes[Transfer]) -> Analysis:
    """Draw the figures and measure the claims."""
    evidence = Evidence(outcomes)
    return Analysis(
        figures=figures(evidence),
        measurements=partial(measure, evidence),
        remarks=partial(_remarks, evidence),
    )


def _remarks(evidence: Evidence) -> tuple[str, ...]:
    return (
        _where_the_formula_is_off(evidence.figures_5_and_6),
        _readings(),
        _ties(evidence),
    )


def _where_the_formula_is_off(comparison: Comparison) -> str:
    windows = np.array([transfer.window_segments for transfer in comparison.transfers])
    error = np.abs(comparison.formula_error)
    odd = windows % 2 == 1
    return (
        "Where the printed formula is off: with a window of an odd number of segments, the last "
        "segment's ACK waits for the delayed-ACK timer, and the segments that it releases travel "
        "behind the others; the formula's rounding up of half a window doesn't know that. In "
        f"figures 5 and 6 its largest error is {error[odd].max():.1%} with odd windows and "
        f"{error[~odd].max():.1%} with even ones. The corrected formula follows the timer from "
        f"round to round; its largest error is {np.abs(comparison.corrected_error).max():.2%}."
    )


def _readings() -> str:
    return (
        "How we read the paper: the advertised window counts in whole segments (in bytes, "
        "equation 10 exceeds the link's capacity); KByte is simulated as 1024 and as 1000 bytes, "
        "and the figures show 1024; table 1 has 25 ms of uplink delay and section 4.2.1 has "
        "30 ms, so both are there. The paper's experiments over a VSAT satellite can't be "
        "measured again: figures 7, 8 and 10 have simulations in their place, of table 1's file "
        "and of a connection of 60 seconds as in the experiment."
    )


def _ties(evidence: Evidence) -> str:
    tied = int(evidence.figures_5_and_6.tied.sum())
    random = int(evidence.random.tied.sum())
    return (
        "When a segment arrives in the very instant in which the delayed-ACK timer expires, the "
        "order of the two decides the rounds that follow. The corrected formula takes the arrival "
        f"to be first; it meets such a tie in {tied} of {len(evidence.figures_5_and_6.transfers)} "
        f"cells of figures 5 and 6 and in {random} of {len(evidence.random.transfers)} random "
        "networks."
    )
