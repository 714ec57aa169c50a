"""Runs a sweep: reads, checks, simulates and stores it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from bentpipe.errors import RequestError
from bentpipe.processors import available_cores, shared_cores
from bentpipe.sweeps import local
from bentpipe.sweeps.cell import Outcome, Task
from bentpipe.sweeps.check import check_sweep, scenario_in_memory
from bentpipe.sweeps.definition import Sweep, with_settings
from bentpipe.sweeps.outcome import SweepResult, load_sweep
from bentpipe.sweeps.reader import define_sweep, read_sweep
from bentpipe.sweeps.stopping import deferred_interrupts
from bentpipe.sweeps.store import Store


class Progress:
    """Receives the progress of a sweep; this base class ignores it."""

    def begin(self, name: str, *, total: int, done: int, failed: int) -> None:
        """Note that a sweep of `total` cells begins; `done` cells are stored already."""

    def step(self, *, done: int, failed: int) -> None:
        """Note that more cells are done; `failed` of these failed."""


def load_definition(
    source: str | Path | Mapping[str, Any],
    *,
    series: bool = False,
    settings: Mapping[str, object] | None = None,
) -> Sweep:
    """Read a sweep file, or plain data with its contents, and check it.

    `settings` apply to every cell, in place of those of the file.

    Raises
    ------
    RequestError, ScenarioError
        The sweep or its scenario is wrong.
    """
    if isinstance(source, Mapping):
        sweep, refuse = define_sweep(source)
    else:
        sweep, refuse = read_sweep(source)
    sweep = replace(
        with_settings(sweep, settings or {}),
        series=sweep.series or series,
    )
    sweep = replace(sweep, scenario=scenario_in_memory(sweep.scenario))
    check_sweep(sweep, refuse)
    return sweep


def sweep(
    source: str | Path | Mapping[str, Any] | Sweep,
    *,
    out: str | Path | None = None,
    workers: int | None = None,
    resume: bool = False,
    dask: str | None = None,
    series: bool = False,
    settings: Mapping[str, object] | None = None,
    progress: Progress | None = None,
    cores: int | None = None,
) -> SweepResult:
    """Simulate a scenario along axes.

    Parameters
    ----------
    source
        A sweep file, or plain data with its contents: `{"scenario": "geo-consumer", "axes":
        {"links.satellite.forward.delay": ["250 ms", "270 ms"], "seed": {"count": 5}}}`. The
        scenario is a name or file, or as in `run` a `Scenario` or a dict.
    out
        The folder for the results. Without it, they are in memory only.
    workers
        The number of cells at a time; by default the number of cores.
    resume
        Whether to continue an interrupted sweep. Finished cells are not repeated.
    dask
        The address of a Dask scheduler. Its workers simulate instead of this machine's cores.
    series
        Whether every cell's probes are kept, too.
    settings
        Keys to change in every cell, in place of the file's `set`.
    cores
        The number of cores; by default all. If there are more cores than cells at a time, every
        cell uses several, as in `run`.

    Raises
    ------
    RequestError, ScenarioError
        The sweep or its scenario is wrong, or `out` cannot be used.
    WorkError
        The sweep was interrupted because the cluster went away. A cell that fails does not end a
        sweep: it is among the result's `failures`.
    """
    local.check_workers(workers, dask)
    if cores is not None and dask is not None:
        raise RequestError("--cores doesn't go with --dask: each cell uses one core there")
    if isinstance(source, Sweep):
        definition = with_settings(source, settings or {})
    else:
        definition = load_definition(source, series=series, settings=settings)
    if out is not None:
        _work(definition, Path(out), workers, cores, resume, dask, progress or Progress())
        return load_sweep(out)
    if definition.series:
        raise RequestError("series need a folder to go to: out")
    with tempfile.TemporaryDirectory(prefix="bentpipe-sweep-") as folder:
        _work(definition, Path(folder), workers, cores, False, dask, progress or Progress())
        return load_sweep(folder).in_memory()


def _work(
    definition: Sweep,
    folder: Path,
    workers: int | None,
    cores: int | None,
    resume: bool,
    dask: str | None,
    progress: Progress,
) -> None:
    cores = cores or available_cores()
    workers = workers or cores
    # The simulator comes first: the folder is made only if cells can be simulated.
    with (
        _simulator(workers, dask) as simulate,
        Store.opened(folder, definition, resume=resume) as store,
    ):
        progress.begin(
            definition.name, total=len(definition), done=store.finished, failed=store.failed
        )
        if store.finished < len(definition):
            left = len(definition) - store.finished
            cell_cores = 1 if dask is not None else shared_cores(cores, min(workers, left))
            with deferred_interrupts() as look:
                for batch in simulate(_tasks(definition, store, cell_cores), look=look):
                    if batch:
                        store.append(batch)
                        failed = sum(outcome.error is not None for outcome in batch)
                        progress.step(done=len(batch), failed=failed)
        store.finish()


def _tasks(definition: Sweep, store: Store, cores: int) -> Iterator[Task]:
    for cell in definition.cells():
        if not store.has(cell.number):
            scenario = definition.scenario_of(cell)
            yield Task(cell=cell.number, scenario=scenario, series=definition.series, cores=cores)


class _Simulator(Protocol):
    def __call__(
        self, tasks: Iterator[Task], *, look: Callable[[], None]
    ) -> Iterator[list[Outcome]]: ...


@contextmanager
def _simulator(workers: int, dask: str | None) -> Iterator[_Simulator]:
    """Yield the function that simulates tasks, on this machine's cores or on a cluster."""
    if dask is None:
        yield partial(local.outcomes, workers=workers)
        return
    from bentpipe.sweeps import cluster

    with cluster.connected(dask) as client:
        yield partial(cluster.outcomes, client=client, address=dask)
