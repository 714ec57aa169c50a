"""Differences between scenarios, key by key, with numbered items as one group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bentpipe import toml
from bentpipe.groups import groups

if TYPE_CHECKING:
    from bentpipe.scenario import Scenario

# Lists of named items in a resolved scenario.
_LISTS: Final = ("nodes", "links", "flows")
# Tables of a file whose keys are names chosen by the user.
_TABLES: Final = frozenset({"hosts", "gateways", "links", "flows", "groups", "carriers", "classes"})
# Not part of the network: names of the files, and what is recorded.
_LEFT_OUT: Final = frozenset({"name", "description", "probes"})
_MISSING: Final = "–"


@dataclass(frozen=True, kw_only=True)
class Difference:
    """A key that has different values in the scenarios, in words."""

    key: str
    values: tuple[str, ...]


def differences(resolved: Sequence[Mapping[str, Any]]) -> list[Difference]:
    """Return the keys of resolved scenarios with different values; "–" where a key is absent.

    An item that a scenario lacks is one difference, and not one for each of its keys.
    """
    return _different([_flat(each) for each in resolved])


def written_differences(scenarios: Sequence[Scenario]) -> list[Difference]:
    """Return the keys that files have with different values, with settings applied."""
    return _different([_flat_file(each) for each in scenarios])


def _flat_file(scenario: Scenario) -> dict[tuple[str, str], Any]:
    """Return the values of a file by item and key: ("links.satellite", "forward.rate")."""
    found = _flat_document(toml.read(scenario.content()))
    for key, value in scenario.settings:
        try:
            document = toml.read(f"{key} = {value}")
        except ValueError:
            # A value of a setting that is not TOML is a string.
            document = toml.read(f"{key} = {toml.literal(value)}")
        found |= _flat_document(document)
    return found


def _flat_document(document: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    found: dict[tuple[str, str], Any] = {}
    for kind, value in document.items():
        if kind in _LEFT_OUT:
            continue
        if kind in _TABLES and isinstance(value, Mapping):
            for name, table in value.items():
                found[f"{kind}.{name}", ""] = "there"
                for key, leaf in _leaves(table):
                    found[f"{kind}.{name}", key] = leaf
        else:
            for key, leaf in _leaves(value):
                found["", ".".join(part for part in (kind, key) if part)] = leaf
    return found


def _different(flat: Sequence[Mapping[tuple[str, str], Any]]) -> list[Difference]:
    items = [_items(each) for each in flat]
    found = []
    for item in dict.fromkeys(name for each in items for name in each):
        if not all(item in each for each in items):
            there = tuple("there" if item in each else _MISSING for each in items)
            found.append(Difference(key=item, values=there))
    missing = {each.key for each in found}
    for key in dict.fromkeys(key for each in flat for key in each):
        if key[0] in missing:
            continue
        values = tuple(_written(each[key]) if key in each else _MISSING for each in flat)
        if len(set(values)) > 1:
            found.append(Difference(key=".".join(part for part in key if part), values=values))
    return found


def _items(flat: Mapping[tuple[str, str], Any]) -> list[str]:
    return list(dict.fromkeys(item for item, _ in flat if item))


def _flat(resolved: Mapping[str, Any]) -> dict[tuple[str, str], Any]:
    """Return values by item and key: ("links.satellite", "forward.rate_bps")."""
    found: dict[tuple[str, str], Any] = {}
    for name, value in resolved.items():
        if name in _LISTS:
            named = {each["name"]: each for each in value}
            for group, places in groups(list(named)).items():
                members = list(named)
                first = named[members[places[0]]]
                item = f"{name}.{group}"
                found[item, "count"] = len(places)
                for key, leaf in _leaves(first):
                    if key != "name":
                        found[item, key] = leaf
        elif name not in _LEFT_OUT:
            for key, leaf in _leaves(value):
                found["", ".".join(part for part in (name, key) if part)] = leaf
    return found


def _leaves(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        return [
            (f"{name}.{key}" if key else str(name), leaf)
            for name, each in value.items()
            for key, leaf in _leaves(each)
        ]
    return [("", value)]


def _written(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return ", ".join(_written(each) for each in value) or "none"
    return str(value)
