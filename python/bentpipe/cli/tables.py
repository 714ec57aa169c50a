"""Tables as text, in which no cell is ever cut.

A pipe gets every row on one line, in columns two spaces apart. A narrow terminal gets the table in
several pieces below each other. Each piece begins with the first column, as in pandas. Only prose
is broken into lines.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field

_GAP = "  "
# Begins the heading of a column that belongs to the group before it.
_CONTINUED = ": "
# Prose narrower than this is harder to read than a line that the terminal wraps.
_NARROWEST_PROSE = 24


@dataclass(kw_only=True)
class Table:
    """Rows of text below headings.

    The first column and those in `left` are aligned to the left; the others are numbers. The last
    column is prose, which may be broken into lines, if `prose` says so. Without any heading there
    is no line for them.

    "RTT: least" begins a group of columns, and ": mean" continues it. A heading repeats the group's
    name where a piece of the table begins within the group.
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
        """Return the table as lines for a terminal of that width, or for a pipe (None)."""
        table = self._with_prose_broken(width)
        lines: list[str] = []
        for piece in table._pieces(width):
            if lines:
                lines.append("")
            lines += table._lines_of(piece, ruled=width is not None)
        return lines

    def print(self) -> None:
        """Print the table on stdout, as wide as that is."""
        for line in self.lines(terminal_width()):
            print(line)

    def _heading(self, column: int, before: int | None) -> str:
        """Return a column's heading beside the column `before`, or at the beginning of a piece."""
        heading = self.headings[column]
        if not heading.startswith(_CONTINUED):
            return heading
        first = column - 1
        while self.headings[first].startswith(_CONTINUED):
            first -= 1
        name = heading.removeprefix(_CONTINUED)
        if before is not None and first <= before:
            return name
        return f"{self.headings[first].partition(':')[0]}: {name}"

    def widths(self, piece: Sequence[int] | None = None) -> list[int]:
        """Return how wide each column of a piece, or of the whole table, is."""
        columns = range(len(self.headings)) if piece is None else piece
        return [
            max(len(heading), *(len(row[column]) for row in self.rows), 0)
            for column, heading in zip(columns, self._headings(columns), strict=True)
        ]

    def _headings(self, piece: Sequence[int]) -> list[str]:
        """Return the headings of a piece, whose first column is that of names."""
        before = [None, None, *piece[1:-1]][: len(piece)]
        return [self._heading(column, left) for column, left in zip(piece, before, strict=True)]

    def _pieces(self, width: int | None) -> list[list[int]]:
        """Return which columns are beside each other: the first, and as many as fit."""
        everything = list(range(len(self.headings)))
        if width is None or _total(self.widths()) <= width:
            return [everything]
        pieces: list[list[int]] = []
        for column in everything[1:]:
            if not pieces or _total(self.widths([*pieces[-1], column])) > width:
                pieces.append([0])
            pieces[-1].append(column)
        return pieces or [[0]]

    def _lines_of(self, columns: Sequence[int], *, ruled: bool) -> list[str]:
        widths = dict(zip(columns, self.widths(columns), strict=True))

        def line(cells: Sequence[str]) -> str:
            placed = (
                cell.ljust(widths[each])
                if each == 0 or each in self.left or self._is_prose(each)
                else cell.rjust(widths[each])
                for each, cell in zip(columns, cells, strict=True)
            )
            return _GAP.join(placed).rstrip()

        rows = [[row[each] for each in columns] for row in self.rows]
        # Where prose goes on in a piece of its own, the others have nothing beside it.
        lines = [line(row) for row in rows if any(row)]
        if not any(self.headings):
            return lines
        head = [line(self._headings(columns))]
        if ruled:
            head.append("─" * _total(list(widths.values())))
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


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + len(_GAP) * (len(widths) - 1)


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
