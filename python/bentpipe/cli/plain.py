"""Reader of the usual command lines, without typer, which takes half of a short run's time.

Other lines are left to typer: lines with a mistake, lines that ask for help, and completion. This
module refuses nothing, so that all messages about mistakes are typer's. A test of many lines shows
that typer reads the same values.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from bentpipe.cli.declaring import Parameter

# A shell that wants to complete a line sets it, and gives us any arguments or none.
COMPLETING: Final = "_BENTPIPE_COMPLETE"
# Those of the largest seed: Python converts no more than some thousands.
_MOST_DIGITS: Final = 20


def read(parameters: Mapping[str, Parameter], words: Sequence[str]) -> dict[str, Any] | None:
    """Return the value of every parameter; None if the line is not plain."""
    if COMPLETING in os.environ:
        return None
    try:
        given = _given(parameters, words)
    except _NotPlainError:
        return None
    for name, each in parameters.items():
        if each.required and name not in given:
            return None
        given.setdefault(name, [] if each.many else each.default)
    return given


class _NotPlainError(Exception):
    pass


def _given(parameters: Mapping[str, Parameter], words: Sequence[str]) -> dict[str, Any]:
    options = {each.option: name for name, each in parameters.items() if each.option}
    given: dict[str, Any] = {}
    rest = iter(words)
    for word in rest:
        # "-" alone is standard input.
        if word.startswith("-") and word != "-":
            option, equals, text = word.partition("=")
            name = options.get(option)
            takes_value = name is not None and parameters[name].kind is not bool
            if equals and not takes_value:
                raise _NotPlainError
            if takes_value and not equals:
                text = next(rest, "")
        else:
            name, text = _next_argument(parameters, given), word
        if name is None:
            raise _NotPlainError
        value = _value(parameters[name], text)
        if parameters[name].many:
            given.setdefault(name, []).append(value)
        else:
            # Typer, too, lets the last one count.
            given[name] = value
    return given


def _next_argument(parameters: Mapping[str, Parameter], given: Mapping[str, Any]) -> str | None:
    for name, each in parameters.items():
        if not each.option and (each.many or name not in given):
            return name
    return None


def _value(parameter: Parameter, text: str) -> str | int | Path:
    if parameter.kind is bool:
        return True
    if not text or (text.startswith("-") and text != "-"):
        raise _NotPlainError
    if parameter.kind is str:
        return text
    if parameter.kind is Path:
        return Path(text)
    if not (text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS):
        raise _NotPlainError
    number = int(text)
    least, most = parameter.least, parameter.most
    if (least is not None and number < least) or (most is not None and number > most):
        raise _NotPlainError
    return number
