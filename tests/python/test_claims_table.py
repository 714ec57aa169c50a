"""The page of all claims is up to date, and a full run agrees with it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bentpipe import studies
from bentpipe.studies.runner import reproduce
from bentpipe.studies.study import Cause

from .test_studies import TINY, claim

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import claims_table  # type: ignore[import-not-found]  # noqa: E402


def test_page_counts_papers_claims_and_our_own_apart() -> None:
    cause = Cause(kind="setting", text="With 25 ms | 30 ms\nit holds.")
    claims = (
        claim("a"),
        replace(claim("b"), cause=cause),
        replace(claim("c"), source="invariant"),
        replace(claim("d"), source="fitted", cause=cause),
    )
    listed = [replace(TINY, claims=claims)]
    page = claims_table.page(listed)
    assert "| [tiny](#tiny) | 1 of 2 | 1 of 2 |" in page
    assert "| **all** | 1 of 2 | 1 of 2 |" in page
    assert "| `b` | paper | **does not hold** | setting: With 25 ms \\| 30 ms it holds. |" in page
    assert "| `c` | invariant | holds | |" in page
    old = "(99 of 99 of the papers' claims and 0 of 1 of our own hold)"
    new = claims_table.counted(old, listed)
    assert new == "(1 of 2 of the papers' claims and 1 of 2 of our own hold)"
    with pytest.raises(SystemExit, match="expected one sentence"):
        claims_table.counted("nothing", listed)


def test_committed_pages_are_up_to_date() -> None:
    listed = [studies.get(name) for name in studies.names()]
    page = (ROOT / claims_table.PAGE).read_text(encoding="utf-8")
    assert page == claims_table.page(listed), "run tools/claims_table.py"
    evidence = (ROOT / claims_table.EVIDENCE).read_text(encoding="utf-8")
    assert evidence == claims_table.counted(evidence, listed), "run tools/claims_table.py"


@pytest.mark.slow
def test_full_run_has_a_cause_for_every_claim_that_fails_and_for_no_other(tmp_path: Path) -> None:
    reproduction = reproduce([studies.get(name) for name in studies.names()], out=tmp_path)
    assert reproduction.inconsistencies() == []
    size = (tmp_path / "report.html").stat().st_size
    assert size < 3_000_000, f"the report has {size:,} bytes"
