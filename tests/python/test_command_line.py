"""Command lines are read the short way as typer reads them, and the table is what commands take."""

from __future__ import annotations

import inspect
import os
import shlex
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bentpipe import cli
from bentpipe.cli import plain
from bentpipe.cli.application import UsageError, application
from bentpipe.cli.commands import COMMANDS
from bentpipe.cli.declaring import Command
from bentpipe.cli.source import find_scenario

NUMBERS = (
    *("0", "1", "3", "007", "+3", "-1", "1_000", "٣", " 3", "x", "1000", "1001", ""),
    *(str(2**64 - 1), str(2**64), "9" * 5000),
)
TEXTS = ("vsat", "a=b", "duration=1 s", "dir/file.svg", "-", "", "--", "-x", "--=", "é", "--json")
OTHERS = ("--help", "-h", "--nosuch", "--nosuch=1", "--se", "--version", "vsat", "-", "--")

# Commands whose words the package reads.
PARSED = [name for name, command in COMMANDS.items() if not command.parses_itself]

Call = tuple[Command, dict[str, Any]]


def read_by_typer(name: str, words: list[str]) -> Call | None:
    """Return what typer would have a command called with; None for a mistake, or help."""
    calls: list[Call] = []

    def note(command: Command, values: Mapping[str, Any]) -> None:
        calls.append((command, dict(values)))

    try:
        application([name], call=note)([name, *words], prog_name="bentpipe", standalone_mode=False)
    except Exception as error:
        if isinstance(error, UsageError):
            return None
        raise
    return calls[0] if calls else None


@pytest.mark.parametrize("name", PARSED)
def test_help_examples_run_and_names_are_not_truncated(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert cli.execute([name, "--help"]) == 0
    said = capsys.readouterr().out
    assert "\u2026" not in said
    examples = COMMANDS[name].examples
    assert examples
    monkeypatch.chdir(tmp_path)
    assert cli.execute(["new"]) == 0
    for line in examples:
        assert f"bentpipe {line}" in " ".join(said.split())
        # A shell takes what is behind a > for itself.
        first, *words = shlex.split(line.partition(" > ")[0])
        assert first == name
        read = read_by_typer(name, words)
        assert read is not None, line
        if name not in ("sweep", "new", "explain", "list") and read[1].get("file"):
            find_scenario(read[1]["file"], read[1].get("settings", ())).resolved()


def assert_same(name: str, words: list[str]) -> None:
    values = plain.read(COMMANDS[name].parameters, words)
    if values is not None:
        assert read_by_typer(name, words) == (COMMANDS[name], values)


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Draw a command with an argument, and options in which little is wrong."""
    # The others have no parameter of a kind that these don't have.
    name = draw(st.sampled_from(["run", "emulate", "advise", "reproduce", "new"]))
    parameters = list(COMMANDS[name].parameters.values())
    words = ["vsat"] if any(each.required for each in parameters) else []
    for each in draw(st.lists(st.sampled_from(parameters), max_size=4)):
        text = draw(st.sampled_from(NUMBERS if each.kind is int else TEXTS))
        if not each.option:
            words.append(text)
        elif each.kind is bool:
            words.append(each.option)
        else:
            words += draw(st.sampled_from([(each.option, text), (f"{each.option}={text}",)]))
    if draw(st.integers(0, 3)) == 0:
        words.insert(draw(st.integers(0, len(words))), draw(st.sampled_from(OTHERS)))
    return name, words


@settings(max_examples=400)
@given(lines())
def test_fast_path_parses_arguments_like_typer(line: tuple[str, list[str]]) -> None:
    assert_same(*line)


@pytest.mark.parametrize("line", ["run vsat --seed", "advise vsat --seeds", "sweep x --workers"])
def test_fast_path_parses_numbers_like_typer(line: str) -> None:
    name, *words = line.split()
    for number in NUMBERS:
        assert_same(name, [*words, number])


@pytest.mark.parametrize(
    "line",
    [
        "run vsat",
        "run vsat --json",
        "run --seed 3 vsat --set a=b --set=c=d --out results --pcap satellite",
        "run - --python rule.py --all",
        "emulate vsat ping ship --shell shore",
        "compare vsat --plot both.svg",
        "predict vsat",
        "advise vsat --seeds 5 --workers 2",
        "reproduce obata2000 karir1999 --quick",
        "reproduce",
        "sweep grid.toml --resume --dask tcp://localhost:8786",
        "new mine.toml --template leo",
        "explain",
        "list scenarios --json",
        "schema results",
        "doctor",
    ],
)
def test_ordinary_command_lines_use_the_fast_path(line: str) -> None:
    name, *words = line.split()
    values = plain.read(COMMANDS[name].parameters, words)
    assert values is not None
    assert read_by_typer(name, words) == (COMMANDS[name], values)


def test_shell_completion_is_left_to_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, plain.COMPLETING, "complete_bash")
    assert plain.read(COMMANDS["run"].parameters, ["vsat"]) is None


@pytest.mark.parametrize("name", PARSED)
def test_command_parameters_match_the_table(name: str) -> None:
    module, _, function = COMMANDS[name].place.partition(".")
    command = getattr(import_module(f"bentpipe.cli.{module}"), function)
    taken = inspect.signature(command).parameters
    assert set(taken) == set(COMMANDS[name].parameters)


def test_path_options_are_parsed_as_paths() -> None:
    values = plain.read(COMMANDS["run"].parameters, ["vsat", "--out", "a/b"])
    assert values is not None
    assert values["out"] == Path("a/b")
