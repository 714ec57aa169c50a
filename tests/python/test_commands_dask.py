"""`advise`, `evaluate`, `report` and `reproduce` on a real Dask cluster whose parts die."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from .test_sweep_dask import PATIENCE_S, SCENARIO, Cluster, cluster, wait_for

pytestmark = pytest.mark.skipif(
    find_spec("distributed") is None,
    reason="dask.distributed isn't installed: pip install 'bentpipe[dask]'",
)

# A tenth of a second for each simulation, and losses, so that there are several seeds.
LOSSY = SCENARIO.replace("1 GB", "400 MB") + "[links.satellite.errors]\npacket_loss_rate = 1e-5\n"
ADVISE = ("advise", "lossy.toml", "--only", "server", "--seeds", "6", "--json")
EVALUATE = ("evaluate", "hybla", "--only", "bufferbloat", "--seeds", "2", "--json")
REPRODUCE = ("reproduce", "obata2000", "--quick", "--json")
# Simulations after which a worker or the scheduler dies.
_BEGUN = 4
REPORT = ("report", "lossy.toml", "--seeds", "2", "--json")
COMMANDS = {"advise": ADVISE, "evaluate": EVALUATE, "reproduce": REPRODUCE, "report": REPORT}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lossy.toml").write_text(LOSSY, encoding="utf-8")
    return tmp_path


def begun(folder: Path, running: Cluster, command: Sequence[str]) -> subprocess.Popen[bytes]:
    """Start a command on a cluster, and return when workers have finished some simulations."""
    from distributed import Client

    process = subprocess.Popen(
        [sys.executable, "-m", "bentpipe", *command, "--dask", running.address],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    running.processes.append(process)
    with Client(running.address, set_as_default=False) as client:

        def transitions() -> int:
            # (A function of this module could not be imported by the scheduler.)
            count: int = client.run_on_scheduler(
                lambda dask_scheduler: dask_scheduler.transition_counter
            )
            return count

        # A simulation takes four: released, waiting, processing, in memory.
        wait_for(lambda: process.poll() is not None or transitions() >= 4 * _BEGUN)
    assert process.poll() is None, process.communicate()
    return process


def ended(process: subprocess.Popen[bytes]) -> tuple[int, str, str]:
    said, error = (each.decode() for each in process.communicate(timeout=PATIENCE_S))
    return process.returncode, said, error


def result_of(command: str, said: str, folder: Path) -> object:
    """Return what a command came to, without times and places."""
    data: dict[str, Any] = json.loads(said)
    if command == "advise":
        return data
    if command == "evaluate":
        for key in ("provenance", "report"):
            del data[key]
        return data, pq.read_table(folder / "evaluation" / "evaluation.parquet")
    if command == "report":
        for scenario in data["scenarios"]:
            del scenario["run"]["wall_s"]
        return {key: data[key] for key in ("scenarios", "simulations", "differences")}
    return [each["claims"] for each in data["studies"]]


@pytest.mark.parametrize("command", list(COMMANDS))
def test_command_continues_without_a_killed_worker(folder: Path, command: str) -> None:
    here = subprocess.run(
        [sys.executable, "-m", "bentpipe", *COMMANDS[command]],
        cwd=folder,
        capture_output=True,
        check=True,
    )
    expected = result_of(command, here.stdout.decode(), folder)
    with cluster(folder) as running:
        first = running.worker()
        running.worker()
        process = begun(folder, running, COMMANDS[command])
        first.kill()
        first.wait()
        assert process.poll() is None
        status, said, error = ended(process)
    assert status == 0, error
    assert result_of(command, said, folder) == expected


@pytest.mark.parametrize("command", list(COMMANDS))
def test_lost_scheduler_is_reported_in_one_line(folder: Path, command: str) -> None:
    with cluster(folder) as running:
        running.worker()
        process = begun(folder, running, COMMANDS[command])
        running.scheduler.kill()
        status, said, error = ended(process)
    assert (status, said) == (1, "")
    assert error.splitlines()[-1] == (
        f"bentpipe: --dask {running.address}: the scheduler went away; nothing is kept; start again"
    )
    # Before it, at most the line with which the work began.
    assert len(error.splitlines()) <= 2
    assert not [*folder.glob("*.html"), *folder.glob("*/*.html")]


@pytest.mark.parametrize("command", ["advise", "evaluate"])
def test_workers_do_not_go_with_dask(folder: Path, bentpipe: Any, command: str) -> None:
    place = str(folder / "lossy.toml")
    arguments = [each.replace("lossy.toml", place) for each in COMMANDS[command]]
    if command == "evaluate":
        arguments += ["--out", str(folder / "out")]
    both = bentpipe(*arguments, "--dask", "tcp://127.0.0.1:9", "--workers", 2)
    assert (both.status, both.out) == (2, "")
    assert "--workers doesn't go with --dask" in both.err
    nobody = bentpipe(*arguments, "--dask", "tcp://127.0.0.1:9")
    assert (nobody.status, nobody.out) == (2, "")
    assert "no scheduler answers there" in nobody.err
