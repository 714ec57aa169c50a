"""`bentpipe list` and `bentpipe schema`."""

from __future__ import annotations

import difflib

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
    described = scenario_descriptions() if kind == "scenarios" else {}
    table = Table(headings=("", ""), prose=True)
    for name in kinds[kind]:
        table.add(name, described.get(name, ""))
    table.print()


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
    from bentpipe.scenario import ready_made

    kinds = {"scenarios": list(ready_made()), "studies": studies.names()}
    return kinds | {kind: list(names) for kind, names in sorted(_native.lists().items())}


def scenario_descriptions() -> dict[str, str]:
    """Return the descriptions of the ready-made scenarios, by name."""
    import tomllib

    from bentpipe.scenario import ready_made

    described = {}
    for name, path in ready_made().items():
        with path.open("rb") as file:
            described[name] = str(tomllib.load(file).get("description", ""))
    return described
