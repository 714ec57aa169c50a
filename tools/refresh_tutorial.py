#!/usr/bin/env python3
"""Run the commands of a tutorial, and replace the output that it shows by theirs.

    tools/refresh_tutorial.py docs/tutorial.md

A ```toml block that starts with `# NAME.toml` is a file. A ```console block holds commands
(`$ ...`), each followed by its output. The tests check that refreshing changes only wall times.
"""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```(?P<kind>toml|console)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
COLUMNS = 90
WALL_TIME = re.compile(r"simulated in [\d.,]+ [µm]?s")


def refreshed(text: str, *, bentpipe: str) -> str:
    """Return the tutorial's text with the present output of every command."""
    with tempfile.TemporaryDirectory() as folder:

        def replace(match: re.Match[str]) -> str:
            body = match["body"]
            if match["kind"] == "toml":
                name = re.match(r"# ([\w-]+\.toml)", body)
                if name is not None:
                    (Path(folder) / name[1]).write_text(body)
                return match[0]
            commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
            shown = [f"$ {each}\n{_output(each, folder, bentpipe)}" for each in commands]
            return "```console\n" + "".join(shown) + "```"

        return BLOCK.sub(replace, text)


def _output(command: str, folder: str, bentpipe: str) -> str:
    words = shlex.split(command)
    if words[0] != "bentpipe":
        return ""
    # On a terminal, tables have rules and fit its width; through a pipe they do not.
    main, other = pty.openpty()
    process = subprocess.Popen(
        [bentpipe, *words[1:]],
        cwd=folder,
        env={**os.environ, "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "TERM": "dumb"},
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
    _, complaints = process.communicate()
    lines = [line.rstrip() for line in (shown.decode() + complaints).splitlines()]
    return "\n".join(lines).strip("\n") + "\n"


def without_wall_times(text: str) -> str:
    """Return the text with every wall time replaced by the same text."""
    return WALL_TIME.sub("simulated in no time", text)


def main() -> None:
    """Refresh the file named on the command line."""
    path = Path(sys.argv[1])
    bentpipe = Path(sys.executable).parent / "bentpipe"
    path.write_text(refreshed(path.read_text(), bentpipe=str(bentpipe)))


if __name__ == "__main__":
    main()
