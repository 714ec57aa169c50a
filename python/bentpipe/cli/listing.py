"""`bentpipe list` and `bentpipe schema`."""

from __future__ import annotations

import ast
import difflib
import tomllib
from pathlib import Path

from bentpipe.cli.output import print_json
from bentpipe.cli.tables import Table, print_prose
from bentpipe.errors import RequestError


def print_list(*, kind: str | None, as_json: bool) -> None:
    """Print the names of a kind, one a line; or every kind with its names."""
    kinds = kinds_of_names()
    if kind is None:
        if as_json:
            print_json(kinds)
            return
        for name, members in kinds.items():
            print_prose(f"{name}: {', '.join(members)}", indent="    ")
        return
    if kind not in kinds:
        close = difflib.get_close_matches(kind, kinds, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"expected one of {', '.join(kinds)}"
        raise RequestError(f"nothing to list under {kind!r}; {hint}")
    if as_json:
        print_json({kind: kinds[kind]})
        return
    described = {
        "scenarios": scenario_descriptions,
        "examples": example_descriptions,
        "constellations": constellation_descriptions,
        "variations": variation_descriptions,
    }
    descriptions = described[kind]() if kind in described else {}
    table = Table(headings=("", ""), prose=True)
    for name in kinds[kind]:
        table.add(name, descriptions.get(name, ""))
    table.print()


def constellation_descriptions() -> dict[str, str]:
    """Return what each preset of a constellation is, and where its figures are from."""
    from bentpipe import _native

    return _described(_native.constellations())


def variation_descriptions() -> dict[str, str]:
    """Return what each preset of a path's variation is, and where its figures are from."""
    from bentpipe import _native

    return _described(_native.variations())


def _described(presets: list[tuple[str, str, str]]) -> dict[str, str]:
    return {name: f"{description}. Source: {source}." for name, description, source in presets}


def print_schema(of: str) -> None:
    """Print the JSON Schema of the scenario file, or of a run's results.

    Raises
    ------
    RequestError
        There is no schema of that.
    """
    from bentpipe import _native

    schemas = {"scenario": _native.json_schema, "results": _native.results_schema}
    if of not in schemas:
        raise RequestError(f"schema {of}: expected {' or '.join(schemas)}")
    print_json(schemas[of]())


def kinds_of_names() -> dict[str, list[str]]:
    """Return the names that there are to choose from, by kind."""
    from bentpipe import _native, studies
    from bentpipe.scenario import examples, ready_made

    kinds = {
        "scenarios": list(ready_made()),
        "examples": list(examples()),
        "studies": studies.names(),
    }
    return kinds | {kind: list(names) for kind, names in sorted(_native.lists().items())}


def scenario_descriptions() -> dict[str, str]:
    """Return the descriptions of the ready-made scenarios, by name."""
    from bentpipe.scenario import ready_made

    return {name: _description(path) for name, path in ready_made().items()}


def example_descriptions() -> dict[str, str]:
    """Return the descriptions of the examples, by name."""
    from bentpipe.scenario import examples

    return {name: _description(path) for name, path in examples().items()}


def _description(path: Path) -> str:
    """Return a TOML file's description, or the first paragraph of a Python file's docstring."""
    if path.suffix == ".py":
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        return " ".join(docstring.partition("\n\n")[0].split())
    with path.open("rb") as file:
        return str(tomllib.load(file).get("description", ""))
