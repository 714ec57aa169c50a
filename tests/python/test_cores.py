"""Runs on several cores: equal results, and what the command line says about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bentpipe
from bentpipe.cli import execute
from bentpipe.processors import available_cores
from bentpipe.sweeps.cell import Outcome, Task

DOWNLOADS = """
name = "downloads"
duration = "20 s"
[hosts.server]
[hosts.user]
count = 20
[links.satellite]
between = ["server", "terminal"]
rate = "20 Mbit/s"
delay = "250 ms"
[gateways.terminal]
kind = "router"
[links.access]
between = ["terminal", "user"]
rate = "100 Mbit/s"
delay = "1 ms"
[flows.download]
from = "server"
to = "user"
app = { kind = "bulk", size = "1 MB" }
"""


def results(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(text)
    # Wall time.
    del found["wall_s"]
    return found


@pytest.fixture
def downloads(tmp_path: Path) -> Path:
    file = tmp_path / "downloads.toml"
    file.write_text(DOWNLOADS)
    return file


def test_results_do_not_depend_on_the_number_of_cores(downloads: Path) -> None:
    alone = bentpipe.run(downloads, no_probes=True, cores=1)
    assert (alone.cores, alone.undivided) == (1, None)
    assert alone.summary.flows[0].bytes_delivered == 1_000_000
    for cores in (2, 8):
        result = bentpipe.run(downloads, no_probes=True, cores=cores)
        assert (result.cores, result.undivided) == (2, None)
        assert results(result.summary_json) == results(alone.summary_json)


def test_only_large_networks_use_several_cores_by_default(downloads: Path) -> None:
    short = {"duration": "100 ms"}
    small = bentpipe.run(downloads, settings=short, no_probes=True)
    large = bentpipe.run(downloads, settings={**short, "hosts.user.count": 1000}, no_probes=True)
    alone = bentpipe.run(
        downloads, settings={**short, "hosts.user.count": 1000}, no_probes=True, cores=1
    )
    assert (small.cores, large.cores, alone.cores) == (1, min(2, available_cores()), 1)
    assert small.undivided is None
    assert results(large.summary_json) == results(alone.summary_json)
    # Nothing divides these: no reason is given, since nobody asked for several cores.
    assert bentpipe.run("vsat-office").undivided is None


@pytest.mark.parametrize(
    ("cells", "workers", "cores", "each"),
    [(1, None, 8, 8), (3, None, 8, 2), (3, 1, 8, 8), (9, None, 8, 1)],
)
def test_a_sweep_gives_cores_to_cells_first(
    downloads: Path,
    monkeypatch: pytest.MonkeyPatch,
    cells: int,
    workers: int | None,
    cores: int,
    each: int,
) -> None:
    used = []

    def simulate(task: Task, **_: object) -> Outcome:
        used.append(task.cores)
        return Outcome(cell=task.cell, wall_s=0.0, error="not simulated")

    monkeypatch.setattr("bentpipe.sweeps.local.simulate", simulate)
    axes = {"scenario": str(downloads), "axes": {"seed": {"count": cells}}}
    bentpipe.sweep(axes, workers=workers, cores=cores)
    assert used == [each] * cells


def test_a_recorded_run_uses_one_core_and_says_so(downloads: Path) -> None:
    result = bentpipe.run(downloads, cores=2)
    assert (result.cores, result.undivided) == (1, "series or captures are recorded")
    assert result.series


def test_the_command_line_says_how_many_cores_were_used(
    downloads: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["run", str(downloads), "--cores", "2"]) == 0
    captured = capsys.readouterr()
    assert "simulated on 2 cores" in captured.out
    assert captured.err == ""
    assert execute(["run", str(downloads), "--cores", "2", "--json"]) == 0
    divided = capsys.readouterr()
    assert execute(["run", str(downloads), "--json"]) == 0
    assert results(divided.out) == results(capsys.readouterr().out)
    assert divided.err == ""
    assert execute(["run", "vsat-office", "--cores", "2"]) == 0
    captured = capsys.readouterr()
    assert "bentpipe: one core: no link with a constant delay divides its flows" in captured.err
    assert execute(["run", str(downloads), "--cores", "2", "--seeds", "2"]) == 2
    assert "--cores is of one run" in capsys.readouterr().err
