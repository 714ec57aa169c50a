"""Cells on a Dask cluster; its workers need the same version of bentpipe, and no other files."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager, nullcontext
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final

from bentpipe import __version__
from bentpipe.congestion import congestion_control, registered
from bentpipe.errors import RequestError, WorkError, reason
from bentpipe.sweeps.cell import Outcome, Task, simulate
from bentpipe.sweeps.stopping import (
    UnwantedError,
    finished,
    interrupted_when,
    second_interrupt_kills,
)

if TYPE_CHECKING:
    from distributed import Client, Future

    from bentpipe.congestion import CongestionControl

# Longest time without an answer of the scheduler, or without a worker, in seconds.
_CONNECTION_S: Final = 10.0
_INTERRUPT_S: Final = 60.0
# Waiting tasks for each thread of the cluster: enough that no thread idles for a round trip, and
# few enough that the scheduler does not hold a sweep of a million cells in memory.
_QUEUED_TASKS: Final = 4
# Longest time to close the connection, in seconds; after Ctrl-C it is closed without waiting.
_CLOSE_S: Final = 5.0
_INTERRUPTED_S: Final = 0.3


Controls = list[tuple[str, type["CongestionControl"]]]


class _OtherVersionError(RuntimeError):
    """A worker has another version of bentpipe, and might return other results."""


@contextmanager
def connected(address: str) -> Iterator[Client]:
    """Connect to the cluster of a scheduler at an address such as "tcp://10.0.0.1:8786".

    Raises
    ------
    RequestError
        Dask is not installed, or no scheduler answers at the address.
    """
    try:
        from distributed import Client
    except ImportError:
        raise RequestError(
            "--dask needs dask.distributed, which isn't installed: pip install 'bentpipe[dask]'"
        ) from None
    _check_port(address)
    try:
        client = Client(address, timeout=_CONNECTION_S, set_as_default=False)
    except (OSError, ValueError, TimeoutError) as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise RequestError(f"--dask {address}: no scheduler answers there ({said})") from None
    patience_s = _CLOSE_S
    try:
        yield client
    except KeyboardInterrupt:
        patience_s = _INTERRUPTED_S
        raise
    finally:
        # The scheduler drops the tasks of a client that has gone, and workers check whether their
        # running task is still wanted.
        with second_interrupt_kills() if patience_s == _INTERRUPTED_S else nullcontext():
            client.close(timeout=patience_s)


def _check_port(address: str) -> None:
    """Check that the port is open: Dask retries a closed port for ten seconds."""
    protocol, _, place = address.rpartition("://")
    if protocol not in {"", "tcp", "tls"}:
        return
    host, colon, port = place.rpartition(":")
    if not colon or not port.isdigit() or not 0 < int(port) < 65536:
        raise RequestError(f"--dask {address!r}: expected an address such as tcp://10.0.0.1:8786")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECTION_S).close()
    except OSError as error:
        raise RequestError(
            f"--dask {address}: no scheduler answers there ({reason(error)})"
        ) from None


KEPT: Final = "what has finished is kept, and --resume goes on"
NOTHING_KEPT: Final = "nothing is kept; start again"


def outcomes(
    tasks: Iterator[Task],
    *,
    client: Client,
    address: str,
    look: Callable[[], None],
    advice: str = KEPT,
) -> Iterator[list[Outcome]]:
    """Simulate tasks on the cluster; yield the outcomes that are new since the last time.

    If a worker dies, the scheduler gives its cells to other workers. `look` is called several times
    a second, and raises KeyboardInterrupt after Ctrl-C. `advice` ends the message of an error.

    Raises
    ------
    WorkError
        The scheduler or all workers went away, or a worker cannot simulate.
    """
    # Filled by the client's threads. The futures are held here, because Dask drops unreferenced
    # ones.
    completed: SimpleQueue[Future] = SimpleQueue()
    running: set[Future] = set()
    controls = registered()
    heard = time.monotonic()
    lost: list[str] = []
    while True:
        look()
        threads = _threads(client, address, advice)
        if threads:
            heard = time.monotonic()
        elif time.monotonic() - heard > _INTERRUPT_S:
            raise WorkError(f"--dask {address}: no worker for {_INTERRUPT_S:.0f} s; {advice}")
        # Without a worker, tasks wait here instead of in the scheduler's memory.
        while len(running) < _QUEUED_TASKS * threads and (task := next(tasks, None)) is not None:
            future = client.submit(_simulate, task, __version__, controls, pure=False)
            running.add(future)
            future.add_done_callback(completed.put)
        if not running and threads:
            break
        batch = []
        for future in finished(completed):
            outcome = _outcome(future, address, advice)
            if outcome is None:
                future.add_done_callback(completed.put)
                continue
            running.discard(future)
            if isinstance(outcome, Outcome):
                batch.append(outcome)
            else:
                lost.append(outcome)
        # Outcomes are yielded before an error is raised.
        yield batch
    if lost:
        raise WorkError(f"--dask {address}: {len(lost)} cells got lost: {lost[0]}; {advice}")


def _outcome(future: Future, address: str, advice: str) -> Outcome | str | None:
    """Return a task's outcome, or the reason of its loss; None if it is not done after all.

    The results that a worker holds are lost if it dies. The scheduler then repeats the task.
    """
    try:
        if future.status == "error":
            error: Any = future.exception(timeout=_CONNECTION_S)
            if isinstance(error, _OtherVersionError | ImportError):
                raise WorkError(f"--dask {address}: a worker can't simulate: {error}; {advice}")
            return f"{type(error).__name__}: {' '.join(str(error).split())}"
        if future.status == "finished":
            result: Outcome = future.result(timeout=_CONNECTION_S)
            future.release()
            return result
    except TimeoutError:
        return None
    except (OSError, CancelledError):
        raise _gone(address, advice) from None
    if future.status == "cancelled":
        raise _gone(address, advice)
    return None


def _gone(address: str, advice: str) -> WorkError:
    return WorkError(f"--dask {address}: the scheduler went away; {advice}")


def _threads(client: Client, address: str, advice: str) -> int:
    """Return the number of cells that the cluster simulates at a time.

    Raises
    ------
    WorkError
        The scheduler went away.
    """
    try:
        threads = client.nthreads() if client.status == "running" else None
    except (OSError, TimeoutError):
        threads = None
    if threads is None:
        raise _gone(address, advice)
    return sum(threads.values())


def _simulate(task: Task, version: str, controls: Controls) -> Outcome:
    if version != __version__:
        raise _OtherVersionError(f"it has bentpipe {__version__}, this is {version}")
    # The user's congestion controls are sent along, if Dask can pickle their classes.
    for name, control in controls:
        congestion_control(name)(control)
    unwanted = _cancellation_check()

    def look(*_: float) -> None:
        if unwanted():
            raise UnwantedError

    # An endless loop in a Python congestion control never returns to the simulator.
    with interrupted_when(unwanted) if controls else nullcontext():
        return simulate(task, progress=look)


def _cancellation_check() -> Callable[[], bool]:
    """Return a function that says whether the task of this worker thread was cancelled.

    Dask itself cancels only tasks that have not begun.
    """
    from distributed import get_worker
    from distributed.worker import thread_state

    try:
        tasks = get_worker().state.tasks
        key = thread_state.key
    except (AttributeError, ValueError):
        # Not called in a worker.
        return lambda: False

    def cancelled() -> bool:
        task = tasks.get(key)
        return task is None or task.state == "cancelled"

    return cancelled
