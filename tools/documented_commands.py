#!/usr/bin/env python3
"""Run the commands that pages show, and replace the output that they show by the present one.

    tools/documented_commands.py docs/tutorial.md docs/how-to/*.md

Blocks of code in a page share a folder. In it,

    # NAME        as the first line of a block makes the block a file
    ```sh         blocks are run by a shell, and have to succeed
    ```console    blocks hold commands (`$ ...`), each with its output, as a terminal shows it

and all others are only shown. In an output, a line `...` stands for any lines; the others have to
begin with the same word as those of the present output. A comment `<!-- needs NAME ... -->` in the
line above a block names programs, files of the repository or `root`: a block that lacks one of them
is not run. The tests check that refreshing changes only wall times.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BLOCK = re.compile(
    r"^(?:<!-- needs (?P<needs>[^\n]*) -->\n)?```(?P<kind>[\w-]*)\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"# ([\w-]+\.(?:toml|py|csv|txt))\b")
COLUMNS = 90
WALL_TIME = re.compile(r"(?:(?<=simulated in )|(?<=\), in ))[\d.,]+ ?(?:[µm]?s|min)(?: [\d.]+ s)?")
LEFT_OUT = "..."
LONGEST_S = 300


class CommandError(RuntimeError):
    """A command of a page failed."""


@dataclass(frozen=True)
class Command:
    """A command of a `console` block, and the output that the page shows."""

    line: str
    shown: tuple[str, ...]

    @property
    def text(self) -> str:
        """The command and its output, as the page has them."""
        return "\n".join([f"$ {self.line}", *self.shown]).rstrip("\n") + "\n"


def refreshed(text: str) -> str:
    """Return a page's text with the present output of every command.

    Raises
    ------
    CommandError
        A command of an `sh` block failed.
    """
    with tempfile.TemporaryDirectory() as folder:

        def renewed(match: re.Match[str]) -> str:
            body, kind = match["body"], match["kind"]
            for need in (match["needs"] or "").split():
                if need == "root" and os.geteuid() == 0:
                    continue
                place = ROOT / need
                link = Path(folder, Path(need).parts[0])
                if place.exists() and not link.exists():
                    link.symlink_to(ROOT / Path(need).parts[0])
                elif not place.exists() and shutil.which(need) is None:
                    return match[0]
            name = FILE.match(body)
            if name is not None:
                Path(folder, name[1]).write_text(body, "utf-8")
            elif kind == "sh":
                _run_script(body, folder)
            elif kind == "console":
                commands = "\n".join(_renewed(each, folder).text for each in commands_of(body))
                return match[0].replace(body, commands)
            return match[0]

        return BLOCK.sub(renewed, text)


def commands_of(body: str) -> Iterator[Command]:
    """Yield the commands of a `console` block."""
    for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
        line, _, shown = part.partition("\n")
        yield Command(line, tuple(shown.rstrip("\n").splitlines()))


def _renewed(command: Command, folder: str) -> Command:
    """Return the command with its present output, less what the page leaves out."""
    lines = _output(command.line, folder)
    if LEFT_OUT not in command.shown:
        fresh, old = "\n".join(lines), "\n".join(command.shown)
        # Nothing but wall times differs: the page stays as it is.
        if without_wall_times(fresh) == without_wall_times(old):
            return command
        return replace(command, shown=tuple(lines))
    kept: list[str] = []
    rest = list(lines)
    may_skip = False
    for shown in command.shown:
        if shown == LEFT_OUT:
            may_skip = True
            kept.append(shown)
            continue
        same = [place for place, each in enumerate(rest) if each.split() == shown.split()]
        alike = [place for place, each in enumerate(rest) if _start(each) == _start(shown)]
        # The same line may come later than one that only begins like it.
        places = same[:1] if same and may_skip else alike
        if not places or (places[0] and not may_skip):
            raise CommandError(f"{command.line}: no line like {shown!r} in {lines}")
        fresh = rest[places[0]]
        del rest[: places[0] + 1]
        is_same = without_wall_times(fresh) == without_wall_times(shown)
        kept.append(shown if is_same else fresh)
        may_skip = False
    if rest and not may_skip:
        raise CommandError(f"{command.line}: the output goes on: {rest[0]!r}")
    return replace(command, shown=tuple(kept))


def _start(line: str) -> str:
    """Return what a line of an output begins with: a word, a rule, or nothing."""
    word = (line.split() or [""])[0]
    return word[:1] if word.startswith("─") else word


def _environment() -> dict[str, str]:
    # Not `sys.executable`: that of a virtual environment may be resolved.
    beside = str(Path(sys.prefix, "bin"))
    path = os.pathsep.join([beside, os.environ.get("PATH", "")])
    return {**os.environ, "PATH": path, "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "TERM": "dumb"}


def _run_script(script: str, folder: str) -> None:
    run = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )
    if run.returncode:
        raise CommandError(f"{script.strip()}: {(run.stderr or run.stdout).strip()}")


def _output(command: str, folder: str) -> list[str]:
    # On a terminal, tables have rules and fit its width; through a pipe they do not.
    main, other = pty.openpty()
    process = subprocess.Popen(
        ["bash", "-c", command],
        cwd=folder,
        env=_environment(),
        stdin=subprocess.DEVNULL,
        stdout=other,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.close(other)
    shown = b""
    # Reading fails when the last writer has closed its end.
    with contextlib.suppress(OSError):
        while piece := os.read(main, 65536):
            shown += piece
    os.close(main)
    _, complaints = process.communicate(timeout=LONGEST_S)
    lines = [line.rstrip() for line in (shown.decode() + complaints).splitlines()]
    return "\n".join(lines).strip("\n").splitlines()


def without_wall_times(text: str) -> str:
    """Return the text with every wall time replaced by the same text."""
    return WALL_TIME.sub("no time", text)


def main() -> int:
    """Refresh the pages named on the command line."""
    status = 0
    for name in sys.argv[1:]:
        path = Path(name)
        try:
            path.write_text(refreshed(path.read_text("utf-8")), "utf-8")
        except CommandError as error:
            print(f"{name}: {error}", file=sys.stderr)
            status = 1
    return status


if __name__ == "__main__":
    sys.exit(main())
