"""A scenario predicted, simulated and emulated, side by side."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from bentpipe.emulation import EmulateResult, emulate
from bentpipe.prediction import FlowPrediction, Prediction, predict
from bentpipe.results import FlowResult, RunResult, run

if TYPE_CHECKING:
    from bentpipe.scenario import Scenario


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How far simulation is from emulation, in shares of the emulated value; None without.

    0.02 says that the simulation gives 2% more.
    """

    goodput: float | None
    transfer_time: float | None


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """What the three said of one scenario."""

    predicted: Prediction
    simulated: RunResult
    emulated: EmulateResult

    @property
    def differences(self) -> dict[str, Difference]:
        """By flow."""
        pairs = zip(self.simulated.summary.flows, self.emulated.summary.flows, strict=True)
        return {ours.name: difference(ours, real) for ours, real in pairs}

    def to_data(self) -> dict[str, Any]:
        """Return the object that `bentpipe compare --json` prints."""
        return {
            "predict": asdict(self.predicted),
            "run": json.loads(self.simulated.summary_json),
            "emulate": json.loads(self.emulated.summary_json),
            "difference": {name: asdict(each) for name, each in self.differences.items()},
        }


def difference(simulated: FlowResult, emulated: FlowResult) -> Difference:
    """Compare one flow."""
    return Difference(
        goodput=_share(simulated.goodput_bps, emulated.goodput_bps),
        transfer_time=_share(_time(simulated), _time(emulated)),
    )


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
    progress: Callable[[float, float], None] | None = None,
) -> Comparison:
    """Predict, simulate and emulate a scenario; emulation takes as long as the scenario says."""
    predicted = predict(scenario)
    # First what takes time and may be impossible.
    emulated = emulate(scenario, seed=seed, progress=progress)
    names = [flow.name for flow in predicted.flows]
    probes = [
        f"{name}.{quantity}"
        for name in names[:12]
        for quantity in ("delivered", "congestion_window")
    ]
    settings = {"probes.series": probes, "probes.interval": "50 ms"}
    simulated = run(scenario, seed=seed, settings=settings)
    return Comparison(predicted=predicted, simulated=simulated, emulated=emulated)
