"""Sweeps: a scenario along axes, its cells simulated in parallel and kept as they come.

`sweep` runs one, `load_sweep` reads what it left. Not called `sweep`, because `bentpipe.sweep` is
the function.
"""

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
