"""`bentpipe gateway` and `bentpipe-gateway`: a gateway of a scenario on a real Linux machine.

The command line is the program's in Rust (`bentpipe_live::gateway::command`): options, messages and
results are the same. This module has the streams and signals.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections import deque
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
    _return_freed_memory()
    with contextlib.ExitStack() as handlers:
        return _native.gateway(list(words), _Console(handlers))


# Options of mallopt(3), and the values that the program in Rust has.
_M_MMAP_THRESHOLD, _M_MMAP_MAX = -3, -4
_MALLOC_SETTINGS = {_M_MMAP_THRESHOLD: 4096, _M_MMAP_MAX: 60_000}


def _return_freed_memory() -> None:
    """Have glibc map allocations of a page or more one by one, so that they return to the system.

    Otherwise the heap never shrinks below its largest use. Settings of the operator have
    precedence, and another C library has settings of its own.
    """
    import ctypes

    if "GLIBC_TUNABLES" in os.environ:
        return
    with contextlib.suppress(AttributeError, OSError):
        set_option = ctypes.CDLL(None).mallopt
        for option, value in _MALLOC_SETTINGS.items():
            set_option(option, value)


_WITHOUT_EFFECT = (
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGALRM,
    signal.SIGVTALRM,
    signal.SIGIO,
    signal.SIGPWR,
)


class _Console:
    """Standard streams, and signals that end the command or have it read its file again."""

    def __init__(self, handlers: contextlib.ExitStack) -> None:
        self._handlers = handlers
        self._requests: deque[str] = deque()

    def print(self, text: str) -> None:
        sys.stdout.write(text)

    def log(self, line: str) -> None:
        # A reader that is gone, or a full disk, must not end the gateway.
        with contextlib.suppress(OSError):
            print(line, file=sys.stderr, flush=True)

    def handle_signals(self) -> None:
        """Have SIGINT and SIGTERM end it and SIGHUP reload it; nohup has it ignore SIGHUP.

        In a terminal, SIGHUP ends it, since the terminal sends that when it is closed. Signals that
        would end the process, and leave the routing rules behind, have no effect.
        """
        self._handlers.enter_context(signals.handling(_WITHOUT_EFFECT, lambda *_: None))
        numbers = [signal.SIGTERM, signal.SIGINT]
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            numbers.append(signal.SIGHUP)
        self._handlers.enter_context(signals.handling(numbers, self._note))

    def take_request(self) -> str | None:
        """Return what the oldest signal that was not taken yet requests: `reload` or `end`."""
        return self._requests.popleft() if self._requests else None

    def _note(self, number: int, frame: FrameType | None) -> None:
        del frame
        reloads = number == signal.SIGHUP and not _has_terminal()
        self._requests.append("reload" if reloads else "end")


def _has_terminal() -> bool:
    return sys.stdin is not None and sys.stdin.isatty()
