"""The two ways in which a request ends without an answer, and what is said of the system's."""

from __future__ import annotations

import re

# An option in a message: `--workers 0`, `--resume goes on`. Not what is in a file's name.
_OPTION = re.compile(r"(?<![\w./-])--([a-z]+(?:-[a-z]+)*)")


class RequestError(ValueError):
    """The request is wrong: one line that says what was expected. Exit status 2.

    Where the message is about an option, it is written as the command line has it, `--workers 0`;
    as a Python exception it names the keyword: `workers 0`.
    """

    def __str__(self) -> str:
        """Return the message as Python's user needs it."""
        return _OPTION.sub(lambda option: option[1].replace("-", "_"), self.as_typed)

    @property
    def as_typed(self) -> str:
        """The message as the command line's user needs it."""
        return super().__str__()


def reason(error: OSError) -> str:
    """Return why the system refused, in the words of our messages."""
    return (error.strerror or str(error)).lower()


class WorkError(RuntimeError):
    """The request was right and the work failed. Exit status 1."""
