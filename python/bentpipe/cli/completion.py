"""Completion in a shell: scenarios, keys of `--set`, studies, rules, kinds of names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from typer import Context  # noqa: TC002 - typer reads the annotations

# Tables with names of one's own.
_NAMED: Final = ("hosts", "gateways", "links", "flows")


def scenarios(incomplete: str) -> list[str]:
    """Offer ready-made scenarios, and TOML files."""
    from bentpipe.scenario import ready_made

    named = [name for name in ready_made() if name.startswith(incomplete)]
    return [*named, *files(incomplete)]


def sweeps(incomplete: str) -> list[str]:
    """Offer the examples that are sweep files, and TOML files."""
    from bentpipe.scenario import examples

    named = [name for name, path in examples().items() if path.suffix == ".toml"]
    return [*(name for name in named if name.startswith(incomplete)), *files(incomplete)]


def files(incomplete: str) -> list[str]:
    """Offer folders and TOML files."""
    folder, _, start = incomplete.rpartition("/")
    prefix = incomplete[: len(incomplete) - len(start)]
    offered = []
    try:
        for path in sorted(Path(folder or prefix or ".").iterdir()):
            if path.name.startswith(start) and (start or not path.name.startswith(".")):
                if path.is_dir():
                    offered.append(f"{prefix}{path.name}/")
                elif path.suffix == ".toml":
                    offered.append(f"{prefix}{path.name}")
    except OSError:
        return []
    return offered


def settings(context: Context, incomplete: str) -> list[str]:
    """Offer keys with the names that the scenario on the command line has; after `=`, words."""
    from bentpipe.keys import key_at

    dotted, equals, start = incomplete.partition("=")
    if equals:
        key = key_at(dotted.split("."))
        words = list(key.words) if key is not None else []
        if key is not None and key.kind == "true or false":
            words = ["true", "false"]
        return [f"{dotted}={word}" for word in words if word.startswith(start)]
    file = context.params.get("file") or _file_on_the_line()
    return [each for each in _keys(file) if each.startswith(incomplete)]


def _file_on_the_line() -> str:
    """Return the scenario's name: after an option whose value is missing, typer has read nothing.

    Shells hand over the line in one of these: bash in the first, others in the second.
    """
    line = os.environ.get("COMP_WORDS") or os.environ.get("_TYPER_COMPLETE_ARGS") or ""
    words = line.split()[2:]
    return next((word for word in words if not word.startswith("-")), "")


def _keys(file: object) -> Iterator[str]:
    from bentpipe.keys import NAME, every_key

    names = _names(file)
    for key in every_key():
        # The path of a table is no setting, but for those that are written inline.
        if key.keys or not key.path:
            continue
        if NAME not in key.path:
            yield f"{key.dotted}="
            continue
        place = key.path.index(NAME)
        for name in names.get(key.path[0], ()):
            yield ".".join((*key.path[:place], name, *key.path[place + 1 :])) + "="


def _names(file: object) -> dict[str, list[str]]:
    from bentpipe import toml
    from bentpipe.errors import RequestError
    from bentpipe.scenario import Scenario

    try:
        scenario = Scenario.find(str(file))
        data = toml.read(scenario.content()) if scenario.path.is_file() else {}
    except (RequestError, OSError, ValueError):
        return {}
    tables = {kind: data.get(kind, {}) for kind in _NAMED}
    return {kind: list(table) for kind, table in tables.items() if isinstance(table, dict)}


def explained(incomplete: str) -> list[str]:
    """Offer keys of the schema."""
    from bentpipe.keys import every_key

    return sorted({key.dotted for key in every_key() if key.dotted.startswith(incomplete)})


def studies(incomplete: str) -> list[str]:
    """Offer the papers' names."""
    from bentpipe.studies import names

    return [name for name in names() if name.startswith(incomplete)]


def window_rules(incomplete: str) -> list[str]:
    """Offer the built-in window rules."""
    from bentpipe import _native

    return [name for name in _native.lists()["congestion-controls"] if name.startswith(incomplete)]


def kernel_actions(incomplete: str) -> list[str]:
    """Offer the actions of `bentpipe kernel`."""
    actions = ("list", "check", "load", "unload", "status")
    return [name for name in actions if name.startswith(incomplete)]


def kernel_rules(incomplete: str) -> list[str]:
    """Offer the rules for the kernel, and C sources."""
    from bentpipe.kernel_rules import RULES

    named = [name for name in RULES if name.startswith(incomplete)]
    return [*named, *(str(path) for path in sorted(Path().glob(f"{incomplete}*.bpf.c")))]


def criteria(incomplete: str) -> list[str]:
    """Offer the criteria of an evaluation."""
    from bentpipe.evaluation.verdicts import rules

    return [each.id for each in rules().criteria if each.id.startswith(incomplete)]


def kinds(incomplete: str) -> list[str]:
    """Offer what there are lists of."""
    from bentpipe.cli.listing import kinds_of_names

    return [name for name in kinds_of_names() if name.startswith(incomplete)]


def templates(incomplete: str) -> list[str]:
    """Offer the templates of `bentpipe new`."""
    from bentpipe.cli.new import template_files

    return [name for name in template_files() if name.startswith(incomplete)]
