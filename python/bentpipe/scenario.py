"""Scenarios by file or by name, with settings changed from Python.

A scenario is a TOML file that the simulator interprets. This module only names it, finds it, and
changes settings.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from operator import index
from pathlib import Path
from typing import Any

from bentpipe import toml
from bentpipe.errors import RequestError, reason

_PACKAGE = Path(__file__).resolve().parent
# In a checkout, the folder at its root, of which the build leaves a copy beside this module. In an
# installed wheel, the folder beside this module.
_SCENARIOS = (_PACKAGE.parents[1] / "scenarios", _PACKAGE / "scenarios")
_EXAMPLES = (_PACKAGE.parents[1] / "examples", _PACKAGE / "examples")
# Longest scenario file in bytes; the simulator has the same limit.
_LONGEST_FILE = 1 << 20
# Longest part of a wrong path that a message repeats.
_LONGEST_NAME = 200
_MOST_SEED = 2**64 - 1


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """A scenario file, or `text` in its place, with settings applied on top in order.

    `Scenario.of` accepts a file, the name of a ready-made scenario, or a dict.
    """

    path: Path = field(kw_only=False)
    text: str | None = None
    settings: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        # Like open(), a path may be a string.
        object.__setattr__(self, "path", Path(self.path))

    @classmethod
    def of(cls, source: Scenario | str | Path | Mapping[str, Any]) -> Scenario:
        """Return the scenario of a file, a ready-made scenario's name, or plain data.

        Raises
        ------
        RequestError
            There is no such file or name.
        TypeError
            It is none of these, or the data hold a value that a scenario cannot hold.
        """
        if isinstance(source, Scenario):
            return source
        if isinstance(source, Mapping):
            return cls.from_data(source)
        if isinstance(source, str | Path):
            return cls.find(source)
        raise TypeError(
            "expected a Scenario, a file, a ready-made scenario's name or a dict, "
            f"got {type(source).__name__}"
        )

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Scenario:
        """Make a scenario of plain data with the contents of a file.

        Tables are dicts. A key may have dots: `{"links.satellite.rate": "1 Mbit/s"}`. Errors in the
        data are reported at the first use.

        Raises
        ------
        TypeError
            The data hold a value that a scenario cannot hold.
        """
        return cls(path=Path("scenario"), text=toml.document(data))

    @classmethod
    def find(cls, file: str | Path) -> Scenario:
        """Find a scenario file, a ready-made scenario or an example; "-" is standard input.

        Raises
        ------
        RequestError
            There is neither.
        """
        if not str(file):
            expected = "a scenario file or a ready-made scenario's name"
            raise RequestError(f"expected {expected}, got nothing")
        path = Path(file)
        try:
            is_file, is_stream = path.is_file(), path.exists() and not path.is_dir()
        except OSError as error:
            # The path has a folder without permission, or a name that is too long.
            raise RequestError(f"{short(file)}: {reason(error)}") from None
        if is_file:
            return cls(path=path)
        if str(file) == "-" or is_stream:
            return cls(path=path, text=read_text(file))
        ready = ready_made()
        name = str(file)
        if name in ready:
            return cls(path=ready[name])
        if (named := example(name, ".toml")) is not None:
            return cls(path=named)
        if path.is_dir():
            raise RequestError(f"{file} is a folder; expected a scenario file")
        raise RequestError(_not_found(name, ready))

    def with_settings(self, settings: Mapping[str, object]) -> Scenario:
        """Return the scenario with more settings: `{"links.satellite.forward.rate": "1 Mbit/s"}`.

        Values are written as TOML values; a string needs no quotes of its own.
        """
        if not isinstance(settings, Mapping):
            raise TypeError(
                f'expected settings as a dict, {{"seed": 2}}, got {type(settings).__name__}'
            )
        pairs = tuple((_key_of(key), _literal(key, value)) for key, value in settings.items())
        return replace(self, settings=self.settings + pairs)

    def resolved(self) -> dict[str, Any]:
        """Return the scenario with its defaults filled in, as plain data.

        Raises
        ------
        ScenarioError
            The scenario is wrong.
        """
        from bentpipe import _native, congestion

        text = _native.load(
            self.path,
            text=self.text,
            overrides=list(self.settings),
            controls=congestion.registered(),
        )
        resolved: dict[str, Any] = json.loads(text)
        return resolved

    def content(self) -> str:
        """Return the text, or that of the file; it has no byte-order mark.

        Raises
        ------
        RequestError
            The file cannot be read, is too long, or is not UTF-8.
        """
        return read_text(self.path) if self.text is None else self.text.removeprefix(toml.MARK)

    def may_meet_errors(self) -> bool:
        """Return whether packets may be lost to errors.

        False for links without errors. Also false where the first bit error, as drawn with the
        scenario's seed, comes after everything that the link can send before the run ends. Such a
        run equals that of a link without errors.

        Raises
        ------
        ScenarioError
            The scenario is wrong.
        """
        from bentpipe import _native, congestion

        return _native.may_meet_errors(
            self.path,
            text=self.text,
            overrides=list(self.settings),
            controls=congestion.registered(),
        )

    def command(self) -> str:
        """Return the command line that runs this scenario."""
        import shlex

        words = ["bentpipe", "run", str(self.path)]
        for key, value in self.settings:
            words += ["--set", f"{key}={value}"]
        return shlex.join(words)


def ready_made() -> dict[str, Path]:
    """Return the ready-made scenarios, by name."""
    return _named_files(_SCENARIOS, "*.toml")


def examples() -> dict[str, Path]:
    """Return the examples by name: sweep files, and Python files with congestion controls."""
    return _named_files(_EXAMPLES, "*.toml") | _named_files(_EXAMPLES, "*.py")


def example(name: str, suffix: str) -> Path | None:
    """Return the example of that name if its file has that suffix."""
    # The folder is read only for words that can be a name.
    if "/" in name or "." in name:
        return None
    path = examples().get(name)
    return path if path is not None and path.suffix == suffix else None


def _named_files(folders: Iterable[Path], pattern: str) -> dict[str, Path]:
    for folder in folders:
        if folder.is_dir():
            return {file.stem: file for file in sorted(folder.glob(pattern))}
    return {}


def read_text(
    file: str | Path, *, longest: int = _LONGEST_FILE, kind: str = "scenario file"
) -> str:
    """Read a file, a pipe or standard input ("-") as UTF-8, without a byte-order mark.

    Reads at most `longest` bytes and one more, because /dev/zero never ends.

    Raises
    ------
    RequestError
        It cannot be read, is longer, or is not UTF-8.
    """
    import sys

    try:
        if str(file) != "-":
            with Path(file).open("rb") as stream:
                content = stream.read(longest + 1)
        elif sys.stdin is None:
            raise RequestError("-: standard input is closed")
        else:
            content = sys.stdin.buffer.read(longest + 1)
    except OSError as error:
        raise RequestError(f"{file}: {reason(error)}") from None
    # Checked before decoding: the cut may be within a character.
    if len(content) > longest:
        raise RequestError(f"{file}: longer than {longest >> 20} MiB: not a {kind}")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise RequestError(f"{file}:{line}: not UTF-8 text") from None


def is_sweep(scenario: Scenario) -> bool:
    """Return whether a file is a sweep file: it has keys of a sweep and none of a scenario."""
    try:
        keys = toml.read(scenario.content()).keys()
    except ValueError:
        return False
    return bool(keys & {"axes", "zip"}) and not keys & {"links", "flows", "hosts"}


def parse_settings(settings: Iterable[str]) -> dict[str, str]:
    """Split `KEY=VALUE` words of the command line.

    Raises
    ------
    RequestError
        A word has no `=` or no key.
    """
    parsed = {}
    for word in settings:
        key, equals, value = word.partition("=")
        if not equals or not key.strip():
            raise RequestError(f"--set {word!r}: expected KEY=VALUE")
        parsed[key.strip()] = value.strip()
    return parsed


def short(file: str | Path) -> str:
    """Return a path as a message repeats it, shortened if it is too long."""
    name = str(file)
    return name if len(name) <= _LONGEST_NAME else f"{name[:_LONGEST_NAME]}..."


def _key_of(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(
            'expected a key such as "links.satellite.forward.rate" in settings, '
            f"got {type(key).__name__}: {key!r}"
        )
    return key


def _literal(key: str, value: object) -> str:
    # A value of `--set` is TOML if it parses as TOML, else a string.
    try:
        return value if isinstance(value, str) else toml.literal(value)
    except TypeError as error:
        raise TypeError(f"settings, {key}: {error}") from None


def captures(pcap: Iterable[tuple[str, Path]]) -> list[tuple[str, str]]:
    """Return links and their capture files as the native module expects them."""
    found = []
    for pair in [pcap] if isinstance(pcap, str) else pcap:
        if isinstance(pair, str) or len(pair) != 2:
            raise TypeError(
                'expected pcap as pairs such as [("satellite", "satellite.pcapng")], '
                f"got {type(pair).__name__}: {pair!r}"
            )
        found.append((pair[0], str(pair[1])))
    return found


def checked_seed(seed: int | None) -> int | None:
    """Return a seed as a Python int.

    Raises
    ------
    RequestError
        It is not a whole number, or outside the range of seeds.
    """
    if seed is None:
        return None
    try:
        whole = index(seed)
    except TypeError:
        whole = -1
    if not 0 <= whole <= _MOST_SEED:
        raise RequestError(f"--seed {seed!r}: expected a whole number from 0 to {_MOST_SEED}")
    return whole


def _not_found(name: str, ready: Mapping[str, Path]) -> str:
    import difflib

    close = difflib.get_close_matches(name, ready, n=1)
    if close:
        return f"{name}: no such file; did you mean the ready-made scenario {close[0]!r}?"
    if ready and not name.endswith(".toml"):
        return f"{name}: no such file, and no ready-made scenario either ({', '.join(ready)})"
    return f"{name}: no such file"
