"""`bentpipe explain`: what the schema says of a key, or of a word that a key may be."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from typing import Final

from bentpipe.cli.output import print_json
from bentpipe.cli.tables import Table, terminal_width
from bentpipe.errors import RequestError
from bentpipe.keys import Key, every_key, key_at

_WIDTH: Final = 100


def explain(*, what: str | None, as_json: bool) -> None:
    """Print what the key means, takes and is without it; without a key, the tables there are.

    Raises
    ------
    RequestError
        There is no such key and no such word.
    """
    if what is None:
        _print_tables()
        return
    found = find_keys(what)
    if as_json:
        print_json({"keys": [_as_data(key) for key in found]})
        return
    for number, alike in enumerate(_alike(found)):
        if number:
            print()
        _print(alike, highlighted=what)


def _alike(keys: Sequence[Key]) -> list[list[Key]]:
    """Put together what differs in its path only: a link, and each of its directions."""
    groups: dict[object, list[Key]] = {}
    for key in keys:
        same = (key.description, key.kind, key.default, key.required, *key.words, *key.keys)
        groups.setdefault(same, []).append(key)
    return list(groups.values())


def find_keys(what: str) -> list[Key]:
    """Return the key at a path, or those whose name or one of whose words it is.

    Raises
    ------
    RequestError
        There is none.
    """
    path = what.strip().strip(".").split(".")
    # A name of one's own would match anything: a single word is looked for everywhere.
    at = key_at(path) if len(path) > 1 else key_at(path) if path[0] in _top() else None
    if at is not None:
        return [at]
    keys = list(every_key())
    ending = [key for key in keys if key.path[-len(path) :] == tuple(path)]
    spelled = [key for key in keys if what in key.words]
    if ending or spelled:
        return ending + spelled
    import difflib

    names = {key.path[-1] for key in keys} | {word for key in keys for word in key.words}
    close = difflib.get_close_matches(path[-1], sorted(names), n=1)
    hint = f"did you mean {close[0]!r}?" if close else "bentpipe explain shows the tables"
    raise RequestError(f"no key or word is {what!r}; {hint}")


def _top() -> Sequence[str]:
    whole = key_at(())
    return whole.keys if whole is not None else ()


def _print_tables() -> None:
    table = Table(headings=("", ""), prose=True)
    for name in _top():
        key = key_at((name,))
        if key is not None:
            table.add(name, _first_sentence(key.description))
    table.print()


def _print(alike: Sequence[Key], *, highlighted: str) -> None:
    key = alike[0]
    facts = [key.kind]
    if key.examples:
        facts[0] += f" such as {' or '.join(key.examples[:3])}"
    if key.required:
        facts.append("required")
    elif key.default is not None:
        facts.append(f"default {key.default}")
    print(f"{', '.join(each.dotted for each in alike)}: {', '.join(facts)}")
    width = min(terminal_width() or _WIDTH, _WIDTH)
    for paragraph in key.description.split("\n\n"):
        # A pipe's reader may want to search: there, a paragraph is a line.
        print(textwrap.fill(paragraph, width) if sys.stdout.isatty() else paragraph)
    rows = dict(key.words)
    if highlighted in rows:
        rows = {highlighted: rows[highlighted]}
    for name in key.keys:
        inner = key_at((*key.path, name))
        if inner is not None:
            rows[name] = _first_sentence(inner.description)
    if rows:
        print()
        table = Table(headings=("", ""), prose=True)
        for name, text in rows.items():
            table.add(f"  {name}", text)
        table.print()


def _first_sentence(text: str) -> str:
    end = text.find(". ")
    return text if end < 0 else text[: end + 1]


def _as_data(key: Key) -> dict[str, object]:
    return {
        "key": key.dotted,
        "kind": key.kind,
        "description": key.description,
        "required": key.required,
        "default": key.default,
        "examples": list(key.examples),
        "words": dict(key.words),
        "keys": list(key.keys),
    }
