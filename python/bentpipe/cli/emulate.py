"""`bentpipe emulate`."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence, Set
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from bentpipe import signals
from bentpipe.cli.output import WriteErrors, captures, made_folder, print_json
from bentpipe.cli.progress import CaptureWatch, run_progress, watching
from bentpipe.cli.run import PROBES, replace_earlier, write_result
from bentpipe.cli.run_tables import print_summary
from bentpipe.cli.source import find_scenario, told_apart
from bentpipe.emulation import Command, EmulateResult
from bentpipe.emulation import emulate as run_in_real_time
from bentpipe.errors import RequestError
from bentpipe.files import atomic_write
from bentpipe.units import format_seconds

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from bentpipe.scenario import Scenario

_LIVE_INTERVAL_S: Final = 0.25
# Says that this process is in a user namespace of its own already.
_WITHIN = "BENTPIPE_USER_NAMESPACE"


def emulate(
    *,
    file: str,
    command: Sequence[str],
    shell: str | None,
    serve: Sequence[str],
    attach: Sequence[str],
    seed: int | None,
    settings: Sequence[str],
    out: Path | None,
    pcap: Sequence[str],
    snap: int | None,
    as_json: bool,
    live: bool,
) -> int:
    """Run in real time, write what was asked for, print the summary; return the exit status."""
    from bentpipe import _native

    scenario = find_scenario(file, settings)
    with told_apart(scenario, command="emulate"):
        resolved = scenario.resolved()
    commands = _commands(resolved, command=command, shell=shell, serve=serve)
    attached = _attached(resolved, attach)
    if (ended := _native.emulation_leftovers()) > 0:
        _say(f"ended {ended} processes that a killed emulation had left behind")
    become_root()
    with made_folder(out) as folder, captures(pcap, folder) as captured:
        if commands:
            _say_where(scenario, commands)
        # A shell keeps its Ctrl-C for itself; SIGTERM and SIGHUP end any emulation.
        ignored = [signal.SIGINT] if commands else []
        with signals.handling(ignored, signal.SIG_IGN), run_progress() as progress:
            report = None if commands else progress
            if captured:
                watch = CaptureWatch([path for _, path in captured], snapped=snap is not None)
                report = watching(watch, report)
            result = run_in_real_time(
                scenario,
                seed=seed,
                pcap=captured,
                snap=snap,
                commands=commands,
                attach=attached,
                progress=report,
                delivered=LiveReport(sys.stderr) if live else None,
            )
        for note in result.notes:
            _say(note)
        written = [path for _, path in captured]
        errors = WriteErrors()
        if folder is not None:
            with errors.kept(folder):
                with atomic_write(folder / PROBES) as part:
                    result.write_parquet(part)
                written = write_result(result, folder) + written
                replace_earlier(folder, written)
    if as_json:
        print_json(result.summary_json)
    elif not commands:
        print_emulated(result)
        for path in written:
            print(f"wrote {path}")
    errors.raise_first()
    # The note about a capture that was cut short begins with its file.
    cut = any(note.startswith(f"{path}: ") for note in result.notes for _, path in captured)
    return result.status or int(cut)


class LiveReport:
    """Writes the bytes that each flow has delivered as lines of JSON, a few a second."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self._next_s = 0.0

    def __call__(self, elapsed_s: float, delivered: Sequence[tuple[str, int]]) -> None:
        """Write a line if it is time for one."""
        if elapsed_s >= self._next_s:
            self._next_s = elapsed_s + _LIVE_INTERVAL_S
            line = json.dumps({"elapsed_s": elapsed_s, "delivered_bytes": dict(delivered)})
            print(line, file=self._stream, flush=True)


def print_emulated(result: EmulateResult) -> None:
    """Print the tables of a run, and how late packets were."""
    print_summary(result.summary, did="emulated")
    late = result.late_ms
    late_s = [each / 1e3 for each in (late.mean, late.p99, late.p999, late.max)]
    mean, p99, p999, most = (format_seconds(each) for each in late_s)
    print(f"\npackets left late by {mean} in the mean, {p99} (99%), {p999} (99.9%), {most} at most")


def _commands(
    scenario: Mapping[str, Any],
    *,
    command: Sequence[str],
    shell: str | None,
    serve: Sequence[str],
) -> list[Command]:
    """Return what is to run instead of the flows: servers first, then what is waited for."""
    hosts = [node["name"] for node in scenario["nodes"] if node["kind"] == "host"]

    def known(host: str, option: str) -> str:
        if host not in hosts:
            shown = ", ".join(hosts[:20])
            raise RequestError(f"{option}: no host is {host!r}; known: {shown}")
        return host

    commands = []
    for text in serve:
        host, found, line = text.partition("=")
        words = tuple(shlex.split(line))
        if not found or not words:
            raise RequestError(f"--serve {text}: expected HOST=COMMAND")
        commands.append(Command(host=known(host, "--serve"), words=words))
    served = {each.host for each in commands}
    host = shell if shell is not None else _client(scenario, served)
    if command or shell is not None:
        words = tuple(command) or (os.environ.get("SHELL") or "/bin/sh",)
        commands.append(Command(host=known(host, "--shell"), words=words, waited_for=True))
    elif commands:
        raise RequestError("--serve: nothing to wait for; name a --shell HOST or -- COMMAND")
    return commands


def _client(scenario: Mapping[str, Any], served: Set[str]) -> str:
    """Return the host that receives the first flow's data, unless a server runs there."""
    from bentpipe.prediction.data_direction import data_direction

    flow = scenario["flows"][0]
    ends = [flow["to"], flow["from"]]
    if data_direction(flow["app"]).from_server:
        ends.reverse()
    # Between two programs on one host there is no network.
    return str(next((host for host in ends if host not in served), ends[0]))


def _attached(scenario: Mapping[str, Any], attach: Sequence[str]) -> dict[str, str]:
    """Return whose TCP hosts are to have, by name."""
    hosts = [node["name"] for node in scenario["nodes"] if node["kind"] == "host"]
    attached = {}
    for text in attach:
        host, _, whose = text.partition("=")
        if host not in hosts:
            shown = ", ".join(hosts[:20])
            raise RequestError(f"--attach: no host is {host!r}; known: {shown}")
        if whose not in ("our", "kernel"):
            raise RequestError(f"--attach {text}: expected HOST=our or HOST=kernel")
        attached[host] = whose
    return attached


def _say_where(scenario: Scenario, commands: Sequence[Command]) -> None:
    waited = commands[-1]
    _say(
        f"{scenario.path.stem}: {' '.join(waited.words)} on host {waited.host}; "
        "the others are known by their names"
    )


def become_root() -> None:
    """Go on in a user namespace, where everybody may have networks of their own, unless root.

    A process with threads cannot enter one, and numpy has threads: the command starts anew.
    """
    if os.geteuid() == 0 or _WITHIN in os.environ or shutil.which("unshare") is None:
        return
    unshare = ["unshare", "--user", "--map-root-user", "--mount"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode != 0:
        return  # what is missing is said by whoever needs it
    sys.stdout.flush()
    sys.stderr.flush()
    os.environ[_WITHIN] = "1"
    os.execvp(unshare[0], [*unshare, sys.executable, "-m", "bentpipe", *sys.argv[1:]])


def _say(line: str) -> None:
    print(f"bentpipe: {line}", file=sys.stderr)
