"""The command line's contract: output, exit statuses, one clear line for what is wrong."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet as pq
import pytest

from bentpipe import _native, cli, endings, files, probe_file
from bentpipe.cli.commands import COMMANDS

from .networks import pair

COMMAND = [sys.executable, "-m", "bentpipe"]

# With room for a few more: what this is to notice is a package.
MOST_OWN_MODULES, MOST_MODULES = 24, 120

SMALL = pair("small", duration="20 s", rate="2 Mbit/s", delay="250 ms", size="300 kB", seed=7)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


class Said:
    """What a command line came to."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def bentpipe(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: object) -> Said:
        status = cli.execute([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Said(status, captured.out, captured.err)

    return call


def assert_refused(said: Said, *fragments: str, status: int = 2) -> None:
    assert said.status == status
    assert said.out == ""
    assert len(said.err.splitlines()) == 1, said.err
    assert "Traceback" not in said.err
    for fragment in fragments:
        assert fragment in said.err


def test_json_is_one_object_with_the_contracts_fields(bentpipe: Any, small: Path) -> None:
    said = bentpipe("run", small, "--json")
    assert (said.status, said.err) == (0, "")
    summary = said.data
    assert summary.keys() >= {
        *("scenario", "seed", "duration_s", "wall_s", "packet_hops"),
        *("flows", "links", "gateways"),
    }
    (flow,) = summary["flows"]
    assert flow.keys() >= {
        *("name", "outcome", "bytes_delivered", "goodput_bps"),
        *("start_s", "first_data_s", "finish_s", "ended_s"),
        *("segments_sent", "segments_retransmitted", "timeouts", "fast_recoveries", "rtt_ms"),
    }
    assert flow["rtt_ms"].keys() >= {"min", "mean", "p95", "max"}
    assert flow["bytes_delivered"] == 300_000
    assert [link["name"] for link in summary["links"]] == ["satellite.forward", "satellite.return"]
    for link in summary["links"]:
        assert link.keys() >= {
            *("utilization", "packets_delivered", "packets_lost", "packets_dropped"),
            *("queue_max_packets", "queue_max_bytes"),
        }


def test_the_table_has_units(bentpipe: Any, small: Path) -> None:
    said = bentpipe("run", small)
    assert (said.status, said.err) == (0, "")
    row = next(line for line in said.out.splitlines() if line.startswith("download "))
    assert re.search(r"\d+ kbit/s +300 kB +finished +\d", row)
    assert re.search(r" 50\d ms ", row)
    assert "satellite.forward" in said.out


def test_a_flow_that_gives_up_says_so(bentpipe: Any, small: Path) -> None:
    lost = f"links.satellite.forward.errors.lost_packets={list(range(100, 500))}"
    changed = (lost, "duration=2 h", "links.satellite.forward.rate=1 Mbit/s")
    settings = [word for setting in changed for word in ("--set", setting)]
    said = bentpipe("run", small, *settings, "--json")
    (flow,) = said.data["flows"]
    assert (said.status, flow["outcome"], flow["finish_s"]) == (0, "gave up", None)
    # Fifteen retransmissions, each after twice the wait of the one before, up to two minutes.
    assert flow["ended_s"] == said.data["ended_s"] > 600
    assert flow["goodput_bps"] == pytest.approx(8 * flow["bytes_delivered"] / flow["ended_s"])
    table = bentpipe("run", small, *settings).out
    assert re.search(r"^download .+  gave up  1\d\d\d s  ", table, re.MULTILINE)


def test_many_flows_are_rows(bentpipe: Any, small: Path) -> None:
    more = [
        f'[flows.more{index}]\nfrom = "server"\nto = "client"\napp = {{ kind = "bulk" }}'
        for index in range(6)
    ]
    small.write_text("\n".join([SMALL, *more]), encoding="utf-8")
    said = bentpipe("run", small)
    assert said.status == 0
    assert re.search(r"^more5 +[\d.]+ k?bit/s +[\d.]+ k?B +", said.out, re.MULTILINE)


def test_seed_and_settings_change_the_run(bentpipe: Any, small: Path) -> None:
    assert bentpipe("run", small, "--json").data["seed"] == 7
    assert bentpipe("run", small, "--json", "--seed", 11).data["seed"] == 11
    slow = bentpipe("run", small, "--json", "--set", "links.satellite.rate=200 kbit/s").data
    assert slow["flows"][0]["goodput_bps"] < 200_000


def test_equal_seeds_give_equal_runs(bentpipe: Any, small: Path) -> None:
    lossy = ("--set", "links.satellite.errors.packet_loss_rate=0.02", "--json")
    runs = [bentpipe("run", small, *lossy).data for _ in range(2)]
    for each in runs:
        del each["wall_s"]
    assert runs[0] == runs[1]


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


def test_a_ready_made_scenario_runs_by_its_name(bentpipe: Any) -> None:
    names = bentpipe("list", "scenarios", "--json").data["scenarios"]
    assert len(names) >= 6
    for name in names:
        assert bentpipe("run", name, "--json").data["scenario"] == name


def test_predict_says_which_limit_binds(bentpipe: Any, small: Path) -> None:
    settings = ("hosts.client.tcp.delayed_ack=off", "hosts.client.tcp.receive_buffer=64 kB")
    said = bentpipe("predict", small, "--json", "--set", settings[0], "--set", settings[1])
    assert (said.status, said.err) == (0, "")
    (flow,) = said.data["flows"]
    assert flow["binding"] == min(flow["limits_bps"], key=flow["limits_bps"].get)
    models = {model["name"]: model for model in flow["models"]}
    assert models.keys() == {
        *("obata2000", "delayed_ack", "lakshman", "mathis", "padhye", "cardwell")
    }
    assert models["delayed_ack"]["applies"]
    assert models["delayed_ack"]["throughput_bps"] > 0
    assert not models["padhye"]["applies"]
    assert models["padhye"]["throughput_bps"] is None

    table = bentpipe("predict", small)
    assert "binds" in table.out
    assert "no: " in table.out


def test_lists_schema_and_doctor(bentpipe: Any) -> None:
    everything = bentpipe("list", "--json").data
    assert "obata2000" in everything["studies"]
    assert "reno" in everything["congestion-controls"]
    for kind, names in everything.items():
        assert [line.split()[0] for line in bentpipe("list", kind).out.splitlines()] == names
        assert kind in bentpipe("list").out
    schema = bentpipe("schema").data
    assert schema["type"] == "object"
    found = {each["name"]: each["found"] for each in bentpipe("doctor", "--json").data["findings"]}
    assert found["simulator"]
    assert found.keys() >= {"ns-2", "tshark"}
    assert "simulator" in bentpipe("doctor").out


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
        (["sweep", "geo-consumer"], ["ready-made scenario", "bentpipe run geo-consumer"]),
        (["predict", "SMALL", "--set", "flows.download.to=nobody"], ["nobody"]),
        (["reproduce", "obata200"], ["obata200", "did you mean 'obata2000'"]),
        (["reproduce", "--out", "SMALL"], ["--out"]),
        (["list", "scenario"], ["did you mean 'scenarios'"]),
        (["list", "zebras"], ["expected one of", "scenarios"]),
        (["frobnicate"], ["frobnicate"]),
    ],
)
def test_a_wrong_request_is_one_line_and_2(
    bentpipe: Any,
    small: Path,
    arguments: Sequence[str],
    fragments: Sequence[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(small.parent)
    sweep = small.with_name("many.toml")
    sweep.write_text('scenario = "small.toml"\naxes.seed = { count = 2 }\n', encoding="utf-8")
    files = {"SMALL": str(small), "SWEEP": str(sweep)}
    words = [files.get(word, word) for word in arguments]
    assert_refused(bentpipe(*words), *fragments)


def test_a_scenario_comes_from_a_pipe_too(small: Path) -> None:
    for name in ("-", "/dev/stdin"):
        for text, status in ((SMALL, 0), (SMALL.replace("delay", "dealy"), 2)):
            process = subprocess.run(
                [*COMMAND, "run", name, "--json"],
                input=text,
                capture_output=True,
                text=True,
                check=False,
            )
            assert process.returncode == status, process.stderr
            if status:
                assert process.stderr.startswith(f"bentpipe: {name}:10: ")
            else:
                assert json.loads(process.stdout)["flows"][0]["bytes_delivered"] == 300_000
    shell = f'{" ".join(COMMAND)} run <(cat "$0") --json'
    process = subprocess.run(
        ["bash", "-c", shell, str(small)], capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout)["scenario"] == "small"


def test_a_stream_without_end_is_no_scenario(bentpipe: Any) -> None:
    assert_refused(bentpipe("run", "/dev/zero"), "longer than 1 MiB")
    assert_refused(bentpipe("sweep", "/dev/zero"), "/dev/zero")


def test_of_a_long_file_no_more_is_read_than_of_a_scenario(
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
    assert len(read) == 1
    assert len(read[0]) <= (1 << 20) + 1


def test_a_name_that_cannot_be_a_files_is_a_wrong_request(bentpipe: Any) -> None:
    for command in ("run", "predict", "sweep"):
        said = bentpipe(command, "x" * 5000)
        assert_refused(said, "xxx...: file name too long")
        assert len(said.err) < 300


def test_nothing_of_an_earlier_run_stays(bentpipe: Any, small: Path, tmp_path: Path) -> None:
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


def test_a_wrong_scenario_names_file_line_and_key(bentpipe: Any, small: Path) -> None:
    small.write_text(SMALL.replace('delay = "250 ms"', 'dealy = "250 ms"'), encoding="utf-8")
    assert_refused(bentpipe("run", small), f"{small}:10", "dealy", "delay")


def test_an_unwritable_folder_is_refused_before_the_run(
    bentpipe: Any, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it ran")

    forbidding = SimpleNamespace(access=lambda *_: False, W_OK=os.W_OK, X_OK=os.X_OK)
    monkeypatch.setattr("bentpipe.cli.output.os", forbidding)
    monkeypatch.setattr("bentpipe.cli.run.simulate", never)
    assert_refused(bentpipe("run", small, "--out", small.parent), "can't be written to")


def test_work_that_fails_is_1(
    bentpipe: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device", "probes.parquet")

    monkeypatch.setattr(probe_file.ProbeWriter, "take", full)
    said = bentpipe("run", small, "--out", tmp_path)
    assert_refused(said, "probes.parquet: no space left on device", status=1)


def test_a_mistake_of_ours_is_one_line_too(
    bentpipe: Any, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oh\nno")

    monkeypatch.setattr("bentpipe.cli.run.simulate", broken)
    assert_refused(bentpipe("run", small), "internal error: ZeroDivisionError: oh no", status=1)


def test_ctrl_c_is_130(bentpipe: Any, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("bentpipe.cli.run.simulate", interrupted)
    assert_refused(bentpipe("run", small), "interrupted", status=130)


def test_a_reader_that_leaves_is_no_traceback(small: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    process = subprocess.run(
        [*COMMAND, "run", str(small)], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (process.returncode, process.stderr) == (1, b"")


def test_help_and_version(bentpipe: Any) -> None:
    assert bentpipe("--help").status == 0
    said = bentpipe("--version").out
    assert re.fullmatch(
        r"bentpipe \d+\.\d+\.\d+( \(commit [0-9a-f]{12}(, with changes)?\))?\n", said
    )
    if _native.__commit__:
        assert _native.__commit__ in said
    alone = bentpipe()
    assert (alone.status, alone.err) == (2, "")
    for name, command in COMMANDS.items():
        said = bentpipe(name, "--help")
        assert said.status == 0
        for parameter in command.parameters.values():
            assert parameter.option in said.out


def loaded_by(*arguments: object) -> set[str]:
    """Return the modules that a command line imports."""
    script = (
        "import sys; from bentpipe import cli; status = cli.execute(sys.argv[1:]); "
        "print(*sys.modules, file=sys.stderr); sys.exit(status)"
    )
    process = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(process.stderr.split())


def test_a_run_loads_nothing_that_it_does_not_need(small: Path) -> None:
    """Start-up is bounded by what is imported; times would depend on the machine."""
    # Each of them costs more than the run itself: rich alone is a third of the start.
    heavy = {"numpy", "matplotlib", "pyarrow", "jinja2", "pydantic", "rich", "tomllib", "typer"}
    for options in (["--json"], ["--seed", "2", "--set", "duration=20 s"]):
        loaded = loaded_by("run", small, *options)
        assert not loaded & heavy
        # Python itself has some 90; ours are what a run needs, each a file to read.
        ours = {name for name in loaded if name.startswith("bentpipe")}
        assert len(ours) <= MOST_OWN_MODULES
        assert len(loaded) <= MOST_MODULES


def test_what_a_run_writes_needs_no_pandas(small: Path, tmp_path: Path) -> None:
    """It is there, since xarray needs it, and takes longer to import than most runs."""
    loaded = loaded_by("run", small, "--out", tmp_path / "out")
    assert "pyarrow" in loaded
    assert "pandas" not in loaded


def test_main_exits_with_the_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["bentpipe", "list", "zebras"])
    with pytest.raises(SystemExit) as exit_:
        cli.main()
    assert exit_.value.code == 2
    assert "zebras" in capsys.readouterr().err


def test_stdout_that_fails_is_reported(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Full(io.StringIO):
        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(sys, "stdout", Full())
    assert cli.execute(["run", str(small), "--json"]) == 1
    assert capsys.readouterr().err == "bentpipe: standard output: no space left on device\n"


def test_a_seed_beyond_the_largest_is_refused(bentpipe: Any, small: Path) -> None:
    assert bentpipe("run", small, "--json", "--seed", 2**64 - 1).data["seed"] == 2**64 - 1
    assert_refused(bentpipe("run", small, "--seed", 2**64), "--seed", str(2**64 - 1))


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["run", "SMALL"], 1),
        (["predict", "SMALL"], 1),
        (["run", "SMALL", "--json"], 1),
        (["list"], 1),
    ],
)
def test_a_closed_standard_output_is_one_line(
    small: Path, arguments: list[str], status: int
) -> None:
    words = [str(small) if word == "SMALL" else word for word in arguments]
    command = [sys.executable, "-m", "bentpipe", *words]
    closed = ["sh", "-c", 'exec "$@" >&-', "sh", *command]
    finished = subprocess.run(closed, capture_output=True, text=True, check=False)
    assert finished.returncode == status
    assert finished.stderr == "bentpipe: standard output: closed\n"
    silent = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command]
    finished = subprocess.run(silent, capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
    assert finished.stdout


def test_a_damaged_sweep_is_not_a_missing_one(bentpipe: Any, tmp_path: Path) -> None:
    (tmp_path / "sweep.toml").write_text(
        'scenario = "terrestrial"\n[axes]\nseed = [1]\n[set]\nduration = "1 s"\n', encoding="utf-8"
    )
    folder = tmp_path / "results"
    folder.mkdir()
    for content, fragment in [("{", "is damaged"), ("[]", "is damaged"), ("\xff", "damaged")]:
        (folder / "_sweep.json").write_text(content, encoding="latin-1")
        said = bentpipe("sweep", tmp_path / "sweep.toml", "--out", folder, "--resume")
        assert_refused(said, "_sweep.json", fragment if content != "\xff" else "can't be read")


def test_the_documented_results_are_those_of_the_schema(bentpipe: Any) -> None:
    said = bentpipe("schema", "results")
    assert (said.status, said.err) == (0, "")
    root = Path(__file__).parents[2]
    page = (root / "docs" / "results.md").read_text(encoding="utf-8")
    tool = [sys.executable, str(root / "tools" / "results-reference")]
    made = subprocess.run(tool, input=said.out, capture_output=True, text=True, check=True)
    assert made.stdout == page, "make docs"
    assert_refused(bentpipe("schema", "result"), "scenario or results")


@pytest.mark.parametrize("command", ["run", "predict", "sweep"])
def test_a_file_nested_beyond_what_a_parser_follows_is_refused(
    bentpipe: Any, tmp_path: Path, command: str
) -> None:
    deep = tmp_path / "deep.toml"
    deep.write_text("x = " + "[" * 50_000 + "]" * 50_000, encoding="utf-8")
    assert_refused(bentpipe(command, deep), "deep.toml:1: nested deeper")


@pytest.mark.parametrize("command", ["run", "predict", "sweep"])
@pytest.mark.parametrize("key", ["{} = 1", "[{}]"])
@pytest.mark.parametrize("part", ["a", '"a"', " a "])
def test_a_key_of_parts_without_end_is_refused_at_once(
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


def test_a_string_may_have_as_many_dots_as_it_likes(bentpipe: Any, small: Path) -> None:
    dotted = ".".join(["a"] * 200)
    small.write_text(SMALL + f"\n# {dotted}", encoding="utf-8")
    said = bentpipe("predict", small, "--set", f"description={dotted}", "--json")
    assert said.status == 0
    wrong = SMALL.replace("rate =", f'description = "{dotted}"\nrato =')
    small.write_text(wrong, encoding="utf-8")
    assert_refused(bentpipe("run", small), "unknown key")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_what_an_encoding_has_no_sign_for_is_no_end(small: Path, encoding: str) -> None:
    for command in ("run", "predict"):
        done = subprocess.run(
            [*COMMAND, command, str(small)],
            env={**os.environ, "PYTHONIOENCODING": encoding},
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
        assert b"small" in done.stdout


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="optional: no /dev/full here")
def test_a_full_disk_is_told_with_the_file(bentpipe: Any, small: Path) -> None:
    said = bentpipe("run", small, "--flent", "/dev/full")
    assert_refused(said, "/dev/full", "no space left on device", status=1)


def test_a_capture_that_finds_no_room_ends_the_run_soon(tmp_path: Path) -> None:
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


ENDED = {
    signal.SIGINT: (130, "bentpipe: interrupted\n"),
    signal.SIGTERM: (143, "bentpipe: ended by SIGTERM\n"),
    signal.SIGHUP: (129, "bentpipe: ended by SIGHUP\n"),
}


@pytest.mark.parametrize("number", ENDED)
@pytest.mark.parametrize("command", ["run", "advise"])
def test_a_signal_ends_a_command_with_a_line_and_leaves_nothing(
    tmp_path: Path, number: signal.Signals, command: str
) -> None:
    # Hours, were it simulated to the end; on a disk that it can't fill.
    long = pair("long", duration="70 h", rate="40 Mbit/s", delay="10 ms", size="400 GB", seed=1)
    (tmp_path / "long.toml").write_text(long, encoding="utf-8")
    writing = ["--out", "out", "--pcap", "satellite"] if command == "run" else []
    process = subprocess.Popen(
        [*COMMAND, command, "long.toml", *writing],
        cwd=tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    # A simulation is at work when it writes: it may have filled that disk in another second.
    parts = [tmp_path / "out" / f".{name}.part" for name in ("probes.parquet", "satellite.pcapng")]
    while (
        not (parts[0].exists() and parts[1].exists() and parts[1].stat().st_size > 1 << 20)
        if command == "run"
        else not _at_work(process)
    ):
        assert time.monotonic() < deadline
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    process.send_signal(number)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, said, out) == (*ENDED[number], "")
    assert not list(tmp_path.glob("out/*"))


def _at_work(process: subprocess.Popen[str]) -> bool:
    """Whether it has been at work for so long that it is simulating."""
    if not Path("/proc/self/stat").exists():
        time.sleep(2.0)
        return True
    fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > 1.5


def test_a_signal_that_is_ignored_stays_so() -> None:
    # As `nohup` has it; and one that somebody else handles is theirs.
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with endings.interrupting():
            assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
            assert signal.getsignal(signal.SIGTERM) is endings.interrupt
    finally:
        signal.signal(signal.SIGHUP, before)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_request_for_what_is_not_there_is_2_and_refused_before_the_run(
    bentpipe: Any, small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it ran")

    monkeypatch.setattr("bentpipe.cli.run.simulate", never)
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


def test_what_is_not_utf_8_is_refused_and_may_be_a_files_name(
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


def test_a_link_that_is_named_twice_is_captured_once(
    bentpipe: Any, small: Path, tmp_path: Path
) -> None:
    for folder, links in (("once", ["satellite"]), ("twice", ["satellite", "satellite"])):
        words = [word for link in links for word in ("--pcap", link)]
        said = bentpipe("run", small, "--out", tmp_path / folder, *words)
        assert (said.status, said.out.count("satellite.pcapng")) == (0, 1)
    once, twice = (tmp_path / folder / "satellite.pcapng" for folder in ("once", "twice"))
    assert once.read_bytes() == twice.read_bytes()


def test_a_capture_is_one_commands_at_a_time(
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
def test_a_place_where_a_capture_cannot_be_is_refused_before_the_run(
    bentpipe: Any, small: Path, monkeypatch: pytest.MonkeyPatch, there: bool
) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("it ran")

    def read_only(path: Path) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))

    monkeypatch.setattr("bentpipe.cli.run.simulate", never)
    monkeypatch.setattr("bentpipe.cli.output.reserved", read_only)
    folder = ("--out", small.parent) if there else ()
    said = bentpipe("run", small, "--pcap", "satellite", *folder)
    assert_refused(said, "--pcap satellite: ", "satellite.pcapng: read-only file system")


def test_a_folder_is_one_commands_at_a_time(bentpipe: Any, small: Path, tmp_path: Path) -> None:
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


def _with_room_for(size: int, *words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size)),
        capture_output=True,
        text=True,
        check=False,
    )


def test_probes_that_cannot_even_begin_leave_no_file(
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


def test_what_finds_no_room_leaves_what_was_there(small: Path, tmp_path: Path) -> None:
    done = _with_room_for(0, "new", "mine.toml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "bentpipe: mine.toml: file too large\n"
    assert not (tmp_path / "mine.toml").exists()

    words = ("run", small, "--out", "out")
    assert _with_room_for(10 << 20, *words, cwd=tmp_path).returncode == 0
    before = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    # Room for probes of nothing and for the summary, and for no plot.
    size = 12 << 10
    assert len(before["summary.json"]) < size < len(before["overview.svg"])
    few = ("--set", 'probes.series=["satellite.forward.queue"]', "--set", "probes.interval=1 s")
    done = _with_room_for(size, *words, *few, "--seed", "8", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert re.fullmatch(r"bentpipe: out/\w.*\.svg: file too large\n", done.stderr), done.stderr
    after = {path.name: path.read_bytes() for path in (tmp_path / "out").iterdir()}
    assert after.keys() == before.keys()
    # What is there is whole.
    assert json.loads(after["summary.json"])["seed"] == 8
    assert {name for name in after if after[name] != before[name]} <= {
        "summary.json",
        "probes.parquet",
    }


def test_a_file_where_a_folder_is_to_be_is_called_one(
    bentpipe: Any, small: Path, tmp_path: Path
) -> None:
    (tmp_path / "results").touch()
    said = bentpipe("run", small, "--out", tmp_path / "results")
    assert_refused(said, "--out", "is a file; expected a folder")
