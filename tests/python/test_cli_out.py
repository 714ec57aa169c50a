"""Output of commands: whole or not at all, by one command at a time, nothing left of another."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import resource
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from bentpipe import files
from bentpipe.cli import progress
from bentpipe.results import ProbesNotWrittenError, run
from bentpipe.sweeps.store import Store

from .commands import COMMAND, SMALL, assert_refused
from .networks import pair


def test_out_writes_summary_probes_and_plots(bentpipe: Any, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "made" / "for it"
    said = bentpipe("run", small, "--out", out, "--pcap", "satellite", "--json")
    assert said.status == 0
    assert json.loads((out / "summary.json").read_text()) == said.data
    assert (out / "satellite.pcapng").stat().st_size > 300_000

    table = pq.read_table(out / "probes.parquet")
    assert table.column_names == ["series", "time_s", "value", "unit"]
    names = set(table["series"].to_pylist())
    assert names >= {"download.congestion_window", "download.sent", "satellite.forward.queue"}

    plots = {path.name for path in out.glob("*.svg")}
    assert plots == {
        "overview.svg",
        "download.time-sequence.svg",
        "download.congestion-window.svg",
        "download.round-trip.svg",
        "download.goodput.svg",
        "satellite.forward.queue.svg",
    }
    for plot in plots:
        root = ET.parse(out / plot).getroot()
        assert root.tag.endswith("svg")
        # In points: 7.2 by 4.2 inches; the overview is wider, a row for each kind of what there is.
        size = ("648pt", "381.6pt") if plot == "overview.svg" else ("518.4pt", "302.4pt")
        assert (root.get("width"), root.get("height")) == size


def test_equal_runs_give_equal_plots(bentpipe: Any, small: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert bentpipe("run", small, "--out", tmp_path / name).status == 0
    for plot in (tmp_path / "one").glob("*.svg"):
        assert plot.read_bytes() == (tmp_path / "two" / plot.name).read_bytes()


def test_files_of_an_earlier_run_are_removed(bentpipe: Any, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    other = tmp_path / "other.toml"
    other.write_text(SMALL.replace("download", "upload").replace("satellite", "radio"), "utf-8")
    assert bentpipe("run", other, "--out", out, "--pcap", "radio").status == 0
    mine = out / "upload.notes.svg"
    mine.write_text("not written by bentpipe", encoding="utf-8")
    earlier = {path.name for path in out.iterdir() if "upload" in path.name or "radio" in path.name}
    assert "radio.pcapng" in earlier
    assert bentpipe("run", small, "--out", out).status == 0
    left = {path.name for path in out.iterdir()}
    assert left & earlier == {mine.name}
    assert "download.goodput.svg" in left
    # Again: what is written again stays.
    assert bentpipe("run", small, "--out", out).status == 0
    assert {path.name for path in out.iterdir()} == left


def test_unwritable_folder_is_refused_before_the_run(
    bentpipe: Any, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_if_called(*_: object, **__: object) -> None:
        raise AssertionError("it ran")

    forbidding = SimpleNamespace(access=lambda *_: False, W_OK=os.W_OK, X_OK=os.X_OK)
    monkeypatch.setattr("bentpipe.cli.output.os", forbidding)
    monkeypatch.setattr("bentpipe.cli.run.simulate", fail_if_called)
    assert_refused(bentpipe("run", small, "--out", small.parent), "can't be written to")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="optional: no /dev/full here")
def test_full_disk_error_names_the_file(bentpipe: Any, small: Path) -> None:
    said = bentpipe("run", small, "--flent", "/dev/full")
    assert (said.status, said.err) == (1, "bentpipe: /dev/full: no space left on device\n")


def test_capture_on_a_full_disk_ends_the_run_early(tmp_path: Path) -> None:
    # Gigabytes, were it simulated to the end.
    long = pair("long", duration="1 h", rate="100 Mbit/s", delay="10 ms", size="40 GB", seed=1)
    (tmp_path / "long.toml").write_text(long, encoding="utf-8")
    limit = (2 << 20, 2 << 20)
    done = subprocess.run(
        [*COMMAND, "run", "long.toml", "--pcap", "satellite"],
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("bentpipe: satellite.pcapng: cannot be written: ")
    assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["long.toml"]


def test_repeated_pcap_link_is_captured_once(bentpipe: Any, small: Path, tmp_path: Path) -> None:
    for folder, links in (("once", ["satellite"]), ("twice", ["satellite", "satellite"])):
        words = [word for link in links for word in ("--pcap", link)]
        said = bentpipe("run", small, "--out", tmp_path / folder, *words)
        assert (said.status, said.out.count("satellite.pcapng")) == (0, 1)
    once, twice = (tmp_path / folder / "satellite.pcapng" for folder in ("once", "twice"))
    assert once.read_bytes() == twice.read_bytes()


def test_capture_file_is_locked_against_other_commands(
    bentpipe: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = ("run", small, "--pcap", "satellite")
    assert bentpipe(*run).status == 0
    capture = tmp_path / "satellite.pcapng"
    before = capture.read_bytes()
    with files.reserved(capture):
        said = bentpipe(*run, "--seed", 2)
        assert_refused(said, "--pcap satellite: another command is writing satellite.pcapng")
        assert capture.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["satellite.pcapng", "small.toml"]
    # It is free again when the other has ended, or was killed and could not remove its lock.
    (tmp_path / ".satellite.pcapng.lock").touch()
    assert bentpipe(*run, "--seed", 2).status == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["satellite.pcapng", "small.toml"]


@pytest.mark.parametrize("there", [True, False])
def test_unwritable_capture_path_is_refused_before_the_run(
    bentpipe: Any, small: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    def fail_if_called(*_: object, **__: object) -> None:
        raise AssertionError("it ran")

    def read_only(path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr("bentpipe.cli.run.simulate", fail_if_called)
    monkeypatch.setattr("bentpipe.cli.output.reserved", read_only)
    folder = ("--out", small.parent) if there else ()
    said = bentpipe("run", small, "--pcap", "satellite", *folder)
    assert_refused(said, "--pcap satellite: ", "satellite.pcapng: read-only file system")


def test_output_folder_is_locked_against_other_commands(
    bentpipe: Any, small: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert bentpipe("run", small, "--out", out).status == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    with files.locked(out):
        for command in (["run", small], ["reproduce", "gaid1998", "--quick"]):
            said = bentpipe(*command, "--out", out)
            assert_refused(said, f"--out {out}: another command is writing there")
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    # It is free again when the other has ended.
    assert bentpipe("run", small, "--out", out).status == 0


def _run_with_file_size_limit(
    size: int, *words: object, cwd: Path
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_failed_probe_file_creation_leaves_no_file(
    bentpipe: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(part: Path, *_: object) -> None:
        # As on a full disk: the file can be made, and nothing can be written to it.
        part.touch()
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq, "ParquetWriter", full)
    out = tmp_path / "out"
    assert_refused(bentpipe("run", small, "--out", out), "no space left on device", status=1)
    assert not list(out.iterdir())


def test_failed_write_keeps_the_existing_files(small: Path, tmp_path: Path) -> None:
    done = _run_with_file_size_limit(0, "new", "mine.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "bentpipe: mine.toml: file too large\n"
    assert not (tmp_path / "mine.toml").exists()

    words = ("run", small, "--out", "out")
    assert _run_with_file_size_limit(10 << 20, *words, cwd=tmp_path).returncode == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    # Room for probes of nothing and for the summary, and for no plot.
    size = 12 << 10
    assert len(before["summary.json"]) < size < len(before["overview.svg"])
    few = ("--set", 'probes.series=["satellite.forward.queue"]', "--set", "probes.interval=1 s")
    done = _run_with_file_size_limit(size, *words, *few, "--seed", "8", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stdout.startswith("small: ")
    assert "wrote" not in done.stdout
    assert re.fullmatch(r"bentpipe: out/\w.*\.svg: file too large\n", done.stderr), done.stderr
    after = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert after.keys() == before.keys()
    # Each existing file is whole.
    assert json.loads(after["summary.json"])["seed"] == 8
    assert {name for name in after if after[name] != before[name]} <= {
        "summary.json",
        "probes.parquet",
    }


def test_out_path_that_is_a_file_is_refused(bentpipe: Any, small: Path, tmp_path: Path) -> None:
    (tmp_path / "results").touch()
    said = bentpipe("run", small, "--out", tmp_path / "results")
    assert_refused(said, "--out", "is a file; expected a folder")


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="optional: needs POSIX permissions")
def test_plots_without_a_home_folder_print_no_warnings(small: Path, tmp_path: Path) -> None:
    """matplotlib keeps what it knows of fonts at home; without one it says so in two lines."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    # No user can create a path below a file.
    nowhere = {"HOME": str(small), "TMPDIR": str(temporary)}
    hidden = {"MPLCONFIGDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}
    kept = {name: value for name, value in os.environ.items() if name not in hidden}
    for _ in range(2):
        done = subprocess.run(
            [*COMMAND, "run", str(small), "--out", "out"],
            cwd=tmp_path,
            env=kept | nowhere,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        # It is there for the next time, and nobody else's.
        (cache,) = temporary.iterdir()
        assert cache.stat().st_mode & 0o777 == 0o700
        assert list(cache.glob("fontlist*"))
    # A folder that others may write to is none to read from.
    cache.chmod(0o777)
    script = "import os, bentpipe.plot; print(os.environ['MPLCONFIGDIR'])"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=kept | nowhere,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip()
    assert str(cache) not in done.stdout


def _link_to_dev_full(path: Path) -> Path:
    """Have a file's place on a full disk."""
    path.symlink_to("/dev/full")
    return path


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="optional: no /dev/full here")
@pytest.mark.parametrize("command", ["run", "advise", "sweep"])
def test_unwritable_plot_still_prints_the_result(
    command: str, bentpipe: Any, small: Path, tmp_path: Path
) -> None:
    full = tmp_path / "plot.svg"
    words: list[object] = [command, small, "--plot", full]
    _link_to_dev_full(full)
    if command == "run":
        words = [command, small, "--flent", _link_to_dev_full(tmp_path / "run.flent.gz")]
    if command == "sweep":
        sweep = tmp_path / "many.toml"
        sweep.write_text(
            'scenario = "small.toml"\n[axes]\nlinks.satellite.delay = ["0.2 s", "0.3 s"]\n',
            encoding="utf-8",
        )
        words = [command, sweep, "--plot", full, "--out", tmp_path / "many.parquet"]
    for as_json in ([], ["--json"]):
        said = bentpipe(*words, *as_json, *(["--resume"] if command == "sweep" and as_json else []))
        assert said.status == 1
        assert said.err == f"bentpipe: {words[3]}: no space left on device\n"
        assert "small" in said.out or "many" in said.out
        assert str(words[3]) not in said.out
        if as_json:
            assert said.data


def test_full_output_folder_still_prints_the_result(small: Path, tmp_path: Path) -> None:
    done = _run_with_file_size_limit(3 << 10, "run", small, "--out", "out", "--json", cwd=tmp_path)
    assert done.returncode == 1
    assert json.loads(done.stdout)["flows"][0]["bytes_delivered"] == 300_000
    assert re.fullmatch(r"bentpipe: out/.*: file too large\n", done.stderr), done.stderr
    with pytest.raises(ProbesNotWrittenError) as raised:
        run(small, probes_to=_FullAfterTheFirst())
    assert raised.value.result.flow().bytes_delivered == 300_000


class _FullAfterTheFirst(io.BytesIO):
    """A file with room for a few bytes."""

    def write(self, content: Any) -> int:
        if self.tell() > 1000:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().write(content)


def test_sweep_on_a_full_disk_prints_the_finished_cells(
    bentpipe: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = tmp_path / "many.toml"
    sweep.write_text(
        f'scenario = "{small.name}"\n[axes]\nlinks.satellite.delay = ["0.2 s", "0.3 s"]\n',
        encoding="utf-8",
    )
    out = tmp_path / "many.parquet"

    def full(_store: Store) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Store, "finish", full)
    said = bentpipe("sweep", sweep, "--workers", "1", "--out", out)
    assert said.status == 1
    assert "2 cells (2 delay_s)" in said.out
    assert "wrote" not in said.out
    assert said.err.splitlines() == [
        f"bentpipe: 2 of 2 cells are in {out}; --resume goes on",
        f"bentpipe: {out}: no space left on device",
    ]
    monkeypatch.setattr(Store, "append", lambda *_: full(*_[:1]))
    out = tmp_path / "none.parquet"
    said = bentpipe("sweep", sweep, "--workers", "1", "--out", out)
    assert_refused(said, f"{out}: no space left on device", status=1)


def test_large_capture_is_reported_during_the_run(
    bentpipe: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(progress, "LARGE_CAPTURE", 1_000_000)
    # Long enough that progress is reported before the end.
    scenario = pair("long", duration="1000 s", rate="100 Mbit/s", delay="1 ms", size="1 GB")
    Path("long.toml").write_text(scenario, encoding="utf-8")
    said = bentpipe("run", "long.toml", "--pcap", "satellite", "--snap", "40")
    assert said.status == 0
    announced = re.fullmatch(
        r"bentpipe: satellite\.pcapng: ([\d.]+) MB after ([\d.]+) s of 1000 s; "
        r"([\d.]+) MB at the end if it goes on so\n",
        said.err,
    )
    assert announced, said.err
    so_far, after_s, whole = map(float, announced.groups())
    assert so_far >= 1.0
    assert whole == pytest.approx(so_far * 1000 / after_s, rel=0.05)


def test_large_unlimited_capture_suggests_a_snap_length(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small, large = tmp_path / "small.pcapng", tmp_path / "large.pcapng"
    small.write_bytes(b"few")
    with files.partial_path(large).open("wb") as part:
        part.truncate(120_000_000)
    watch = progress.CaptureWatch([small, large], snapped=False)
    for _ in range(2):
        watch.look(12.0, 120.0)
    assert capsys.readouterr().err == (
        f"bentpipe: {large}: 120 MB after 12 s of 120 s; 1.2 GB at the end if it goes on so; "
        "--snap 100 keeps no more than the headers\n"
    )


def test_snap_length_truncates_packets(bentpipe: Any, small: Path, tmp_path: Path) -> None:
    sizes = []
    for snap in ([], ["--snap", "100"]):
        assert bentpipe("run", small, "--out", tmp_path, "--pcap", "satellite", *snap).status == 0
        sizes.append((tmp_path / "satellite.pcapng").stat().st_size)
    assert sizes[1] < sizes[0] / 4
    assert_refused(bentpipe("run", small, "--pcap", "satellite", "--snap", "0"), "--snap")
