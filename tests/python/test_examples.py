"""Examples are found by name, as ready-made scenarios are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bentpipe.cli import completion
from bentpipe.scenario import examples

from .commands import assert_refused

FOLDER = Path(__file__).parents[2] / "examples"


def test_list_names_every_example_with_a_description(bentpipe: Any) -> None:
    named = {file.stem for file in FOLDER.iterdir() if file.suffix in {".toml", ".py"}}
    assert set(json.loads(bentpipe("list", "examples", "--json").out)["examples"]) == named
    listed = bentpipe("list", "examples").out.splitlines()
    assert len(listed) == len(named)
    assert all(len(line.split()) > 3 for line in listed), listed


def test_sweep_runs_an_example_by_name(
    bentpipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    # Anything but a sweep's option would simulate all cells.
    refused = bentpipe("sweep", "geo-bit-errors", "--plot", "errors.png")
    assert_refused(refused, "--plot errors.png: expected a file that ends in .svg")
    assert_refused(bentpipe("sweep", "geo-bit-error"), "geo-bit-error: no such file")
    # A file of that name comes first.
    Path("geo-bit-errors").write_text("axes = 1", encoding="utf-8")
    assert_refused(bentpipe("sweep", "geo-bit-errors"), "geo-bit-errors:1:")


def test_run_tells_that_an_example_is_a_sweep(bentpipe: Any) -> None:
    refused = bentpipe("run", "geo-bit-errors")
    assert_refused(refused, "geo-bit-errors.toml is a sweep file, which `bentpipe sweep ")


def test_run_takes_a_window_rule_by_name(bentpipe: Any) -> None:
    setting = "hosts.server.tcp.congestion_control=gentle"
    words = ("leo-pass", "--set", "duration=2 s", "--set", setting)
    assert "goodput" in bentpipe("run", *words, "--python", "congestion_control").out
    assert_refused(bentpipe("run", *words, "--python", "congestion-control"), "no such file")


def test_completion_offers_examples_to_sweep() -> None:
    offered = completion.sweeps("")
    sweeps = {name for name, path in examples().items() if path.suffix == ".toml"}
    assert sweeps
    assert sweeps <= set(offered)
