"""Pages show what their commands print, and all commands in pages are read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from bentpipe.cli.application import application
from bentpipe.cli.commands import COMMANDS
from bentpipe.cli.declaring import Command

from .conftest import load_script

ROOT = Path(__file__).parents[2]

documented = load_script(ROOT / "tools" / "documented_commands.py")

PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text("utf-8")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
}
RUN = [name for name, text in PAGES.items() if re.search(r"^```(console|sh)$", text, re.MULTILINE)]
# The shell reads the rest.
SHELL = {"|", ">", "<", "&&", "2>", "||", ";"}


@pytest.fixture(scope="module")
def present() -> dict[str, str | Exception]:
    """Return the pages with the present output of their commands; two pages run at a time."""

    def refreshed(name: str) -> str | Exception:
        try:
            return str(documented.refreshed(PAGES[name]))
        except documented.CommandError as error:
            return RuntimeError(str(error))

    with ThreadPoolExecutor(2) as pool:
        return dict(zip(RUN, pool.map(refreshed, RUN), strict=True))


@pytest.mark.parametrize("name", RUN)
def test_pages_show_what_commands_print(name: str, present: Mapping[str, str | Exception]) -> None:
    again = present[name]
    if isinstance(again, Exception):
        raise again
    assert documented.without_wall_times(again) == documented.without_wall_times(PAGES[name]), (
        f"refresh it: tools/documented_commands.py {name}"
    )


def test_pages_for_users_run() -> None:
    for folder in ("docs/how-to/", "docs/tutorial.md", "docs/faq.md", "README.md"):
        assert any(name.startswith(folder) for name in RUN), folder


def commands_in(text: str) -> Iterator[list[str]]:
    """Yield the words of each command line of bentpipe in a page's blocks of code."""
    for block in documented.BLOCK.finditer(text):
        if block["kind"] not in {"", "sh", "console"}:
            continue
        for line in block["body"].replace("\\\n", " ").splitlines():
            found = re.match(r"(?:\$ )?(?:\.venv/bin/)?bentpipe(-gateway)? (.+)", line)
            # A line of usage, and what refreshing shows of a mistake, are no commands.
            if found is None or "[OPTIONS]" in line or "foward" in line:
                continue
            words = ["gateway"] if found[1] else []
            for word in shlex.split(found[2].replace(" ... ", " "), comments=True):
                if word in SHELL:
                    break
                words.append(word)
            yield words


@pytest.mark.parametrize("name", [name for name, text in PAGES.items() if [*commands_in(text)]])
def test_commands_are_read(name: str) -> None:
    read: list[Mapping[str, Any]] = []

    def record(command: Command, values: Mapping[str, Any]) -> None:
        del command
        read.append(values)

    built = application(COMMANDS, call=record)
    for words in commands_in(PAGES[name]):
        if words[0] in {"--help", "--version", "--install-completion"} or words[0].isupper():
            continue
        command = COMMANDS.get(words[0])
        if command is not None and command.parses_itself:
            options = {each.option for each in command.parameters.values()}
            assert {each for each in words if each.startswith("--")} <= options, words
            continue
        before = len(read)
        built(words, prog_name="bentpipe", standalone_mode=False)
        assert len(read) == before + 1, words


@pytest.mark.parametrize(
    ("page", "tool"),
    [("command-line.md", "command_line_reference"), ("errors.md", "errors_reference")],
)
def test_references_are_generated(page: str, tool: str, capsys: pytest.CaptureFixture[str]) -> None:
    reference = load_script(ROOT / "tools" / f"{tool}.py").reference()
    capsys.readouterr()
    assert PAGES[f"docs/{page}"] == reference, "make references"


PAGE = """\
```toml
# net.toml
name = "net"
```
```console
$ cat net.toml; echo; echo one; echo two; echo three
# net.toml
...
two
three
```
"""


def test_left_out_lines_and_changed_ones() -> None:
    assert documented.refreshed(PAGE) == PAGE
    assert documented.refreshed(PAGE.replace("\nthree\n", "\nthree more\n")) == PAGE
    with pytest.raises(documented.CommandError, match="no line like 'four'"):
        documented.refreshed(PAGE.replace("\ntwo\n", "\nfour\n"))
    with pytest.raises(documented.CommandError, match="the output goes on: 'three'"):
        documented.refreshed(PAGE.replace("two\nthree\n", "two\n"))


def test_a_script_that_fails_is_an_error() -> None:
    with pytest.raises(documented.CommandError, match="no such file"):
        documented.refreshed("```sh\nbentpipe run none.toml\n```\n")


def test_a_block_that_needs_a_missing_program_is_not_run() -> None:
    page = "<!-- needs no-such-program -->\n```sh\nfalse\n```\n"
    assert documented.refreshed(page) == page
    with pytest.raises(documented.CommandError):
        documented.refreshed(page.replace("no-such-program", "bash"))
