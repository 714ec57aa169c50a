"""Handling of Ctrl-C while threads work, and interruption of threads that are no longer needed."""

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

from bentpipe import signals

# Time for a simulation to notice an interruption by itself, before its Python code is interrupted.
GRACE_S: Final = 0.2
_AGAIN_S: Final = 0.05
# Interval at which the main thread checks for Ctrl-C.
POLL_S: Final = 0.1

_ResultT = TypeVar("_ResultT")


class UnwantedError(BaseException):
    """The cell is no longer wanted. Not an Exception, which a congestion control might catch."""


def raise_in_thread(thread: int, error: type[BaseException] | None) -> None:
    """Raise an error in another thread as soon as it runs Python; None withdraws one."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(
        ctypes.c_ulong(thread), None if error is None else ctypes.py_object(error)
    )


@contextmanager
def interrupted_when(unwanted: Callable[[], bool], *, every_s: float = GRACE_S) -> Iterator[None]:
    """Raise `UnwantedError` within the block as soon as its work is unwanted.

    `unwanted` is called regularly, in its own thread.
    """
    inside = threading.get_ident()
    ended = threading.Event()
    lock = threading.Lock()

    def watch() -> None:
        while not ended.wait(every_s):
            if unwanted():
                break
        pause_s = GRACE_S
        while not ended.wait(pause_s):
            pause_s = _AGAIN_S
            with lock:
                if not ended.is_set():
                    raise_in_thread(inside, UnwantedError)

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        # A pending exception must not arrive in the code after the block.
        with lock:
            ended.set()
            raise_in_thread(inside, None)


@contextmanager
def deferred_interrupts() -> Iterator[Callable[[], None]]:
    """Defer Ctrl-C until it is asked for; a second one ends the process at once.

    The block receives a function that raises KeyboardInterrupt if Ctrl-C was pressed. Python itself
    raises it between any two steps of the main thread. There it may be lost, as in a weak
    reference's callback. It may also come between acquiring a lock and entering its `with` block,
    so that the lock is never released. Code that uses threads therefore polls.

    A handler that is not Python's own stays installed. SIGTERM and SIGHUP are treated like Ctrl-C.
    """
    noted = threading.Event()

    def look() -> None:
        if noted.is_set():
            raise KeyboardInterrupt

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, signals.end_at_once)
        signals.record(number)
        noted.set()

    with signals.handling(signals.handled(), note):
        yield look
    look()


def finished(completed: SimpleQueue[_ResultT]) -> list[_ResultT]:
    """Wait briefly until something is done; return everything that is done.

    A signal that arrives just before a lock is awaited does not end the wait. An unlimited wait may
    therefore last for hours after Ctrl-C.
    """
    done: list[_ResultT] = []
    try:
        done.append(completed.get(timeout=POLL_S))
        while True:
            done.append(completed.get_nowait())
    except Empty:
        return done


def result_of(future: Future[_ResultT], look: Callable[[], None]) -> _ResultT:
    """Wait for a result; `look` is called several times a second, and may raise."""
    while not future.done():
        look()
        wait([future], timeout=POLL_S)
    return future.result()


@contextmanager
def second_interrupt_kills() -> Iterator[None]:
    """Let Ctrl-C end the process at once during the block."""
    with signals.handling({signal.SIGINT, *signals.handled()}, signals.end_at_once):
        yield
