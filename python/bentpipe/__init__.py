"""A workbench for TCP over satellite and other long, asymmetric paths.

`Scenario` names a network, `run` simulates it, `predict` evaluates the closed forms on it.
`sweep` simulates it along axes, and `bentpipe.model` has the closed forms themselves. Everything
loads on first use, so that a command starts without importing numpy or matplotlib.
"""

from __future__ import annotations

# Type checkers take this for true. Importing `typing` takes longer than the rest of this module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bentpipe import model
    from bentpipe._native import RunError, ScenarioError
    from bentpipe._native import __version__ as __version__
    from bentpipe.advice import advise
    from bentpipe.comparison import compare
    from bentpipe.congestion import congestion_control
    from bentpipe.emulation import EmulateResult, emulate
    from bentpipe.errors import RequestError, WorkError
    from bentpipe.orbits import Orbit, orbit
    from bentpipe.prediction import predict
    from bentpipe.results import RunResult, run
    from bentpipe.scenario import Scenario, ready_made
    from bentpipe.seed_ranges import SeedRuns, run_seeds
    from bentpipe.sweeps import SweepResult, load_sweep, sweep

__all__ = [
    "EmulateResult",
    "Orbit",
    "RequestError",
    "RunError",
    "RunResult",
    "Scenario",
    "ScenarioError",
    "SeedRuns",
    "SweepResult",
    "WorkError",
    "__version__",
    "advise",
    "compare",
    "congestion_control",
    "emulate",
    "load_sweep",
    "model",
    "orbit",
    "predict",
    "ready_made",
    "run",
    "run_seeds",
    "sweep",
]

_HOMES = {
    "EmulateResult": "bentpipe.emulation",
    "Orbit": "bentpipe.orbits",
    "RequestError": "bentpipe.errors",
    "RunError": "bentpipe._native",
    "RunResult": "bentpipe.results",
    "Scenario": "bentpipe.scenario",
    "ScenarioError": "bentpipe._native",
    "SeedRuns": "bentpipe.seed_ranges",
    "SweepResult": "bentpipe.sweeps",
    "WorkError": "bentpipe.errors",
    "__version__": "bentpipe._native",
    "advise": "bentpipe.advice",
    "compare": "bentpipe.comparison",
    "congestion_control": "bentpipe.congestion",
    "emulate": "bentpipe.emulation",
    "load_sweep": "bentpipe.sweeps",
    "orbit": "bentpipe.orbits",
    "predict": "bentpipe.prediction",
    "ready_made": "bentpipe.scenario",
    "run": "bentpipe.results",
    "run_seeds": "bentpipe.seed_ranges",
    "sweep": "bentpipe.sweeps",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first asked for."""
    from importlib import import_module

    if name == "model":
        return import_module("bentpipe.model")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    """Return the public names: `dir(bentpipe)` is where people look first."""
    return sorted(__all__)
