"""Measurements of the claims: one function for each claim, named by its id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Final

from bentpipe.studies.geo_acceptance import cells
from bentpipe.studies.geo_acceptance.cells import NO_GATEWAYS, SPLIT, Access, Transfer
from bentpipe.studies.geo_acceptance.evidence import Evidence
from bentpipe.studies.judging import ratio
from bentpipe.studies.study import Measurement

Measure = Callable[[Evidence], Measurement]


def measure(evidence: Evidence) -> dict[str, Measurement]:
    """Measure every claim."""
    return {name: measured(evidence) for name, measured in _MEASURES.items()}


def _best(*accesses: Access) -> Measure:
    def measured(evidence: Evidence) -> Measurement:
        best = [evidence.best(access, gateways=NO_GATEWAYS) for access in accesses]
        return Measurement(
            measured=_listed(evidence, best), values={"best_s": _times(evidence, best)}
        )

    return measured


def _large_lossy(evidence: Evidence) -> Measurement:
    parts, medians = [], []
    for access in cells.LOSSY:
        best = evidence.best_median(access)
        times_s = evidence.by_seed(best)
        met = sum(each < access.target_s for each in times_s)
        medians.append(median(times_s))
        parts.append(
            f"{access.name}: {medians[-1]:.1f} s ({best.name}), "
            f"below the target with {met} of {len(times_s)} seeds"
        )
    return Measurement(measured="; ".join(parts), values={"best_s": medians})


def _default_window(evidence: Evidence) -> Measurement:
    """Measure the fastest transfer with each window: the large one is the control."""
    fastest = [
        min(
            (cell for cell in evidence.over(cells.CLEAN) if cell.window == window),
            key=evidence.time_s,
        )
        for window in (cells.DEFAULT_WINDOW, cells.LARGE_WINDOW)
    ]
    default_s, large_s = _times(evidence, fastest)
    return Measurement(
        measured=_listed(evidence, fastest),
        values={"default_s": [default_s], "large_s": [large_s]},
    )


def _gateways_rule(evidence: Evidence) -> Measurement:
    pair = [
        Transfer(access=cells.LOSSY[-1], window=cells.LARGE_WINDOW, gateways=gateways)
        for gateways in (SPLIT, NO_GATEWAYS)
    ]
    ours, plain = _times(evidence, pair)
    return Measurement(
        measured=f"{ours:.0f} and {plain:.0f} s: {ours / plain:.2f}",
        values={"with_over_without": [ratio(ours, plain)]},
    )


def _times(evidence: Evidence, transfers: Sequence[Transfer]) -> list[float]:
    return [evidence.time_s(cell) for cell in transfers]


def _listed(evidence: Evidence, transfers: Sequence[Transfer]) -> str:
    return "; ".join(
        f"{cell.access.name}: {evidence.time_s(cell):.1f} s ({cell.name})" for cell in transfers
    )


_MEASURES: Final[dict[str, Measure]] = {
    "large-clean": _best(cells.CLEAN),
    "large-lossy": _large_lossy,
    "medium": _best(cells.MEDIUM),
    "small": _best(cells.SMALL),
    "small-up": _best(cells.SMALL_UP),
    "default-window": _default_window,
    "gateways-rule": _gateways_rule,
}
