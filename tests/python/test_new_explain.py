"""Templates, explanations of keys, completion in the shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bentpipe import _native, cli
from bentpipe.cli.everyday_words import TERMS
from bentpipe.cli.explain import find_keys
from bentpipe.cli.new import template_files
from bentpipe.keys import NAME, every_key, key_at
from bentpipe.scenario import Scenario

COMMAND = [sys.executable, "-m", "bentpipe"]


def output_of(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = cli.execute(list(arguments))
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.mark.parametrize("template", sorted(template_files()))
def test_template_runs_and_predicts_and_its_keys_are_explained(
    template: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    status, out, _ = output_of(capsys, "new", "mine.toml", "--template", template)
    assert (status, out) == (0, "wrote mine.toml; try: bentpipe run mine.toml\n")
    text = (tmp_path / "mine.toml").read_text(encoding="utf-8")
    assert tomllib.loads(text)["name"] == "mine"
    assert "FILE" not in text.replace("FOLDER", "")
    # The commands that its comments name are run as printed.
    commands = [line[1:].split("  ")[1:] for line in text.splitlines() if "#   bentpipe" in line]
    assert len(commands) >= 3
    for words in commands:
        command = next(word for word in words if word.strip()).split()
        if "KEY" not in command:
            # That it can be done is tried, not how long it takes to try everything.
            short = ["--set", "duration=5 s"] if command[1] == "advise" else []
            status, out, err = output_of(capsys, *command[1:], *short)
            assert (status, err) == (0, ""), command
    explained = next(line for line in text.splitlines() if "bentpipe explain KEY" in line)
    assert output_of(capsys, "explain", explained.split()[-1])[0] == 0
    # Settings that stand in comments are settings, too.
    Scenario.find("mine.toml").resolved()
    # Nearly every line is explained.
    bare = [line for line in text.splitlines() if line and "#" not in line]
    assert len(bare) < 0.65 * len(text.splitlines())


def test_new_does_not_overwrite_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert output_of(capsys, "new")[0] == 0
    assert (tmp_path / "ship.toml").is_file()
    (tmp_path / "ship.toml").write_text("precious", encoding="utf-8")
    status, _, err = output_of(capsys, "new")
    assert status == 2
    assert "ship.toml is there already" in err
    assert (tmp_path / "ship.toml").read_text(encoding="utf-8") == "precious"
    assert "there are: leo, modem, office, ship" in output_of(capsys, "new", "--template", "x")[2]
    assert "expected a name" in output_of(capsys, "new", "two words.toml")[2]
    assert output_of(capsys, "new", "nowhere/x.toml")[0] == 2
    # Without the ending it is added.
    assert "wrote other.toml" in output_of(capsys, "new", "other")[1]


def test_every_key_of_the_schema_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    schema = json.loads(_native.json_schema())
    written = {
        name
        for table in [schema, *schema["definitions"].values()]
        for name in table.get("properties", {})
    }
    keys = list(every_key())
    assert {key.path[-1] for key in keys if key.path[-1] != NAME} == written
    for key in keys:
        assert key.description, key.dotted
        status, out, err = output_of(capsys, "explain", key.dotted)
        assert (status, err) == (0, ""), key.dotted
        assert key.description.split("\n")[0] in out
        if key.default is not None:
            assert f"default {key.default}" in out


@pytest.mark.parametrize(
    ("what", "fragments"),
    [
        ("links.satellite.forward.rate", ["links.NAME.forward.rate", '"10 Mbit/s"']),
        ("delayed_ack", ["hosts.NAME.tcp.delayed_ack", 'default "40 ms"']),
        ("hybla", ["hosts.NAME.tcp.hybla", "hosts.NAME.tcp.congestion_control"]),
        ("seed", ["seed: a whole number", "default 1"]),
        ("acks", ["links.NAME.acks, links.NAME.forward.acks", "kind"]),
        ("links", ["links: a table", "NAME"]),
    ],
)
def test_explain_prints_a_keys_description(
    what: str, fragments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, _ = output_of(capsys, "explain", what)
    assert status == 0
    for fragment in fragments:
        assert fragment in out


EVERYDAY = (
    *("PEP", "RBDC", "VBDC", "CRA", "handoff", "latency", "jitter", "loss", "MOS", "rain"),
    *("starlink", "VPN"),
)


@pytest.mark.parametrize("word", EVERYDAY)
def test_everyday_words_are_explained(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = output_of(capsys, "explain", word)
    assert (status, err) == (0, "")
    assert out.startswith(f"{word}: ")
    assert "NAME." in out
    data = json.loads(output_of(capsys, "explain", word, "--json")[1])
    assert data["meaning"]
    assert data["keys"]


def test_everyday_words_map_to_keys_and_are_not_keys(capsys: pytest.CaptureFixture[str]) -> None:
    for word, term in TERMS.items():
        assert term.keys, word
        for dotted in term.keys:
            assert key_at(dotted.split(".")) is not None, dotted
        # A key of that name is among them: the word is explained in its place.
        named = {".".join(key.path) for key in find_keys(word)}
        assert named <= set(term.keys), word
        explained = json.loads(output_of(capsys, "explain", word, "--json")[1])
        assert explained["meaning"] == term.meaning, word
    assert "geo-rain" in output_of(capsys, "explain", "rain")[1]


def test_explain_finds_keys_by_words_of_their_descriptions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    status, out, _ = output_of(capsys, "explain", "Ethernet")
    assert status == 0
    assert "links.NAME.framing" in out
    # One of those that are alike.
    assert "links.NAME.forward" not in out


@pytest.mark.parametrize(
    ("table", "key"), [("classes", "NAME.ports"), ("carriers", "NAME.frame"), ("hosts", "NAME.tcp")]
)
def test_explain_of_a_named_table_lists_its_keys(
    table: str, key: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert f"  {key} " in output_of(capsys, "explain", table)[1]


def test_explain_refuses_unknown_keys_with_suggestions(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = output_of(capsys, "explain", "delayed_akc")
    assert (status, out) == (2, "")
    assert "did you mean 'delayed_ack'?" in err
    assert output_of(capsys, "explain", "links.satellite.forward.rate.more")[0] == 2
    assert key_at(["links", "satellite", "forwards"]) is None
    status, out, _ = output_of(capsys, "explain")
    assert status == 0
    assert "flows" in out
    data = json.loads(output_of(capsys, "explain", "seed", "--json")[1])
    assert data["keys"][0]["default"] == "1"


def completed(line: str, *, shell: str = "bash", cwd: Path | None = None) -> list[str]:
    """The completions that a shell offers at the end of a line."""
    words = line.split(" ")
    environment: dict[str, Any] = {
        "_BENTPIPE_COMPLETE": f"complete_{shell}",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    if shell == "fish":
        environment = {
            "_BENTPIPE_COMPLETE": "complete_fish",
            "_TYPER_COMPLETE_ARGS": line,
            "_TYPER_COMPLETE_FISH_ACTION": "get-args",
        }
    done = subprocess.run(
        [str(Path(sys.executable).parent / "bentpipe")],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_shell_completion_offers_names(shell: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("", encoding="utf-8")
    (tmp_path / "notes.txt").write_text("", encoding="utf-8")

    def offered(line: str) -> list[str]:
        return completed(line, shell=shell, cwd=tmp_path)

    assert offered("bentpipe run geo-c") == ["geo-consumer"]
    assert offered("bentpipe run mi") == ["mine.toml"]
    assert "notes.txt" not in offered("bentpipe run ")
    keys = offered("bentpipe run geo-consumer --set links.satellite.forward.ra")
    assert keys == ["links.satellite.forward.rate="]
    words = offered("bentpipe run geo-consumer --set hosts.server.tcp.congestion_control=hy")
    assert words == ["hosts.server.tcp.congestion_control=hybla"]
    assert offered("bentpipe list sc") == ["scenarios"]
    assert offered("bentpipe reproduce oba") == ["obata2000"]
    assert offered("bentpipe new --template of") == ["office"]
    assert offered("bentpipe explain hosts.NAME.tcp.delayed") == ["hosts.NAME.tcp.delayed_ack"]
    assert "advise" in offered("bentpipe ad")


def test_completion_scripts_are_printed() -> None:
    for shell in ("bash", "zsh", "fish"):
        done = subprocess.run(
            [str(Path(sys.executable).parent / "bentpipe"), "--show-completion", shell],
            capture_output=True,
            text=True,
            check=False,
            # The shell that is named, not the one that the tests were started from, if any.
            env={**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"},
        )
        assert done.returncode == 0, done.stderr
        assert "_BENTPIPE_COMPLETE" in done.stdout
