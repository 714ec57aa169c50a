"""Runs an evaluation: simulates the conditions, judges, and writes the report and the data."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import RequestError
from bentpipe.evaluation import findings
from bentpipe.evaluation.experiments import EXPERIMENTS, LONG_FLOW, Condition
from bentpipe.evaluation.networks import (
    BBR,
    BBR3,
    CUBIC,
    NETWORKS,
    RENO,
    TEMPLATE,
    Cell,
    Network,
    Rule,
)
from bentpipe.evaluation.observation import Observed
from bentpipe.evaluation.verdicts import Criterion, Judged, Measure, row, rules, tally
from bentpipe.files import atomic_write
from bentpipe.processors import available_cores
from bentpipe.studies.provenance import Provenance
from bentpipe.studies.simulations import simulations
from bentpipe.sweeps.local import check_workers
from bentpipe.sweeps.stopping import deferred_interrupts, result_of

if TYPE_CHECKING:
    from bentpipe.results import RunResult
    from bentpipe.studies.runner import Progress
    from bentpipe.studies.study import Verdict

# The rules beside the one that is evaluated.
REFERENCES: Final = (CUBIC, BBR, BBR3, RENO)
SEEDS: Final = 3
_ALIASES: Final = {"bbr1": "bbr"}


@dataclass(frozen=True, kw_only=True)
class Section:
    """A criterion with its figure, and the rule and its references judged by it."""

    criterion: Criterion
    judged: tuple[Judged, ...]
    svg: str

    @property
    def own(self) -> Judged:
        """The rule that is evaluated."""
        return self.judged[0]

    def values(self, measure: Measure) -> list[tuple[str, list[Any]]]:
        """Return the rows of each condition of a quantity: one for each rule."""
        conditions = dict.fromkeys(
            each.condition for each in self.own.rows if each.measure.id == measure.id
        )
        return [
            (
                name,
                [
                    found
                    for each in self.judged
                    for found in each.rows
                    if found.condition == name and found.measure.id == measure.id
                ],
            )
            for name in conditions
        ]


@dataclass(frozen=True, kw_only=True)
class Evaluation:
    """An evaluated rule.

    `findings` are published findings about the references, measured in the same run; none if only
    some criteria were asked for.
    """

    rule: Rule
    is_python: bool
    rules: tuple[Rule, ...]
    sections: tuple[Section, ...]
    findings: tuple[Verdict, ...]
    seeds: tuple[int, ...]
    simulations: int
    provenance: Provenance
    networks: tuple[Network, ...] = NETWORKS

    def judged(self, rule: Rule) -> list[Judged]:
        """Return a rule's verdicts by criterion."""
        place = self.rules.index(rule)
        return [section.judged[place] for section in self.sections]

    @property
    def tally(self) -> str:
        """How many criteria have which verdict."""
        return tally(self.judged(self.rule))

    def as_json(self) -> dict[str, Any]:
        """Return the evaluation as plain data; NaN is null there."""
        return {
            "rule": self.rule.name,
            "tcp": dict(self.rule.tcp),
            "python": self.is_python,
            "references": [each.name for each in self.rules[1:]],
            "seeds": list(self.seeds),
            "simulations": self.simulations,
            "margin": rules().margin,
            "criteria": [_section_as_json(each) for each in self.sections],
            "not_evaluated": [dict(each) for each in rules().not_evaluated],
            "findings": [each.as_json() for each in self.findings],
            "provenance": self.provenance.as_json(),
        }


def _section_as_json(section: Section) -> dict[str, Any]:
    criterion = section.criterion
    return {
        "id": criterion.id,
        "section": criterion.section,
        "title": criterion.title,
        "verdict": section.own.verdict,
        "reason": section.own.reason,
        "measures": [asdict(each) for each in criterion.measures.values()],
        "rules": {
            each.rule: {
                "verdict": each.verdict,
                "reason": each.reason,
                "compared_with": each.standard,
                "values": [
                    {
                        "condition": found.condition,
                        "measure": found.measure.id,
                        "verdict": found.verdict,
                        "median": _number(found.median),
                        "values": [_number(value) for value in found.values],
                        "standard": _number(found.standard),
                    }
                    for found in each.rows
                ],
            }
            for each in section.judged
        },
    }


def _number(value: float | None) -> float | None:
    return value if value is not None and isfinite(value) else None


@dataclass(frozen=True, kw_only=True)
class _Job:
    """A rule in a condition, with a seed."""

    criterion: Criterion
    condition: Condition
    rule: Rule
    seed: int
    cells: tuple[Cell, ...]


def criteria_named(names: Sequence[str]) -> list[Criterion]:
    """Return the criteria of these names, in the order of the RFC; all of them for none.

    Raises
    ------
    RequestError
        There is no such criterion.
    """
    every = rules().criteria
    known = [each.id for each in every]
    for name in names:
        if name not in known:
            raise RequestError(f"--only {name}: expected one of {', '.join(known)}")
    return [each for each in every if not names or each.id in names]


def find_rule(name: str, tcp: Mapping[str, str]) -> tuple[Rule, bool]:
    """Return the rule of a name, and whether it is written in Python.

    Raises
    ------
    RequestError
        There is no such rule.
    """
    from bentpipe import _native, congestion

    own = [each for each, _ in congestion.registered()]
    built_in = _native.lists()["congestion-controls"]
    name = _ALIASES.get(name, name)
    if name not in own and name not in built_in:
        raise RequestError(
            f"no window rule {name!r}; there are {', '.join([*built_in, *own])}, and those that a "
            "--python file registers"
        )
    return Rule(name=name, tcp=tuple(tcp.items())), name in own


def check_request(
    rule: Rule, only: Sequence[str], *, workers: int | None, dask: str | None
) -> None:
    """Check what can be checked before anything is simulated.

    Raises
    ------
    RequestError, ScenarioError
        There is no such criterion, a setting is wrong, or the workers are.
    """
    criteria_named(only)
    check_workers(workers, dask)
    cell = Cell(network=NETWORKS[0], subject=rule, flows=(LONG_FLOW,), seed=1)
    cell.scenario().resolved()


def evaluate(
    rule: Rule,
    *,
    is_python: bool = False,
    out: Path,
    only: Sequence[str] = (),
    seeds: int = SEEDS,
    workers: int | None = None,
    dask: str | None = None,
    command: str = "",
    progress: Progress | None = None,
) -> Evaluation:
    """Evaluate a rule; write `evaluation.html`, `evaluation.json` and `evaluation.parquet`.

    Raises
    ------
    RequestError
        There is no such criterion, or no scheduler answers.
    WorkError
        A simulation failed, or the cluster went away.
    """
    from bentpipe.evaluation.figures import svg_of
    from bentpipe.evaluation.page import write_page
    from bentpipe.studies.runner import Progress

    shown = progress or Progress()
    began = time.monotonic()
    numbers = tuple(range(1, seeds + 1))
    every = (rule, *(each for each in REFERENCES if each != rule))
    chosen = criteria_named(only)
    # One after the other: a rule's jobs need those of its standard control.
    jobs = [_jobs(criterion, every, numbers) for criterion in chosen]
    checked = [] if only else findings.cells()
    provenance = Provenance(
        command=command,
        workers=f"Dask cluster at {dask}" if dask else str(workers or available_cores()),
    )
    groups = [list(job.cells) for several in jobs for job in several] + [checked]
    sections = []
    with simulations(workers, dask) as simulator, deferred_interrupts() as look:
        begun = simulator.begin(groups)
        number = len({id(future) for futures in begun for future in futures.values()})
        criteria = "1 criterion" if len(chosen) == 1 else f"{len(chosen)} criteria"
        shown.begin(f"{rule.name}: {number} simulations for {criteria}", len(begun))
        waiting = iter(begun)
        values: list[tuple[_Job, Mapping[str, float]]] = []
        for criterion, several in zip(chosen, jobs, strict=True):
            measured = []
            for job in several:
                measured.append(_measure(job, next(waiting), look))
                shown.step()
            judged = _judge(criterion, every, several, measured, numbers)
            sections.append(Section(criterion=criterion, judged=judged, svg=svg_of(judged)))
            values += zip(several, measured, strict=True)
        found = findings.check(_observer(next(waiting), look)) if checked else ()
        shown.step()
    evaluation = Evaluation(
        rule=rule,
        is_python=is_python,
        rules=every,
        sections=tuple(sections),
        findings=found,
        seeds=numbers,
        simulations=number,
        provenance=replace(provenance, elapsed_s=time.monotonic() - began),
    )
    _write_values(values, out)
    with atomic_write(out / "evaluation.json") as part:
        text = json.dumps(evaluation.as_json(), indent=2, ensure_ascii=False)
        part.write_text(text + "\n", encoding="utf-8")
    write_page(evaluation, out / "evaluation.html")
    return evaluation


def _jobs(criterion: Criterion, every: Sequence[Rule], seeds: Sequence[int]) -> list[_Job]:
    return [
        _Job(
            criterion=criterion,
            condition=condition,
            rule=rule,
            seed=seed,
            cells=tuple(condition.cells(rule, seed)),
        )
        for condition in EXPERIMENTS[criterion.id]
        for rule in every
        for seed in seeds
    ]


def _observer(
    futures: Mapping[Cell, Future[RunResult]], look: Callable[[], None]
) -> Callable[[Cell], Observed]:
    return lambda cell: Observed(cell, result_of(futures[cell], look))


def _measure(
    job: _Job, futures: dict[Cell, Future[RunResult]], look: Callable[[], None]
) -> Mapping[str, float]:
    """Wait for a job's simulations and measure; the futures are dropped with their series."""
    observe = _observer(futures, look)
    measured = job.condition.measure(*(observe(cell) for cell in job.cells))
    futures.clear()
    return measured


def standard_of(rule: Rule) -> Rule:
    """Return the standard control that a rule is compared with: CUBIC, and Reno for CUBIC."""
    return RENO if rule.name == CUBIC.name else CUBIC


def _judge(
    criterion: Criterion,
    every: Sequence[Rule],
    jobs: Sequence[_Job],
    measured: Sequence[Mapping[str, float]],
    seeds: Sequence[int],
) -> tuple[Judged, ...]:
    table = {
        (job.condition.name, job.rule, job.seed): values
        for job, values in zip(jobs, measured, strict=True)
    }
    margin = rules().margin

    def judge(rule: Rule) -> Judged:
        standard = standard_of(rule)
        rows = []
        for measure in criterion.measures.values():
            for condition in EXPERIMENTS[criterion.id]:
                if measure.id not in table[condition.name, rule, seeds[0]]:
                    continue
                own, theirs = (
                    [table[condition.name, each, seed][measure.id] for seed in seeds]
                    for each in (rule, standard)
                )
                compared = theirs if measure.standard else None
                rows.append(row(condition.name, measure, own, compared, margin=margin))
        return Judged(criterion=criterion, rule=rule.name, rows=tuple(rows), standard=standard.name)

    return tuple(judge(rule) for rule in every)


def _write_values(values: Sequence[tuple[_Job, Mapping[str, float]]], out: Path) -> None:
    """Write a row for each value, with the commands that repeat its simulations in the folder."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from bentpipe.arrow_columns import of_values
    from bentpipe.studies.columns import add, empty

    columns = empty("criterion", "condition", "measure", "rule", "seed", "value", "commands")
    for job, measured in values:
        scenarios = (cell.scenario() for cell in job.cells)
        place = Path(TEMPLATE.name)
        commands = "\n".join(replace(each, path=place).command() for each in scenarios)
        for name, value in measured.items():
            add(
                columns,
                *(job.criterion.id, job.condition.name, name, job.rule.name, job.seed),
                float(value),
                commands,
            )
    (out / TEMPLATE.name).write_text(TEMPLATE.read_text(encoding="utf-8"), encoding="utf-8")
    table = pa.table({name: of_values(each) for name, each in columns.items()})
    pq.write_table(table, out / "evaluation.parquet")
