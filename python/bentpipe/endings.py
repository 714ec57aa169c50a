"""SIGTERM and SIGHUP, which end a command as Ctrl-C does: by KeyboardInterrupt.

By themselves they end the process between any two steps, and what was being written stays there.
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
# Those that came while a command was at work.
_came: list[int] = []


def interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt, as Python does for Ctrl-C."""
    del frame
    note(number)
    raise KeyboardInterrupt


def note(number: int) -> None:
    """Remember which signal it was that ends the command."""
    _came.append(number)


def came() -> signal.Signals:
    """Return the signal that ended the command: the first that came."""
    return signal.Signals(_came[0]) if _came else signal.SIGINT


def told(number: int) -> str:
    """Say what a signal has done."""
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def at_once(number: int, frame: FrameType | None) -> NoReturn:
    """End the process, whatever it is doing, with a line and the status of a signal."""
    del frame
    # By the system's call: what was interrupted may be in the middle of writing, too.
    with suppress(OSError):
        # Where it was drawing a bar, that is over, and the cursor is to be seen again.
        looks = os.isatty(2) and os.environ.get("TERM") != "dumb"
        clear = "\r\x1b[K\x1b[?25h" if looks else ""
        os.write(2, f"{clear}bentpipe: {told(number)}\n".encode())
    os._exit(128 + number)


def ours() -> tuple[int, ...]:
    """Return the signals that raise KeyboardInterrupt and nothing else: Python's, and these."""
    handled = {signal.SIGINT: signal.default_int_handler, **dict.fromkeys(_ENDING, interrupt)}
    return tuple(number for number, by in handled.items() if signal.getsignal(number) is by)


@contextmanager
def handling(
    numbers: Iterable[int], by: Callable[[int, FrameType | None], Any] | signal.Handlers
) -> Iterator[None]:
    """Have signals handled so during the block, and then as before.

    In a thread other than the main one, which gets none, they stay as they are.
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
    """Have them interrupt the block. One that is ignored, as under nohup, stays so."""
    _came.clear()
    taken = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    with handling(taken, interrupt):
        yield
