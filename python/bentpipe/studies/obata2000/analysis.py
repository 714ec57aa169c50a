"""Figures, measurements and remarks from the outcomes of the cells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from bentpipe.studies.obata2000.evidence import Comparison, Evidence
from bentpipe.studies.obata2000.figures import figures
from bentpipe.studies.obata2000.measurements import measure
from bentpipe.studies.open_settings import committed, search_of
from bentpipe.studies.study import Analysis, Outcomes

if TYPE_CHECKING:
    from bentpipe.studies.obata2000.cells import Transfer


def analyse(outcomes: Outcomes[Transfer]) -> Analysis:
    """Draw the figures and measure the claims."""
    evidence = Evidence(outcomes)
    return Analysis.of(evidence, figures(evidence), measure, _remarks)


def _remarks(evidence: Evidence) -> tuple[str, ...]:
    return (
        _found_settings(),
        _where_the_formula_is_off(evidence.figures_5_and_6),
        _readings(),
        _ties(evidence),
    )


def _found_settings() -> str:
    search, _ = search_of("obata2000")
    rows = committed("obata2000")
    best = search.best(rows)
    fits = [row for row in best if row.within == best[0].within]
    timers = {row.setting["simulated_timer_ms"] for row in fits}
    strict = max(row.measured["share_within_2_percent"] for row in rows)
    most = {
        timer: max(
            row.measured["share_within_2_percent_of_axis"]
            for row in rows
            if row.setting["simulated_timer_ms"] == timer
        )
        for timer in sorted({row.setting["simulated_timer_ms"] for row in rows}, key=float)
    }
    listed = ", ".join(f"{share:.0%} with {timer} ms" for timer, share in most.items())
    return (
        f"What the paper leaves open about ns-2 (table A2): of {len(rows)} settings, {len(fits)} "
        "put every symbol of figures 5 and 6 on its line (2% of the axis) and have the curves in "
        f"the paper's order; all of them with a delayed ACK of {_listed(timers)} ms, the default "
        f"of ns-2's DelAck. The best share of symbols on lines is {listed}. The paper's "
        "\"TCP Reno adopts 200msec\" is the formula's d, not the simulator's timer. No setting "
        f"gives more than {strict:.0%} of the cells within 2% of their own value."
    )


def _listed(values: Iterable[object]) -> str:
    return " or ".join(sorted(map(str, values)))


def _where_the_formula_is_off(comparison: Comparison) -> str:
    windows = np.array([transfer.window_segments for transfer in comparison.transfers])
    error = np.abs(comparison.formula_error)
    odd = windows % 2 == 1
    return (
        "Where the printed formula is off: with a window of an odd number of segments, the last "
        "segment's ACK waits for the delayed-ACK timer, and the segments that it releases travel "
        "behind the others; the formula's rounding up of half a window doesn't know that. In "
        f"figures 5 and 6 its largest error is {error[odd].max():.1%} with odd windows and "
        f"{error[~odd].max():.1%} with even ones; half of all errors are below "
        f"{np.median(error):.2%}. On the figures' axis the largest error is "
        f"{np.abs(comparison.axis_error).max():.1%}, which print can't show. The corrected formula "
        "follows the timer from round to round; its largest error is "
        f"{np.abs(comparison.corrected_error).max():.2%}."
    )


def _readings() -> str:
    return (
        "How we read the paper: the advertised window counts in whole segments (in bytes, "
        "equation 10 exceeds the link's capacity); KByte is simulated as 1024 and as 1000 bytes, "
        "and the figures show 1024; the receivers of figures 7, 8 and 10 wait 200 ms, as BSD's in "
        "the experiment; table 1 has 25 ms of uplink delay and section 4.2.1 has "
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
