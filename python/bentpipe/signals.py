"""Handling of SIGTERM and SIGHUP: they end a command by KeyboardInterrupt, as Ctrl-C does.

Their default action ends the process between any two steps and leaves partly written files
behind.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Final, NoReturn

_ENDING: Final = tuple(
    getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)
)
# Signals received while a command was running, in order.
_received: list[int] = []


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, as Python does for Ctrl-C."""
    del frame
    record(number)
    raise KeyboardInterrupt


def record(number: int) -> None:
    """Record the signal that ends the command."""
    _received.append(number)


def first_received() -> signal.Signals:
    """Return the signal that ended the command: the first one received."""
    return signal.Signals(_received[0]) if _received else signal.SIGINT


def message_of(number: int) -> str:
    """Return the message about a signal."""
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """End the process at once, with a message and the exit status of the signal."""
    del frame
    # Write by the system call: the interrupted code may be in the middle of a buffered write.
    with suppress(OSError):
        # On a terminal, end the line of the progress bar and show the cursor again.
        looks = os.isatty(2) and os.environ.get("TERM") != "dumb"
        clear = "\r\x1b[K\x1b[?25h" if looks else ""
        os.write(2, f"{clear}bentpipe: {message_of(number)}\n".encode())
    os._exit(128 + number)


def handled() -> tuple[int, ...]:
    """Return the handled signals whose handler is this module's or Python's default."""
    handled = {signal.SIGINT: signal.default_int_handler, **dict.fromkeys(_ENDING, interrupt)}
    return tuple(number for number, by in handled.items() if signal.getsignal(number) is by)


@contextmanager
def handling(
    numbers: Iterable[int], by: Callable[[int, FrameType | None], Any] | signal.Handlers
) -> Iterator[None]:
    """Install a handler for these signals during the block; restore the previous ones afterwards.

    In threads other than the main one, which receive no signals, nothing changes.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = [(number, signal.signal(number, by)) for number in numbers]
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


@contextmanager
def interrupting() -> Iterator[None]:
    """Let these signals interrupt the block.

    A signal that is ignored, as under nohup, stays ignored.
    """
    _received.clear()
    taken = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    with handling(taken, interrupt):
        yield
