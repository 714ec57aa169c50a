"""Runs on several cores: equal results, and what the command line says about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import bentpipe
from bentpipe.cli import execute

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
    alone = bentpipe.run(downloads, no_probes=True)
    assert (alone.cores, alone.undivided) == (1, None)
    assert alone.summary.flows[0].bytes_delivered == 1_000_000
    for cores in (2, 8):
        result = bentpipe.run(downloads, no_probes=True, cores=cores)
        assert (result.cores, result.undivided) == (2, None)
        assert results(result.summary_json) == results(alone.summary_json)


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
