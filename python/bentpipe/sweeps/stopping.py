"""How Ctrl-C reaches work in threads, and how what nobody waits for any more is ended."""

from __future__ import annotations

import ctypes
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from types import FrameType
from typing import Final, TypeVar

from bentpipe import endings

# How long a simulation may take to notice by itself, before what it runs is thrown out of.
NOTICE_S: Final = 0.2
_AGAIN_S: Final = 0.05
# How long the main thread waits before it looks whether Ctrl-C was pressed.
LOOK_S: Final = 0.1

_ResultT = TypeVar("_ResultT")


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
def interrupts_noted() -> Iterator[Callable[[], None]]:
    """Keep Ctrl-C until it is asked for; a second one ends the process at once.

    The block is given what raises KeyboardInterrupt if Ctrl-C was pressed. By itself, Python raises
    it between any two steps of the main thread: in a weak reference's callback, where it is lost,
    or between taking a lock and the `with` that gives it back, which then stops every thread that
    wants the lock. Whoever deals with threads therefore asks. A handler that isn't Python's own
    stays. What is said of Ctrl-C goes for the signals that end a command as it does.
    """
    noted = threading.Event()

    def look() -> None:
        if noted.is_set():
            raise KeyboardInterrupt

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, endings.at_once)
        endings.note(number)
        noted.set()

    with endings.handling(endings.ours(), note):
        yield look
    look()


def finished(completed: SimpleQueue[_ResultT]) -> list[_ResultT]:
    """Wait for a moment, until something is done; return all that is.

    A signal that comes just before a lock is waited for does not end the waiting, so that waiting
    without end may go on for hours after Ctrl-C.
    """
    done: list[_ResultT] = []
    try:
        done.append(completed.get(timeout=LOOK_S))
        while True:
            done.append(completed.get_nowait())
    except Empty:
        return done


def result_of(future: Future[_ResultT], look: Callable[[], None]) -> _ResultT:
    """Wait for a result; `look` is called several times a second, and may raise."""
    while not future.done():
        look()
        wait([future], timeout=LOOK_S)
    return future.result()


@contextmanager
def a_second_one_kills() -> Iterator[None]:
    """Let Ctrl-C end the process at once, whatever it is doing."""
    with endings.handling({signal.SIGINT, *endings.ours()}, endings.at_once):
        yield
