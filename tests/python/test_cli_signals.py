"""How a command ends: exit statuses, signals, outputs that fail, and at most one line of why."""

from __future__ import annotations

import io
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from bentpipe import cli, probe_file, signals

from .commands import COMMAND, assert_refused, started
from .networks import pair


def test_failed_work_exits_with_1(
    bentpipe: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "probes.parquet")

    monkeypatch.setattr(probe_file.ProbeWriter, "take", full)
    said = bentpipe("run", small, "--out", tmp_path)
    assert_refused(said, "probes.parquet: no space left on device", status=1)


def test_internal_error_prints_one_line(
    bentpipe: Any, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr("bentpipe.cli.run.simulate", broken)
    assert_refused(bentpipe("run", small), "internal error: ZeroDivisionError: oh no", status=1)


def test_ctrl_c_exits_with_130(bentpipe: Any, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bentpipe.cli.run.simulate", interrupted)
    assert_refused(bentpipe("run", small), "interrupted", status=130)


def test_broken_pipe_prints_no_traceback(small: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [*COMMAND, "run", str(small)], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (process.returncode, process.stderr) == (1, b"")


def test_main_exits_with_the_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bentpipe", "list", "zebras"])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 2
    assert "zebras" in capsys.readouterr().err


def test_stdout_write_error_is_reported(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert cli.execute(["run", str(small), "--json"]) == 1
    assert capsys.readouterr().err == "bentpipe: standard output: no space left on device\n"


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["run", "SMALL"], 1),
        (["predict", "SMALL"], 1),
        (["run", "SMALL", "--json"], 1),
        (["list"], 1),
    ],
)
def test_closed_standard_output_prints_one_line(
    small: Path, arguments: list[str], status: int
) -> None:
    words = [str(small) if word == "SMALL" else word for word in arguments]
    command = [*COMMAND, *words]
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    finished = subprocess.run(closed, capture_output=True, text=True, check=False)
    assert finished.returncode == status
    assert finished.stderr == "bentpipe: standard output: closed\n"
    silent = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command]
    finished = subprocess.run(silent, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout


ENDED = {
    signal.SIGINT: (130, "bentpipe: interrupted\n"),
    signal.SIGTERM: (143, "bentpipe: ended by SIGTERM\n"),
    signal.SIGHUP: (129, "bentpipe: ended by SIGHUP\n"),
}


@pytest.mark.parametrize("number", ENDED)
@pytest.mark.parametrize("command", ["run", "advise", "report"])
def test_signal_prints_one_line_and_leaves_no_files(
    tmp_path: Path, number: signal.Signals, command: str
) -> None:
    # Hours, were it simulated to the end; on a disk that it can't fill.
    long = pair("long", duration="70 h", rate="40 Mbit/s", delay="10 ms", size="400 GB", seed=1)
    (tmp_path / "long.toml").write_text(long, encoding="utf-8")
    writing = ["--out", "out", "--pcap", "satellite"] if command == "run" else []
    with started(
        [*COMMAND, command, "long.toml", *writing],
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30)),
    ) as process:
        deadline = time.monotonic() + 60
        # A simulation is at work when it writes: it may have filled that disk in another second.
        parts = [
            tmp_path / "out" / f".{name}.part" for name in ("probes.parquet", "satellite.pcapng")
        ]
        while (
            not (parts[0].exists() and parts[1].exists() and parts[1].stat().st_size > 1 << 20)
            if command == "run"
            else not _is_simulating(process)
        ):
            assert time.monotonic() < deadline
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        process.send_signal(number)
        out, said = process.communicate(timeout=60)
    assert (process.returncode, said, out) == (*ENDED[number], "")
    assert not list(tmp_path.glob("out/*"))
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["long.toml"]


def _is_simulating(process: subprocess.Popen[str]) -> bool:
    """Whether it has been at work for so long that it is simulating."""
    if not Path("/proc/self/stat").exists():
        time.sleep(2.0)
        return True
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > 1.5


@pytest.mark.parametrize("module", ["bentpipe.cli", "bentpipe.signals", "bentpipe.cli.commands"])
def test_ctrl_c_during_import_prints_no_traceback(module: str) -> None:
    """Half of a short command's time is that, and Python itself answers with a traceback."""
    script = f"""
import signal, sys

class Pressed:
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

sys.meta_path.insert(0, Pressed())
sys.argv = ["bentpipe", "list", "scenarios"]
from bentpipe.start import main
main()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "bentpipe: interrupted\n")


def test_start_module_imports_only_lightweight_modules() -> None:
    """Until it runs, Ctrl-C is Python's to answer."""
    script = (
        "import re, sys; before = set(sys.modules); import bentpipe.start; "
        "print(*sys.modules.keys() - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert set(done.stdout.split()) <= {"__future__", "bentpipe", "bentpipe.start", "signal"}


def test_child_processes_have_default_signals_under_nohup(tmp_path: Path) -> None:
    (tmp_path / "test_child.py").write_text(
        "import signal, subprocess, sys\n"
        "def test_child():\n"
        "    script = 'import signal; print(signal.getsignal(signal.SIGHUP).name)'\n"
        "    said = subprocess.run([sys.executable, '-c', script], capture_output=True)\n"
        "    assert said.stdout == b'SIG_DFL\\n'\n"
        "    signal.raise_signal(signal.SIGHUP)\n",
        encoding="utf-8",
    )
    conftest = Path(__file__).with_name("conftest.py")
    done = subprocess.run(
        # A conftest of a package: from the root, which the tests are run from.
        [
            *("nohup", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"),
            *("-p", "tests.python.conftest", "--numprocesses", "1", "--rootdir", str(tmp_path)),
            str(tmp_path / "test_child.py"),
        ],
        cwd=conftest.parents[2],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_ignored_signal_stays_ignored() -> None:
    # As `nohup` has it; and one that somebody else handles is theirs.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with signals.interrupting():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is signals.interrupt
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
