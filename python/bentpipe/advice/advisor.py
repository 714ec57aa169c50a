"""Limits of the flows of a scenario, and the gains of remedies."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.advice.remedies import Network, Remedy, remedies
from bentpipe.advice.remedy import PARTIES
from bentpipe.advice.seed_selection import try_alone, try_on_top, try_pairs
from bentpipe.advice.shared_resources import ResourceUse, UsedShare
from bentpipe.advice.trials import WORTHWHILE, Progress, Trial, TrialRunner, goodput_of, limits_of
from bentpipe.advice.user_experience import Experience, MeasureName, UserMeasure, experiences
from bentpipe.errors import RequestError
from bentpipe.scenario import Scenario

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bentpipe.prediction.paths import FlowPath
    from bentpipe.results import FlowResult, RunResult

# Remedies in a combination at most.
_MOST_TOGETHER: Final = 3
# Seeds by default, where anything is random: the scenario's and the following ones.
SEEDS: Final = 3
# Share of the time from which a resource counts as fully used.
_FULL: Final = 0.95


@dataclass(frozen=True, kw_only=True)
class FlowLimits:
    """Limits of one flow.

    `limits` are shares of the time in which its sender had data to send. `downlink_used` and
    `uplink_used` are the utilisations of the narrowest direction of the data's path and of the
    acknowledgments' path, over the flow's time. `processor` is the busiest one on both paths, and
    `carrier` the fullest shared one.

    `verdict` is the name of the first limit to look at. It is one of the names in `limits`, or:

    - "downlink": the link is fully used.
    - "capacity": the capacity that can be granted is fully used.
    - "carrier": the shared carrier has no capacity left.
    - "processing": a processor is fully used.
    - "acknowledgments": the acknowledgments' path, or its carrier, is fully used.
    - "gateway": the window of the split gateway named by `gateway` is full.
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
    processor: UsedShare | None = None
    carrier: UsedShare | None = None

    @property
    def full_carrier(self) -> UsedShare | None:
        """The carrier that is the limit, of data or of acknowledgments, or None."""
        if self.verdict not in {"carrier", "acknowledgments"} or self.carrier is None:
            return None
        return self.carrier if self.carrier.used >= _FULL else None


@dataclass(frozen=True, kw_only=True)
class RemedyResult:
    """A remedy and the results of runs with its settings. `goodput_bps` is that of all flows.

    `gain` is goodput with the remedy over goodput without it. Where anything is random, `gains` has
    the gain of each seed, and `gain` is their median. `goodput_bps` is that of the scenario's own
    seed, which comes first. A remedy that gave too little with that seed has no further ones.
    `measures` are those of user experience, for each seed.
    """

    remedy: Remedy
    goodput_bps: float
    gain: float
    gains: tuple[float, ...]
    limits: Mapping[str, float]
    command: str
    measures: tuple[Mapping[MeasureName, UserMeasure], ...] = ()
    overall_gain: float = 1.0

    @property
    def sets(self) -> list[str]:
        """The arguments of `--set` for the remedy."""
        return [f"{key}={value}" for key, value in self.remedy.settings]


@dataclass(frozen=True, kw_only=True)
class Advice:
    """Limits of a scenario's flows, and remedies, the best first.

    Remedies are ranked by `overall_gain`; those that every network must support come last.
    `experiences` are the measures of user experience, each with its own ranking.
    """

    scenario: str
    seed: int
    goodput_bps: float
    flows: tuple[FlowLimits, ...]
    limits: Mapping[str, float]
    remedies: tuple[RemedyResult, ...]
    experiences: tuple[Experience, ...]
    # Remedies that the simulator refuses for this scenario, each with its message.
    refused: Mapping[str, str]
    # Seeds of the scenario: several if another seed gives other results.
    seeds: tuple[int, ...]
    # Number of simulations.
    simulations: int

    @property
    def random(self) -> bool:
        """Whether the scenario itself is random."""
        return len(self.seeds) > 1

    def plot(self) -> Figure:
        """Return a figure of each remedy's goodput and of the senders' limits with it."""
        from bentpipe.plot.advice_plot import advice_figure

        return advice_figure(self)

    def _repr_html_(self) -> str:
        from bentpipe.notebook import html_of_advice

        return html_of_advice(self)

    def as_json(self) -> dict[str, Any]:
        """Return the advice as plain data."""
        return {
            "scenario": self.scenario,
            "seed": self.seed,
            "seeds": list(self.seeds),
            "simulations": self.simulations,
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
                    "processor": None if flow.processor is None else asdict(flow.processor),
                    "carrier": None if flow.carrier is None else asdict(flow.carrier),
                }
                for flow in self.flows
            ],
            "remedies": [
                {
                    "name": each.remedy.name,
                    "kind": each.remedy.kind,
                    "why": each.remedy.why,
                    "who": list(each.remedy.who),
                    "deployability": each.remedy.deployability,
                    "set": each.sets,
                    "goodput_bps": each.goodput_bps,
                    "gain": each.gain,
                    "gains": list(each.gains),
                    "overall_gain": each.overall_gain,
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
                            "name": better.result.remedy.name,
                            "who": list(better.result.remedy.who),
                            "set": better.result.sets,
                            "value": better.value,
                            "gain": better.gain,
                            "gains": list(better.gains),
                            "goodput_gain": better.result.gain,
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
    dask: str | None = None,
    seeds: int = SEEDS,
    progress: Progress | None = None,
    only: Collection[str] = (),
    without: Collection[str] = (),
) -> Advice:
    """Find what limits a scenario's flows, and simulate remedies.

    Each remedy is simulated alone. Then the best ones, overall and by each measure of user
    experience, are simulated in pairs. Finally, the best one is combined with each other kind, as
    long as that gives more. Where anything is random, remedies that may be worthwhile are simulated
    with several seeds, the same ones for all.

    Parameters
    ----------
    scenario
        A scenario, a file, the name of a ready-made scenario, or a dict with the contents of a
        file.
    settings
        Keys to change, such as `{"hosts.server.tcp.congestion_control": "reno"}`.
    workers
        The number of simulations at a time; by default the number of cores.
    dask
        The address of a Dask scheduler; remedies are then simulated on its cluster.
    seeds
        The number of seeds, where anything is random: the scenario's and the following ones.
    progress
        Called with the number of finished simulations, and of those known to be needed.
    only
        Parties that can change something ("server", "client", "gateway", "operator"). Remedies that
        need another party are left out. All by default.
    without
        Parties that can change nothing.

    Raises
    ------
    RequestError, ScenarioError
        There is no such scenario, or no such party, or the scenario is wrong; no scheduler answers.
    WorkError, RunError
        The scenario itself cannot be simulated, or the cluster went away.
    """
    from bentpipe import _native

    able = _able(only, without)
    asked = Scenario.of(scenario).with_settings(settings or {})
    network = Network.of(asked, _native.lists())
    with TrialRunner(
        asked, workers=workers, dask=dask, seeds=max(seeds, 1), progress=progress
    ) as runner:
        base = runner.base
        offered = [each for each in remedies(network) if able.issuperset(each.who)]
        alone = try_alone(runner, offered)
        pairs = try_pairs(runner, alone)
        together = [*alone, *pairs]
        best = max(alone, key=lambda each: each.rank, default=None)
        for _ in range(1, _MOST_TOGETHER):
            if best is None or best.overall_gain < WORTHWHILE or best.remedy.every_network:
                break
            best = try_on_top(runner, best, alone, pairs)
            together += [] if best is None or best in together else [best]
    results = [_result(each) for each in together]
    summary = base.summary
    paths = {path.flow: path for path in network.paths}
    occupation = ResourceUse(network, base)
    return Advice(
        scenario=summary.scenario,
        seed=summary.seed,
        goodput_bps=goodput_of(base),
        flows=tuple(
            _flow_limits(flow, paths[flow.name], base, network, occupation)
            for flow in summary.flows
            # A flow to a group is limited by its source only, and has no path here.
            if flow.name in paths
        ),
        limits=limits_of(base),
        # Of equal gains, the remedy with fewer settings comes first.
        remedies=tuple(
            sorted(
                results,
                key=lambda each: (
                    each.remedy.every_network,
                    -each.overall_gain,
                    -each.gain,
                    -each.goodput_bps,
                    len(each.remedy.settings),
                ),
            )
        ),
        experiences=experiences([each.measures for each in runner.without], results),
        refused=runner.refused,
        seeds=runner.seeds if runner.random else runner.seeds[:1],
        simulations=runner.simulations,
    )


def _result(trial: Trial) -> RemedyResult:
    return RemedyResult(
        remedy=trial.remedy,
        goodput_bps=trial.outcomes[0].goodput_bps,
        gain=trial.gain,
        gains=trial.gains,
        limits=trial.outcomes[0].limits,
        command=trial.scenario.command(),
        measures=tuple(each.measures for each in trial.outcomes),
        overall_gain=trial.overall_gain,
    )


def _able(only: Collection[str], without: Collection[str]) -> frozenset[str]:
    """Return the parties whose changes are allowed."""
    for option, names in (("only", only), ("without", without)):
        for name in names:
            if name not in PARTIES:
                raise RequestError(f"{option} {name}: expected one of {', '.join(PARTIES)}")
    return frozenset(only or PARTIES) - frozenset(without)


def _flow_limits(
    flow: FlowResult,
    path: FlowPath,
    result: RunResult,
    network: Network,
    occupation: ResourceUse,
) -> FlowLimits:
    downlink, uplink = path.down_bottleneck.name, path.up_bottleneck.name
    ended_s = float(result.summary.extra.get("ended_s", result.summary.duration_s))
    # On a shared link, the flow's own share of the use is unknown: take the whole run's time.
    busy_s = ended_s if path.sharing else sum(flow.limited_s.values()) or ended_s
    used = {link.name: link.utilization * ended_s for link in result.summary.links}
    downlink_used = min(1.0, used[downlink] / busy_s)
    uplink_used = min(1.0, used[uplink] / busy_s)
    limits = flow.limits
    processor = occupation.processor(path, busy_s)
    carrier = occupation.carrier(path.downlink, busy_s)
    # The resources of the data's path; of equally used ones, the first is the verdict.
    full = {
        "downlink": downlink_used,
        "capacity": max(occupation.granted_used(each, busy_s) for each in path.downlink),
        "carrier": 0.0 if carrier is None else carrier.used,
        "processing": 0.0 if processor is None else processor.used,
    }
    fullest = max(full, key=full.__getitem__)
    if full["carrier"] < _FULL and (back := occupation.carrier(path.uplink, busy_s)) is not None:
        carrier = back
    if path.datagrams is not None and path.two_way:
        # Calls and echoes send no more if a link has more room.
        verdict = "application"
    elif full[fullest] >= _FULL:
        verdict = fullest
    elif uplink_used >= _FULL:
        verdict = "acknowledgments"
    elif carrier is not None and carrier.used >= _FULL:
        # The carrier of the acknowledgments' path; the data's carrier would be the fullest
        # resource.
        verdict = "acknowledgments"
    else:
        verdict = next(iter(limits), "application")
    # The sender's window is that of the first gateway, which opens as the gateway forwards data.
    # The limit is therefore on the gateway's other side.
    gateway = next(
        (node["name"] for _, node, sends in network.split_gateway_legs(path) if sends), None
    )
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
        processor=processor,
        carrier=carrier,
    )
