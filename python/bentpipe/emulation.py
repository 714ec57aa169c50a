"""Scenarios in real time: the scenario's network between TCP connections of the kernel.

Emulation is part of the native module, not a separate program. One installation has one version,
and emulation returns the same kind of result as a run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
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
    """A user's command inside a host; the emulation ends with the commands `waited_for`."""

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
    """A finished emulation: the result of a run, the lateness of packets, and notes for the user.

    Some counts of a flow are unknown for the kernel's TCP, such as timeouts and recoveries where
    several flows leave one host. They are null in `summary_json` and 0 in `summary`.
    """

    def __init__(self, output: RunOutput, *, status: int | None) -> None:
        super().__init__(output)
        self.status = status
        self._data: dict[str, Any] = json.loads(output.summary_json)

    @property
    def late_ms(self) -> Lateness:
        """Distribution of the lateness of packets."""
        return Lateness(**self._data["late_ms"])

    @property
    def too_late(self) -> bool:
        """Whether packets were so late that the figures are not to be trusted."""
        return bool(self._data["too_late"])

    @property
    def notes(self) -> tuple[str, ...]:
        """Differences between the scenario and the kernel's behaviour, and other remarks."""
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
    delivered: Callable[[float, list[tuple[str, int]]], None] | None = None,
) -> EmulateResult:
    """Run a scenario in real time, between hosts that use the kernel's TCP.

    Parameters
    ----------
    scenario, seed, settings, pcap, snap, progress
        As in `run`; `progress` is called with seconds of real time.
    commands
        Run these over the scenario's links, instead of its flows.
    attach
        The TCP of a host, by its name: `"kernel"`, the default, or `"our"`, the simulator's, over
        the same links and devices.
    delivered
        Called several times a second with the seconds since the start, and with the name of each
        flow and the bytes that its receiver has read. Not with `commands`.

    Raises
    ------
    RequestError, ScenarioError
        There is no such scenario, it is wrong, or the kernel has no such congestion control.
    WorkError
        This machine cannot run it; the message names the missing requirement.
    RunError
        It failed.
    """
    from bentpipe import _native, congestion

    if (obstacle := _native.emulation_obstacle()) is not None:
        raise WorkError(f"nothing can be emulated here: {obstacle}")
    scenario = Scenario.of(scenario).with_settings(settings or {})
    ours = _ours(attach or {})
    with ExitStack() as stack:
        rules, rule_obstacles = ({}, {}) if commands else _load_rules(scenario, ours, stack)
        output, status = _native.emulate(
            scenario.path,
            text=scenario.text,
            seed=checked_seed(seed),
            overrides=list(scenario.settings),
            pcap=captures(pcap),
            snap_length=snap,
            controls=congestion.registered(),
            commands=[(each.host, list(each.words), each.waited_for) for each in commands],
            ours=ours,
            rules=rules,
            rule_obstacles=rule_obstacles,
            progress=progress,
            delivered=delivered,
        )
    return EmulateResult(output, status=status)


def _load_rules(
    scenario: Scenario, ours: Sequence[str], stack: ExitStack
) -> tuple[dict[str, str], dict[str, str]]:
    """Load the window rules that hosts with flows need and the kernel lacks, until `stack` ends.

    Returns their names in the kernel, by host, and the reasons why others cannot be loaded, by
    their names in the scenario.
    """
    from bentpipe.kernel_rules import RULES, RuleSettings, loaded
    from bentpipe.kernel_rules.loading import available

    resolved, present = scenario.resolved(), available()
    # One program serves all hosts with the same settings.
    names: dict[tuple[str, RuleSettings], str] = {}
    rules: dict[str, str] = {}
    obstacles: dict[str, str] = {}
    ends = {flow[end] for flow in resolved["flows"] for end in ("from", "to")}
    for node in resolved["nodes"]:
        tcp = node.get("tcp")
        if node["kind"] != "host" or node["name"] not in ends or node["name"] in ours or not tcp:
            continue
        rule = RULES.get(tcp["congestion_control"])
        if rule is None or rule.kernel_name in present or rule.name in obstacles:
            continue
        wanted = (rule.name, RuleSettings.of_host(rule, tcp))
        try:
            if wanted not in names:
                names[wanted] = stack.enter_context(loaded(rule, wanted[1]))
            rules[node["name"]] = names[wanted]
        except (RequestError, WorkError) as error:
            obstacles[rule.name] = str(error)
    return rules, obstacles


def _ours(attach: Mapping[str, str]) -> list[str]:
    for host, whose in attach.items():
        if whose not in ("our", "kernel"):
            raise RequestError(f"attach {host}: expected our or kernel, got {whose!r}")
    return [host for host, whose in attach.items() if whose == "our"]
