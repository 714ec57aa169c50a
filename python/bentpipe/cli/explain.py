"""`bentpipe explain`: what a key or a word of the scenario file means."""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Final

from bentpipe.cli.everyday_words import TERMS, Term, term_for
from bentpipe.cli.output import print_json
from bentpipe.cli.tables import Table, print_prose, terminal_width
from bentpipe.errors import RequestError
from bentpipe.keys import NAME, Key, every_key, key_at

_WIDTH: Final = 100
# Keys that are listed because their descriptions have a word.
_MOST_FOUND: Final = 20


def explain(*, what: str | None, as_json: bool) -> None:
    """Print what a key means, takes and defaults to; without a key, list the tables.

    A word that is no key is looked up among everyday words, then in all descriptions.

    Raises
    ------
    RequestError
        There is no such key, and no description has the word.
    """
    if what is None:
        _print_tables()
        return
    # An everyday word may be the last part of a key, too, which it then names.
    if (found := find_keys(what)) and term_for(what) is None:
        if as_json:
            print_json({"keys": [_as_data(key) for key in found]})
            return
        for number, alike in enumerate(_alike(found)):
            if number:
                print()
            _print(alike, highlighted=what)
        return
    term, mentioned = term_for(what), _mentioning(what)
    if term is None and not mentioned:
        raise RequestError(f"no key, word or description has {what!r}; {_hint(what)}")
    keys = _keys_of(term) or mentioned
    scenarios = _scenarios_mentioning(what)
    if as_json:
        print_json(
            {
                "meaning": None if term is None else term.meaning,
                "keys": [_as_data(key) for key in keys],
                "scenarios": scenarios,
            }
        )
        return
    _print_term(what, term, keys, scenarios)


def find_keys(what: str) -> list[Key]:
    """Return the key at a path, or the keys of that name, or those that may be that word."""
    path = what.strip().strip(".").split(".")
    # A name of one's own would match anything: a single word is looked for everywhere.
    at = key_at(path) if len(path) > 1 else key_at(path) if path[0] in _top() else None
    if at is not None:
        return [at]
    keys = list(every_key())
    ending = [key for key in keys if key.path[-len(path) :] == tuple(path)]
    return ending + [key for key in keys if what in key.words]


def _alike(keys: Iterable[Key]) -> list[list[Key]]:
    """Group keys that differ in their paths only, such as a link and each of its directions."""
    groups: dict[object, list[Key]] = {}
    for key in keys:
        same = (key.description, key.kind, key.default, key.required, *key.words, *key.keys)
        groups.setdefault(same, []).append(key)
    return list(groups.values())


def _mentioning(what: str) -> list[Key]:
    """Return the keys whose names or descriptions have a word, one of those that are alike."""
    word = re.compile(rf"(?<![a-z]){re.escape(what.strip().lower())}", re.IGNORECASE)
    if not what.strip():
        return []
    found = [
        key
        for key in every_key()
        if word.search(key.path[-1].replace("_", " "))
        or word.search(key.description)
        or any(word.search(each) for each in key.words.values())
    ]
    return [min(alike, key=lambda key: len(key.path)) for alike in _alike(found)]


def _keys_of(term: Term | None) -> list[Key]:
    found = [key_at(dotted.split(".")) for dotted in term.keys] if term is not None else []
    return [key for key in found if key is not None]


def _scenarios_mentioning(what: str) -> list[str]:
    """Return the ready-made scenarios whose name or description has a word."""
    from bentpipe.cli.listing import scenario_descriptions

    word = re.compile(rf"\b{re.escape(what.strip())}", re.IGNORECASE)
    described = scenario_descriptions()
    return [name for name, text in described.items() if word.search(f"{name} {text}")]


def _hint(what: str) -> str:
    """Return the key or word that a misspelled one is closest to."""
    import difflib

    last = what.strip().rpartition(".")[-1]
    keys = list(every_key())
    names = {key.path[-1] for key in keys} | {word for key in keys for word in key.words}
    close = difflib.get_close_matches(last, sorted(names | TERMS.keys()), n=1)
    return f"did you mean {close[0]!r}?" if close else "bentpipe explain shows the tables"


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


def _print_term(
    what: str, term: Term | None, keys: Sequence[Key], scenarios: Sequence[str]
) -> None:
    if term is not None:
        print_prose(f"{what}: {term.meaning}")
    else:
        print_prose(f"{what}: no key; these keys are about it")
    print()
    table = Table(headings=("", ""), prose=True)
    for key in keys[:_MOST_FOUND]:
        table.add(f"  {key.dotted}", _first_sentence(key.description))
    table.print()
    if len(keys) > _MOST_FOUND:
        print(f"  and {len(keys) - _MOST_FOUND} more: --json")
    if scenarios:
        print()
        print_prose(f"ready-made scenarios: {', '.join(scenarios)}", indent="    ")


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
    rows |= {name: _first_sentence(inner.description) for name, inner in _within(key)}
    if rows:
        print()
        table = Table(headings=("", ""), prose=True)
        for name, text in rows.items():
            table.add(f"  {name}", text)
        table.print()


def _within(key: Key) -> list[tuple[str, Key]]:
    """Return the keys of a table; where names are free, those of each name."""
    found: list[tuple[str, Key]] = []
    for name in key.keys:
        inner = key_at((*key.path, name))
        if inner is None:
            continue
        if name == NAME and inner.keys:
            found += [(f"{NAME}.{below}", each) for below, each in _within(inner)]
        else:
            found.append((name, inner))
    return found


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
