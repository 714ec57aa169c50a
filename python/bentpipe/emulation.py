"""Scenarios in real time: the same network between TCP connections of the kernel's.

Emulation is a part of the native module, not a program beside it: one install, one version, and
what it returns is what a run returns.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bentpipe.errors import RequestError, WorkError
from bentpipe.results import RunResult
from bentpipe.scenario import Scenario, captures, checked_seed

if TYPE_CHECKING:
    from bentpipe._native import RunOutput


@dataclass(frozen=True, kw_only=True)
class Command:
    """A command of the user's own inside a host; the emulation ends with what is `waited_for`."""

    host: str
    words: tuple[str, ...]
    waited_for: bool = False


@dataclass(frozen=True, kw_only=True)
class Lateness:
    """How late packets left the emulated network, in milliseconds."""

    mean: float
    p99: float
    p999: float
    max: float


class EmulateResult(RunResult):
    """A finished emulation: what a run has, how late packets were, and notes for the user.

    What the kernel does not tell of a flow (timeouts and recoveries where several flows leave one
    host) is null in `summary_json`, and 0 in `summary`.
    """

    def __init__(self, output: RunOutput, *, status: int | None) -> None:
        super().__init__(output)
        self.status = status
        self._data: dict[str, Any] = json.loads(output.summary_json)

    @property
    def late_ms(self) -> Lateness:
        """How late packets left."""
        return Lateness(**self._data["late_ms"])

    @property
    def too_late(self) -> bool:
        """Whether they were so late that the figures are not to be trusted."""
        return bool(self._data["too_late"])

    @property
    def notes(self) -> tuple[str, ...]:
        """What the kernel does not do as the scenario says, and what else there is to know."""
        return tuple(self._data["notes"])


def emulate(
    scenario: Scenario | str | Path | Mapping[str, Any],
    *,
    seed: int | None = None,
    settings: Mapping[str, object] | None = None,
    pcap: Iterable[tuple[str, Path]] = (),
    snap: int | None = None,
    commands: Sequence[Command] = (),
    attach: Mapping[str, str] | None = None,
    progress: Callable[[float, float], None] | None = None,
) -> EmulateResult:
    """Run a scenario in real time, between hosts of the kernel's.

    Parameters
    ----------
    scenario, seed, settings, pcap, snap, progress
        As in `run`; `progress` is called with seconds of real time.
    commands
        Run these over the scenario's links, instead of its flows.
    attach
        Whose TCP a host has, by its name: `"kernel"`, as every host without being asked, or
        `"our"`, the simulator's, over the same links and devices.

    Raises
    ------
    RequestError, ScenarioError
        There is no such scenario, it is wrong, or the kernel has no such congestion control.
    WorkError
        This machine cannot; the line says what is missing.
    RunError
        It failed.
    """
    from bentpipe import _native, congestion

    if (obstacle := _native.emulation_obstacle()) is not None:
        raise WorkError(f"nothing can be emulated here: {obstacle}")
    scenario = Scenario.of(scenario).with_settings(settings or {})
    output, status = _native.emulate(
        scenario.path,
        text=scenario.text,
        seed=checked_seed(seed),
        overrides=list(scenario.settings),
        pcap=captures(pcap),
        snap_length=snap,
        controls=congestion.registered(),
        commands=[(each.host, list(each.words), each.waited_for) for each in commands],
        ours=_ours(attach or {}),
        progress=progress,
    )
    return EmulateResult(output, status=status)


def _ours(attach: Mapping[str, str]) -> list[str]:
    for host, whose in attach.items():
        if whose not in ("our", "kernel"):
            raise RequestError(f"attach {host}: expected our or kernel, got {whose!r}")
    return [host for host, whose in attach.items() if whose == "our"]
