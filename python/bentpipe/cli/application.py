"""The table of commands as a typer application: help, completion, messages about mistakes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from bentpipe.cli import completion
from bentpipe.cli.commands import COMMANDS
from bentpipe.cli.declaring import Command, Parameter

# The range of larger numbers takes too much room in help.
_LARGE: Final = 10_000

Call = Callable[[Command, Mapping[str, Any]], int | None]

# The error of a command line that typer cannot read, which typer does not export.
UsageError: Final = typer.BadParameter.__base__ or typer.BadParameter


def application(names: Iterable[str] = COMMANDS, *, call: Call = Command.call) -> typer.Typer:
    """Return the command line with these commands; `call` is what is done with one that is read."""
    built = typer.Typer(
        name="bentpipe",
        help="A workbench for TCP over satellite and other long, asymmetric paths.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    built.callback()(_common)
    for name in names:
        declared = COMMANDS[name]
        lines = ["Examples:", *(f"  bentpipe {each}" for each in declared.examples)]
        built.command(name, help=declared.help, epilog="\n\n".join(lines))(
            _function(declared, call)
        )
    return built


def _function(command: Command, call: Call) -> Callable[..., int | None]:
    """Return a function with the signature that typer reads a command's parameters from."""

    def called(**values: Any) -> int | None:
        for name, each in command.parameters.items():
            if each.many:
                values[name] = values[name] or []
        return call(command, values)

    called.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [_parameter(name, each) for name, each in command.parameters.items()]
    )
    return called


def _parameter(name: str, declared: Parameter) -> inspect.Parameter:
    kind: Any = list[declared.kind] if declared.many else declared.kind  # type: ignore[name-defined]
    default: Any = declared.default
    if declared.required:
        default = inspect.Parameter.empty
    elif default is None:
        kind |= None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, _typers(declared)],
    )


def _typers(declared: Parameter) -> Any:
    parser: Callable[[str], Any] | None = None
    if declared.kind is Path and not declared.may_be_empty:
        parser = path
    elif declared.most is not None and declared.most >= _LARGE:
        parser = _whole_number(declared)
    options: dict[str, Any] = {
        "metavar": declared.metavar,
        "help": declared.help,
        "min": None if parser else declared.least,
        "max": None if parser else declared.most,
        "parser": parser,
        "autocompletion": getattr(completion, declared.complete) if declared.complete else None,
    }
    if declared.option:
        return typer.Option(declared.option, **options)
    return typer.Argument(**options)


def _whole_number(declared: Parameter) -> Callable[[str], int]:
    """Return what reads a number that help does not tell the range of: it would fill the page."""
    least, most = declared.least or 0, declared.most or 0

    def number(text: str) -> int:
        # More digits than Python converts are too many, too.
        with suppress(ValueError):
            if least <= (value := int(text)) <= most:
                return value
        raise typer.BadParameter(f"expected a whole number from {least} to {most}")

    return number


def path(text: str) -> Path:
    """Read a path; help calls what is expected as this function is called."""
    if not text:
        raise typer.BadParameter("expected a path, got nothing")
    return Path(text)


def _common(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=lambda wanted: _print_version() if wanted else None,
            is_eager=True,
            help="Print the version and the commit.",
        ),
    ] = False,
) -> None:
    del version


def _print_version() -> None:
    from bentpipe._native import __commit__, __version__

    print(f"bentpipe {__version__}" + (f" (commit {__commit__})" if __commit__ else ""))
    raise typer.Exit
