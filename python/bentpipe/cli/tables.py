"""Tables as text, in which no cell is ever cut.

A pipe gets every row on one line, in columns two spaces apart. A terminal that is too narrow gets
the table in several pieces below each other, each of which begins with the first column, as pandas
does; only words of prose are broken into lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

_GAP = "  "
# Prose narrower than this is harder to read than a line that the terminal wraps.
_NARROWEST_PROSE = 24


@dataclass(kw_only=True)
class Table:
    """Rows of text below headings.

    The first column is aligned to the left, the others are numbers, but for those named in `left`.
    The last column is prose, and may be broken into lines, if `prose` says so. Without any heading
    there is no line for them.
    """

    headings: Sequence[str]
    left: frozenset[int] = frozenset()
    prose: bool = False
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        """Add a row, a cell for each heading."""
        if len(cells) != len(self.headings):
            raise ValueError(f"{len(cells)} cells for {len(self.headings)} columns")
        self.rows.append(cells)

    def lines(self, width: int | None) -> list[str]:
        """Write the table for a terminal of that width, or for a pipe (None)."""
        table = self._with_prose_broken(width)
        lines: list[str] = []
        for piece in _pieces(table.widths(), width):
            if lines:
                lines.append("")
            lines += table._lines_of(piece, ruled=width is not None)
        return lines

    def print(self) -> None:
        """Print the table on stdout, as wide as that is."""
        for line in self.lines(terminal_width()):
            print(line)

    def widths(self) -> list[int]:
        """Return how wide each column is."""
        everything = [tuple(self.headings), *self.rows]
        return [max(len(row[column]) for row in everything) for column in range(len(self.headings))]

    def _lines_of(self, columns: Sequence[int], *, ruled: bool) -> list[str]:
        widths = self.widths()

        def line(cells: Sequence[str]) -> str:
            placed = (
                cells[each].ljust(widths[each])
                if each == 0 or each in self.left or self._is_prose(each)
                else cells[each].rjust(widths[each])
                for each in columns
            )
            return _GAP.join(placed).rstrip()

        # Where prose goes on in a piece of its own, the others have nothing beside it.
        lines = [line(row) for row in self.rows if any(row[each] for each in columns)]
        if not any(self.headings):
            return lines
        head = [line(self.headings)]
        if ruled:
            head.append("─" * (sum(widths[each] + len(_GAP) for each in columns) - len(_GAP)))
        return head + lines

    def _is_prose(self, column: int) -> bool:
        return self.prose and column == len(self.headings) - 1

    def _with_prose_broken(self, width: int | None) -> Table:
        """Return the table with its prose in as many rows as it takes."""
        widths = self.widths()
        if not self.prose or width is None or sum(widths) + len(_GAP) * len(widths) <= width:
            return self
        import textwrap

        room = max(width - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1), _NARROWEST_PROSE)
        rows = []
        for row in self.rows:
            first, *more = textwrap.wrap(row[-1], room) or [""]
            rows.append((*row[:-1], first))
            rows += [(*("" for _ in row[:-1]), line) for line in more]
        return Table(headings=self.headings, left=self.left, prose=True, rows=rows)


def _pieces(widths: Sequence[int], width: int | None) -> Iterable[list[int]]:
    """Return which columns stand beside each other: the first, and as many as there is room for."""
    everything = list(range(len(widths)))
    if width is None or sum(widths) + len(_GAP) * (len(widths) - 1) <= width:
        return [everything]
    pieces: list[list[int]] = []
    used = 0
    for column in everything[1:]:
        needed = len(_GAP) + widths[column]
        if not pieces or used + needed > width:
            pieces.append([0])
            used = widths[0]
        pieces[-1].append(column)
        used += needed
    return pieces or [[0]]


def print_prose(text: str, *, indent: str = "") -> None:
    """Print a sentence or a list on stdout, in lines as wide as a terminal is; a pipe gets one.

    Lines after the first begin with `indent`.
    """
    width = terminal_width()
    if width is None or len(text) <= width:
        print(text)
        return
    import textwrap

    room = max(width, _NARROWEST_PROSE + len(indent))
    for line in textwrap.wrap(
        text, room, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False
    ):
        print(line)


def terminal_width() -> int | None:
    """Return how wide the terminal on stdout is, or None if there is none."""
    if not sys.stdout.isatty():
        return None
    columns = os.environ.get("COLUMNS", "")
    if columns.isdigit() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size(sys.stdout.fileno()).columns or 80
    except OSError:
        return 80
