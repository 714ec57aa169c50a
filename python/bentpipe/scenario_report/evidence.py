"""The simulations and predictions that a report is written from."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from bentpipe.advice import advise
from bentpipe.advice.advisor import SEEDS
from bentpipe.advice.remedies import Network
from bentpipe.errors import RequestError, WorkError
from bentpipe.prediction.flows import predict_resolved
from bentpipe.scenario_report.differences import differences
from bentpipe.scenario_report.measures import (
    GOODPUT,
    TRANSFER,
    Key,
    Measure,
    MeasureRange,
    main_measures,
    measures_of,
    over_seeds,
)
from bentpipe.scenario_report.simulator import Simulator, simulator
from bentpipe.scenario_report.variations import Value, Variation, variations
from bentpipe.seed_ranges import MOST_SEEDS, SeedRuns

if TYPE_CHECKING:
    from bentpipe.advice import Advice
    from bentpipe.prediction import Prediction
    from bentpipe.results import Summary
    from bentpipe.scenario import Scenario
    from bentpipe.scenario_report.simulator import Progress

# Largest seed that a scenario file may have.
_SEEDS: Final = 2**63
# Seeds of the variations at most, where anything is random: the first of those of the report.
_SEEDS_OF_VARIATIONS: Final = 3


@dataclass(frozen=True, kw_only=True)
class Varied:
    """The measures with a value of a variation: one dict for each seed, or the refusal."""

    value: Value
    runs: tuple[Mapping[Key, Measure], ...] = ()
    error: str = ""

    def measure(self, key: Key) -> MeasureRange | None:
        """Return a measure with its range over the seeds; None where a run does not have it."""
        if not self.runs or key not in self.runs[0]:
            return None
        return over_seeds([each for each in self.runs if key in each])[key]


@dataclass(frozen=True, kw_only=True)
class Sensitivity:
    """A variation, and the measures with each of its values."""

    variation: Variation
    points: tuple[Varied, ...]

    def keys(self, main: Sequence[Key]) -> list[Key]:
        """Return main measures that can be compared along the variation.

        Where not all transfers finish with some value, their goodput stands for their time.
        """
        runs = [run for each in self.points for run in each.runs]
        return [
            (table, GOODPUT)
            if what == TRANSFER and not all(_all_finished(run.get((table, what))) for run in runs)
            else (table, what)
            for table, what in main
        ]

    def to_data(self, keys: Sequence[Key]) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "kind": self.variation.kind,
            "subject": self.variation.subject,
            "unit": self.variation.unit,
            "why_not": self.variation.why_not,
            "values": [
                {
                    "value": each.value.number,
                    "present": each.value.is_present,
                    "set": [f"{key}={value}" for key, value in each.value.settings],
                    "error": each.error,
                    "measures": [
                        measure.to_data()
                        for key in keys
                        if (measure := each.measure(key)) is not None
                    ],
                }
                for each in self.points
            ],
        }


def _all_finished(transfers: Measure | None) -> bool:
    return transfers is not None and transfers.completed == transfers.begun


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """All results of one scenario. `label` is the file or name as it was given."""

    label: str
    scenario: Scenario
    text: str
    resolved: Mapping[str, Any]
    runs: SeedRuns
    advice: Advice
    prediction: Prediction
    sensitivities: tuple[Sensitivity, ...]

    @property
    def name(self) -> str:
        """The scenario's name."""
        return str(self.resolved["name"])

    @property
    def sha256(self) -> str:
        """The hash of the file's text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def summary(self) -> Summary:
        """The run with the scenario's own seed."""
        return self.runs.summaries[0]

    @cached_property
    def tables(self) -> dict[str, str]:
        """The table of each flow."""
        return {flow["name"]: flow["table"] for flow in self.resolved["flows"]}

    @cached_property
    def measures(self) -> dict[Key, MeasureRange]:
        """All measures, with their ranges over the seeds."""
        return over_seeds([measures_of(each, self.tables) for each in self.runs.summaries])

    @cached_property
    def main(self) -> list[Key]:
        """The measures that stand for each table."""
        return main_measures({key: each.own for key, each in self.measures.items()})

    def to_data(self) -> dict[str, Any]:
        """Return the numbers behind the report of this scenario."""
        return {
            "file": self.label,
            "scenario": self.name,
            "sha256": self.sha256,
            "settings": [f"{key}={value}" for key, value in self.scenario.settings],
            "seeds": list(self.runs.seeds),
            "measures": [each.to_data() for each in self.measures.values()],
            "main": [list(key) for key in self.main],
            "run": self.runs.data_of(0),
            "over_seeds": self.runs.to_data(),
            "advise": self.advice.as_json(),
            "predict": asdict(self.prediction),
            "sensitivity": [each.to_data(each.keys(self.main)) for each in self.sensitivities],
        }


@dataclass(frozen=True, kw_only=True)
class Report:
    """The evidence of all scenarios of a report, and its origin."""

    scenarios: tuple[Evidence, ...]
    command: str
    quick: bool
    # Seeds that were asked for; a scenario without randomness needs one.
    seeds: int
    began: datetime
    elapsed_s: float
    simulations: int
    where: str

    def to_data(self) -> dict[str, Any]:
        """Return the numbers behind the report."""
        from bentpipe._native import __version__

        return {
            "version": __version__,
            "command": self.command,
            "quick": self.quick,
            "began": self.began.isoformat(timespec="seconds"),
            "elapsed_s": self.elapsed_s,
            "simulations": self.simulations,
            "scenarios": [each.to_data() for each in self.scenarios],
            "differences": [
                {"key": each.key, "values": list(each.values)}
                for each in differences([each.resolved for each in self.scenarios])
            ],
        }


def gather(
    scenarios: Sequence[tuple[str, Scenario]],
    *,
    seeds: int | None = None,
    quick: bool = False,
    workers: int | None = None,
    dask: str | None = None,
    command: str = "",
    progress: Progress | None = None,
) -> Report:
    """Simulate and predict what a report of scenarios needs.

    Parameters
    ----------
    scenarios
        Labels, such as the names of files, and scenarios.
    seeds
        The number of seeds, where anything is random: the scenario's and the following ones. By
        default three, or one if `quick`.
    quick
        Whether three values of each variation are enough.
    workers
        The number of simulations at a time; by default the number of cores.
    dask
        The address of a Dask scheduler, whose workers simulate.
    command
        The command line, for the report.
    progress
        Called with the number of finished simulations, and of those known to be needed.

    Raises
    ------
    RequestError, ScenarioError
        A scenario is wrong, or the request is.
    WorkError
        A scenario cannot be simulated, or the cluster went away.
    """
    from bentpipe.processors import available_cores

    if seeds is None:
        seeds = 1 if quick else SEEDS
    if not 1 <= seeds <= MOST_SEEDS:
        raise RequestError(f"--seeds {seeds}: expected 1 to {MOST_SEEDS}")
    began, clock = datetime.now(UTC), time.perf_counter()
    at_a_time = workers or available_cores()
    # All are read before anything is simulated: a mistake in the last one is reported at once.
    asked = [
        (label, replace(scenario, text=scenario.content()), scenario.resolved())
        for label, scenario in scenarios
    ]
    with simulator(workers=workers, dask=dask, progress=progress) as simulate:
        found = [
            _evidence(*each, simulate, seeds=seeds, quick=quick, workers=workers, dask=dask)
            for each in asked
        ]
    return Report(
        scenarios=tuple(found),
        command=command,
        quick=quick,
        seeds=seeds,
        began=began,
        elapsed_s=time.perf_counter() - clock,
        simulations=simulate.done,
        where=f"{at_a_time} at a time" if dask is None else f"Dask cluster at {dask}",
    )


def _evidence(
    label: str,
    scenario: Scenario,
    resolved: Mapping[str, Any],
    simulate: Simulator,
    *,
    seeds: int,
    quick: bool,
    workers: int | None,
    dask: str | None,
) -> Evidence:
    from bentpipe import _native

    first = int(resolved["seed"])
    # Seed by seed: one that changes nothing shows that no further one does.
    numbers = [(first + more) % _SEEDS for more in range(seeds)]
    texts = _runs(label, scenario, numbers[:2], simulate)
    runs = SeedRuns(numbers[: len(texts)], texts)
    if len(texts) == 2 and _is_random(runs):
        texts += _runs(label, scenario, numbers[2:], simulate)
        runs = SeedRuns(numbers, texts)
    elif len(texts) == 2:
        runs = SeedRuns(numbers[:1], texts[:1])
    network = Network.of(scenario, _native.lists())
    tables = {flow["name"]: flow["table"] for flow in resolved["flows"]}
    sensitivities = _sensitivities(
        scenario, variations(network, runs.summaries[0], quick=quick), runs, simulate, tables
    )
    return Evidence(
        label=label,
        scenario=scenario,
        text=scenario.content(),
        resolved=resolved,
        runs=runs,
        advice=_advice(scenario, simulate, seeds=seeds, workers=workers, dask=dask),
        prediction=predict_resolved(resolved, name=str(resolved["name"])),
        sensitivities=sensitivities,
    )


def _is_random(runs: SeedRuns) -> bool:
    """Return whether two seeds give different results, apart from the seed and the wall time."""
    one, other = (replace(each, seed=0, wall_s=0.0, extra={}) for each in runs.summaries[:2])
    return one != other


def _runs(label: str, scenario: Scenario, seeds: Sequence[int], simulate: Simulator) -> list[str]:
    outcomes = simulate.simulate([scenario.with_settings({"seed": seed}) for seed in seeds])
    texts = []
    for outcome in outcomes:
        if outcome.summary_json is None:
            raise WorkError(f"{label}: {outcome.error}")
        texts.append(outcome.summary_json)
    return texts


def _advice(
    scenario: Scenario,
    simulate: Simulator,
    *,
    seeds: int,
    workers: int | None,
    dask: str | None,
) -> Advice:
    """Find remedies; their simulations count as those of the report."""
    counted = [0, 0]

    def note(done: int, known: int) -> None:
        simulate.known += known - counted[1]
        simulate.step(done - counted[0])
        counted[:] = done, known

    return advise(scenario, workers=workers, dask=dask, seeds=seeds, progress=note)


def _sensitivities(
    scenario: Scenario,
    varied: Sequence[Variation],
    runs: SeedRuns,
    simulate: Simulator,
    tables: Mapping[str, str],
) -> tuple[Sensitivity, ...]:
    """Simulate all values of all variations, several at a time.

    The present value has the runs of the report itself.
    """
    seeds = runs.seeds[:_SEEDS_OF_VARIATIONS]
    present = tuple(measures_of(each, tables) for each in runs.summaries[: len(seeds)])
    asked: list[tuple[str, Value]] = []
    refused: dict[tuple[str, float], str] = {}
    for variation in varied:
        for value in variation.values:
            if value.is_present:
                continue
            changed = scenario.with_settings(dict(value.settings))
            error = _refusal(changed)
            if error:
                refused[variation.subject, value.number] = error
            else:
                asked.append((variation.subject, value))
    scenarios = [
        scenario.with_settings({**dict(value.settings), "seed": seed})
        for _, value in asked
        for seed in seeds
    ]
    outcomes = iter(simulate.simulate(scenarios))
    points: dict[tuple[str, float], Varied] = {}
    for subject, value in asked:
        own = [next(outcomes) for _ in seeds]
        errors = [each.error for each in own if each.error is not None]
        points[subject, value.number] = Varied(
            value=value,
            error=errors[0] if errors else "",
            runs=()
            if errors
            else tuple(_measures_of(each.summary_json or "", tables) for each in own),
        )
    return tuple(
        Sensitivity(
            variation=variation,
            points=tuple(
                Varied(value=value, runs=present)
                if value.is_present
                else points.get(
                    (variation.subject, value.number),
                    Varied(value=value, error=refused.get((variation.subject, value.number), "")),
                )
                for value in variation.values
            ),
        )
        for variation in varied
    )


def _measures_of(text: str, tables: Mapping[str, str]) -> dict[Key, Measure]:
    from bentpipe.results import Summary

    summary = Summary.from_json(text)
    known = dict(tables)
    for flow in summary.flows:
        # With another number of users, flows have other numbers: pages-21 is of the table pages.
        known.setdefault(flow.name, _table_of(flow.name, tables))
    return measures_of(summary, known)


def _table_of(name: str, tables: Mapping[str, str]) -> str:
    of = set(tables.values())
    if name in of:
        return name
    stem = name.rpartition("-")[0]
    return stem if stem in of else name


def _refusal(scenario: Scenario) -> str:
    from bentpipe import _native

    try:
        scenario.resolved()
    except _native.ScenarioError as error:
        return str(error)
    return ""
