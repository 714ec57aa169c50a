"""A window rule on one route: `congctl` of iproute2, and the route as it was before."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bentpipe.errors import RequestError, WorkError, reason
from bentpipe.files import atomic_write

# Routes that were changed: until the machine restarts, as the rules themselves.
_FOLDER: Final = Path("/run/bentpipe")
_RECORD: Final = _FOLDER / "kernel-routes.json"
# Words of `ip route show` that `ip route replace` does not take.
_STATE_WORDS: Final = frozenset({"linkdown", "dead", "offload", "trap"})


@dataclass(frozen=True, kw_only=True)
class ChangedRoute:
    """A route with a rule. `before` has its words before; without them, it was added."""

    rule: str
    route: tuple[str, ...]
    before: tuple[str, ...]


def set_rule(destination: str, rule: str) -> None:
    """Have new connections to a destination use a rule, by its name in the kernel.

    The route to exactly this destination is changed. Without one, a route is added that leads where
    the destination's packets go now.

    Raises
    ------
    RequestError
        No route leads to the destination.
    WorkError
        The route cannot be changed.
    """
    changed = _changes()
    if any(each.route[0] == destination for each in changed):
        raise RequestError(f"--route {destination}: this route has a rule already")
    before = _exact(destination)
    words = before or _towards(destination)
    route = (*_without_rule(words), "congctl", rule)
    _ip("route", "replace", *route)
    change = ChangedRoute(rule=rule, route=(destination, *route[1:]), before=before)
    try:
        _write([*changed, change])
    except OSError as error:
        _restore(change)
        raise WorkError(f"{_RECORD}: {reason(error)}") from error


def restore(rule: str) -> list[str]:
    """Restore all routes with a rule; return their destinations."""
    changes = _changes()
    restored = [each for each in changes if each.rule == rule]
    if restored:
        for each in restored:
            _restore(each)
        _write([each for each in changes if each.rule != rule])
    return [each.route[0] for each in restored]


def destinations(rule: str) -> list[str]:
    """Return the destinations of the routes with a rule."""
    return [each.route[0] for each in _changes() if each.rule == rule]


def _restore(change: ChangedRoute) -> None:
    # The route may have been removed or replaced since.
    if change.before:
        if _exact(change.route[0]):
            _ip("route", "replace", *change.before)
    else:
        with contextlib.suppress(RequestError, WorkError):
            _ip("route", "del", change.route[0])


def _exact(destination: str) -> tuple[str, ...]:
    lines = _ip("route", "show", "exact", destination).splitlines()
    if not lines:
        return ()
    if len(lines) > 1:
        raise WorkError(f"--route {destination}: several routes or next hops; expected one")
    return tuple(word for word in lines[0].split() if word not in _STATE_WORDS)


def _towards(destination: str) -> tuple[str, ...]:
    """Return a route to a destination by the way that its packets take."""
    found = json.loads(_ip("-json", "route", "get", destination.partition("/")[0]))[0]
    words = [destination]
    for key, word in (("gateway", "via"), ("dev", "dev"), ("prefsrc", "src")):
        if key in found:
            words += [word, found[key]]
    if found.get("type", "unicast") != "unicast" or "dev" not in found:
        raise RequestError(f"--route {destination}: no route leads there")
    return tuple(words)


def _without_rule(words: Sequence[str]) -> list[str]:
    """Drop `congctl NAME`, or `congctl lock NAME`."""
    kept = list(words)
    if "congctl" in kept:
        at = kept.index("congctl")
        del kept[at : at + (3 if kept[at + 1 : at + 2] == ["lock"] else 2)]
    return kept


def _ip(*words: str) -> str:
    try:
        done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise WorkError("ip is missing: on Debian, apt install iproute2") from error
    if done.returncode != 0:
        said = (done.stderr.strip().splitlines() or ["failed"])[0]
        raise WorkError(f"ip {' '.join(words)}: {said}")
    return done.stdout


def _changes() -> list[ChangedRoute]:
    try:
        kept = json.loads(_RECORD.read_text("utf-8"))
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise WorkError(f"{_RECORD}: {error}") from error
    return [
        ChangedRoute(rule=rule, route=tuple(route), before=tuple(before))
        for rule, route, before in kept
    ]


def _write(changes: Sequence[ChangedRoute]) -> None:
    if not changes:
        _RECORD.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            _FOLDER.rmdir()
        return
    _FOLDER.mkdir(mode=0o755, exist_ok=True)
    with atomic_write(_RECORD) as part:
        part.write_text(json.dumps([[c.rule, c.route, c.before] for c in changes]), "utf-8")
