"""Networks that tests are about, as scenario files have them."""

from __future__ import annotations

import json
from typing import Any


def _table(name: str, keys: dict[str, Any]) -> str:
    lines = [f"{key} = {value}" for key, value in keys.items() if value is not None]
    return "\n".join([f"[{name}]", *lines, ""])


def _quoted(text: str | None) -> str | None:
    return None if text is None else json.dumps(text)


def link(
    name: str, *between: str, rate: str | None = None, delay: str | None = None, **more: str
) -> str:
    """Return a link's table; `more` has keys with their values as TOML."""
    keys = {"between": json.dumps(between), "rate": _quoted(rate), "delay": _quoted(delay)}
    return _table(f"links.{name}", keys | more)


def traffic(name: str = "download", *, to: str = "client", app: str = '{ kind = "bulk" }') -> str:
    """Return the table of a flow from "server"."""
    keys = {"from": _quoted("server"), "to": _quoted(to), "app": app}
    return _table(f"flows.{name}", keys)


def download(size: str) -> str:
    """Return the table of a flow of so many bytes from "server" to "client"."""
    return traffic(app=f'{{ kind = "bulk", size = "{size}" }}')


def pair(
    name: str,
    *,
    duration: str,
    rate: str,
    delay: str,
    size: str,
    seed: int | None = None,
    apart: bool = False,
) -> str:
    """Return a file: a download by one link between two hosts, alike both ways.

    `apart`: each direction has a table of its own.
    """
    head = f'\nname = "{name}"\nduration = "{duration}"\n'
    if seed is not None:
        head += f"seed = {seed}\n"
    if apart:
        way = f'{{ rate = "{rate}", delay = "{delay}" }}'
        satellite = link("satellite", "server", "client", forward=way, **{"return": way})
    else:
        satellite = link("satellite", "server", "client", rate=rate, delay=delay)
    hosts = "hosts = { server = {}, client = {} }\n"
    return "\n".join([head + hosts, satellite, download(size)])


def short(*, rate: str = "8 Mbit/s", **changes: Any) -> dict[str, Any]:
    """Return a scenario of a second or two as a dict: one transfer over a short link."""
    satellite = {"between": ["server", "client"], "rate": rate, "delay": "25 ms"}
    app = {"kind": "bulk", "size": "1 MB"}
    return {
        "name": "short",
        "duration": "4 s",
        "hosts": {"server": {}, "client": {}},
        "links": {"satellite": satellite},
        "flows": {"download": {"from": "server", "to": "client", "app": app}},
        **changes,
    }
