"""Reproductions of papers: their networks, figures and claims, measured again.

A study is a folder `studies/<paper key>/` whose `__init__` defines `STUDY`. It is imported on first
use.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import RequestError

if TYPE_CHECKING:
    from bentpipe.studies.study import Study

_NAMES: Final = (
    "gaid1998",
    "geo-acceptance",
    "karir1999",
    "leo-orbits",
    "obata2000",
    "quic-acceptance",
    "samaraweera1999",
    "vanzara2014",
)


def names() -> list[str]:
    """Return the studies' names: the keys of the papers."""
    return list(_NAMES)


def get(name: str) -> Study[Any]:
    """Return a study.

    Raises
    ------
    RequestError
        There is no such study.
    """
    if name not in _NAMES:
        close = difflib.get_close_matches(name, _NAMES, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(_NAMES)}"
        raise RequestError(f"no study {name!r}; {hint}")
    study: Study[Any] = import_module(f"bentpipe.studies.{name.replace('-', '_')}").STUDY
    return study
