"""Simulation of the cells of studies, on this machine's cores or on a Dask cluster."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from io import BytesIO
from queue import SimpleQueue
from typing import TYPE_CHECKING, Protocol, TypeVar

from bentpipe.errors import WorkError
from bentpipe.processors import available_cores
from bentpipe.results import RunResult, run
from bentpipe.sweeps.local import check_workers
from bentpipe.sweeps.stopping import deferred_interrupts, finished

if TYPE_CHECKING:
    from distributed import Client

    from bentpipe.scenario import Scenario
    from bentpipe.studies.study import Cell
    from bentpipe.sweeps.cell import Outcome, Task

_CellT = TypeVar("_CellT", bound="Cell")
# Futures by the cell whose result they will have.
Futures = Mapping[_CellT, "Future[RunResult]"]


class Simulations(Protocol):
    """Simulates cells in the background.

    After a failure or Ctrl-C, waiting cells are cancelled and running ones interrupted.
    """

    def begin(self, groups: Sequence[Sequence[_CellT]]) -> list[dict[_CellT, Future[RunResult]]]:
        """Submit cells in this order; those with the same scenario share a run."""


@contextmanager
def simulations(workers: int | None = None, dask: str | None = None) -> Iterator[Simulations]:
    """Yield simulations on this machine's cores, or on the cluster of a Dask scheduler.

    Raises
    ------
    RequestError
        Dask is not installed, or no scheduler answers.
    """
    check_workers(workers, dask)
    if dask is None:
        with _Local(workers or available_cores()) as local:
            yield local
        return
    from bentpipe.sweeps.cluster import connected

    with connected(dask) as client, _OnCluster(client, dask) as cluster:
        yield cluster


def _sharing_runs(
    groups: Sequence[Sequence[_CellT]], submit: Callable[[Scenario], Future[RunResult]]
) -> list[dict[_CellT, Future[RunResult]]]:
    begun: dict[Scenario, Future[RunResult]] = {}

    def run_of(scenario: Scenario) -> Future[RunResult]:
        if scenario not in begun:
            begun[scenario] = submit(scenario)
        return begun[scenario]

    return [{cell: run_of(cell.scenario()) for cell in cells} for cells in groups]


class _Local:
    """Simulates in threads, because the simulator releases the GIL."""

    def __init__(self, workers: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=workers)
        self._stopped = threading.Event()

    def __enter__(self) -> _Local:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def begin(self, groups: Sequence[Sequence[_CellT]]) -> list[dict[_CellT, Future[RunResult]]]:
        with deferred_interrupts():
            return _sharing_runs(
                groups, lambda scenario: self._pool.submit(self._simulate, scenario)
            )

    def _simulate(self, scenario: Scenario) -> RunResult:
        try:
            return run(scenario, default_probes=False, progress=self._look, cores=1)
        except (ValueError, RuntimeError) as error:
            raise _failed(scenario, error) from error

    def _look(self, *_: float) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt


class _OnCluster:
    """Simulates on a Dask cluster; a thread of this process submits cells and receives results."""

    def __init__(self, client: Client, address: str) -> None:
        self._client = client
        self._address = address
        self._stopped = threading.Event()
        self._driver: threading.Thread | None = None

    def __enter__(self) -> _OnCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        if self._driver is not None:
            self._driver.join()

    def begin(self, groups: Sequence[Sequence[_CellT]]) -> list[dict[_CellT, Future[RunResult]]]:
        from bentpipe.sweeps.cell import Task
        from bentpipe.sweeps.check import scenario_in_memory

        runs: list[tuple[Scenario, Future[RunResult]]] = []

        def submit(scenario: Scenario) -> Future[RunResult]:
            runs.append((scenario, Future()))
            return runs[-1][1]

        begun = _sharing_runs(groups, submit)
        tasks = [
            Task(
                cell=number,
                scenario=scenario_in_memory(scenario),
                series=True,
                default_probes=False,
            )
            for number, (scenario, _) in enumerate(runs)
        ]
        self._driver = threading.Thread(target=self._drive, args=(tasks, runs), daemon=True)
        self._driver.start()
        return begun

    def _drive(
        self, tasks: Sequence[Task], runs: Sequence[tuple[Scenario, Future[RunResult]]]
    ) -> None:
        from bentpipe.sweeps.cluster import NOTHING_KEPT, outcomes

        try:
            for batch in outcomes(
                iter(tasks),
                client=self._client,
                address=self._address,
                look=self._look,
                advice=NOTHING_KEPT,
            ):
                for outcome in batch:
                    scenario, future = runs[outcome.cell]
                    if outcome.error is not None:
                        future.set_exception(_failed(scenario, outcome.error))
                    else:
                        future.set_result(_result(outcome))
        except BaseException as error:  # noqa: BLE001
            # Every pending future gets the error, so that no caller waits for ever.
            for _, future in runs:
                if not future.done():
                    future.set_exception(error)

    def _look(self) -> None:
        if self._stopped.is_set():
            raise KeyboardInterrupt


def _failed(scenario: Scenario, error: object) -> WorkError:
    return WorkError(f"{error}; to see it again: {scenario.command()}")


def _result(outcome: Outcome) -> RunResult:
    from bentpipe.probe_file import FiledSeries
    from bentpipe.sweeps.cell import SummaryOutput

    assert outcome.summary_json is not None
    assert outcome.series is not None
    filed = FiledSeries(BytesIO(outcome.series), outcome.units)
    return RunResult(SummaryOutput(outcome.summary_json), filed=filed)


class Awaited(Mapping[_CellT, RunResult]):
    """Results of cells; access waits for the end of the cell's simulation."""

    def __init__(
        self,
        futures: Futures[_CellT],
        *,
        on_done: Callable[[], None] = lambda: None,
        on_all: Callable[[], None] = lambda: None,
    ) -> None:
        self._futures = futures
        self._on_done = on_done
        self._on_all = on_all
        self._sharing = Counter(futures.values())
        self._completed: SimpleQueue[Future[RunResult]] = SimpleQueue()
        self._running = len(self._sharing)
        for future in self._sharing:
            future.add_done_callback(self._completed.put)

    def __getitem__(self, cell: _CellT) -> RunResult:
        future = self._futures[cell]
        self._wait_until(future.done)
        return future.result()

    def __contains__(self, cell: object) -> bool:
        return cell in self._futures

    def __iter__(self) -> Iterator[_CellT]:
        return iter(self._futures)

    def __len__(self) -> int:
        return len(self._futures)

    def wait(self) -> None:
        """Wait for all; raises the first error."""
        self._wait_until(lambda: self._running == 0)

    def _wait_until(self, enough: Callable[[], bool]) -> None:
        if enough():
            return
        with deferred_interrupts() as look:
            while not enough():
                look()
                for future in finished(self._completed):
                    future.result()
                    self._running -= 1
                    for _ in range(self._sharing[future]):
                        self._on_done()
                    if self._running == 0:
                        self._on_all()


def simulate(
    cells: Sequence[_CellT], *, on_done: Callable[[], None] = lambda: None
) -> dict[_CellT, RunResult]:
    """Simulate cells on all cores.

    Raises
    ------
    WorkError
        A simulation failed: the message names the first one, and the command that repeats it.
    """
    with simulations() as begun:
        (futures,) = begun.begin([cells])
        outcomes = Awaited(futures, on_done=on_done)
        outcomes.wait()
        return dict(outcomes)
