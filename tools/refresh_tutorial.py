#!/usr/bin/env python3
"""Run the commands that a tutorial shows, and put what they print where it shows their output.

    tools/refresh_tutorial.py docs/tutorial.md

A ```toml block that starts with `# NAME.toml` is a file. A ```console block holds commands
(`$ ...`), each followed by its output. The tests check that refreshing changes only wall times.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

BLOCK = re.compile(r"^```(?P<kind>toml|console)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
WALL_TIME = re.compile(r"simulated in [\d.,]+ [µm]?s")


def refreshed(text: str, *, bentpipe: str) -> str:
    """Return the tutorial's text with every command's output as it is now."""
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
    done = subprocess.run(
        [bentpipe, *words[1:]],
        cwd=folder,
        env={**os.environ, "COLUMNS": "90", "NO_COLOR": "1", "TERM": "dumb"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    lines = [line.rstrip() for line in done.stdout.splitlines()]
    return "".join(f"{line}\n" for line in lines if line)


def without_wall_times(text: str) -> str:
    """Return the text with every wall time made alike."""
    return WALL_TIME.sub("simulated in no time", text)


def main() -> None:
    """Refresh the file named on the command line."""
    path = Path(sys.argv[1])
    bentpipe = Path(sys.executable).parent / "bentpipe"
    path.write_text(refreshed(path.read_text(), bentpipe=str(bentpipe)))


if __name__ == "__main__":
    main()
