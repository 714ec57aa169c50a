"""Searches over what papers leave open: committed results are what a search finds now."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import bentpipe.studies
from bentpipe.errors import WorkError
from bentpipe.studies.judging import Expectation
from bentpipe.studies.open_settings import Published, committed, grid, search_of

SEARCHED = sorted(
    path.parent.name for path in Path(bentpipe.studies.__file__).parent.glob("*/open_settings.py")
)


@pytest.mark.parametrize("key", SEARCHED)
def test_committed_rows_are_repeated(key: str) -> None:
    search, _ = search_of(key)
    rows = committed(key)
    best = rows.index(search.best(rows)[0])
    for index in sorted({0, best, len(rows) - 1}):
        assert search.search([search.settings[index]]) == [rows[index]]


@pytest.mark.parametrize("key", SEARCHED)
def test_the_count_is_that_of_the_published_values_met(key: str) -> None:
    search, _ = search_of(key)
    for row in committed(key):
        assert row.within == sum(each.met(row.measured) for each in search.published.values())


def test_rows_of_another_grid_are_refused(tmp_path: Path) -> None:
    search, _ = search_of("karir1999")
    fewer = replace(search, settings=search.settings[:2])
    rows = fewer.search()
    fewer.write(rows, tmp_path / "two.csv")
    assert fewer.read(tmp_path / "two.csv") == rows
    with pytest.raises(WorkError, match="another grid"):
        search.read(tmp_path / "two.csv")
    swapped = replace(search, settings=search.settings[1::-1])
    with pytest.raises(WorkError, match="another grid"):
        swapped.read(tmp_path / "two.csv")


def test_a_grid_has_every_combination() -> None:
    assert grid(one=(1, 2), two=("a",)) == [{"one": 1, "two": "a"}, {"one": 2, "two": "a"}]


def test_deviations_count_from_the_value_or_the_bound() -> None:
    value = Published(columns=("a", "b"), expect=Expectation(value=10.0), tolerance=0.1)
    assert value.met({"a": 9.5, "b": 10.9})
    assert not value.met({"a": 9.5, "b": 11.5})
    assert value.deviation({"a": 9.5, "b": 11.5}) == pytest.approx(0.15)
    bounds = Published(columns=("a",), expect=Expectation(at_least=3.0, at_most=4.0))
    assert bounds.deviation({"a": 3.5}) == 0.0
    assert bounds.deviation({"a": 5.0}) == pytest.approx(0.25)
    assert bounds.deviation({"a": 1.5}) == pytest.approx(0.5)
