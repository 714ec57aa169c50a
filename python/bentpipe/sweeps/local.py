"""Cells on this machine's cores: in threads, because the simulator releases the GIL."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Final

from bentpipe.sweeps.cell import Outcome, Task, simulate

# Tasks for each worker, running or waiting: what finishes while a part is being written makes up
# the next one, so that keeping cells of a millisecond costs no more than simulating them.
_AHEAD: Final = 32


def cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def outcomes(tasks: Iterator[Task], *, workers: int) -> Iterator[list[Outcome]]:
    """Simulate tasks; yield what has finished since the last time, in no particular order.

    Ctrl-C lets the cells that are running finish, yields them, and is raised then.
    """
    running: set[Future[Outcome]] = set()
    with ThreadPoolExecutor(max_workers=workers, thread_name_prefix="cell") as pool:
        try:
            while True:
                while len(running) < _AHEAD * workers and (task := next(tasks, None)) is not None:
                    running.add(pool.submit(simulate, task))
                if not running:
                    return
                done, running = wait(running, return_when=FIRST_COMPLETED)
                yield [future.result() for future in done]
        except KeyboardInterrupt:
            pool.shutdown(wait=True, cancel_futures=True)
            done = {future for future in running if not future.cancelled()}
            yield [future.result() for future in done]
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
