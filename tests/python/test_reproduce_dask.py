"""A study on a Dask cluster: a real scheduler and two workers, here, on 127.0.0.1."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from .test_sweep_dask import PATIENCE_S, cluster

pytestmark = pytest.mark.skipif(
    find_spec("distributed") is None,
    reason="dask.distributed isn't installed: pip install 'bentpipe[dask]'",
)

# Its cells have probes, some of them at every change.
STUDY = "karir1999"


def test_cluster_gives_the_same_results(tmp_path: Path, bentpipe: Any) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert bentpipe("reproduce", STUDY, "--quick", "--workers", 2, "--out", here).status == 0
    with cluster(tmp_path) as running:
        running.worker()
        running.worker()
        done = bentpipe(
            "reproduce", STUDY, "--quick", "--dask", running.address, "--out", there, "--json"
        )
        assert done.status == 0, done.err
    data = json.loads(done.out)
    assert data["provenance"]["workers"] == f"Dask cluster at {running.address}"
    assert f"--dask {running.address}" in data["provenance"]["command"]
    assert (here / "claims.json").read_bytes() == (there / "claims.json").read_bytes()
    files = sorted(file.relative_to(here) for file in here.glob(f"{STUDY}/*"))
    assert files == sorted(file.relative_to(there) for file in there.glob(f"{STUDY}/*"))
    assert len([file for file in files if file.suffix == ".svg"]) > 3
    for file in files:
        if file.suffix in {".svg", ".csv"} and file.stem != "cells":
            assert (here / file).read_bytes() == (there / file).read_bytes(), file
    # Of the runs, only the time differs.
    cells = [pq.read_table(out / STUDY / "cells.parquet") for out in (here, there)]
    assert cells[0].drop_columns("simulation_s") == cells[1].drop_columns("simulation_s")


def begun(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a reproduction that simulates when this returns; all of it takes much longer."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bentpipe", "reproduce", STUDY, *options],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    assert process.stderr.readline().startswith(b"karir1999: simulating")
    time.sleep(1.0)
    return process


@pytest.mark.parametrize("dask", [False, True], ids=["here", "cluster"])
def test_ctrl_c_ends_a_reproduction(tmp_path: Path, dask: bool) -> None:
    with cluster(tmp_path) as running:
        running.worker()
        process = begun(tmp_path, *(("--dask", running.address) if dask else ()))
        running.processes.append(process)
        before = time.monotonic()
        process.send_signal(signal.SIGINT)
        said, error = (each.decode() for each in process.communicate(timeout=PATIENCE_S))
        took_s = time.monotonic() - before
    assert (process.returncode, said) == (130, ""), error
    assert error.splitlines()[-1] == "bentpipe: interrupted"
    assert "Traceback" not in error
    assert took_s < 10.0
    assert not (tmp_path / "reproduction" / "report.html").exists()


def test_lost_scheduler_ends_the_reproduction(tmp_path: Path) -> None:
    with cluster(tmp_path) as running:
        running.worker()
        process = begun(tmp_path, "--dask", running.address)
        running.processes.append(process)
        running.scheduler.kill()
        said, error = (each.decode() for each in process.communicate(timeout=PATIENCE_S))
    assert (process.returncode, said) == (1, "")
    assert error.splitlines()[-1] == (
        f"bentpipe: --dask {running.address}: the scheduler went away; nothing is kept; start again"
    )
    assert not (tmp_path / "reproduction" / "report.html").exists()


def test_failed_cell_on_a_cluster_has_the_command_to_reproduce_it(tmp_path: Path) -> None:
    from bentpipe.errors import WorkError
    from bentpipe.studies.simulations import Awaited, simulations

    from .test_studies import SLOW, Tiny

    with cluster(tmp_path) as running:
        running.worker()
        with simulations(dask=running.address) as started:
            (futures,) = started.begin([[SLOW, Tiny("fast")]])
            awaited = Awaited(futures, on_done=lambda: None)
            with pytest.raises(WorkError, match=r"run tiny\.toml --set links\.l\.rate=fast"):
                awaited.wait()


def test_workers_do_not_go_with_dask(tmp_path: Path, bentpipe: Any) -> None:
    arguments = ["reproduce", STUDY, "--dask", "tcp://127.0.0.1:9", "--out", tmp_path]
    done = bentpipe(*arguments, "--workers", 2)
    assert done.status == 2
    assert "--workers doesn't go with --dask" in done.err
    done = bentpipe(*arguments)
    assert done.status == 2
    assert "no scheduler answers there" in done.err
    done = bentpipe("reproduce", STUDY, "--workers", 0, "--out", tmp_path)
    assert done.status == 2
