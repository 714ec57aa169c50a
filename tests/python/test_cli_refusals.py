"""A wrong request is one clear line and exit status 2, before anything is simulated."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from .commands import COMMAND, SMALL, assert_refused


@pytest.mark.parametrize(
    ("arguments", "fragments"),
    [
        (["run", "nowhere.toml"], ["nowhere.toml: no such file"]),
        (["run", "geo-consumr"], ["did you mean", "geo-consumer"]),
        (["run", "."], ["folder"]),
        (["run"], ["FILE"]),
        (["run", "SMALL", "--set", "nonsense"], ["--set", "KEY=VALUE"]),
        (["run", "SMALL", "--set", "=1"], ["KEY=VALUE"]),
        (["run", "SMALL", "--seed", "minus one"], ["--seed"]),
        (["run", "SMALL", "--sede", "1"], ["--sede"]),
        (["run", "SMALL", "--set", "links.satellite.rat=1 Mbit/s"], ["rat", "rate"]),
        (["run", "SMALL", "--set", "duration=20"], ["duration"]),
        (["run", "SMALL", "--pcap", "sattelite"], ["sattelite", "satellite"]),
        (["run", "SMALL", "--out", "SMALL"], ["--out", "small.toml"]),
        (["run", "SMALL", "--out", ""], ["--out", "expected a path, got nothing"]),
        (["run", "SWEEP"], ["is a sweep file", "bentpipe sweep"]),
        (["predict", "SWEEP"], ["is a sweep file", "bentpipe sweep"]),
        (["sweep", "SMALL"], ["small.toml:", "is a scenario", "bentpipe run"]),
        (
            ["sweep", "SWEEP OF IT"],
            ["sweeps.toml:1: scenario: ", "many.toml is a sweep file, too; expected a scenario"],
        ),
        (["sweep", "geo-consumer"], ["ready-made scenario", "bentpipe run geo-consumer"]),
        (["predict", "SMALL", "--set", "flows.download.to=nobody"], ["nobody"]),
        (["reproduce", "obata200"], ["obata200", "did you mean 'obata2000'"]),
        (["reproduce", "--out", "SMALL"], ["--out"]),
        (["list", "scenario"], ["did you mean 'scenarios'"]),
        (["list", "zebras"], ["expected one of", "scenarios"]),
        (["frobnicate"], ["frobnicate"]),
    ],
)
def test_invalid_request_prints_one_line_and_exits_with_2(
    bentpipe: Any,
    small: Path,
    arguments: Sequence[str],
    fragments: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(small.parent)
    sweep = small.with_name("many.toml")
    sweep.write_text('scenario = "small.toml"\naxes.seed = { count = 2 }\n', encoding="utf-8")
    sweeps = small.with_name("sweeps.toml")
    sweeps.write_text('scenario = "many.toml"\naxes.seed = { count = 2 }\n', encoding="utf-8")
    files = {"SMALL": str(small), "SWEEP": str(sweep), "SWEEP OF IT": str(sweeps)}
    words = [files.get(word, word) for word in arguments]
    assert_refused(bentpipe(*words), *fragments)


def test_endless_stream_is_refused_as_scenario(bentpipe: Any) -> None:
    assert_refused(bentpipe("run", "/dev/zero"), "longer than 1 MiB")
    assert_refused(bentpipe("sweep", "/dev/zero"), "/dev/zero")


def test_oversized_file_is_read_up_to_the_scenario_limit(
    bentpipe: Any, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As long as a disk, and nothing on it; whether it is a sweep is asked of its beginning.
    read: list[str] = []

    def kept(text: str) -> dict[str, Any]:
        read.append(text)
        return {}

    monkeypatch.setattr("bentpipe.toml.read", kept)
    with small.open("ab") as file:
        file.truncate(1 << 30)
    assert_refused(bentpipe("run", small), "small.toml: longer than 1 MiB: not a scenario file")
    assert all(len(text) <= (1 << 20) for text in read)


def test_overlong_file_name_is_an_invalid_request(bentpipe: Any) -> None:
    for command in ("run", "predict", "sweep"):
        said = bentpipe(command, "x" * 5000)
        assert_refused(said, "xxx...: file name too long")
        assert len(said.err) < 300


def test_scenario_error_names_file_line_and_key(bentpipe: Any, small: Path) -> None:
    small.write_text(SMALL.replace('delay = "250 ms"', 'dealy = "250 ms"'), encoding="utf-8")
    assert_refused(bentpipe("run", small), f"{small}:10", "dealy", "delay")


def test_seed_above_the_maximum_is_refused(bentpipe: Any, small: Path) -> None:
    assert bentpipe("run", small, "--json", "--seed", 2**64 - 1).data["seed"] == 2**64 - 1
    assert_refused(bentpipe("run", small, "--seed", 2**64), "--seed", str(2**64 - 1))


def test_damaged_sweep_is_distinguished_from_a_missing_one(bentpipe: Any, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(
        'scenario = "terrestrial"\n[axes]\nseed = [1]\n[set]\nduration = "1 s"\n', encoding="utf-8"
    )
    folder = tmp_path / "results"
    folder.mkdir()
    for content, fragment in [("{", "is damaged"), ("[]", "is damaged"), ("\xff", "damaged")]:
        (folder / "_sweep.json").write_text(content, encoding="latin-1")
        said = bentpipe("sweep", tmp_path / "sweep.toml", "--out", folder, "--resume")
        assert_refused(said, "_sweep.json", fragment if content != "\xff" else "can't be read")


@pytest.mark.parametrize("command", ["run", "predict", "sweep"])
def test_too_deeply_nested_file_is_refused(bentpipe: Any, tmp_path: Path, command: str) -> None:
    deep = tmp_path / "deep.toml"
    deep.write_text("x = " + "[" * 50_000 + "]" * 50_000, encoding="utf-8")
    assert_refused(bentpipe(command, deep), "deep.toml:1: nested deeper")


@pytest.mark.parametrize("command", ["run", "predict", "sweep"])
@pytest.mark.parametrize("key", ["{} = 1", "[{}]"])
@pytest.mark.parametrize("part", ["a", '"a"', " a "])
def test_overlong_dotted_key_is_refused_quickly(
    bentpipe: Any, tmp_path: Path, command: str, key: str, part: str
) -> None:
    deep = tmp_path / "deep.toml"
    parts = ".".join([part] * 100_000)
    deep.write_text(f'name = "a.b"\n{key.format(parts)}\nb = 1\n', encoding="utf-8")
    began = time.process_time()
    said = bentpipe(command, deep)
    # Reading such a file took minutes.
    assert time.process_time() - began < 5.0
    assert_refused(said, "deep.toml:2: ", "nested")


def test_strings_with_many_dots_are_accepted(bentpipe: Any, small: Path) -> None:
    dotted = ".".join(["a"] * 200)
    small.write_text(SMALL + f"\n# {dotted}", encoding="utf-8")
    said = bentpipe("predict", small, "--set", f"description={dotted}", "--json")
    assert said.status == 0
    wrong = SMALL.replace("rate =", f'description = "{dotted}"\nrato =')
    small.write_text(wrong, encoding="utf-8")
    assert_refused(bentpipe("run", small), "unknown key")


def test_missing_files_are_refused_before_the_run(
    bentpipe: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_if_called(*_: object, **__: object) -> None:
        raise AssertionError("it ran")

    monkeypatch.setattr("bentpipe.cli.run.simulate", fail_if_called)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    run = ("run", small)
    assert_refused(bentpipe(*run, "--python", "nofile.py"), "--python nofile.py: no such file")
    assert_refused(bentpipe(*run, "--flent", "no/x.gz"), "--flent no/x.gz: there is no folder no")
    assert_refused(bentpipe(*run, "--flent", "folder"), "--flent folder: is a folder")
    assert_refused(bentpipe("new", "no/x.toml"), "no/x.toml: there is no folder no")
    for name in ("/", ".", "..", "folder/.."):
        assert_refused(bentpipe("new", name), "is a folder; expected a file in it")
    assert_refused(bentpipe("sweep", ""), "expected a sweep file, got nothing")
    for command in ("run", "predict", "advise", "emulate", "compare"):
        assert_refused(bentpipe(command, ""), "expected a scenario file", "got nothing")
    assert [path.name for path in tmp_path.iterdir() if path != small] == ["folder"]


def test_non_utf8_values_are_refused_except_in_file_names(
    bentpipe: Any, small: Path, tmp_path: Path
) -> None:
    # As Python has a byte of an argument that is no UTF-8.
    odd = "a\udcff"
    for words in (
        ("--set", f"name={odd}"),
        ("--set", f"hosts.{odd}.tcp.nagle=true"),
        ("--pcap", odd),
        ("--out", tmp_path / odd),
    ):
        said = bentpipe("run", small, *words)
        assert_refused(said, str(words[0]), "a\\udcff", "not UTF-8 text")
    assert_refused(bentpipe("reproduce", "--out", tmp_path / odd), "--out", "not UTF-8 text")
    file = tmp_path / f"{odd}.toml"
    file.write_text(SMALL, encoding="utf-8")
    assert bentpipe("run", file, "--flent", tmp_path / f"{odd}.gz").status == 0


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """Return a folder with files that can't be read, and in which nothing can be made."""
    folder = tmp_path / "locked"
    folder.mkdir()
    (folder / "small.toml").write_text(SMALL, encoding="utf-8")
    (folder / "rule.py").touch()
    (folder / "made").mkdir()
    for path in (*folder.iterdir(), folder):
        path.chmod(0o555 if path.is_dir() else 0)
    return folder


def _run_without_permissions(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Call the command line without root's right to read and write what it may not."""
    drop = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all"]
    return subprocess.run(
        [*(drop if os.geteuid() == 0 else []), *COMMAND, *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or (os.geteuid() == 0 and shutil.which("setpriv") is None),
    reason="optional: root may read everything, and there is no setpriv to do without",
)
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "locked/small.toml"], "locked/small.toml: cannot be read"),
        (["advise", "locked/small.toml"], "locked/small.toml: cannot be read"),
        (["sweep", "locked/small.toml"], "locked/small.toml: permission denied"),
        (["sweep", "many.toml"], "locked/small.toml: permission denied"),
        (["sweep", "one.toml", "--out", "locked/made"], "--out locked/made: can't be written to"),
        (["run", "small.toml", "--out", "locked/made"], "--out locked/made: can't be written to"),
        (["run", "small.toml", "--python", "locked/rule.py"], "--python locked/rule.py: can't"),
        (["run", "small.toml", "--python", "wrong.py"], "--python wrong.py: FileNotFoundError"),
        (["new", "locked/mine.toml"], "locked/mine.toml: permission denied"),
    ],
)
def test_missing_file_permissions_are_an_invalid_request(
    small: Path, locked: Path, arguments: list[str], said: str
) -> None:
    for name, scenario in (("many", "locked/small.toml"), ("one", "small.toml")):
        text = f'scenario = "{scenario}"\naxes.seed = {{ count = 2 }}\n'
        (locked.parent / f"{name}.toml").write_text(text, encoding="utf-8")
    (locked.parent / "wrong.py").write_text('open("nowhere")\n', encoding="utf-8")
    done = _run_without_permissions(*arguments, cwd=small.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"bentpipe: {said}"), done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["run", "predict", "advise", "sweep"])
def test_byte_order_mark_is_ignored(
    bentpipe: Any, small: Path, tmp_path: Path, command: str
) -> None:
    small.write_text("\N{BYTE ORDER MARK}" + SMALL, encoding="utf-8")
    sweep = tmp_path / "many.toml"
    text = '\N{BYTE ORDER MARK}scenario = "small.toml"\naxes.seed = { count = 2 }\n'
    sweep.write_text(text, encoding="utf-8")
    if command == "sweep":
        said = bentpipe(command, sweep, "--out", tmp_path / "out")
    else:
        said = bentpipe(command, small)
    assert (said.status, said.err) == (0, "")


@pytest.mark.parametrize("command", ["run", "predict", "advise", "report", "sweep"])
def test_closed_standard_input_is_an_invalid_request(
    bentpipe: Any, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr("sys.stdin", None)
    assert_refused(bentpipe(command, "-"), "-: standard input is closed")


@pytest.mark.parametrize("command", ["run", "predict"])
def test_size_limit_within_a_multibyte_character_is_enforced(
    bentpipe: Any, small: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    # Two bytes each: a limit in bytes is in the middle of one.
    content = f'name = "{"ä" * (1 << 20)}"\n'.encode()
    small.write_bytes(content)
    assert_refused(bentpipe(command, small), "small.toml: longer than 1 MiB: not a scenario file")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    assert_refused(bentpipe(command, "-"), "-: longer than 1 MiB: not a scenario file")


def test_file_names_are_utf8_under_any_locale(small: Path, tmp_path: Path) -> None:
    named = small.with_name("größe.toml")
    small.rename(named)
    ascii_only = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*COMMAND, "run", "größe.toml", "--out", "erträge"],
        cwd=tmp_path,
        env={**os.environ, **ascii_only},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert "erträge/summary.json" in done.stdout.decode()
    assert (tmp_path / "erträge" / "summary.json").is_file()
