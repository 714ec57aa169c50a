"""Simulation of remedies with one or several seeds, several runs at a time."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from bentpipe.advice.user_experience import MeasureName, UserMeasure, measures_of, overall_gain
from bentpipe.errors import WorkError
from bentpipe.results import RunResult, limit_shares, run

if TYPE_CHECKING:
    from types import TracebackType

    from bentpipe.advice.remedy import Remedy
    from bentpipe.scenario import Scenario

    # Simulates scenarios, each with a seed; yields places and outcomes, in any order.
    _Run = Callable[
        [Sequence[tuple[Scenario, int]], Callable[[], None]],
        Iterator[tuple[int, "Outcome | Exception"]],
    ]

# Smallest gain that makes a remedy worthwhile.
WORTHWHILE: Final = 1.02

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Results of one run that remedies are compared by."""

    goodput_bps: float
    limits: Mapping[str, float]
    measures: Mapping[MeasureName, UserMeasure]
    # Numbers by which two runs are compared, to find out whether anything is random.
    numbers: tuple[tuple[float | None, ...], ...]
    # Goodput of each table of flows, bit/s.
    rates_bps: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, result: RunResult) -> Outcome:
        """Return the results of a run that remedies are compared by."""
        return cls(
            goodput_bps=goodput_of(result),
            limits=limits_of(result),
            measures=measures_of(result),
            numbers=tuple(
                (flow.goodput_bps, flow.finish_s, flow.segments_sent, flow.rtt_ms.mean)
                for flow in result.summary.flows
            ),
            rates_bps={group.name: group.goodput_bps for group in result.summary.groups},
        )


@dataclass(kw_only=True, eq=False)
class Trial:
    """A remedy and its outcomes so far: one for each seed, that of the scenario's own seed first.

    `complete` is whether further seeds are unnecessary: all have been simulated, or nothing is
    random with this remedy. `without` are the outcomes without the remedy.
    """

    remedy: Remedy
    scenario: Scenario
    without: Sequence[Outcome]
    outcomes: list[Outcome] = field(default_factory=list)
    complete: bool = False

    @property
    def gains(self) -> tuple[float, ...]:
        """Goodput with it over goodput without it, for each seed."""
        return tuple(
            after.goodput_bps / before.goodput_bps if before.goodput_bps > 0 else 1.0
            for before, after in zip(self.without, self.outcomes, strict=False)
        )

    @property
    def gain(self) -> float:
        """The median of the gains so far."""
        return statistics.median(self.gains)

    @property
    def overall_gains(self) -> tuple[float, ...]:
        """How many times better the flows are served, for each seed.

        By the measures of user experience; without any, by goodput.
        """
        if not self.without[0].measures:
            return self.gains
        return tuple(
            overall_gain((before.measures, after.measures), (before.rates_bps, after.rates_bps))
            for before, after in zip(self.without, self.outcomes, strict=False)
        )

    @property
    def overall_gain(self) -> float:
        """The median of the overall gains so far."""
        return statistics.median(self.overall_gains)

    @property
    def rank(self) -> tuple[bool, float, float]:
        """The sort key of a remedy; the greatest is the best.

        Remedies that every network must support come last.
        """
        # Where nothing is delivered without a remedy, gains are 1 and goodput decides.
        first_bps = self.outcomes[0].goodput_bps
        return not self.remedy.every_network, self.overall_gain, first_bps

    @property
    def first_rank(self) -> tuple[bool, float, float]:
        """The sort key of a remedy by the scenario's own seed alone."""
        first_bps = self.outcomes[0].goodput_bps
        return not self.remedy.every_network, self.overall_gains[0], first_bps


def goodput_of(result: RunResult) -> float:
    """Return the goodput of all flows together: the sum of what `run` prints, bit/s."""
    return sum(flow.goodput_bps for flow in result.summary.flows)


def limits_of(result: RunResult) -> dict[str, float]:
    """Return the limits of the senders, as shares of all their time, the largest first."""
    spent: dict[str, float] = {}
    for flow in result.summary.flows:
        for name, seconds in flow.limited_s.items():
            spent[name] = spent.get(name, 0.0) + seconds
    return limit_shares(spent)


class TrialRunner:
    """Simulates remedies, several at a time; interrupted simulations end with the block.

    `base` is the run of the unchanged scenario with its own seed, the first of `seeds`. `without`
    are the outcomes of the unchanged scenario with each seed. `refused` has the remedies that the
    simulator refused, and `simulations` is the number of all simulations.
    """

    def __init__(
        self,
        scenario: Scenario,
        *,
        workers: int | None,
        dask: str | None = None,
        seeds: int,
        progress: Progress | None,
    ) -> None:
        from bentpipe.sweeps.local import check_workers

        check_workers(workers, dask)
        self._scenario = scenario
        self.base = run(scenario, no_probes=True)
        # Seeds are 64-bit numbers.
        own = self.base.summary.seed
        self.seeds = tuple((own + more) % 2**64 for more in range(seeds))
        self.refused: dict[str, str] = {}
        self.simulations = 1
        self._known = 1
        self._progress = progress
        with ExitStack() as resources:
            if dask is None:
                self._run: _Run = resources.enter_context(_Local(workers)).run
            else:
                self._run = resources.enter_context(_on_cluster(dask))
            self.without = [Outcome.of(self.base)]
            for each in self._simulate([(scenario, seed) for seed in self.seeds[1:]]):
                if isinstance(each, Exception):
                    raise each
                self.without.append(each)
            self._resources = resources.pop_all()
        # Decided by the results, not by the file: errors, queues, applications and window rules may
        # draw random numbers, and need not.
        self.random = any(each.numbers != self.without[0].numbers for each in self.without)

    def __enter__(self) -> TrialRunner:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._resources.__exit__(kind, error, trace)

    def run_first_seed(self, several: Iterable[Remedy]) -> list[Trial]:
        """Simulate each remedy with the scenario's own seed; leave out those that are refused."""
        trials = [
            Trial(
                remedy=remedy,
                scenario=self._scenario.with_settings(dict(remedy.settings)),
                without=self.without,
                complete=len(self.seeds) == 1,
            )
            for remedy in several
        ]
        return self._run_seeds(trials, self.seeds[:1])

    def run_all_seeds(self, trials: Sequence[Trial]) -> list[Trial]:
        """Simulate each with the further seeds; return those that are not refused."""
        done = [each for each in trials if each.complete]
        open_ones = [each for each in trials if not each.complete]
        if self.random:
            completed = self._run_seeds(open_ones, self.seeds[1:])
        else:
            completed = self._complete_if_random(open_ones)
        for each in completed:
            each.complete = True
        return done + completed

    def _complete_if_random(self, trials: Sequence[Trial]) -> list[Trial]:
        """Simulate with one further seed; add the other seeds for remedies whose results differ.

        A remedy may make a scenario random that was not, for example by a window rule that draws
        random numbers.
        """
        looked = self._run_seeds(trials, self.seeds[1:2])
        drawing = [each for each in looked if _is_random(each)]
        plain = [each for each in looked if each not in drawing]
        for each in plain:
            del each.outcomes[1:]
        return plain + self._run_seeds(drawing, self.seeds[2:])

    def _run_seeds(self, trials: Sequence[Trial], seeds: Sequence[int]) -> list[Trial]:
        """Simulate each with each of the seeds; return those that no seed refuses."""
        found = iter(self._simulate([(each.scenario, seed) for each in trials for seed in seeds]))
        possible = []
        for trial in trials:
            outcomes = [next(found) for _ in seeds]
            refusals = [each for each in outcomes if isinstance(each, Exception)]
            trial.outcomes += [each for each in outcomes if isinstance(each, Outcome)]
            if not refusals:
                possible.append(trial)
            elif not trial.remedy.is_combination:
                self.refused[trial.remedy.name] = str(refusals[0])
        return possible

    def _simulate(self, tasks: Sequence[tuple[Scenario, int]]) -> list[Outcome | Exception]:
        """Simulate scenarios, each with a seed; return the outcome or the simulator's error."""
        from bentpipe.sweeps.stopping import deferred_interrupts

        self._known += len(tasks)
        if not tasks:
            return []
        found: dict[int, Outcome | Exception] = {}
        with deferred_interrupts() as look:
            for place, outcome in self._run(tasks, look):
                found[place] = outcome
                self.simulations += 1
                if self._progress is not None:
                    self._progress(self.simulations, self._known)
        return [found[place] for place in range(len(tasks))]


class _Local:
    """Simulates on this machine's cores; interrupted simulations end with the block."""

    def __init__(self, workers: int | None) -> None:
        from bentpipe.processors import available_cores

        self._ended = threading.Event()
        self._pool = ThreadPoolExecutor(max_workers=workers or available_cores())

    def __enter__(self) -> _Local:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def run(
        self, tasks: Sequence[tuple[Scenario, int]], look: Callable[[], None]
    ) -> Iterator[tuple[int, Outcome | Exception]]:
        """Yield the outcome of each task with its place."""
        from bentpipe.sweeps.stopping import result_of

        futures = [self._pool.submit(self._outcome, *task) for task in tasks]
        for place, future in enumerate(futures):
            yield place, result_of(future, look)

    def _outcome(self, scenario: Scenario, seed: int) -> Outcome | Exception:
        from bentpipe import _native

        try:
            return Outcome.of(run(scenario, seed=seed, no_probes=True, progress=self._check_ended))
        except (_native.ScenarioError, _native.RunError) as error:
            return error

    def _check_ended(self, simulated_s: float, duration_s: float) -> None:
        del simulated_s, duration_s
        if self._ended.is_set():
            raise WorkError("interrupted")


@contextmanager
def _on_cluster(address: str) -> Iterator[_Run]:
    """Yield a function that simulates on the cluster of a Dask scheduler."""
    from bentpipe.sweeps.cell import SummaryOutput, Task
    from bentpipe.sweeps.check import scenario_in_memory
    from bentpipe.sweeps.cluster import NOTHING_KEPT, connected, outcomes

    with connected(address) as client:

        def simulate(
            tasks: Sequence[tuple[Scenario, int]], look: Callable[[], None]
        ) -> Iterator[tuple[int, Outcome | Exception]]:
            cells = (
                Task(
                    cell=place,
                    scenario=scenario_in_memory(scenario.with_settings({"seed": seed})),
                    series=False,
                )
                for place, (scenario, seed) in enumerate(tasks)
            )
            for batch in outcomes(
                cells, client=client, address=address, look=look, advice=NOTHING_KEPT
            ):
                for each in batch:
                    if each.is_internal_error:
                        raise WorkError(str(each.error))
                    if each.summary_json is None:
                        yield each.cell, WorkError(str(each.error))
                    else:
                        yield each.cell, Outcome.of(RunResult(SummaryOutput(each.summary_json)))

        yield simulate


def _is_random(trial: Trial) -> bool:
    """Return whether a remedy's results differ between seeds."""
    return any(each.numbers != trial.outcomes[0].numbers for each in trial.outcomes[1:])
