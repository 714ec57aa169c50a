"""A scenario simulated with several seeds: medians and ranges of its results.

Errors, queues, applications and the timing of hosts are random in a real network; a run draws them
from its seed. One run is one of the results that such a network has. The range over seeds shows how
far these are apart.
"""

from __future__ import annotations

import json
import statistics
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import RequestError
from bentpipe.results import Summary, run
from bentpipe.scenario import Scenario, checked_seed

if TYPE_CHECKING:
    from pathlib import Path

# A range wider than this share of its median is wide.
WIDE: Final = 0.05
MOST_SEEDS: Final = 1000
_SEEDS: Final = 2**64
# Tables of a summary whose records have names.
_TABLES: Final = ("flows", "links", "gateways", "groups")
# Fields of the machine's speed, and the seed, which `seeds` replaces.
_LEFT_OUT: Final = frozenset({"wall_s", "seed", "packets_per_s"})


@dataclass(frozen=True, kw_only=True)
class Range:
    """The median and the range of a value over seeds; `count` seeds had the value at all."""

    median: float
    least: float
    most: float
    count: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Range | None:
        """Return the range of the values that are not None; None without any."""
        known = [value for value in values if value is not None]
        if not known:
            return None
        return cls(
            median=statistics.median(known), least=min(known), most=max(known), count=len(known)
        )

    @property
    def is_wide(self) -> bool:
        """Whether the values are farther apart than 5% of their median."""
        return self.most - self.least > WIDE * abs(self.median)

    def contains(self, value: float, *, within: float = 0.0, slack: float = 0.0) -> bool:
        """Return whether a value lies in the range.

        The range is widened at both ends by `within`, a share of the value, or by `slack`, if that
        is more.
        """
        more = max(within * abs(value), slack)
        return self.least - more <= value <= self.most + more

    def to_data(self) -> dict[str, float]:
        """Return it as `bentpipe run --seeds --json` has it."""
        return {"median": self.median, "min": self.least, "max": self.most, "count": self.count}


class SeedRuns:
    """The results of a scenario with several seeds.

    `seeds` and `summaries` are in the order of the runs.
    """

    def __init__(self, seeds: Sequence[int], texts: Sequence[str]) -> None:
        self.seeds = tuple(seeds)
        self._texts = tuple(texts)

    def __repr__(self) -> str:
        name = self.summaries[0].scenario
        return f"SeedRuns({name!r}, {len(self.seeds)} seeds from {self.seeds[0]})"

    @cached_property
    def summaries(self) -> tuple[Summary, ...]:
        """The summary of each run."""
        return tuple(Summary.from_json(text) for text in self._texts)

    def data_of(self, place: int) -> dict[str, Any]:
        """Return the object that `bentpipe run --json` prints for the seed at a place."""
        told: dict[str, Any] = json.loads(self._texts[place])
        return told

    def goodput_bps(self, flow: str) -> Range:
        """Return the range of a flow's goodput, in bits per second.

        Raises
        ------
        KeyError
            There is no such flow.
        """
        flows = (each for summary in self.summaries for each in summary.flows)
        found = Range.of(each.goodput_bps for each in flows if each.name == flow)
        if found is None:
            raise KeyError(flow)
        return found

    def to_data(self) -> dict[str, Any]:
        """Return the object that `bentpipe run --seeds --json` prints.

        It has the shape of a run's summary. Each number is a range: `median`, `min`, `max`, and the
        `count` of runs that have it. A word, such as an outcome, is replaced by the number of runs
        with each value. Lists of numbers are left out.
        """
        runs = [json.loads(text) for text in self._texts]
        told = {key: value for key, value in runs[0].items() if key in ("scenario", "duration_s")}
        told["results_version"] = runs[0]["results_version"]
        told["seeds"] = list(self.seeds)
        for key in runs[0]:
            if key in told or key in _LEFT_OUT:
                continue
            values = [each.get(key) for each in runs]
            if key in _TABLES:
                told[key] = _ranges_of_table(values)
            elif (merged := _merged(values)) is not None:
                told[key] = merged
        return told


def run_seeds(
    scenario: Scenario | str | Path | Mapping[str, Any],
    *,
    seeds: int,
    seed: int | None = None,
    settings: Mapping[str, object] | None = None,
    workers: int | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> SeedRuns:
    """Simulate a scenario with several seeds, in threads.

    Parameters
    ----------
    scenario
        As `run` takes it.
    seeds
        How many: the seed, and those that follow it.
    seed
        The first one. Instead of the file's.
    settings
        Keys to change, as `run` takes them.
    workers
        How many at a time. By default, as many as this process has cores.
    progress
        Called with the number of runs that have finished, and `seeds`.

    Raises
    ------
    RequestError, ScenarioError
        There is no such scenario, or it is wrong.
    RunError
        A run failed.
    """
    from bentpipe.processors import available_cores, shared_cores
    from bentpipe.sweeps.stopping import deferred_interrupts, result_of

    if not 1 <= seeds <= MOST_SEEDS:
        raise RequestError(f"expected 1 to {MOST_SEEDS:,} seeds, found {seeds:,}")
    scenario = Scenario.of(scenario).with_settings(settings or {})
    first = checked_seed(seed)
    if first is None:
        first = int(scenario.resolved()["seed"])
    chosen = [(first + place) % _SEEDS for place in range(seeds)]
    stopped = threading.Event()

    def look(*_: float) -> None:
        if stopped.is_set():
            raise KeyboardInterrupt

    at_a_time = workers or available_cores()
    # Seeds first: parts of one network cost synchronisation.
    cores = shared_cores(available_cores(), min(at_a_time, seeds))

    def simulate(seed: int) -> str:
        result = run(scenario, seed=seed, no_probes=True, progress=look, cores=cores)
        return result.summary_json

    texts: list[str] = []
    pool = ThreadPoolExecutor(max_workers=at_a_time)
    try:
        with deferred_interrupts() as check:
            for future in [pool.submit(simulate, each) for each in chosen]:
                texts.append(result_of(future, check))
                if progress is not None:
                    progress(len(texts), seeds)
    finally:
        # After an error, and after Ctrl-C, runs that go on end, too.
        stopped.set()
        pool.shutdown(wait=True, cancel_futures=True)
    return SeedRuns(chosen, texts)


def _ranges_of_table(tables: Sequence[Any]) -> list[dict[str, Any]]:
    """Merge the records of the same name, in the order of the first run."""
    by_name = [{record["name"]: record for record in table or ()} for table in tables]
    rows = []
    for name, first in by_name[0].items():
        records = [each[name] for each in by_name if name in each]
        row: dict[str, Any] = {"name": name}
        if "kind" in first:
            row["kind"] = first["kind"]
        keys = dict.fromkeys(key for record in records for key in record if key not in row)
        for key in keys:
            merged = _merged([record.get(key) for record in records])
            if merged is not None:
                row[key] = merged
        rows.append(row)
    return rows


def _merged(values: Sequence[Any]) -> dict[str, Any] | None:
    """Return a range of numbers, counts of words, or a dict of such; None without any."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in known):
        found = Range.of(known)
        return None if found is None else found.to_data()
    if all(isinstance(value, str) for value in known):
        return dict(Counter(known))
    if all(isinstance(value, Mapping) for value in known):
        keys = dict.fromkeys(key for value in known for key in value)
        merged = {key: _merged([value.get(key) for value in known]) for key in keys}
        return {key: value for key, value in merged.items() if value is not None}
    return None
