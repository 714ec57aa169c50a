"""`bentpipe gateway` and `bentpipe-gateway`: a gateway of a scenario on a real Linux machine.

The command line is the program's in Rust (`bentpipe_live::gateway::command`): options, messages and
results are the same. This module has the streams and signals.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Sequence
from types import FrameType

from bentpipe import signals
from bentpipe.errors import WorkError


def gateway(words: Sequence[str]) -> int:
    """Run the command with the words after its name, and return its exit status.

    Raises
    ------
    WorkError
        This system is not Linux.
    """
    from bentpipe import _native

    if not hasattr(_native, "gateway"):
        raise WorkError("a gateway needs Linux")
    with contextlib.ExitStack() as handlers:
        return _native.gateway(list(words), _Console(handlers))


class _Console:
    """Standard streams, and signals that end the command in order."""

    def __init__(self, handlers: contextlib.ExitStack) -> None:
        self._handlers = handlers
        self._stopped = threading.Event()

    def print(self, text: str) -> None:
        sys.stdout.write(text)

    def log(self, line: str) -> None:
        # A reader that is gone, or a full disk, must not end the gateway.
        with contextlib.suppress(OSError):
            print(line, file=sys.stderr, flush=True)

    def handle_signals(self) -> None:
        """Have SIGINT, SIGTERM and SIGHUP stop it; under nohup, SIGHUP stays ignored."""
        numbers = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self._handlers.enter_context(signals.handling(numbers, self._stop))

    def is_stopped(self) -> bool:
        return self._stopped.is_set()

    def _stop(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self._stopped.set()
