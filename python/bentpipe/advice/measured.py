"""What limits the flows of a scenario, and what each remedy gives."""

from __future__ import annotations

import statistics
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.advice.felt import Experience, Felt, experiences, felt
from bentpipe.advice.remedies import Network, Remedy, remedies
from bentpipe.errors import WorkError
from bentpipe.results import FlowResult, RunResult, run
from bentpipe.scenario import Scenario

if TYPE_CHECKING:
    from bentpipe.prediction.paths import FlowPath

# What gives less than this is not worth doing, and not worth building on.
WORTHWHILE: Final = 1.02
# Remedies that are applied on top of each other.
_MOST_TOGETHER: Final = 3
# Simulations of each, with the scenario's seed and the ones after it, where anything is random.
SEEDS: Final = 3
# A direction that transmits so much of the time has no more to give.
_FULL: Final = 0.95

Progress = Callable[[int, int], None]


@dataclass(frozen=True, kw_only=True)
class FlowLimits:
    """What limited one flow.

    `limits` are shares of the time in which its sender had anything to do. `downlink_used` and
    `uplink_used` are the shares of the flow's time in which the narrowest direction of its data's
    way, and of its acknowledgments' way, transmitted. `verdict` is what to look at: a limit's name,
    "downlink" where the link gives all that it has, "acknowledgments" where their way does,
    "gateway" where it is a split gateway whose window has no room: `gateway` names it.
    """

    name: str
    goodput_bps: float
    limits: Mapping[str, float]
    downlink: str
    downlink_used: float
    uplink: str
    uplink_used: float
    verdict: str
    gateway: str | None = None


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A remedy, and what a run with its settings came to: goodput of all flows, bit/s.

    `gain` is goodput with it over goodput without it. Where anything is random, each of `gains` is
    that of one seed, with and without, and `gain` their median; `goodput_bps` is that of the
    scenario's own seed, which comes first. `felt` is what users feel with it, for each seed.
    """

    remedy: Remedy
    goodput_bps: float
    gain: float
    gains: tuple[float, ...]
    limits: Mapping[str, float]
    command: str
    felt: tuple[Mapping[tuple[str, str], Felt], ...] = ()

    @property
    def sets(self) -> list[str]:
        """What `--set` takes for it."""
        return [f"{key}={value}" for key, value in self.remedy.settings]


@dataclass(frozen=True, kw_only=True)
class Advice:
    """What limits a scenario's flows, and remedies, the best first.

    `experiences` are what users feel, each with the remedies in its own order.
    """

    scenario: str
    seed: int
    goodput_bps: float
    flows: tuple[FlowLimits, ...]
    limits: Mapping[str, float]
    remedies: tuple[Measured, ...]
    experiences: tuple[Experience, ...]
    # Remedies that this scenario can't have, each with what the simulator said.
    refused: Mapping[str, str]
    # Those that the scenario itself was simulated with: several where another one gives other
    # numbers.
    seeds: tuple[int, ...]

    @property
    def random(self) -> bool:
        """Whether anything in the scenario itself is random."""
        return len(self.seeds) > 1

    def as_json(self) -> dict[str, Any]:
        """Return the advice as plain data."""
        return {
            "scenario": self.scenario,
            "seed": self.seed,
            "seeds": list(self.seeds),
            "goodput_bps": self.goodput_bps,
            "flows": [
                {
                    "name": flow.name,
                    "goodput_bps": flow.goodput_bps,
                    "verdict": flow.verdict,
                    "gateway": flow.gateway,
                    "limits": dict(flow.limits),
                    "downlink": {"name": flow.downlink, "used": flow.downlink_used},
                    "uplink": {"name": flow.uplink, "used": flow.uplink_used},
                }
                for flow in self.flows
            ],
            "remedies": [
                {
                    "name": each.remedy.name,
                    "kind": each.remedy.kind,
                    "why": each.remedy.why,
                    "set": each.sets,
                    "goodput_bps": each.goodput_bps,
                    "gain": each.gain,
                    "gains": list(each.gains),
                    "limits": dict(each.limits),
                    "command": each.command,
                }
                for each in self.remedies
            ],
            "experiences": [
                {
                    "flow": each.flow,
                    "what": each.what,
                    "unit": each.unit,
                    "value": each.value,
                    "remedies": [
                        {
                            "name": better.measured.remedy.name,
                            "set": better.measured.sets,
                            "value": better.value,
                            "gain": better.gain,
                            "goodput_gain": better.measured.gain,
                        }
                        for better in each.remedies
                    ],
                }
                for each in self.experiences
            ],
        }


def advise(
    scenario: Scenario | str | Path | Mapping[str, Any],
    *,
    settings: Mapping[str, object] | None = None,
    workers: int | None = None,
    seeds: int = SEEDS,
    progress: Progress | None = None,
) -> Advice:
    """Find out what limits a scenario's flows, and simulate what might help.

    Each remedy is simulated by itself; then the best one with each other kind on top, as long as
    that gives more. Where anything is random, each is simulated with several seeds, the same ones
    for all.

    Parameters
    ----------
    scenario
        A scenario, a file, a ready-made scenario's name, or what a file would hold as a dict.
    settings
        Keys to change, such as `{"hosts.server.tcp.congestion_control": "reno"}`.
    workers
        How many simulations at a time; as many as there are cores by default.
    seeds
        How many seeds, where anything is random: the scenario's and those after it.
    progress
        Called with the number of remedies that are done, and that are known to be tried.

    Raises
    ------
    RequestError, ScenarioError
        There is no such scenario, or it is wrong.
    WorkError, RunError
        The scenario itself can't be simulated.
    """
    from bentpipe import _native

    asked = Scenario.of(scenario).with_settings(settings or {})
    network = Network.of(asked, _native.lists())
    with _Bench(asked, workers=workers, seeds=max(seeds, 1), progress=progress) as bench:
        base = bench.base
        single = bench.measured(remedies(network))
        together = list(single)
        best = max(single, key=_worth, default=None)
        for _ in range(1, _MOST_TOGETHER):
            if best is None or best.gain < WORTHWHILE:
                break
            kinds = set(best.remedy.kind.split(", "))
            # What gives nothing by itself, or even takes something, may give once another limit is
            # gone: long segments in a small window, then in a large one.
            more = [
                best.remedy.and_also(each.remedy)
                for each in single
                if each.remedy.kind not in kinds
            ]
            tried = bench.measured(more)
            better = max(tried, key=_worth, default=None)
            if better is None or better.gain < WORTHWHILE * best.gain:
                break
            together.append(better)
            best = better
    summary = base.summary
    paths = {path.flow: path for path in network.paths}
    return Advice(
        scenario=summary.scenario,
        seed=summary.seed,
        goodput_bps=goodput_of(base),
        flows=tuple(
            _flow_limits(flow, paths[flow.name], base, network)
            for flow in summary.flows
            # What is sent to a group nothing but its source limits.
            if flow.name in paths
        ),
        limits=limits_of(base),
        # What changes less comes first among equals: a combination is no better than its part.
        remedies=tuple(
            sorted(
                together,
                key=lambda each: (-each.gain, -each.goodput_bps, len(each.remedy.settings)),
            )
        ),
        experiences=experiences(bench.without_felt, together),
        refused=bench.refused,
        seeds=bench.seeds if bench.random else bench.seeds[:1],
    )


def _worth(measured: Measured) -> tuple[float, float]:
    # Where nothing arrives without a remedy there is no gain to speak of.
    return measured.gain, measured.goodput_bps


def goodput_of(result: RunResult) -> float:
    """Return the goodput of all flows together: the sum of what `run` prints, bit/s."""
    return sum(flow.goodput_bps for flow in result.summary.flows)


def limits_of(result: RunResult) -> dict[str, float]:
    """Return what limited the senders, as shares of all their time; the most first."""
    spent: dict[str, float] = {}
    for flow in result.summary.flows:
        for name, seconds in flow.limited_s.items():
            spent[name] = spent.get(name, 0.0) + seconds
    busy_s = sum(spent.values())
    most_first = sorted(spent.items(), key=lambda each: -each[1])
    return {name: seconds / busy_s for name, seconds in most_first if seconds > 0.0}


def _same(one: RunResult, other: RunResult) -> bool:
    """Return whether two runs came to the same for every flow."""

    def numbers(result: RunResult) -> list[tuple[float | None, ...]]:
        return [
            (flow.goodput_bps, flow.finish_s, flow.segments_sent, flow.rtt_ms.mean)
            for flow in result.summary.flows
        ]

    return numbers(one) == numbers(other)


class _Bench:
    """Simulates remedies, several at a time; ends with whoever waits for it.

    `base` is the scenario as it is, with its own seed, the first of `seeds`.
    """

    def __init__(
        self, scenario: Scenario, *, workers: int | None, seeds: int, progress: Progress | None
    ) -> None:
        from bentpipe.sweeps.local import cores
        from bentpipe.sweeps.stopping import interrupts_noted, result_of

        self._scenario = scenario
        self.base = run(scenario, no_probes=True)
        # Seeds are whole numbers of 64 bits.
        own = self.base.summary.seed
        self.seeds = tuple((own + more) % 2**64 for more in range(seeds))
        self._pool = ThreadPoolExecutor(max_workers=workers or cores())
        self._ended = threading.Event()
        try:
            with interrupts_noted() as look:
                others = [self._pool.submit(self._run, scenario, seed) for seed in self.seeds[1:]]
                without = [self.base, *(result_of(each, look) for each in others)]
        except BaseException:
            self.__exit__()
            raise
        # Asked of what comes out, not of the file: errors, queues, applications and window rules
        # draw, and may draw nothing.
        self.random = any(not _same(each, self.base) for each in without)
        self._without_bps = [goodput_of(each) for each in without]
        self.without_felt = [felt(each) for each in without]
        self._progress = progress
        self._done = self._known = 0
        self.refused: dict[str, str] = {}

    def __enter__(self) -> _Bench:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._pool.shutdown(wait=True, cancel_futures=True)

    def measured(self, several: Sequence[Remedy]) -> list[Measured]:
        """Simulate each; those that the scenario can't have are in `refused` afterwards."""
        from bentpipe.sweeps.stopping import interrupts_noted, result_of

        self._known += len(several)
        several_results = []
        with interrupts_noted() as look:
            for future in [self._pool.submit(self._results, remedy) for remedy in several]:
                several_results.append(result_of(future, look))
                self._done += 1
                if self._progress is not None:
                    self._progress(self._done, self._known)
        found = []
        for remedy, results in zip(several, several_results, strict=True):
            if not results:
                continue
            gains = [
                goodput_of(each) / without_bps if without_bps > 0 else 1.0
                for each, without_bps in zip(results, self._without_bps, strict=False)
            ]
            found.append(
                Measured(
                    remedy=remedy,
                    goodput_bps=goodput_of(results[0]),
                    gain=statistics.median(gains),
                    gains=tuple(gains),
                    limits=limits_of(results[0]),
                    command=self._changed(remedy).command(),
                    felt=tuple(felt(each) for each in results),
                )
            )
        return found

    def _changed(self, remedy: Remedy) -> Scenario:
        return self._scenario.with_settings(dict(remedy.settings))

    def _results(self, remedy: Remedy) -> list[RunResult]:
        """Simulate a remedy with every seed that can make a difference; none if it is refused."""
        from bentpipe import _native

        changed = self._changed(remedy)
        try:
            results = [self._run(changed, self.seeds[0])]
            # A remedy may bring luck into a scenario that had none: a rule that draws. Only of one
            # that helps does anybody want to know.
            if not self.random and goodput_of(results[0]) < WORTHWHILE * self._without_bps[0]:
                return results
            for seed in self.seeds[1:]:
                results.append(self._run(changed, seed))
                if not self.random and len(results) == 2 and _same(results[0], results[1]):
                    return results[:1]
        except (_native.ScenarioError, _native.RunError) as error:
            if "," not in remedy.kind:
                self.refused[remedy.name] = str(error)
            return []
        return results

    def _run(self, scenario: Scenario, seed: int) -> RunResult:
        return run(scenario, seed=seed, no_probes=True, progress=self._look)

    def _look(self, simulated_s: float, duration_s: float) -> None:
        del simulated_s, duration_s
        if self._ended.is_set():
            raise WorkError("interrupted")


def _flow_limits(
    flow: FlowResult, path: FlowPath, result: RunResult, network: Network
) -> FlowLimits:
    downlink, uplink = path.down_bottleneck.name, path.up_bottleneck.name
    ended_s = float(result.summary.extra.get("ended_s", result.summary.duration_s))
    # What others send over the same links can't be told from the flow's own.
    busy_s = ended_s if path.sharing else sum(flow.limited_s.values()) or ended_s
    used = {link.name: link.utilization * ended_s for link in result.summary.links}
    downlink_used = min(1.0, used[downlink] / busy_s)
    uplink_used = min(1.0, used[uplink] / busy_s)
    limits = flow.limits
    if path.datagrams is not None:
        # Calls and echoes send no more on a link that has room.
        verdict = "application"
    elif downlink_used >= _FULL:
        verdict = "downlink"
    elif uplink_used >= _FULL:
        verdict = "acknowledgments"
    else:
        verdict = next(iter(limits), "application")
    # The sender's window is the first gateway's, which lets in what it has passed on: what holds
    # that up is on the gateway's other side.
    gateway = next((node["name"] for _, node, sends in network.faced(path) if sends), None)
    if verdict == "receive_window" and gateway is not None:
        verdict = "gateway"
    return FlowLimits(
        name=flow.name,
        goodput_bps=flow.goodput_bps,
        limits=limits,
        downlink=downlink,
        downlink_used=downlink_used,
        uplink=uplink,
        uplink_used=uplink_used,
        verdict=verdict,
        gateway=gateway if verdict == "gateway" else None,
    )
