"""What tests of the command line share: how it is called, on what, what is asked of a refusal."""

from __future__ import annotations

import json
import sys
from typing import Any

from .networks import pair

COMMAND = [sys.executable, "-m", "bentpipe"]

SMALL = pair("small", duration="20 s", rate="2 Mbit/s", delay="250 ms", size="300 kB", seed=7)


class Said:
    """What a command line came to."""

    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err

    @property
    def data(self) -> Any:
        return json.loads(self.out)


def assert_refused(said: Said, *fragments: str, status: int = 2) -> None:
    assert said.status == status
    assert said.out == ""
    assert len(said.err.splitlines()) == 1, said.err
    assert "Traceback" not in said.err
    for fragment in fragments:
        assert fragment in said.err
