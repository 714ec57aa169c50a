"""The keys of a scenario file by its JSON Schema: meaning, accepted values and default.

Key paths are written as in `--set`: `links.satellite.forward.rate`. In a path of the schema, NAME
stands for a name that the user chooses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

NAME: Final = "NAME"
# Greatest depth of nested tables; a schema that refers to itself would be endless.
_GREATEST_DEPTH: Final = 8


@dataclass(frozen=True, kw_only=True)
class Key:
    """A key: its description, its values, and its default as TOML (None where it has no default).

    `words` are the accepted words with their meanings; `keys` are the keys of a table.
    """

    path: tuple[str, ...]
    description: str
    kind: str
    default: str | None
    required: bool
    examples: tuple[str, ...]
    words: Mapping[str, str]
    keys: tuple[str, ...]

    @property
    def dotted(self) -> str:
        """The path with its parts joined by dots."""
        return ".".join(self.path)


@cache
def schema() -> dict[str, Any]:
    """Return the JSON Schema of the scenario file."""
    from bentpipe import _native

    read: dict[str, Any] = json.loads(_native.json_schema())
    return read


def key_at(path: Sequence[str]) -> Key | None:
    """Return the key at a path, or None. A name that the user chooses may be NAME or any other."""
    node, required = schema(), False
    found: list[str] = []
    for part in path:
        table = _table_of(node)
        if table is None:
            return None
        if part in table.get("properties", {}):
            required = part in table.get("required", [])
            node = table["properties"][part]
            found.append(part)
        elif isinstance(table.get("additionalProperties"), Mapping):
            # The description of a table with free names applies to each entry.
            said = node.get("description", "")
            node, required = {"description": said, **table["additionalProperties"]}, False
            found.append(NAME)
        else:
            return None
    return _key(tuple(found), node, required=required)


def every_key() -> Iterator[Key]:
    """Yield every key; a table comes before its keys."""
    yield from _below((), 0)


def _below(path: tuple[str, ...], depth: int) -> Iterator[Key]:
    if depth > _GREATEST_DEPTH:
        return
    here = key_at(path)
    for name in here.keys if here is not None else ():
        key = key_at((*path, name))
        if key is not None:
            yield key
            yield from _below(key.path, depth + 1)


def _key(path: tuple[str, ...], node: Mapping[str, Any], *, required: bool) -> Key:
    table = _table_of(node)
    keys: tuple[str, ...] = ()
    if table is not None:
        keys = tuple(table.get("properties", ()))
        keys += (NAME,) if isinstance(table.get("additionalProperties"), Mapping) else ()
    words = _words(node)
    default = node.get("default")
    return Key(
        path=path,
        description=str(node.get("description") or _referred(node).get("description", "")),
        kind=_kind(node, table, words),
        default=None if default is None or isinstance(default, dict) else json.dumps(default),
        required=required,
        examples=tuple(json.dumps(each) for each in node.get("examples", ())),
        words=words,
        keys=keys,
    )


def _kind(
    node: Mapping[str, Any], table: Mapping[str, Any] | None, words: Mapping[str, str]
) -> str:
    if table is not None:
        return "an array of tables" if "items" in _referred(node) else "a table"
    if words:
        return "a word"
    kinds = {
        "array": "an array",
        "boolean": "true or false",
        "integer": "a whole number",
        "number": "a number",
        "string": "a string",
    }
    types = node.get("type", _referred(node).get("type", ""))
    several = types if isinstance(types, list) else [types]
    return " or ".join(kinds[each] for each in several if each in kinds) or "a value"


def _referred(node: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the target of a node's reference, or the node itself."""
    for part in (node, *node.get("allOf", ()), *node.get("anyOf", ())):
        if "$ref" in part:
            definition: Mapping[str, Any] = schema()["definitions"][part["$ref"].rsplit("/", 1)[-1]]
            return definition
    return node


def _table_of(node: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the table schema of a node, or of the items of an array."""
    referred = _referred(node)
    if isinstance(referred.get("items"), Mapping):
        return _table_of(referred["items"])
    is_table = "properties" in referred or isinstance(referred.get("additionalProperties"), Mapping)
    return referred if is_table else None


def _words(node: Mapping[str, Any]) -> dict[str, str]:
    referred = _referred(node)
    if "enum" in referred:
        return {str(word): "" for word in referred["enum"]}
    return {
        str(word): str(branch.get("description", ""))
        for branch in referred.get("oneOf", ())
        for word in ([branch["const"]] if "const" in branch else branch.get("enum", ()))
    }
