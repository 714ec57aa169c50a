"""How work that nobody waits for any more is ended, also in a rule of the user's that loops."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

# How long a simulation may take to notice by itself, before what it runs is thrown out of.
NOTICE_S: Final = 0.2
_AGAIN_S: Final = 0.05


class UnwantedError(BaseException):
    """Nobody waits for this cell any more. No Exception: a rule might catch those."""


def throw_into(thread: int, error: type[BaseException] | None) -> None:
    """Raise an error in another thread as soon as it runs Python; None takes one back."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )


@contextmanager
def thrown_out(unwanted: Callable[[], bool], *, every_s: float = NOTICE_S) -> Iterator[None]:
    """Throw `UnwantedError` into the block as soon as nobody wants what it does.

    `unwanted` is asked now and then, in a thread of its own.
    """
    inside = threading.get_ident()
    ended = threading.Event()
    lock = threading.Lock()

    def watch() -> None:
        while not ended.wait(every_s):
            if unwanted():
                break
        pause_s = NOTICE_S
        while not ended.wait(pause_s):
            pause_s = _AGAIN_S
            with lock:
                if not ended.is_set():
                    throw_into(inside, UnwantedError)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        # What is on its way must not arrive in whatever this thread does next.
        with lock:
            ended.set()
            throw_into(inside, None)


@contextmanager
def a_second_one_kills() -> Iterator[None]:
    """Let Ctrl-C end the process at once, whatever it is doing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
