"""Exceptions for wrong requests and failed work, and messages for system errors."""

from __future__ import annotations

import re

# An option in a message: `--workers 0`, `--resume`. Dashes within a file name do not match.
_OPTION = re.compile(r"(?<![\w./-])--([a-z]+(?:-[a-z]+)*)")


class RequestError(ValueError):
    """The request is wrong: a one-line message with the expected value. Exit status 2.

    On the command line, an option in the message has its dashes: `--workers 0`. As a Python
    exception, the message names the keyword: `workers 0`.
    """

    def __str__(self) -> str:
        """Return the message for a Python user."""
        return _OPTION.sub(lambda option: option[1].replace("-", "_"), self.command_line_message)

    @property
    def command_line_message(self) -> str:
        """The message for a command-line user."""
        return super().__str__()


def reason(error: OSError) -> str:
    """Return the reason of a system error as our messages word it."""
    return (error.strerror or str(error)).lower()


class WorkError(RuntimeError):
    """The request was valid and the work failed. Exit status 1."""
