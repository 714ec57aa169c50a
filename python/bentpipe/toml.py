"""Reads TOML, and writes plain data as TOML.

The simulator reads TOML, and a scenario may be made in Python.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

# A byte-order mark, which some editors write at the beginning of a file.
MARK: Final = "\ufeff"
# Greatest depth of keys, as in the simulator's reader; tomllib's time is quadratic in it.
_GREATEST_DEPTH: Final = 80
# Strings, which may contain many dots or be part of a key, and comments.
_STRING_OR_COMMENT: Final = re.compile(r""""(?:[^"\\\n]|\\.)*+"?+|'[^'\n]*+'?+|#[^\n]*+""")
_DEEP_KEY: Final = re.compile(rf"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){{{_GREATEST_DEPTH}}}")


def read(text: str) -> dict[str, Any]:
    """Read a document, with or without a byte-order mark.

    Raises
    ------
    tomllib.TOMLDecodeError
        It is not TOML, or nested too deeply.
    """
    # Imported here, because `run` does not read TOML in Python.
    import tomllib

    text = text.removeprefix(MARK)
    bare = _STRING_OR_COMMENT.sub(lambda said: "" if said[0].startswith("#") else "quoted", text)
    if (deep := _DEEP_KEY.search(bare)) is not None:
        line = bare.count("\n", 0, deep.start()) + 1
        raise tomllib.TOMLDecodeError(f"nested too deep (at line {line}, column 1)")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise tomllib.TOMLDecodeError("nested too deep") from None


def literal(value: object) -> str:
    """Write a value as TOML does, a table as an inline table.

    Raises
    ------
    TypeError
        TOML has no such value.
    """
    # numpy numbers are not Python floats, and numpy arrays are not lists.
    value = value.tolist() if hasattr(value, "tolist") else value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(literal(item) for item in value)}]"
    if isinstance(value, Mapping):
        pairs = (f"{_key(key)} = {literal(item)}" for key, item in value.items())
        return f"{{ {', '.join(pairs)} }}"
    raise TypeError(f"expected what TOML has, got {type(value).__name__}: {value!r}")


def document(data: Mapping[str, Any]) -> str:
    """Return a table as a document, one line for each value.

    A key may contain dots, as in `--set`: `{"links.satellite.rate": "1 Mbit/s"}`.
    """
    return "".join(f"{'.'.join(path)} = {literal(value)}\n" for path, value in _leaves(data))


def _leaves(data: Mapping[str, Any]) -> Iterator[tuple[list[str], Any]]:
    for key, value in data.items():
        if not isinstance(key, str):
            raise TypeError(f"expected a name as a key, got {type(key).__name__}: {key!r}")
        path = [_key(part) for part in key.split(".")]
        if isinstance(value, Mapping) and value:
            yield from ((path + rest, leaf) for rest, leaf in _leaves(value))
        else:
            yield path, value


def _key(name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"expected a name as a key, got {type(name).__name__}: {name!r}")
    bare = name.isascii() and name.replace("-", "").replace("_", "").isalnum()
    return name if bare else _string(name)


def _string(text: str) -> str:
    # JSON strings are valid TOML strings, except for one control character.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
