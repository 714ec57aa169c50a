"""The scenario that a command line names, and what else its file may turn out to be."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bentpipe.errors import RequestError, reason
from bentpipe.scenario import Scenario, example, is_sweep, parse_settings


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


def execute_files(paths: Iterable[Path]) -> None:
    """Run Python files or examples, which may register congestion controls.

    Raises
    ------
    RequestError
        There is no such file, or it fails.
    """
    for path in paths:
        _execute_file(path)


def _execute_file(path: Path) -> None:
    """Run a Python file.

    Raises
    ------
    RequestError
        There is no such file, or it fails.
    """
    import runpy

    try:
        found = path.exists()
    except OSError as error:
        raise RequestError(f"--python {path}: {reason(error)}") from None
    if not found and (named := example(str(path), ".py")) is not None:
        path, found = named, True
    if not found:
        raise RequestError(f"--python {path}: no such file")
    if not os.access(path, os.R_OK):
        raise RequestError(f"--python {path}: can't be read")
    try:
        runpy.run_path(str(path))
    except (BrokenPipeError, RequestError):
        raise
    except Exception as error:
        raise RequestError(f"--python {path}: {type(error).__name__}: {error}") from error
