"""Cells on this machine's cores: in threads, because the simulator releases the GIL."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from queue import SimpleQueue
from typing import Final

from bentpipe.errors import RequestError
from bentpipe.sweeps.cell import Outcome, Task, simulate
from bentpipe.sweeps.stopping import GRACE_S, finished, raise_in_thread

# Tasks for each worker, running or waiting. Cells that finish while a part is written form the next
# part, so that storing cells of a millisecond takes no longer than simulating them.
_QUEUED_TASKS: Final = 32
CELL_THREADS: Final = "cell"
# Longest time to interrupt a user's congestion control after Ctrl-C.
_INTERRUPT_S: Final = 0.5


def check_workers(workers: int | None, dask: str | None) -> None:
    """Check the number of simulations at a time.

    Raises
    ------
    RequestError
        It is less than one, or it is given for a cluster.
    """
    if workers is not None and workers < 1:
        raise RequestError(f"--workers {workers}: expected 1 or more")
    if workers is not None and dask is not None:
        raise RequestError("--workers doesn't go with --dask: the cluster has workers of its own")


def outcomes(
    tasks: Iterator[Task], *, workers: int, look: Callable[[], None] = lambda: None
) -> Iterator[list[Outcome]]:
    """Simulate tasks; yield the outcomes that are new since the last time, in any order.

    `look` is called several times a second, and raises KeyboardInterrupt after Ctrl-C. This also
    ends running cells within a second. Finished outcomes are yielded before the exception is
    raised.
    """
    cells = _Cells(workers)
    try:
        while True:
            look()
            cells.start(tasks)
            if not cells.running:
                return
            yield cells.finished()
    except KeyboardInterrupt:
        yield cells.stop()
        raise
    finally:
        # The caller may have failed, or been interrupted, between two batches.
        cells.stop()


class _Cells:
    """Threads that simulate cells."""

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=workers, thread_name_prefix=CELL_THREADS)
        self._most = _QUEUED_TASKS * workers
        self._stopped = threading.Event()
        # Threads that are simulating a cell.
        self._busy: set[int] = set()
        self.running: set[Future[Outcome]] = set()
        self._completed: SimpleQueue[Future[Outcome]] = SimpleQueue()

    def start(self, tasks: Iterator[Task]) -> None:
        while len(self.running) < self._most and (task := next(tasks, None)) is not None:
            future = self._pool.submit(self._simulate, task)
            self.running.add(future)
            future.add_done_callback(self._completed.put)

    def finished(self) -> list[Outcome]:
        done = finished(self._completed)
        self.running.difference_update(done)
        return [future.result() for future in done]

    def stop(self) -> list[Outcome]:
        """End the running cells; return the outcomes of those that finished first."""
        self._stopped.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        wait(self.running, timeout=GRACE_S)
        # An endless loop in a Python congestion control never returns to the simulator.
        deadline = time.monotonic() + _INTERRUPT_S
        while self._busy and time.monotonic() < deadline:
            for thread in list(self._busy):
                raise_in_thread(thread, KeyboardInterrupt)
            wait(self.running, timeout=0.05)
        done = [each for each in self.running if each.done() and not each.cancelled()]
        self.running = set()
        return [future.result() for future in done if future.exception() is None]

    def _simulate(self, task: Task) -> Outcome:
        thread = threading.get_ident()
        self._busy.add(thread)
        try:
            return simulate(task, progress=self._look)
        finally:
            self._busy.discard(thread)

    def _look(self, *_: float) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt
