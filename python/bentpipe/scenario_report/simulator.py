"""Simulations for a report, on this machine's cores or on a Dask cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bentpipe.processors import available_cores
from bentpipe.sweeps import local
from bentpipe.sweeps.cell import Outcome, Task
from bentpipe.sweeps.check import scenario_in_memory
from bentpipe.sweeps.stopping import deferred_interrupts

if TYPE_CHECKING:
    from bentpipe.scenario import Scenario

# Receives the number of simulations that are done, and of those known to be needed.
Progress = Callable[[int, int], None]

_Outcomes = Callable[[Iterator[Task], Callable[[], None]], Iterator[list[Outcome]]]


class Simulator:
    """Simulates scenarios as the cells of a sweep are simulated.

    `done` is the number of finished simulations, `known` that of those known to be needed.
    """

    def __init__(self, outcomes: _Outcomes, progress: Progress | None) -> None:
        self._outcomes = outcomes
        self._progress = progress
        self.done = 0
        self.known = 0

    def simulate(self, scenarios: Sequence[Scenario]) -> list[Outcome]:
        """Return the outcome of each scenario, in order; equal scenarios share a simulation."""
        different = list(dict.fromkeys(scenarios))
        tasks = (
            Task(cell=number, scenario=scenario_in_memory(each), series=False)
            for number, each in enumerate(different)
        )
        self.expect(len(different))
        found: dict[Scenario, Outcome] = {}
        with deferred_interrupts() as look:
            for batch in self._outcomes(tasks, look):
                for outcome in batch:
                    found[different[outcome.cell]] = outcome
                    self.step()
        return [found[each] for each in scenarios]

    def expect(self, more: int) -> None:
        """Note that more simulations are needed."""
        self.known += more
        self._report()

    def step(self, number: int = 1) -> None:
        """Note that simulations are done."""
        self.done += number
        self._report()

    def _report(self) -> None:
        if self._progress is not None:
            self._progress(self.done, self.known)


@contextmanager
def simulator(
    *, workers: int | None, dask: str | None, progress: Progress | None
) -> Iterator[Simulator]:
    """Yield a simulator on this machine's cores, or on the cluster of a Dask scheduler.

    Raises
    ------
    RequestError
        `workers` and `dask` were both given, Dask is not installed, or no scheduler answers.
    """
    local.check_workers(workers, dask)
    if dask is None:
        at_a_time = workers or available_cores()
        yield Simulator(
            lambda tasks, look: local.outcomes(tasks, workers=at_a_time, look=look), progress
        )
        return
    from bentpipe.sweeps import cluster

    with cluster.connected(dask) as client:
        yield Simulator(
            lambda tasks, look: cluster.outcomes(
                tasks, client=client, address=dask, look=look, advice=cluster.NOTHING_KEPT
            ),
            progress,
        )
