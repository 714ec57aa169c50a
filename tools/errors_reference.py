#!/usr/bin/env python3
"""Write the reference of messages in Markdown (on stdout): each is what a wrong request prints.

    tools/errors_reference.py > docs/errors.md

A test checks that the page equals this output.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

import bentpipe
from bentpipe import cli

INTRODUCTION = """# Messages

Made by `make docs` from what bentpipe prints; do not edit.

A wrong request is refused before anything is simulated. One line on standard error names the place
(file, line and key, or the option), what was expected, and what was given. The exit status is 2. If
a valid request fails, it is 1: [exit statuses](command-line.md). `bentpipe explain KEY` has the
meaning, the values and the default of a key.

The requests below are about this file:

```toml
"""

SHIP = """\
# ship.toml
name = "ship"
duration = "120 s"
hosts = { shore = {}, ship = {} }

[links.satellite]
between = ["shore", "ship"]
forward = { rate = "4 Mbit/s", delay = "270 ms" }
return = { rate = "256 kbit/s", delay = "270 ms" }

[flows.update]
from = "shore"
to = "ship"
app = { kind = "bulk", size = "20 MB" }
"""

EXCEPTIONS = """
## Exceptions in Python

The same texts are the messages of exceptions. Options have the names of keywords there.

| exception | a kind of | |
|---|---|---|
"""


@dataclass(frozen=True)
class Wrong:
    """A wrong request: the words after `bentpipe`, and a change of the file, with its name."""

    words: tuple[str, ...]
    why: str
    old: str = ""
    new: str = ""
    change: str = ""


RUN = ("run", "ship.toml")
QUEUE_AND_ACKS = (
    "--set",
    'links.satellite.return.queue={ kind = "fair" }',
    "--set",
    'links.satellite.return.acks={ kind = "suppression" }',
)

SECTIONS = {
    "Keys": [
        Wrong((*RUN, "--set", "links.satellite.foward.rate=8 Mbit/s"), "A key is misspelt."),
        Wrong(RUN, "A key is missing.", 'duration = "120 s"\n', "", "no `duration`"),
        Wrong(RUN, "A key is there twice.", "hosts =", 'name = "x"\nhosts =', "a second `name`"),
        Wrong(
            (*RUN, "--set", "links.satellite.delay=200 ms"),
            "A key has no effect, because others take its place.",
        ),
        Wrong(
            (*RUN, "--set", "hosts.shore.tcp.congestion_control=vegas"),
            "A word is not among the key's values.",
        ),
    ],
    "Quantities": [
        Wrong(
            RUN,
            "A quantity has no unit.",
            'rate = "4 Mbit/s"',
            "rate = 4000000",
            "`rate = 4000000`",
        ),
        Wrong((*RUN, "--set", "links.satellite.forward.rate=4 Mbps"), "A unit is unknown."),
        Wrong((*RUN, "--set", "links.satellite.forward.delay=3 h"), "A value is out of range."),
    ],
    "Networks": [
        Wrong((*RUN, "--set", "flows.update.to=shp"), "A name leads to no node."),
        Wrong(
            RUN,
            "No path leads from one end of a flow to the other.",
            "ship = {} }",
            "ship = {}, island = {} }\n[flows.mail]\nfrom = 'shore'\nto = 'island'\n"
            "app = { kind = 'mail' }",
            "a host `island` without a link, and a flow to it",
        ),
        Wrong(
            (*RUN, *QUEUE_AND_ACKS),
            "Two settings exclude each other.",
        ),
    ],
    "The command line": [
        Wrong(("run", "shipp.toml"), "The file is not there."),
        Wrong(("rum", "ship.toml"), "The command is misspelt."),
        Wrong((*RUN, "--seed", "-1"), "The value of an option is out of range."),
        Wrong((*RUN, "--set", "flows.update.start"), "A setting has no value."),
        Wrong((*RUN, "--pcap", "satelite"), "There is no such link to capture."),
        Wrong((*RUN, "--out", "ship.toml/results"), "The folder cannot be written."),
    ],
}


def reference() -> str:
    """Return the page."""
    parts = [INTRODUCTION, SHIP, "```\n"]
    with tempfile.TemporaryDirectory() as folder:
        for title, requests in SECTIONS.items():
            parts.append(f"\n## {title}\n")
            parts += [_entry(each, Path(folder)) for each in requests]
    parts.append(EXCEPTIONS)
    for name in bentpipe.__all__:
        value = getattr(bentpipe, name)
        if inspect.isclass(value) and issubclass(value, BaseException):
            text = " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split())
            kind = value.__mro__[1].__name__
            parts.append(f"| `bentpipe.{name}` | `{kind}` | {text} |\n")
    return "".join(parts)


def _entry(wrong: Wrong, folder: Path) -> str:
    text = SHIP.replace(wrong.old, wrong.new, 1) if wrong.old else SHIP
    (folder / "ship.toml").write_text(text, "utf-8")
    said = io.StringIO()
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
            status = cli.execute(list(wrong.words))
    finally:
        os.chdir(before)
    assert status, wrong.words
    words = " ".join(f"'{each}'" if set(" {=") & set(each) else each for each in wrong.words)
    lines = ["", f"**{wrong.why}**"]
    if wrong.change:
        lines[-1] += f" In the file: {wrong.change}."
    return "\n".join([*lines, "", f"```text\n$ bentpipe {words}\n{said.getvalue()}```", ""])


if __name__ == "__main__":
    print(reference(), end="")
