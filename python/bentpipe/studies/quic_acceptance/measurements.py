"""Measurements of the claims: one function for each claim, named by its id."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import Final

from bentpipe.studies.judging import ratio
from bentpipe.studies.quic_acceptance import cells
from bentpipe.studies.quic_acceptance.cells import (
    DEFAULT,
    DEFAULT_RULE,
    FITTING,
    LARGE_WINDOW,
    RULES,
    Access,
    Transfer,
    acknowledged,
)
from bentpipe.studies.quic_acceptance.evidence import Evidence
from bentpipe.studies.quic_acceptance.remedies import GEO, IN_THE_NETWORK, LOADS, Remedied
from bentpipe.studies.study import Measurement

Measure = Callable[[Evidence], Measurement]

_CUBIC: Final = (DEFAULT_RULE, "cubic")
_GAPS: Final = "too many gaps"


def measure(evidence: Evidence) -> dict[str, Measurement]:
    """Measure every claim."""
    return {name: measured(evidence) for name, measured in _MEASURES.items()}


def _best(access: Access, rules: Sequence[str] = ()) -> Measure:
    def measured(evidence: Evidence) -> Measurement:
        best = evidence.best(access, rules)
        time_s = evidence.time_s(best)
        text = f"{time_s:.1f} s" if isfinite(time_s) else "not within ten minutes"
        return Measurement(measured=f"{text} ({best.name})", values={"best_s": [time_s]})

    return measured


def _default_window(evidence: Evidence) -> Measurement:
    default_s = [
        evidence.time_s(Transfer(access=cells.LARGE, rule=rule, window=DEFAULT)) for rule in RULES
    ]
    pair = [
        evidence.time_s(Transfer(access=cells.LARGE, window=window))
        for window in (DEFAULT, LARGE_WINDOW)
    ]
    return Measurement(
        measured=f"{min(default_s):.1f} to {max(default_s):.1f} s; "
        f"with 64 MiB {pair[1]:.1f} s ({DEFAULT_RULE})",
        values={"default_s": default_s, "gain": [ratio(pair[0], pair[1])]},
    )


def _gaps(evidence: Evidence) -> Measurement:
    failed = {
        window: [
            _GAPS in evidence.failure(Transfer(access=cells.MEDIUM, rule=rule, window=window))
            for rule in RULES
        ]
        for window in (LARGE_WINDOW, FITTING)
    }
    counts = {window: sum(each) for window, each in failed.items()}
    return Measurement(
        measured=", ".join(
            f"{window}: {count} of {len(RULES)} rules fail" for window, count in counts.items()
        ),
        values={
            "failed_large": [float(each) for each in failed[LARGE_WINDOW]],
            "failed_fitting": [float(each) for each in failed[FITTING]],
        },
    )


def _fewer_acks(evidence: Evidence) -> Measurement:
    usual, *_, rare = [cell for cell in acknowledged(cells.SMALL) if not cell.resumes]
    frames = [evidence.quic(each)["server"]["acks_sent"] for each in (usual, rare)]
    times_s = [evidence.time_s(each) for each in (usual, rare)]
    return Measurement(
        measured=f"{frames[1]:,} ACK frames in place of {frames[0]:,}; "
        f"{times_s[1]:.1f} s in place of {times_s[0]:.1f} s",
        values={
            "acks_ratio": [ratio(frames[1], frames[0])],
            "time_ratio": [ratio(times_s[1], times_s[0])],
        },
    )


def _saved_path(evidence: Evidence) -> Measurement:
    fresh, resumed = (
        min(evidence.time_s(cell) for cell in acknowledged(cells.LARGE) if cell.resumes == resumes)
        for resumes in (False, True)
    )
    return Measurement(
        measured=f"{resumed:.2f} s in place of {fresh:.1f} s", values={"resumed_s": [resumed]}
    )


def _unchanged(evidence: Evidence) -> Measurement:
    ratios = []
    for load in LOADS:
        alone = Remedied(network=GEO, load=load, transport="quic")
        changed = [replace(alone, remedy=remedy) for remedy in IN_THE_NETWORK]
        ratios += [ratio(evidence.time_s(each), evidence.time_s(alone)) for each in changed]
    return Measurement(
        measured=f"{sum(each == 1.0 for each in ratios)} of {len(ratios)} times are equal",
        values={"time_ratio": ratios},
    )


_MEASURES: Final[dict[str, Measure]] = {
    "large-cubic": _best(cells.LARGE, _CUBIC),
    "large-bbr": _best(cells.LARGE, ("bbr",)),
    "lossy-cubic": _best(cells.LOSSY, _CUBIC),
    "lossy-bbr": _best(cells.LOSSY, ("bbr",)),
    "medium": _best(cells.MEDIUM),
    "small": _best(cells.SMALL),
    "default-window": _default_window,
    "gaps": _gaps,
    "fewer-acks": _fewer_acks,
    "saved-path": _saved_path,
    "in-the-network": _unchanged,
}
