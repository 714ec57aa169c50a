"""On which line of a TOML file a key stands, which Python's own reader does not say.

The text has been accepted by `tomllib` before: what is scanned here is known to be TOML, so that
nothing but its keys, strings and brackets need be told apart.
"""

from __future__ import annotations

import tomllib
from bisect import bisect_right
from collections.abc import Mapping

Path = tuple[str | int, ...]

_SPACE = " \t"
_BLANK = " \t\r\n"
# A date may have a space in it.
_BARE_END = "\r\n,]}#"


def key_lines(text: str) -> Mapping[Path, int]:
    """Return the line, from 1, of every key, table and array item of valid TOML, by its path.

    `("axes", "seed", 2)` is the third item of the array `seed` in the table `axes`. The order is
    that of the file.
    """
    scanner = _Scanner(text)
    scanner.document()
    return scanner.lines


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]
        # Arrays of tables, and how many tables each has had so far.
        self._tables: dict[Path, int] = {}
        self.lines: dict[Path, int] = {}

    def document(self) -> None:
        prefix: Path = ()
        while self._skip_blank():
            start = self._at
            if self._text.startswith("[[", self._at):
                self._at += 2
                path = self._resolved(self._key())
                self._at += 2
                prefix = (*path, self._tables.setdefault(path, 0))
                self._tables[path] += 1
                self._note(prefix, start)
            elif self._text[self._at] == "[":
                self._at += 1
                prefix = self._resolved(self._key())
                self._at += 1
                self._note(prefix, start)
            else:
                self._pair(prefix)

    def _resolved(self, key: Path) -> Path:
        """Let a header's key lead into the last table of an array of tables."""
        path: Path = ()
        for part in key[:-1]:
            path = (*path, part)
            if path in self._tables:
                path = (*path, self._tables[path] - 1)
        return (*path, key[-1])

    def _pair(self, prefix: Path) -> None:
        start = self._at
        path = (*prefix, *self._key())
        self._note(path, start)
        self._at += 1  # the equals sign
        self._skip(_SPACE)
        self._value(path)

    def _note(self, path: Path, start: int) -> None:
        line = bisect_right(self._starts, start)
        for length in range(1, len(path) + 1):
            self.lines.setdefault(path[:length], line)

    def _key(self) -> Path:
        """Read a key and what space follows it."""
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            start = self._at
            if self._text[start] in "\"'":
                self._string()
                parts.append(tomllib.loads(f"key = {self._text[start : self._at]}")["key"])
            else:
                while self._text[self._at] not in " \t.=]":
                    self._at += 1
                parts.append(self._text[start : self._at])
            self._skip(_SPACE)
            if self._text[self._at] != ".":
                return tuple(parts)
            self._at += 1

    def _value(self, path: Path) -> None:
        first = self._text[self._at]
        if first in "\"'":
            self._string()
        elif first == "[":
            self._at += 1
            index = 0
            while self._more("]"):
                self._note((*path, index), self._at)
                self._value((*path, index))
                index += 1
        elif first == "{":
            self._at += 1
            while self._more("}"):
                self._pair(path)
        else:
            while self._at < len(self._text) and self._text[self._at] not in _BARE_END:
                self._at += 1

    def _more(self, end: str) -> bool:
        """Step over commas; false, and past the bracket, if nothing more comes."""
        while True:
            self._skip_blank()
            if self._text[self._at] == end:
                self._at += 1
                return False
            if self._text[self._at] != ",":
                return True
            self._at += 1

    def _string(self) -> None:
        quote = self._text[self._at]
        if self._text.startswith(quote * 3, self._at):
            self._at += 3
            self._until(quote * 3, escapes=quote == '"')
            # One or two more quotes before the closing three belong to the string.
            while self._text[self._at : self._at + 1] == quote:
                self._at += 1
        else:
            self._at += 1
            self._until(quote, escapes=quote == '"')

    def _until(self, end: str, *, escapes: bool) -> None:
        while not self._text.startswith(end, self._at):
            self._at += 2 if escapes and self._text[self._at] == "\\" else 1
        self._at += len(end)

    def _skip(self, characters: str) -> None:
        while self._at < len(self._text) and self._text[self._at] in characters:
            self._at += 1

    def _skip_blank(self) -> bool:
        """Step over space, line ends and comments; false at the end of the text."""
        while True:
            self._skip(_BLANK)
            if self._at >= len(self._text):
                return False
            if self._text[self._at] != "#":
                return True
            end = self._text.find("\n", self._at)
            self._at = len(self._text) if end < 0 else end
