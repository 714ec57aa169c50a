"""The same sweep on a Dask cluster: a real scheduler and two workers, here, on 127.0.0.1."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import bentpipe
from bentpipe import cli, congestion
from bentpipe.cli.source import execute_files

from .networks import pair

pytestmark = pytest.mark.skipif(
    find_spec("distributed") is None,
    reason="dask.distributed isn't installed: pip install 'bentpipe[dask]'",
)

# About a hundred milliseconds a cell, so that a worker dies in the middle of one.
SCENARIO = pair("slow", duration="100 s", rate="100 Mbit/s", delay="50 ms", size="1 GB")
SWEEP = """
scenario = "slow.toml"
[axes]
links.satellite.forward.errors.packet_loss_rate = [1e-6, 1e-5]
seed = { count = 20 }
"""
OWN = """
import bentpipe

STEP = 0.1

@bentpipe.congestion_control("slow")
class Slow:
    def on_ack(self, window, ack):
        window.congestion_window += STEP * window.segment

    def on_congestion(self, window, event, flight_size, now_s):
        window.slow_start_threshold = window.congestion_window = 2 * window.segment
"""
CELLS = 40
PATIENCE_S = 120.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "slow.toml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    return tmp_path


class Cluster:
    """Processes that are ended in the end, whatever happens."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler = self._started(
            "dask_scheduler",
            *("--host", "127.0.0.1", "--port", "0", "--dashboard-address", "127.0.0.1:0"),
            *("--scheduler-file", str(self._file)),
        )
        wait_for(self._announced)
        self.address: str = json.loads(self._file.read_text(encoding="utf-8"))["address"]

    def _announced(self) -> bool:
        # It is written in place: for a moment there is a part of it.
        return self._file.is_file() and self._file.read_text(encoding="utf-8").endswith("}")

    def worker(self, **environment: str) -> subprocess.Popen[bytes]:
        return self._started(
            "dask_worker",
            *(self.address, "--host", "127.0.0.1", "--no-nanny", "--nthreads", "1"),
            *("--no-dashboard", "--local-directory", str(self._folder / "scratch")),
            **environment,
        )

    def swept(self, folder: Path, out: str, *options: str) -> subprocess.Popen[bytes]:
        command = ["sweep", "sweep.toml", "--out", out, "--dask", self.address, "--json", *options]
        process = subprocess.Popen(
            [sys.executable, "-m", "bentpipe", *command],
            cwd=folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.processes.append(process)
        return process

    def _started(
        self, program: str, *arguments: str, **environment: str
    ) -> subprocess.Popen[bytes]:
        with (self._folder / f"{program}-{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{program}", *arguments],
                stdout=log,
                stderr=log,
                # Not where the scenario is: workers need none of our files.
                cwd="/",
                env={**os.environ, **environment},
            )
        self.processes.append(process)
        return process


@contextmanager
def cluster(folder: Path) -> Iterator[Cluster]:
    home = folder / "cluster"
    home.mkdir()
    started = None
    try:
        started = Cluster(home)
        yield started
    finally:
        for process in started.processes if started is not None else []:
            process.kill()
            process.communicate()


def wait_for(condition: Any) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def results_of(out: Path) -> bytes:
    return (out / "cells.parquet").read_bytes()


def finished(out: Path) -> int:
    return bentpipe.load_sweep(out).finished if (out / "_sweep.json").is_file() else 0


def test_cells_of_a_killed_worker_are_rerun(folder: Path) -> None:
    out = folder / "out"
    with cluster(folder) as running:
        first = running.worker()
        running.worker()
        process = running.swept(folder, "out")
        wait_for(lambda: process.poll() is not None or finished(out) >= CELLS // 4)
        assert process.poll() is None, process.communicate()
        first.kill()
        first.wait()
        at_the_kill = finished(out)
        said, error = (each.decode() for each in process.communicate(timeout=PATIENCE_S))
    assert process.returncode == 0, error
    assert at_the_kill < CELLS
    data = json.loads(said)
    assert (data["simulated"], data["failed"]) == (CELLS, 0)
    bentpipe.sweep(folder / "sweep.toml", out=folder / "here")
    assert results_of(out) == results_of(folder / "here")


def test_scheduler_failure_keeps_finished_cells(folder: Path) -> None:
    """The scheduler dies half-way; then the rest is done here."""
    out = folder / "out"
    with cluster(folder) as running:
        running.worker()
        process = running.swept(folder, "out")
        wait_for(lambda: process.poll() is not None or finished(out) >= 5)
        running.scheduler.kill()
        said, error = (each.decode() for each in process.communicate(timeout=PATIENCE_S))
    assert (process.returncode, said) == (1, "")
    assert "the scheduler went away; what has finished is kept, and --resume" in error
    assert len(error.splitlines()) == 1
    before = finished(out)
    assert 5 <= before < CELLS
    result = bentpipe.sweep(folder / "sweep.toml", out=out, resume=True)
    assert result.complete
    bentpipe.sweep(folder / "sweep.toml", out=folder / "here")
    assert results_of(out) == results_of(folder / "here")


ENDLESS = """
import pathlib, time
import bentpipe

@bentpipe.congestion_control("endless")
class Endless:
    def on_ack(self, window, ack):
        pathlib.Path("RUNNING").touch()
        while "endless" == LOOPS:
            try:
                time.sleep(0.01)
            except Exception:
                pass

    def on_congestion(self, window, event, flight_size, now_s):
        window.congestion_window = window.segment
"""


@pytest.mark.parametrize("loops", ["", "endless"], ids=["simulates", "loops"])
def test_ctrl_c_ends_the_sweep_and_its_workers_cells(folder: Path, loops: str) -> None:
    """The cells take hours; afterwards the workers are free for somebody else's."""
    running_now = folder / "running"
    script = ENDLESS.replace("RUNNING", str(running_now)).replace("LOOPS", repr(loops))
    (folder / "endless.py").write_text(script, encoding="utf-8")
    settings = (
        "server = { tcp = { congestion_control = 'endless', slow_start = 'standard', "
        "initial_slow_start_threshold = '20 segments' } }"
    )
    huge = SCENARIO.replace("server = {}", settings).replace('"100 s"', '"70 h"')
    (folder / "slow.toml").write_text(huge.replace(', size = "1 GB"', ""), encoding="utf-8")
    with cluster(folder) as running:
        running.worker()
        running.worker()
        process = running.swept(folder, "out", "--python", "endless.py")
        wait_for(lambda: process.poll() is not None or running_now.exists())
        assert process.poll() is None, process.communicate()
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, error = (each.decode() for each in process.communicate(timeout=PATIENCE_S))
        took = time.monotonic() - began
        print(f"ended after {took:.2f} s")
        assert (process.returncode, said) == (130, ""), error
        assert error.splitlines()[-1] == "bentpipe: interrupted"
        assert "Traceback" not in error
        # A second on a machine that is ours alone.
        assert took < 5.0
        # Each worker has one thread: it is free again, or this waits in vain.
        (folder / "slow.toml").write_text(SCENARIO.replace("1 GB", "200 kB"), encoding="utf-8")
        again = running.swept(folder, "again")
        said, error = (each.decode() for each in again.communicate(timeout=PATIENCE_S))
        assert again.returncode == 0, error
        assert json.loads(said)["simulated"] == CELLS


def test_python_congestion_control_is_sent_to_workers(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class in a script is nowhere that a worker could import it from."""
    monkeypatch.setattr(congestion, "_classes", {})
    text = SCENARIO.replace(
        "hosts = { server = {}", 'hosts = { server = { tcp = { congestion_control = "slow" } }'
    )
    (folder / "slow.toml").write_text(text.replace("1 GB", "200 kB"), encoding="utf-8")
    script = folder / "slow.py"
    script.write_text(OWN, encoding="utf-8")
    with cluster(folder) as running:
        running.worker()
        process = running.swept(folder, "out", "--python", "slow.py")
        _, error = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, error) == (0, b"")
    execute_files([script])
    bentpipe.sweep(folder / "sweep.toml", out=folder / "here")
    assert results_of(folder / "out") == results_of(folder / "here")


def test_worker_of_another_version_is_refused() -> None:
    pytest.importorskip("distributed")
    from bentpipe.scenario import Scenario
    from bentpipe.sweeps.cell import Task
    from bentpipe.sweeps.cluster import _OtherVersionError, _simulate

    task = Task(cell=0, scenario=Scenario(path=Path("slow.toml"), text=SCENARIO), series=False)
    with pytest.raises(_OtherVersionError, match="this is 99"):
        _simulate(task, "99", [])


def test_missing_scheduler_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for address in ("tcp://127.0.0.1:9", "zebra://x"):
        arguments = ["sweep", str(folder / "sweep.toml"), "--out", str(folder / "out")]
        assert cli.execute([*arguments, "--dask", address]) == 2
        said = capsys.readouterr()
        assert f"--dask {address}: no scheduler answers there" in said.err
        assert len(said.err.splitlines()) == 1
        # Or the next try, with the right address, would be told that there are results already.
        assert not (folder / "out").exists()
    assert cli.execute([*arguments, "--dask", "nowhere"]) == 2
    assert "expected an address such as tcp://" in capsys.readouterr().err


def test_closed_scheduler_port_is_reported_once(folder: Path) -> None:
    command = [sys.executable, "-m", "bentpipe", "sweep", str(folder / "sweep.toml")]
    # Dask itself tries for ten seconds, and what it logs comes when the process ends.
    done = subprocess.run(
        [*command, "--out", str(folder / "out"), "--dask", "tcp://127.0.0.1:9"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"bentpipe: --dask \S+: no scheduler answers there \(.+\)\n", done.stderr)


def test_missing_distributed_package_is_reported(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    arguments = ["sweep", str(folder / "sweep.toml"), "--out", str(folder / "out")]
    assert cli.execute([*arguments, "--dask", "tcp://127.0.0.1:9"]) == 2
    assert "pip install 'bentpipe[dask]'" in capsys.readouterr().err
