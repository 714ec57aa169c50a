"""Declarations of commands and their parameters, as plain data for two readers.

`plain` reads the usual command lines. `application` makes a typer application for all others. To
start fast, this module imports neither dataclasses nor typer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bentpipe.errors import RequestError


class Parameter(NamedTuple):
    """A parameter: an option such as "--set", or a positional argument if `option` is empty.

    * `kind`: str, int, Path, or bool for a flag.
    * `many`: the parameter may be repeated.
    * `least`, `most`: bounds of a number.
    * `may_be_empty`: an empty path is allowed. Path("") is the working folder, and usually comes
      from a script's unset variable.
    * `complete`: a function of `completion`.
    """

    option: str
    help: str
    metavar: str | None = None
    kind: type[str | int | Path] = str
    many: bool = False
    required: bool = False
    default: str | int | Path | None = None
    least: int | None = None
    most: int | None = None
    may_be_empty: bool = False
    complete: str | None = None


class Command(NamedTuple):
    """A command: its help, its parameters, and the place of its function, such as "run.run".

    The function gets every parameter by its name: a repeatable one as a list, a flag as a bool.
    """

    help: str
    place: str
    parameters: Mapping[str, Parameter]
    # Lines for a shell, without "bentpipe".
    examples: tuple[str, ...] = ()
    # The function gets the words of the command line as they are; the parameters are for
    # completion only.
    parses_itself: bool = False

    def call(self, values: Mapping[str, Any]) -> int | None:
        """Import the command and call it; it returns an exit status, or None for 0.

        Raises
        ------
        RequestError
            A word that is no name of a file isn't UTF-8.
        """
        for name, each in self.parameters.items():
            if each.option and each.kind is str and values[name]:
                given = values[name] if each.many else [values[name]]
                for word in given:
                    check_text(word, each.option)
        status: int | None = self.function()(**values)
        return status

    def function(self) -> Callable[..., Any]:
        """Import the command, and return its function."""
        module, _, function = self.place.partition(".")
        imported: Callable[..., Any] = getattr(import_module(f"bentpipe.cli.{module}"), function)
        return imported


def check_text(word: object, option: str) -> None:
    """Refuse text that is not UTF-8, which Python represents by surrogates.

    Raises
    ------
    RequestError
        The text is not UTF-8.
    """
    text = str(word)
    if not text.isascii() and any("\ud800" <= sign <= "\udfff" for sign in text):
        raise RequestError(f"{option} {ascii(text)[1:-1]}: not UTF-8 text")


class GatewayParameters(Mapping[str, Parameter]):
    """The parameters of `bentpipe-gateway`, read from the native module at the first access."""

    def __init__(self) -> None:
        self._read: dict[str, Parameter] | None = None

    def _parameters(self) -> dict[str, Parameter]:
        if self._read is None:
            self._read = _gateway_parameters()
        return self._read

    def __getitem__(self, name: str) -> Parameter:
        """Return a parameter."""
        return self._parameters()[name]

    def __iter__(self) -> Iterator[str]:
        """Return the names in the order of the help."""
        return iter(self._parameters())

    def __len__(self) -> int:
        """Return the number of parameters."""
        return len(self._parameters())


def _gateway_parameters() -> dict[str, Parameter]:
    try:
        from bentpipe import _native
    except ImportError:
        # `bentpipe --help` works in a checkout that is not built.
        return {}
    completed = {"file": "scenarios", "set": "settings"}
    return {
        name: Parameter(
            option,
            help if help.endswith("]") else f"{help}.",
            metavar or None,
            kind=str if metavar else bool,
            many=many,
            default=None if metavar else False,
            complete=completed.get(name),
        )
        for name, option, metavar, help, many in _native.gateway_parameters()  # noqa: A001
    }


def argument(metavar: str, help: str, **more: Any) -> Parameter:  # noqa: A002
    """Declare an argument by its place."""
    return Parameter("", help, metavar, **more)


def option(name: str, metavar: str | None, help: str, **more: Any) -> Parameter:  # noqa: A002
    """Declare an option with a value."""
    return Parameter(name, help, metavar, **more)


def flag(name: str, help: str) -> Parameter:  # noqa: A002
    """Declare an option without a value."""
    return Parameter(name, help, kind=bool, default=False)
