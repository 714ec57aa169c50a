"""A scenario predicted, simulated and emulated, side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from bentpipe.application_metrics import opinion_scores_of, times_of
from bentpipe.emulation import EmulateResult, emulate
from bentpipe.prediction import FlowPrediction, Prediction, predict
from bentpipe.results import FlowResult, RunResult, run
from bentpipe.seed_ranges import Range, SeedRuns, run_seeds

if TYPE_CHECKING:
    from bentpipe.scenario import Scenario

# Quantiles of application metrics that are compared.
QUANTILES: Final = ("p50", "p95")


@dataclass(frozen=True, kw_only=True)
class ApplicationMetric:
    """An application metric on one clock: completed and started items, and quantiles by name."""

    count: int
    begun: int
    quantiles: Mapping[str, float | None]


@dataclass(frozen=True, kw_only=True)
class MetricPair:
    """An application metric on both clocks.

    `what` is a name such as "page load", "response" or "MOS". Quantiles are in `unit`.
    `difference` is simulated minus emulated quantiles, as shares of the emulated ones.
    """

    what: str
    unit: str
    simulated: ApplicationMetric
    emulated: ApplicationMetric
    difference: Mapping[str, float | None]

    def to_data(self) -> dict[str, Any]:
        """Return the object that `bentpipe compare --json` prints for it."""
        sides = {"simulated": self.simulated, "emulated": self.emulated}
        told = {
            name: {"count": side.count, "begun": side.begun, **side.quantiles}
            for name, side in sides.items()
        }
        return {"what": self.what, "unit": self.unit, **told, "difference": {**self.difference}}


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Difference between simulation and emulation, as a share of the emulated value.

    0.02 means that the simulation gives 2% more; None stands for an unknown value. `application`
    has the metrics of the flow's application.
    """

    goodput: float | None
    transfer_time: float | None
    application: tuple[MetricPair, ...] = field(default=())

    def to_data(self) -> dict[str, Any]:
        """Return the object that `bentpipe compare --json` prints for it."""
        shares = {"goodput": self.goodput, "transfer_time": self.transfer_time}
        return {**shares, "application": [each.to_data() for each in self.application]}


@dataclass(frozen=True, kw_only=True)
class SimulatedRange:
    """The simulated goodput of a flow over seeds, beside the emulated one, in bits per second."""

    goodput_bps: Range
    emulated_bps: float

    @property
    def contains_emulated(self) -> bool:
        """Whether the emulated goodput lies in the simulated range."""
        return self.goodput_bps.contains(self.emulated_bps)

    def to_data(self) -> dict[str, Any]:
        """Return it as it is in `bentpipe compare --json`."""
        return {
            "goodput_bps": self.goodput_bps.to_data(),
            "contains_emulated": self.contains_emulated,
        }


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """The prediction, simulation and emulation of one scenario."""

    predicted: Prediction
    simulated: RunResult
    emulated: EmulateResult
    # Simulations with several seeds, if more than one was requested.
    over_seeds: SeedRuns | None = None

    @property
    def ranges(self) -> dict[str, SimulatedRange]:
        """The simulated goodput over seeds, by flow; empty with one seed."""
        runs = self.over_seeds
        if runs is None:
            return {}
        return {
            flow.name: SimulatedRange(
                goodput_bps=runs.goodput_bps(flow.name), emulated_bps=flow.goodput_bps
            )
            for flow in self.emulated.summary.flows
        }

    @property
    def differences(self) -> dict[str, Difference]:
        """Differences between simulation and emulation, by flow."""
        pairs = zip(self.simulated.summary.flows, self.emulated.summary.flows, strict=True)
        return {ours.name: difference(ours, real) for ours, real in pairs}

    @property
    def groups(self) -> dict[str, tuple[MetricPair, ...]]:
        """Application metrics of the flows of each table together, by the table's name."""
        pairs = zip(self.simulated.summary.groups, self.emulated.summary.groups, strict=True)
        return {ours.name: metric_pairs(ours.extra, real.extra) for ours, real in pairs}

    def to_data(self) -> dict[str, Any]:
        """Return the object that `bentpipe compare --json` prints."""
        return {
            "predict": asdict(self.predicted),
            "run": json.loads(self.simulated.summary_json),
            "emulate": json.loads(self.emulated.summary_json),
            "difference": {name: each.to_data() for name, each in self.differences.items()},
            "range": {name: each.to_data() for name, each in self.ranges.items()},
            "groups": {
                name: [each.to_data() for each in told] for name, told in self.groups.items()
            },
        }


def difference(simulated: FlowResult, emulated: FlowResult) -> Difference:
    """Compare the simulation and the emulation of one flow."""
    return Difference(
        goodput=_share(simulated.goodput_bps, emulated.goodput_bps),
        transfer_time=_share(_time(simulated), _time(emulated)),
        application=metric_pairs(simulated.extra, emulated.extra),
    )


def metric_pairs(
    simulated: Mapping[str, Any], emulated: Mapping[str, Any]
) -> tuple[MetricPair, ...]:
    """Pair the application metrics that both summaries have."""
    ours, real = _metrics(simulated), _metrics(emulated)
    return tuple(
        MetricPair(
            what=what,
            unit="" if what.endswith("MOS") else "ms",
            simulated=told,
            emulated=real[what],
            difference={
                name: _share(told.quantiles[name], real[what].quantiles[name]) for name in QUANTILES
            },
        )
        for what, told in ours.items()
        if what in real
    )


def _metrics(extra: Mapping[str, Any]) -> dict[str, ApplicationMetric]:
    found = [*times_of(extra), *opinion_scores_of(extra)]
    return {
        what: ApplicationMetric(
            count=count, begun=begun, quantiles={name: values.get(name) for name in QUANTILES}
        )
        for what, (count, begun), values in found
    }


def _time(flow: FlowResult) -> float | None:
    return None if flow.finish_s is None else flow.finish_s - flow.start_s


def _share(ours: float | None, real: float | None) -> float | None:
    return None if ours is None or not real else ours / real - 1.0


def predicted_goodput(flow: FlowPrediction) -> float:
    """Return the highest goodput that the closed forms allow a flow, bits per second."""
    return flow.limits_bps[flow.binding]


def compare(
    scenario: Scenario,
    *,
    seed: int | None = None,
    seeds: int = 1,
    progress: Callable[[float, float], None] | None = None,
) -> Comparison:
    """Predict, simulate and emulate a scenario; emulation takes as long as the scenario says.

    With `seeds` above one, the comparison includes the range of simulations with that many seeds.
    """
    predicted = predict(scenario)
    # Emulation comes first: it takes longest and may be impossible on this machine.
    emulated = emulate(scenario, seed=seed, progress=progress)
    names = [flow.name for flow in predicted.flows]
    probes = [
        f"{name}.{quantity}"
        for name in names[:12]
        for quantity in ("delivered", "congestion_window")
    ]
    settings = {"probes.series": probes, "probes.interval": "50 ms"}
    simulated = run(scenario, seed=seed, settings=settings)
    return Comparison(
        predicted=predicted,
        simulated=simulated,
        emulated=emulated,
        over_seeds=run_seeds(scenario, seeds=seeds, seed=seed) if seeds > 1 else None,
    )
