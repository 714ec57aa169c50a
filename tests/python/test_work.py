"""The engine does no more work per packet than was recorded: counted, not timed."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches"))

import work  # type: ignore[import-not-found]


@pytest.mark.parametrize("case", sorted(work.CASES))
def test_instructions_per_packet_do_not_exceed_the_record(case: str) -> None:
    """Five per cent more is noticed, on whatever machine, however busy."""
    reason = work.missing()
    if reason is not None:
        pytest.skip(f"optional: {reason}")
    rustc, recorded = work.recorded()
    if work.compiler() != rustc:
        pytest.skip(f"optional: recorded with rustc {rustc}: python3 benches/work.py --record")
    assert work.count(case).per_packet <= recorded[case] * (1 + work.TOLERANCE)
