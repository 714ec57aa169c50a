"""The scenario that a command line names, and what else its file may turn out to be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bentpipe.errors import RequestError
from bentpipe.scenario import Scenario, is_sweep, parse_settings


def find_scenario(file: str, settings: Sequence[str]) -> Scenario:
    """Find a scenario by its file or name, "-" for standard input, and apply `--set`."""
    return Scenario.find(file).with_settings(parse_settings(settings))


@contextmanager
def told_apart(scenario: Scenario, *, command: str) -> Iterator[None]:
    """Say that a file is a sweep if it is one: its keys are none of a scenario's.

    Raises
    ------
    RequestError
        It is a sweep file.
    """
    from bentpipe import _native

    try:
        yield
    except _native.ScenarioError:
        if is_sweep(scenario):
            raise RequestError(
                f"{scenario.path} is a sweep file, which `bentpipe sweep {scenario.path}` "
                f"simulates; `bentpipe {command}` takes a scenario"
            ) from None
        raise
