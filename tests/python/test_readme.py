"""The README's commands do what it says, as they are printed."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from bentpipe import cli

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# It changes the files of the user's shell.
NOT_HERE = "--install-completion"


def printed_commands() -> list[list[str]]:
    lines = re.findall(r"^\.venv/bin/bentpipe (.*)$", README, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def test_readme_commands_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    example = re.search(r"```toml\n(# ship\.toml.*?)```", README, re.DOTALL)
    assert example is not None
    (tmp_path / "ship.toml").write_text(example[1], encoding="utf-8")
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    commands = [words for words in printed_commands() if NOT_HERE not in words]
    assert len(commands) >= 8
    for words in commands:
        status = cli.execute(words)
        said = capsys.readouterr()
        assert (status, said.err) == (0, ""), words
        assert said.out
    for made in ("results/overview.svg", "results/satellite.pcapng", "errors.svg", "office.toml"):
        assert (tmp_path / made).is_file(), made


def test_linked_pages_exist() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in pages:
        text = page.read_text(encoding="utf-8")
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"
