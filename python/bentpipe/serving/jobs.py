"""Commands that run on behalf of the page, each in a process of its own.

A job ends with the request that started it: a page that is closed leaves no process behind.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

# Commands that the page may request, and the options that each takes from it.
COMMANDS: Final[Mapping[str, frozenset[str]]] = {
    "predict": frozenset({"set"}),
    "run": frozenset({"set", "seed", "seeds"}),
    "advise": frozenset({"set"}),
    "compare": frozenset({"set"}),
    "emulate": frozenset({"set"}),
}
MOST_AT_ONCE: Final = 4
_MOST_SETTINGS: Final = 100
# A report has a line, with a number for each flow.
_LONGEST_LINE: Final = 8 << 20


class Refused(Exception):  # noqa: N818 - a request that is wrong, not an error of this program
    """The request is wrong."""


def arguments_of(request: object) -> tuple[list[str], str]:
    """Return the command line and the scenario's text of a request.

    Raises
    ------
    Refused
        The request is not one of those that the page sends.
    """
    if not isinstance(request, dict):
        raise Refused("expected an object")
    command, text = request.get("command"), request.get("text")
    if not isinstance(command, str) or command not in COMMANDS:
        raise Refused(f"expected a command: {', '.join(COMMANDS)}")
    if not isinstance(text, str):
        raise Refused("expected the text of a scenario")
    known = COMMANDS[command] | {"command", "text"}
    unknown = sorted(set(request) - known)
    if unknown:
        raise Refused(f"unknown: {', '.join(unknown)[:200]}")
    line = [command, "-", "--json", *(["--live"] if command == "emulate" else [])]
    settings = request.get("set", [])
    if not isinstance(settings, list) or len(settings) > _MOST_SETTINGS:
        raise Refused(f"expected at most {_MOST_SETTINGS} settings")
    for setting in settings:
        if not isinstance(setting, str) or "=" not in setting or "\0" in setting:
            raise Refused("expected settings as KEY=VALUE")
        # One argument, so that a setting is never taken for an option.
        line.append(f"--set={setting}")
    for option in ("seed", "seeds"):
        if option in request:
            value = request[option]
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise Refused(f"expected a whole number for {option}")
            line.append(f"--{option}={value}")
    return line, text


class Jobs:
    """Runs commands, a few at a time."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._free = asyncio.Semaphore(MOST_AT_ONCE)

    async def run(
        self, line: list[str], text: str, live: Callable[[Any], None] = lambda _: None
    ) -> dict[str, Any]:
        """Run a command. Return its result, or its refusal in one line.

        `live` gets what the command reports meanwhile: lines of JSON on its standard error. If the
        task is cancelled, so is the command.
        """
        async with self._free:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "bentpipe",
                *line,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=_LONGEST_LINE,
                cwd=self._folder,
                # A group of its own: Ctrl-C reaches the server, which ends its jobs.
                start_new_session=True,
            )
            try:
                output, errors = await _communicate(process, text.encode(), live)
            except asyncio.CancelledError:
                await _end(process)
                raise
        if process.returncode == 0:
            return {"result": json.loads(output)}
        lines = errors.strip().splitlines()
        message = lines[-1] if lines else f"ended with status {process.returncode}"
        return {"refusal": message.removeprefix("bentpipe: ")}


async def _communicate(
    process: asyncio.subprocess.Process, text: bytes, live: Callable[[Any], None]
) -> tuple[bytes, str]:
    """Write the text and read the output, and the errors that are no reports."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None

    async def errors(stream: asyncio.StreamReader) -> str:
        other = []
        async for line in stream:
            if line.startswith(b"{"):
                live(json.loads(line))
            else:
                other.append(line.decode(errors="replace"))
        return "".join(other)

    async def write(stream: asyncio.StreamWriter) -> None:
        # A command that refuses its options may end before it reads.
        with suppress(BrokenPipeError, ConnectionResetError):
            stream.write(text)
            await stream.drain()
        stream.close()

    _, output, said, _ = await asyncio.gather(
        write(process.stdin), process.stdout.read(), errors(process.stderr), process.wait()
    )
    return output, said


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a command and what it started: by request, and after two seconds by force."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            await asyncio.wait_for(asyncio.shield(process.wait()), 2.0)
            break
        except TimeoutError:
            continue
