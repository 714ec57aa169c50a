"""Sweeps: a scenario along axes, its cells simulated in parallel and stored as they finish.

`sweep` runs a sweep, and `load_sweep` reads its results. The package is not called `sweep`, because
`bentpipe.sweep` is the function. Everything loads on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bentpipe.sweeps.definition import Axis, Cell, Sweep, Variable
    from bentpipe.sweeps.outcome import Failure, SweepResult, load_sweep
    from bentpipe.sweeps.run import Progress, load_definition, sweep

__all__ = [
    "Axis",
    "Cell",
    "Failure",
    "Progress",
    "Sweep",
    "SweepResult",
    "Variable",
    "load_definition",
    "load_sweep",
    "sweep",
]

_HOMES = {
    "Axis": "definition",
    "Cell": "definition",
    "Failure": "outcome",
    "Progress": "run",
    "Sweep": "definition",
    "SweepResult": "outcome",
    "Variable": "definition",
    "load_definition": "run",
    "load_sweep": "outcome",
    "sweep": "run",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
