"""Shared by tests of the command line: calls, inputs, and checks of error messages."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .networks import pair

COMMAND = [sys.executable, "-m", "bentpipe"]
# The program in Rust, which `make setup` builds.
GATEWAY_PROGRAM = Path(__file__).parents[2] / "target" / "release" / "bentpipe-gateway"

SMALL = pair("small", duration="20 s", rate="2 Mbit/s", delay="250 ms", size="300 kB", seed=7)


@contextmanager
def started(command: Sequence[str], **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a program whose output is read as text; it ends with the block at the latest."""
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, **options)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


class CommandResult:
    """The outcome of a command."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def data(self) -> Any:
        return json.loads(self.out)


def assert_refused(said: CommandResult, *fragments: str, status: int = 2) -> None:
    assert said.status == status
    assert said.out == ""
    assert len(said.err.splitlines()) == 1, said.err
    assert "Traceback" not in said.err
    for fragment in fragments:
        assert fragment in said.err
