"""The simulator, written in Rust (crates/python)."""

import os

import numpy as np
from numpy.typing import NDArray

__version__: str

class ScenarioError(ValueError):
    """The scenario is wrong: one line with file, line, key and what was expected."""

class RunError(RuntimeError):
    """The run failed: one line that says why."""

class RunOutput:
    """A finished run."""

    @property
    def summary_json(self) -> str:
        """The object that `bentpipe run --json` prints."""

    @property
    def series(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64], str]]:
        """Probe name -> (times in seconds, values, unit)."""

def run(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    seed: int | None = None,
    overrides: list[tuple[str, str]] = ...,
    pcap: list[tuple[str, str]] = ...,
    default_probes: bool = False,
) -> RunOutput:
    """Simulate a scenario file, or `text` in its place; releases the GIL.

    `pcap` pairs a link's name with the file its packets go to. With `default_probes`, a scenario
    that names no probes gets those that the plots need. Raises ScenarioError, RunError.
    """

def load(
    path: str | os.PathLike[str],
    *,
    text: str | None = None,
    overrides: list[tuple[str, str]] = ...,
) -> str:
    """Return the scenario, defaults filled in, as JSON. Raises ScenarioError."""

def json_schema() -> str:
    """Return the JSON Schema of the scenario file."""

def lists() -> dict[str, list[str]]:
    """Return the names that a scenario file may use, by kind ("congestion-controls", ...)."""
