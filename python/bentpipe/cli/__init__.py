"""The command line: `bentpipe run`, `predict`, `reproduce`, `sweep`, `list`, `schema`, `doctor`.

This module turns every ending into an exit status and at most one line on stderr. Commands are
modules beside it and are imported when they are called, so that `bentpipe run` needs no time for
matplotlib or typer.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from bentpipe import signals
from bentpipe.cli import plain
from bentpipe.cli.commands import COMMANDS
from bentpipe.cli.output import ClosedOutput, writing_to
from bentpipe.errors import RequestError, WorkError

DONE, FAILED, WRONG_REQUEST = 0, 1, 2
# As a shell reports a process that a signal ended: Ctrl-C, a closed terminal, `kill`.
_BY_A_SIGNAL = 128
INTERRUPTED, HUNG_UP, TERMINATED = (_BY_A_SIGNAL + number for number in (2, 1, 15))


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    words = sys.argv[1:] if arguments is None else arguments
    _ensure_utf8(words)
    status = execute(words)
    if status in {INTERRUPTED, HUNG_UP, TERMINATED}:
        # A cell may be in a call that nothing ends; Python would wait for its thread.
        with suppress(OSError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def _ensure_utf8(words: Sequence[str]) -> None:
    """Start this process anew in Python's UTF-8 mode if it would not read its arguments as UTF-8.

    Under another locale, Python has "é" as two halves of characters, which no library takes.
    """
    if sys.getfilesystemencoding() == "utf-8" or all(map(str.isascii, words)):
        return
    python = [sys.executable, "-X", "utf8", "-m", "bentpipe"]
    os.execv(sys.executable, [*python, *words])


def execute(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit status."""
    # Python has None for a stream that was closed before the start.
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    elif isinstance(sys.stdout, io.TextIOWrapper):
        # A character that another encoding lacks is printed as a question mark.
        sys.stdout.reconfigure(errors="replace")
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    with signals.interrupting():
        return _execute(arguments)


def _execute(arguments: Sequence[str]) -> int:
    try:
        # Errors of other files name the file already.
        with writing_to(Path("standard output")):
            status = _call(arguments)
            sys.stdout.flush()
    except KeyboardInterrupt:
        return _interrupted()
    except BrokenPipeError:
        # The reader closed the pipe: buffered output and messages are discarded.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except RequestError as error:
        return _end(WRONG_REQUEST, error.command_line_message)
    except (WorkError, OSError) as error:
        return _end(FAILED, _describe(error))
    except Exception as error:
        if (mistake := _mistake(error)) is not None:
            return _end(WRONG_REQUEST, mistake)
        if _is_native(error, "ScenarioError"):
            return _end(WRONG_REQUEST, str(error))
        traceback_wanted = bool(os.environ.get("BENTPIPE_TRACEBACK"))
        # A cause is an exception in a congestion control of the user's own.
        if _is_native(error, "RunError") and not (traceback_wanted and error.__cause__):
            return _end(FAILED, str(error))
        if traceback_wanted:
            raise
        message = (
            f"internal error: {type(error).__name__}: {error} (BENTPIPE_TRACEBACK=1 shows where)"
        )
        return _end(FAILED, message)
    # Typer says so itself when a command that it called was interrupted.
    return _interrupted() if status == INTERRUPTED else (status or DONE)


def _interrupted() -> int:
    number = signals.first_received()
    # The terminal may be gone.
    with suppress(OSError):
        _end(INTERRUPTED, signals.message_of(number))
    return _BY_A_SIGNAL + number


def _call(arguments: Sequence[str]) -> int | None:
    name, *words = arguments or [""]
    command = COMMANDS.get(name)
    if command is not None and command.parses_itself and plain.COMPLETING not in os.environ:
        ended: int = command.function()(words)
        return ended
    if command is not None:
        values = plain.read(command.parameters, words)
        if values is not None:
            return command.call(values)
    from bentpipe.cli.application import application

    # Typer looks at every signature that it has, which takes longer than a short run.
    built = application([name] if command is not None else COMMANDS)
    status: int | None = built(list(arguments), prog_name="bentpipe", standalone_mode=False)
    return status


def _mistake(error: Exception) -> str | None:
    """Return what typer says of a command line that it can't read."""
    typers = sys.modules.get("bentpipe.cli.application")
    if typers is None or not isinstance(error, typers.UsageError):
        return None
    message: str = error.format_message()
    return message


def _is_native(error: Exception, name: str) -> bool:
    # Not imported at the top: `bentpipe --help` must work in a checkout that isn't built.
    native = sys.modules.get("bentpipe._native")
    return native is not None and isinstance(error, getattr(native, name))


def _describe(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        place = f"{error.filename}: " if error.filename is not None else ""
        return f"{place}{error.strerror.lower()}"
    return str(error)


def _end(status: int, message: str) -> int:
    line = " ".join(message.split())
    # Empty after `bentpipe` alone, which has printed the help.
    if line:
        print(f"bentpipe: {line}", file=sys.stderr)
    return status
