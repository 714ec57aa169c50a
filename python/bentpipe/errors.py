"""The two ways in which a request ends without an answer."""

from __future__ import annotations


class RequestError(ValueError):
    """The request is wrong: one line that says what was expected. Exit status 2."""


class WorkError(RuntimeError):
    """The request was right and the work failed. Exit status 1."""
