"""Sweeps that run: the same whatever the number of workers, whatever ends them, whatever fails."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import bentpipe
from bentpipe import cli, congestion, signals
from bentpipe.errors import RequestError, WorkError
from bentpipe.sweeps import local, store
from bentpipe.sweeps.cell import Outcome, Task
from bentpipe.sweeps.curves import curves
from bentpipe.sweeps.local import outcomes
from bentpipe.sweeps.stopping import deferred_interrupts
from bentpipe.sweeps.summary import adds_up, quartiles, summarise

from .commands import COMMAND, started
from .networks import pair

SCENARIO = pair(
    "small", duration="20 s", rate="2 Mbit/s", delay="250 ms", size="100 kB", apart=True
)
SWEEP = """
scenario = "small.toml"

[axes]
links.satellite.forward.errors.packet_loss_rate = [0, 0.01, 0.05]
flows.download.app.size = ["50 kB", "0.1 MB"]
seed = { count = 3 }
"""
# One combination of the two is wrong: a flow that starts after the end.
PARTLY_WRONG = """
scenario = "small.toml"

[axes]
flows.download.start = ["0 s", "8 s"]
duration = ["10 s", "5 s"]
"""
# About a hundred milliseconds a cell, so that a kill comes in between.
SLOW = """
scenario = "small.toml"
[set]
flows.download.app.size = "2 GB"
links.satellite.forward.rate = "100 Mbit/s"
links.satellite.return.rate = "100 Mbit/s"
duration = "200 s"
[axes]
links.satellite.forward.errors.packet_loss_rate = [1e-6, 1e-5]
seed = { count = 12 }
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "small.toml").write_text(SCENARIO, encoding="utf-8")
    (tmp_path / "sweep.toml").write_text(SWEEP, encoding="utf-8")
    (tmp_path / "partly.toml").write_text(PARTLY_WRONG, encoding="utf-8")
    (tmp_path / "slow.toml").write_text(SLOW, encoding="utf-8")
    return tmp_path


def results_of(out: Path) -> dict[str, bytes]:
    """Return the files that equal sweeps have in common: all but the timing."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.rglob("*"))
        if path.is_file() and path.name != "_timing.parquet"
    }


def test_results_do_not_depend_on_the_number_of_workers(folder: Path) -> None:
    one = bentpipe.sweep(folder / "sweep.toml", out=folder / "one", workers=1, series=True)
    two = bentpipe.sweep(folder / "sweep.toml", out=folder / "two", workers=2, series=True)
    assert results_of(folder / "one") == results_of(folder / "two")
    assert one.complete
    assert two.complete
    assert len(list((folder / "one" / "_series").iterdir())) == 18


def test_results_do_not_depend_on_completion_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def backwards(tasks: Any, *, workers: int, look: Any) -> Any:
        del workers, look
        for task in reversed(list(tasks)):
            yield from outcomes(iter([task]), workers=1)

    bentpipe.sweep(folder / "sweep.toml", out=folder / "forwards")
    monkeypatch.setattr("bentpipe.sweeps.local.outcomes", backwards)
    monkeypatch.setattr(store, "_MOST_PARTS", 5)
    bentpipe.sweep(folder / "sweep.toml", out=folder / "backwards")
    assert results_of(folder / "forwards") == results_of(folder / "backwards")


def test_cell_result_equals_the_single_run(folder: Path) -> None:
    result = bentpipe.sweep(folder / "sweep.toml")
    size, loss, seed = "0.1 MB", 0.05, 2
    run = bentpipe.run(
        folder / "small.toml",
        seed=seed,
        settings={
            "links.satellite.forward.errors.packet_loss_rate": loss,
            "flows.download.app.size": size,
        },
    )
    cell = result.dataset.sel(packet_loss_rate=loss, size_bytes=100_000, seed=seed)
    flow = run.flow()
    assert cell.goodput_bps.sel(flow="download").item() == flow.goodput_bps
    assert cell.rtt_p95_ms.sel(flow="download").item() == flow.rtt_ms.p95
    assert cell.packet_hops.item() == run.summary.packet_hops
    link = cell.sel(link="satellite.forward")
    assert link.link_utilization.item() == run.summary.links[0].utilization
    assert link.link_packets_lost.item() == run.summary.links[0].packets_lost


def test_sweep_dataset_equals_the_tidy_table(folder: Path) -> None:
    result = bentpipe.sweep(folder / "sweep.toml", out=folder / "out")
    dataset = result.dataset
    assert dict(dataset.sizes) == {
        "packet_loss_rate": 3, "size_bytes": 2, "seed": 3, "flow": 1, "group": 1, "link": 2
    }  # fmt: skip
    assert dataset.goodput_bps.dims == ("packet_loss_rate", "size_bytes", "seed", "flow")
    assert dataset.goodput_bps.attrs["units"] == "bit/s"
    assert dataset.link_utilization.dims == ("packet_loss_rate", "size_bytes", "seed", "link")
    assert dataset.size_bytes.attrs == {"key": "flows.download.app.size", "units": "B"}
    assert dataset.segments_sent.dtype == np.int64
    median = dataset.goodput_bps.median("seed").sel(packet_loss_rate=0, flow="download")
    assert (median > 0).all()
    # Any reader of Parquet reads the folder.
    table = pq.read_table(folder / "out")
    assert table.equals(result.table)
    assert table.num_rows == 18 * (1 + 1 + 1 + 2)
    assert "wall_s" not in table.schema.names
    assert result.wall_s > 0
    flows = result.rows("flow")
    assert flows.num_rows == 18
    assert flows["seed"].to_pylist() == [1, 2, 3] * 6
    assert "utilization" not in flows.schema.names
    assert "goodput_bps" not in result.rows("link").schema.names


def test_flows_missing_in_some_cells_are_nan(folder: Path) -> None:
    scenario = folder / "small.toml"
    result = bentpipe.sweep(
        {
            "scenario": str(scenario),
            "axes": {"hosts.client.count": [1, 3], "seed": [1]},
        }
    )
    dataset = result.dataset
    assert dataset.sizes["flow"] == 3
    flows = dataset.goodput_bps.sel(count=3, seed=1).dropna("flow").flow.values.tolist()
    assert flows == ["download-1", "download-2", "download-3"]
    point = summarise(result)[1]
    assert (point.flows, point.finished_flows) == (3, 3)


def test_series_are_kept_on_request(folder: Path) -> None:
    result = bentpipe.sweep(folder / "sweep.toml", out=folder / "out", series=True)
    series = result.series(0)
    assert "download.congestion_window" in series
    assert len(series["download.congestion_window"].times_s) > 3
    with pytest.raises(RequestError, match="series need a folder"):
        bentpipe.sweep(folder / "sweep.toml", series=True)


def test_foreign_files_are_not_overwritten(folder: Path) -> None:
    out = folder / "out"
    out.mkdir()
    (out / "letter.txt").write_text("dear", encoding="utf-8")
    for resume in (False, True):
        with pytest.raises(RequestError, match="exists, and is no sweep's results"):
            bentpipe.sweep(folder / "sweep.toml", out=out, resume=resume)
        with pytest.raises(RequestError, match="exists, and is no sweep's results"):
            bentpipe.sweep(folder / "sweep.toml", out=out / "letter.txt", resume=resume)
    bentpipe.sweep(folder / "sweep.toml", out=folder / "results", resume=True)
    with pytest.raises(RequestError, match="resume goes on with it"):
        bentpipe.sweep(folder / "sweep.toml", out=folder / "results")
    with pytest.raises(RequestError, match="no sweep's results"):
        bentpipe.load_sweep(out)


def test_sweep_folder_is_locked(folder: Path) -> None:
    sweep = bentpipe.sweeps.load_definition(folder / "sweep.toml")
    with (
        store.Store.opened(folder / "out", sweep, resume=False),
        pytest.raises(RequestError, match="another sweep is writing there"),
    ):
        bentpipe.sweep(folder / "sweep.toml", out=folder / "out", resume=True)


@pytest.mark.parametrize(
    ("file", "old", "new", "reason"),
    [
        ("sweep.toml", "count = 3", "count = 4", "the axes are others"),
        ("sweep.toml", "[axes]", 'set.duration = "19 s"\n[axes]', "[set] is another"),
        ("small.toml", "2 Mbit/s", "3 Mbit/s", "the scenario is another"),
    ],
)
def test_changed_sweep_is_not_resumed(
    folder: Path, file: str, old: str, new: str, reason: str
) -> None:
    bentpipe.sweep(folder / "sweep.toml", out=folder / "out")
    before = results_of(folder / "out")
    path = folder / file
    path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    with pytest.raises(RequestError, match="holds the results of another sweep") as caught:
        bentpipe.sweep(folder / "sweep.toml", out=folder / "out", resume=True)
    assert reason in str(caught.value)
    assert results_of(folder / "out") == before


def test_sweep_of_another_version_is_not_resumed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bentpipe.sweep(folder / "sweep.toml", out=folder / "out")
    monkeypatch.setattr(store, "__version__", "99")
    with pytest.raises(RequestError, match="another version of bentpipe"):
        bentpipe.sweep(folder / "sweep.toml", out=folder / "out", resume=True)


def test_sweep_with_changed_comments_is_resumed(folder: Path) -> None:
    bentpipe.sweep(folder / "sweep.toml", out=folder / "out")
    for name in ("sweep.toml", "small.toml"):
        path = folder / name
        path.write_text("# why\n\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    assert bentpipe.sweep(folder / "sweep.toml", out=folder / "out", resume=True).complete


def test_finished_cells_are_not_repeated(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class EnoughError(Exception):
        pass

    ran: list[int] = []

    def some(tasks: Any, *, workers: int, look: Any) -> Any:
        del workers, look
        for task in tasks:
            if len(ran) in {4, 9}:
                ran.append(-1)
                raise EnoughError
            ran.append(task.cell)
            yield from outcomes(iter([task]), workers=1)

    bentpipe.sweep(folder / "sweep.toml", out=folder / "whole")
    monkeypatch.setattr("bentpipe.sweeps.local.outcomes", some)
    monkeypatch.setattr(store, "_MOST_PARTS", 3)
    for so_far in (4, 8):
        with pytest.raises(EnoughError):
            bentpipe.sweep(folder / "sweep.toml", out=folder / "out", resume=True)
        # Completed parts can be read at any time.
        partial = bentpipe.load_sweep(folder / "out")
        assert (partial.finished, partial.complete) == (so_far, False)
        assert np.isfinite(partial.dataset.goodput_bps.values).sum() == so_far
        assert len(summarise(partial)) == math.ceil(so_far / 3)
    # Left by a kill in the middle of a write, and between the two steps of a merge.
    (folder / "out" / "_writing-part-000099.parquet").write_bytes(b"PAR1")
    some_part = next((folder / "out").glob("part-*.parquet"))
    shutil.copy(some_part, folder / "out" / "part-000098.parquet")
    bentpipe.sweep(folder / "sweep.toml", out=folder / "out", resume=True)
    assert [cell for cell in ran if cell >= 0] == list(range(18))
    assert results_of(folder / "out") == results_of(folder / "whole")


def test_truncated_results_file_is_named(folder: Path) -> None:
    bentpipe.sweep(folder / "sweep.toml", out=folder / "out")
    (folder / "out" / "cells.parquet").write_bytes(b"PAR1")
    with pytest.raises(WorkError, match=r"cells\.parquet: can't be read"):
        bentpipe.load_sweep(folder / "out")


def test_sigkill_loses_and_repeats_no_cells(folder: Path) -> None:
    command = [sys.executable, "-m", "bentpipe", "sweep", str(folder / "slow.toml")]
    out = folder / "out"
    done: set[int] = set()
    for _ in range(3):
        there = len(list(out.glob("part-*.parquet")))
        process = subprocess.Popen(
            # One worker: the other core is for who watches and kills, on a busy machine, too.
            [*command, "--out", str(out), "--resume", "--workers", "1"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline:
            if len(list(out.glob("part-*.parquet"))) > there + 1:
                break
            time.sleep(0.002)
        process.kill()
        _, said = process.communicate()
        assert process.returncode == -signal.SIGKILL, said.decode()
        partial = bentpipe.load_sweep(out)
        cells = set(partial.timing["cell"].to_pylist())
        assert cells > done
        assert not partial.complete
        done = cells
    process_ = subprocess.run(
        [*command, "--out", str(out), "--resume", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(process_.stdout)["simulated"] == 24 - len(done)
    bentpipe.sweep(folder / "slow.toml", out=folder / "whole", workers=1)
    assert results_of(out) == results_of(folder / "whole")


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("number", "status", "told"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "ended by SIGTERM"),
        (signal.SIGHUP, 129, "ended by SIGHUP"),
    ],
)
def test_termination_signals_keep_finished_cells(
    folder: Path, number: signal.Signals, status: int, told: str
) -> None:
    command = [*COMMAND, "sweep", str(folder / "slow.toml"), "--out", "out"]
    with started(command, cwd=folder) as process:
        deadline = time.monotonic() + 60
        while not list(folder.glob("out/part-*.parquet")) and time.monotonic() < deadline:
            time.sleep(0.002)
        process.send_signal(number)
        out, said = process.communicate(timeout=60)
    assert (process.returncode, out) == (status, "")
    assert "of 24 cells are in out; --resume goes on" in said
    assert said.splitlines()[-1] == f"bentpipe: {told}"
    assert "Traceback" not in said
    assert bentpipe.load_sweep(folder / "out").finished >= 1


ENDLESS = """
import pathlib, time
import bentpipe

@bentpipe.congestion_control("endless")
class Endless:
    def on_ack(self, window, ack):
        pathlib.Path("running").touch()
        LOOP

    def on_congestion(self, window, event, flight_size, now_s):
        window.congestion_window = window.segment
"""
HUGE = """
name = "huge"
duration = "70 h"
hosts = { server = {}, client = {} }
links.l = { between = ["server", "client"], rate = "1 Gbit/s", delay = "1 ms" }
flows.f = { from = "server", to = "client", app = { kind = "bulk" } }
"""


def _endless_sweep(folder: Path, *, loop: str) -> None:
    (folder / "huge.toml").write_text(HUGE, encoding="utf-8")
    (folder / "endless.py").write_text(ENDLESS.replace("LOOP", loop), encoding="utf-8")
    (folder / "sweep.toml").write_text(
        'name = "s"\nscenario = "huge.toml"\n[set]\n'
        '"hosts.server.tcp.congestion_control" = "endless"\n'
        '"hosts.server.tcp.slow_start" = "standard"\n'
        '"hosts.server.tcp.initial_slow_start_threshold" = "20 segments"\n'
        "[axes]\nseed = [1, 2, 3, 4]\n",
        encoding="utf-8",
    )


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs POSIX signals")
@pytest.mark.parametrize(
    "loop",
    [
        "pass",
        "while True: pass",
        "time.sleep(3600)",
        "while True:\n            try: time.sleep(0.01)\n            except BaseException: pass",
    ],
    ids=["simulates", "loops", "sleeps", "clings"],
)
def test_ctrl_c_stops_running_cells(tmp_path: Path, loop: str) -> None:
    _endless_sweep(tmp_path, loop=loop)
    command = [*COMMAND, "sweep", "sweep.toml", "--python", "endless.py"]
    with started(command, cwd=tmp_path) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "running").exists():
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        began = time.monotonic()
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
        took = time.monotonic() - began
    assert (process.returncode, out) == (130, ""), said
    assert said.splitlines()[-1] == "bentpipe: interrupted"
    assert "Traceback" not in said
    # A second on a machine that is ours alone; these cells take hours.
    assert took < 5.0


def test_ctrl_c_in_a_weakref_callback_is_not_lost() -> None:
    """By itself it would be: "Exception ignored in" is all that is heard of it."""

    class Dying:
        pass

    dying = Dying()
    watcher = weakref.ref(dying, lambda _: signal.raise_signal(signal.SIGINT))
    with contextlib.suppress(KeyboardInterrupt), deferred_interrupts() as look:
        look()
        del dying
        assert watcher() is None
        assert signal.getsignal(signal.SIGINT) is signals.end_at_once, (
            "a second one ends the process"
        )
        with pytest.raises(KeyboardInterrupt):
            look()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs POSIX signals")
@pytest.mark.parametrize(
    ("number", "status", "told"),
    [("SIGINT", 130, "interrupted"), ("SIGTERM", 143, "ended by SIGTERM")],
)
def test_second_ctrl_c_ends_immediately(number: str, status: int, told: str) -> None:
    script = (
        "import signal, sys; from bentpipe import signals; "
        "from bentpipe.sweeps.stopping import deferred_interrupts\n"
        "with signals.interrupting(), deferred_interrupts():\n"
        f"    signal.raise_signal(signal.{number}); print('goes on', flush=True)\n"
        f"    signal.raise_signal(signal.{number}); print('and on', flush=True)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (
        *(status, "goes on\n"),
        f"bentpipe: {told}\n",
    )


@pytest.mark.skipif(not hasattr(os, "openpty"), reason="needs POSIX terminals")
def test_second_ctrl_c_restores_the_terminal() -> None:
    """A bar is there without the cursor, and without an end of the line."""
    terminal, other = os.openpty()
    script = "import signal; from bentpipe import signals; signals.end_at_once(signal.SIGINT, None)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        stderr=other,
        env={**os.environ, "TERM": "xterm"},
        check=False,
    )
    os.close(other)
    said = os.read(terminal, 1000)
    os.close(terminal)
    assert done.returncode == 130
    assert said == b"\r\x1b[K\x1b[?25hbentpipe: interrupted\r\n"


def test_unpolled_ctrl_c_is_raised_on_exit() -> None:
    with pytest.raises(KeyboardInterrupt), deferred_interrupts():
        signal.raise_signal(signal.SIGINT)


def test_failed_cell_is_recorded_and_others_continue(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = folder / "out"
    status = cli.execute(["sweep", str(folder / "partly.toml"), "--out", str(out), "--json"])
    said = capsys.readouterr()
    assert status == 1
    assert len(said.err.splitlines()) == 1
    assert "1 of 4 cells failed: download_start_s = 8.0, duration_s = 5.0: --set flows" in said.err
    data = json.loads(said.out)
    assert (data["cells"], data["simulated"], data["failed"]) == (4, 4, 1)
    assert data["failures"][0]["command"].startswith("bentpipe run ")
    result = bentpipe.load_sweep(out)
    assert result.complete
    (failure,) = result.failures
    assert dict(failure.place) == {"download_start_s": 8.0, "duration_s": 5.0}
    assert math.isnan(result.dataset.goodput_bps.sel(download_start_s=8.0, duration_s=5.0).item())
    assert (
        "flows.download.start"
        in result.dataset.error.sel(download_start_s=8.0, duration_s=5.0).item()
    )
    # It would fail again.
    assert cli.execute(["sweep", str(folder / "partly.toml"), "--out", str(out), "--resume"]) == 1
    assert "0 of them now" in capsys.readouterr().out


def test_any_exception_is_recorded_as_the_cells_error(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Panic(BaseException):
        pass

    def run(*_: object, **__: object) -> None:
        raise Panic("attempt to subtract\nwith overflow")

    monkeypatch.setattr("bentpipe.sweeps.cell.run", run)
    result = bentpipe.sweep(folder / "sweep.toml")
    assert len(result.failures) == 18
    expected = "internal error: Panic: attempt to subtract with overflow"
    assert result.failures[0].error == expected
    assert dict(result.dataset.sizes) == {"packet_loss_rate": 3, "size_bytes": 2, "seed": 3}


def test_command_prints_the_sweep_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plot = folder / "plot.svg"
    out = folder / "out"
    arguments = ["sweep", str(folder / "sweep.toml"), "--out", str(out), "--plot", str(plot)]
    assert cli.execute(arguments) == 0
    said = capsys.readouterr()
    assert said.err == ""
    assert "18 cells (3 packet_loss_rate × 2 size_bytes × 3 seed)" in said.out
    assert "0.1 MB" in said.out
    assert "3 of 3" in said.out
    assert f"wrote {out}" in said.out
    assert plot.read_text(encoding="utf-8").startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "0"], "--workers 0: expected 1 or more"),
        (["--workers", "2", "--dask", "tcp://127.0.0.1:1"], "--workers doesn't go with --dask"),
        (["--plot", "plot.png"], "expected a file that ends in .svg"),
        (["--plot", "nowhere/plot.svg"], "there is no folder nowhere"),
    ],
)
def test_invalid_sweep_requests_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    out = folder / "out"
    status = cli.execute(["sweep", str(folder / "sweep.toml"), "--out", str(out), *arguments])
    said = capsys.readouterr()
    assert (status, said.out) == (2, "")
    assert message in said.err
    assert not out.exists()


def test_third_axis_is_drawn_as_panels_and_a_fourth_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plot = folder / "plot.svg"
    path = folder / "sweep.toml"
    third = "hosts.server.tcp.nagle = [true, false]\n"
    path.write_text(SWEEP + third, encoding="utf-8")
    out = str(folder / "out")
    assert cli.execute(["sweep", str(path), "--out", out, "--plot", str(plot)]) == 0
    assert plot.is_file()
    result = bentpipe.load_sweep(out)
    panels = curves(result)
    assert [each.panel for each in panels] == ["nagle true", "nagle false"]
    assert [len(each.curves) for each in panels] == [2, 2]
    assert panels[0].note == "medians over seeds 1 to 3; bands are quartiles"
    figure = result.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["nagle true", "nagle false"]
    assert figure.get_suptitle().startswith("sweep: medians over seeds 1 to 3")
    first, second = figure.axes
    assert first.get_ylim() == second.get_ylim()
    fourth = 'hosts.server.tcp.mss = ["536 B", "1460 B"]\n'
    path.write_text(SWEEP + third + fourth, encoding="utf-8")
    capsys.readouterr()
    assert cli.execute(["sweep", str(path), "--plot", str(plot)]) == 2
    assert "expected one to three axes besides the seed, got 4" in capsys.readouterr().err


def test_settings_apply_to_every_cell(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = folder / "sweep.toml", folder / "out"
    path.write_text(SWEEP + '[set]\nlinks.satellite.forward.rate = "1 Mbit/s"\n', encoding="utf-8")
    words = ["sweep", str(path), "--set", "links.satellite.forward.rate=4 Mbit/s"]
    assert cli.execute([*words, "--out", str(out)]) == 0
    result = bentpipe.load_sweep(out)
    cell = result.sweep.scenario_of(result.sweep.cell(0)).resolved()
    assert cell["links"][0]["forward"]["rate_bps"] == 4e6
    # It is another sweep.
    capsys.readouterr()
    assert cli.execute(["sweep", str(path), "--out", str(out), "--resume"]) == 2
    assert "holds the results of another sweep" in capsys.readouterr().err
    for setting, refusal in (
        ("seed=3", "--set seed: varies along the axis 'seed'"),
        ("links.satellite.forward.rat=4 Mbit/s", "--set links.satellite.forward.rat=4 Mbit/s: "),
    ):
        assert cli.execute(["sweep", str(path), "--set", setting]) == 2
        assert refusal in capsys.readouterr().err


def test_axis_with_one_value_is_not_drawn(folder: Path) -> None:
    axes = {
        "links.satellite.forward.delay": ["50 ms", "80 ms"],
        "flows.download.app.size": ["50 kB"],
        "hosts.server.tcp.nagle": [True],
        "hosts.server.tcp.mss": ["1460 B"],
        "seed": [4],
    }
    result = bentpipe.sweep({"scenario": str(folder / "small.toml"), "axes": axes})
    (panel,) = curves(result)
    assert (panel.x_label, panel.legend, panel.panel) == ("delay (s)", "", "")
    assert panel.note == "seed 4"
    assert len(result.plot().axes) == 1


def test_tasks_are_generated_lazily(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep of a million cells must not be in memory at once."""
    monkeypatch.setattr(local, "_QUEUED_TASKS", 2)
    sweep = bentpipe.sweeps.load_definition(folder / "sweep.toml")
    taken = 0

    def tasks() -> Any:
        nonlocal taken
        for cell in sweep.cells():
            taken += 1
            yield Task(cell=cell.number, scenario=sweep.scenario_of(cell), series=False)

    seen = 0
    for batch in outcomes(tasks(), workers=2):
        seen += len(batch)
        assert taken <= seen + 4
    assert (taken, seen) == (18, 18)


def test_parts_with_different_columns_are_merged(folder: Path) -> None:
    """Columns that some parts lack, or have in another type, are the same in the end."""
    sweep = bentpipe.sweeps.load_definition(folder / "sweep.toml")

    def outcome(cell: int, **extra: object) -> Outcome:
        summary = {"scenario": "s", "seed": 1, "flows": [{"name": "f", **extra}]}
        text = json.dumps({**summary, "links": [], "gateways": []})
        return Outcome(cell=cell, wall_s=1.0, summary_json=text)

    given = [outcome(0, a=1), outcome(1, a=1.5, b=None), outcome(2, b="x", c={"d": True})]
    from bentpipe.sweeps.records import merged, table_of

    apart = merged([table_of([each], sweep) for each in given])
    together = merged([table_of(given, sweep)])
    assert apart.equals(together)
    assert apart["a"].to_pylist() == [None, 1.0, None, 1.5, None, None]
    assert apart["c_d"].to_pylist()[-1] is True


GENTLE = """
import bentpipe

@bentpipe.congestion_control("gentle")
class Gentle:
    def on_ack(self, window, ack):
        window.congestion_window += window.segment * ack.acknowledged / window.congestion_window

    def on_congestion(self, window, event, flight_size, now_s):
        window.slow_start_threshold = max(0.9 * flight_size, 2 * window.segment)
        window.congestion_window = window.slow_start_threshold
"""
OWN = """
scenario = "small.toml"
[axes]
hosts.server.tcp.congestion_control = ["reno", "gentle"]
links.satellite.forward.errors.packet_loss_rate = [0.05]
seed = { count = 2 }
"""


def test_sweep_runs_a_python_congestion_control(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(congestion, "_classes", {})
    monkeypatch.chdir(folder)
    Path("own.toml").write_text(OWN, encoding="utf-8")
    Path("gentle.py").write_text(GENTLE, encoding="utf-8")
    assert cli.execute(["sweep", "own.toml", "--json"]) == 2
    assert "gentle" in capsys.readouterr().err
    assert cli.execute(["sweep", "own.toml", "--json", "--python", "gentle.py"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert points[0]["goodput_bps"]["median"] != points[1]["goodput_bps"]["median"]
    # Another rule under the same name has other results.
    Path("gentle.py").write_text(GENTLE.replace("0.9", "0.8"), encoding="utf-8")
    assert cli.execute(["sweep", "own.toml", "--python", "gentle.py", "--resume"]) == 2
    assert "the congestion control in Python is another" in capsys.readouterr().err


def test_quartiles_of_known_samples() -> None:
    found = quartiles([4.0, 1.0, 3.0, 2.0, 5.0])
    assert (found.lower, found.median, found.upper) == (2.0, 3.0, 4.0)


def test_sweep_result_repr_is_one_line() -> None:
    """Not its tables: in a notebook or at a prompt they are pages."""
    result = bentpipe.sweep(
        {"scenario": "terrestrial", "set": {"duration": "1 s"}, "axes": {"seed": [1, 2]}}
    )
    assert repr(result) == "<SweepResult sweep: 2 cells (2 seed)>"


def _swept(axes: dict[str, Any]) -> bentpipe.SweepResult:
    transfer = {"from": "a", "to": "b", "app": {"kind": "bulk", "size": "20 kB"}}
    scenario = {
        "name": "two",
        "duration": "60 s",
        "hosts": {"a": {}, "b": {}},
        "links.satellite": {"between": ["a", "b"], "rate": "1 Mbit/s", "delay": "10 ms"},
        "flows.first": {**transfer, "count": 5, "spacing": "5 s"},
    }
    return bentpipe.sweep({"scenario": scenario, "axes": axes}, workers=1)


def test_summed_goodput_of_sequential_flows_is_noted(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = _swept({"flows.first.count": [1, 5]})
    points = summarise(result)
    one, five = (point.goodput_bps.median for point in points if point.goodput_bps)
    # More than the link has: who reads that has to know what it is.
    assert five == pytest.approx(5 * one)
    assert five > 1e6
    assert adds_up(points)
    assert curves(result)[0].y_label == "all flows' goodput, added up"
    assert curves(_swept({"flows.first.count": [1]}))[0].y_label == "goodput"
    assert cli.execute(["sweep", str(folder / "sweep.toml"), "--out", str(folder / "out")]) == 0
    assert "added up" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("rates", "log"),
    [
        (["1 Mbit/s", "20 Mbit/s", "40 Mbit/s", "60 Mbit/s"], False),
        (["1 Mbit/s", "10 Mbit/s", "100 Mbit/s"], True),
        (["64 kbit/s", "128 kbit/s", "2 Mbit/s"], True),
        (["1 Mbit/s", "2 Mbit/s"], False),
    ],
)
def test_geometric_axis_values_are_drawn_logarithmically(rates: list[str], log: bool) -> None:
    assert curves(_swept({"links.satellite.rate": rates}))[0].log_x is log


def test_table_values_are_labelled_as_toml() -> None:
    outages: list[Any] = [[], [{"at": "1 s", "lasts": "500 ms"}]]
    result = _swept({"links.satellite.outages": outages, "flows.first.count": [1, 2]})
    labels = {point.labels["outages"] for point in summarise(result)}
    assert labels == {"[]", '[{ at = "1 s", lasts = "500 ms" }]'}


def test_table_shows_the_limit_of_each_point(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "buffers.toml"
    file.write_text(
        'name = "buffers"\nscenario = "network.toml"\n'
        '[axes]\nhosts.client.tcp.receive_buffer = ["32 KiB", "4 MiB"]\n',
        encoding="utf-8",
    )
    (tmp_path / "network.toml").write_text(
        'name = "network"\nduration = "60 s"\n[hosts]\nserver = {}\nclient = {}\n'
        "[links.satellite]\n"
        'between = ["server", "client"]\nrate = "4 Mbit/s"\ndelay = "250 ms"\n'
        "[flows.download]\n"
        'from = "server"\nto = "client"\napp = { kind = "bulk", size = "2 MB" }\n',
        encoding="utf-8",
    )
    out = tmp_path / "out"
    assert cli.execute(["sweep", str(file), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "limited by" in said
    small, large = (line for line in said.splitlines() if "iB" in line and "of 1" in line)
    assert "receive window 9" in small
    assert "receive window" not in large
    rows = bentpipe.load_sweep(out).rows("flow")
    first, second = rows["limited_by"].to_pylist()
    assert first == "receive_window"
    assert second != "receive_window"
    assert cli.execute(["sweep", str(file), "--out", str(out), "--resume", "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["points"]
    assert points[0]["limited_by"] == "receive_window"
    assert points[0]["limits"]["receive_window"] > 0.9
    assert sum(points[0]["limits"].values()) == pytest.approx(1.0)
