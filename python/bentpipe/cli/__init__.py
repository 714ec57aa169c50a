"""The command line: `bentpipe run`, `predict`, `reproduce`, `sweep`, `list`, `schema`, `doctor`.

This module turns every way of ending into an exit status and at most one line on stderr. The
commands live beside it and import what they need when they are called: `bentpipe run` answers
before matplotlib would be loaded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

import typer

from bentpipe.cli.commands import application_for
from bentpipe.cli.output import ClosedOutput
from bentpipe.errors import RequestError, WorkError

DONE, FAILED, WRONG_REQUEST = 0, 1, 2
# As a shell reports a process that Ctrl-C ended.
INTERRUPTED = 130

# typer's own: what it raises for a command line that it can't read.
_UsageError = typer.BadParameter.__base__ or typer.BadParameter


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit."""
    status = execute(sys.argv[1:] if arguments is None else arguments)
    if status == INTERRUPTED:
        # A cell may be in a call that nothing ends; Python would wait for its thread.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
    sys.exit(status)


def execute(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit status."""
    # A stream that whoever called us has closed is none at all.
    if sys.stdout is None:
        sys.stdout = ClosedOutput()
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    try:
        application = application_for(arguments)
        status = application(list(arguments), prog_name="bentpipe", standalone_mode=False)
        sys.stdout.flush()
    except (KeyboardInterrupt, typer.Abort):
        return _end(INTERRUPTED, "interrupted")
    except BrokenPipeError:
        # The reader left; typer does the same within a command. Whatever is buffered has nowhere
        # to go, and neither has a message.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except RequestError as error:
        return _end(WRONG_REQUEST, error.as_typed)
    except (WorkError, OSError) as error:
        return _end(FAILED, _describe(error))
    except Exception as error:
        if isinstance(error, _UsageError):
            return _end(WRONG_REQUEST, error.format_message())  # type: ignore[attr-defined]
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
    # A command returns nothing; a number is how typer itself ended it.
    return _end(status or DONE, "interrupted" if status == INTERRUPTED else "")


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
