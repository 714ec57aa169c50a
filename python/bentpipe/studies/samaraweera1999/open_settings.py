"""Search over what samaraweera1999 leaves open: the retransmission timer and the ACKs' framing.

The paper names neither the timer nor the return link's framing. It says that the window starts at
one segment; BSD's was at two when the first data left. "~70%" in section 4 implies framing: a
header of 40 bytes that becomes 6 to 7 would be a reduction of 83%.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from bentpipe.studies.judging import Expectation, ratio
from bentpipe.studies.open_settings import OpenSettings, Published, Row, Setting, grid
from bentpipe.studies.samaraweera1999 import cells
from bentpipe.studies.samaraweera1999.cells import (
    COMPACTION,
    COMPRESSION,
    PAPERS,
    RECONSTRUCTION,
    SUPPRESSION,
    UNMODIFIED,
    Download,
    Open,
)
from bentpipe.studies.samaraweera1999.evidence import Evidence

if TYPE_CHECKING:
    from bentpipe.results import RunResult

# Floors from which on three sessions with header compression do not time out.
_LONG_FLOOR_S: Final = 6.0

SETTINGS: Final = grid(
    counted_from=("acknowledgment", "oldest-segment"),
    minimum_s=(1.0, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 7.0),
    initial_segments=(1, 2),
    framing_bytes=(0, 4, 5, 6, 7, 8),
)


def left_open(setting: Setting) -> Open:
    """Return a setting of the search as values of the study."""
    return Open(
        counted_from=str(setting["counted_from"]),
        minimum_s=float(setting["minimum_s"]),
        initial_segments=int(setting["initial_segments"]),
        framing_bytes=int(setting["framing_bytes"]),
    )


def measure_ours(evidence: Evidence) -> Row:
    """Return the row of the study's setting, from the runs of the study."""
    return SEARCH.judged(Open().setting, evidence.outcomes)


def is_control(setting: Setting) -> bool:
    """Return whether a setting is the study's, but for the timer: restarted, or hardly expiring."""
    ours = Open().setting
    same = all(setting[name] == ours[name] for name in ("initial_segments", "framing_bytes"))
    restarted = setting["counted_from"] == "acknowledgment"
    return same and (
        (restarted and setting["minimum_s"] == ours["minimum_s"])
        or (not restarted and float(setting["minimum_s"]) >= _LONG_FLOOR_S)
    )


def _single(setting: Setting, method: str) -> Download:
    return replace(cells.single(method), left_open=left_open(setting))


def _shared(setting: Setting, method: str) -> Download:
    download = cells.shared(method, cells.FIGURE_12_BPS)
    return replace(download, left_open=left_open(setting))


def _slow(setting: Setting, method: str) -> Download:
    """Return three downloads of figure 11 at its lowest rate."""
    download = cells.shared(method, cells.SLOW_BPS)
    return replace(download, left_open=left_open(setting))


def _fast(setting: Setting, method: str) -> Download:
    """Return a download whose ACKs do not queue, so that few of them are duplicates."""
    return replace(_single(setting, method), return_bps=cells.FAST_BPS)


def search_cells(setting: Setting) -> list[Download]:
    """Return the paper's runs of figures 3 to 5 and 12, with a setting of the search."""
    paper = [of(setting, method) for of in (_single, _shared) for method in PAPERS]
    slow = [_slow(setting, method) for method in (COMPACTION, RECONSTRUCTION)]
    return [*paper, *slow, *(_fast(setting, method) for method in (UNMODIFIED, COMPRESSION))]


def measure(setting: Setting, outcomes: Mapping[Download, RunResult]) -> dict[str, float]:
    """Return the numbers of sections 4 to 6 and 8 with a setting."""
    evidence = Evidence(outcomes)
    one = {method: _single(setting, method) for method in PAPERS}
    three = {method: _shared(setting, method) for method in PAPERS}
    sent = {method: evidence.sent_mb(download) for method, download in one.items()}
    _, crossing_mb = evidence.crossing(one[SUPPRESSION], one[COMPRESSION])
    crossing_s, _ = evidence.crossing(one[COMPACTION], one[COMPRESSION])
    return {
        "unmodified_timeouts": evidence.timeouts(one[UNMODIFIED]),
        "compression_timeouts": evidence.timeouts(one[COMPRESSION]),
        "compression_over_unmodified": ratio(sent[COMPRESSION], sent[UNMODIFIED]),
        "reduction": evidence.reduction(*(_fast(setting, m) for m in (COMPRESSION, UNMODIFIED))),
        "suppression_timeouts": evidence.timeouts(one[SUPPRESSION]),
        "suppression_crossing_mb": crossing_mb,
        "compaction_timeouts": evidence.timeouts(one[COMPACTION]),
        "compaction_crossing_s": crossing_s,
        "compaction_over_suppression": ratio(sent[COMPACTION], sent[SUPPRESSION]),
        "slow_compaction_over_reconstruction": ratio(
            *(evidence.goodput_bps(_slow(setting, m)) for m in (COMPACTION, RECONSTRUCTION))
        ),
        "three_times_empty": evidence.times_empty(three[UNMODIFIED]),
        "three_largest_queue_acks": max(
            evidence.direction(three[method], "return").queue_max_packets
            for method in (SUPPRESSION, COMPACTION)
        ),
        "three_unmodified_timeouts": evidence.timeouts(three[UNMODIFIED]),
        "three_compression_timeouts": evidence.timeouts(three[COMPRESSION]),
        "three_suppression_timeouts": evidence.timeouts(three[SUPPRESSION]),
        "three_compaction_timeouts": evidence.timeouts(three[COMPACTION]),
    }


_SOME: Final = Expectation(at_least=1.0)
_NONE: Final = Expectation(at_most=0.0)

SEARCH: Final = OpenSettings(
    settings=SETTINGS,
    published={
        "unmodified times out": Published(columns=("unmodified_timeouts",), expect=_SOME),
        "compression times out": Published(columns=("compression_timeouts",), expect=_SOME),
        "compression helps little": Published(
            columns=("compression_over_unmodified",),
            expect=Expectation(more_than=1.0, less_than=2.0),
        ),
        "ACKs reduced by 70%": Published(
            columns=("reduction",), expect=Expectation(value=0.7), tolerance=0.1
        ),
        "no timeout with suppression and compaction": Published(
            columns=("suppression_timeouts", "compaction_timeouts"), expect=_NONE
        ),
        "suppression passes compression at 1.2 MB": Published(
            columns=("suppression_crossing_mb",), expect=Expectation(value=1.2), tolerance=0.25
        ),
        "compaction passes compression after 4 s": Published(
            columns=("compaction_crossing_s",), expect=Expectation(value=4.0), tolerance=0.25
        ),
        "compaction passes suppression": Published(
            columns=("compaction_over_suppression",), expect=Expectation(more_than=1.0)
        ),
        "three sessions: unmodified times out": Published(
            columns=("three_unmodified_timeouts",), expect=_SOME
        ),
        "three sessions: the others do not": Published(
            columns=(
                "three_compression_timeouts",
                "three_suppression_timeouts",
                "three_compaction_timeouts",
            ),
            expect=_NONE,
        ),
    },
    cells=search_cells,
    measure=measure,
)
