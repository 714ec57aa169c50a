"""A sweep's results on disk: a folder that is a valid Parquet dataset at every moment.

results.parquet/
  _sweep.json            the sweep, and digests of everything that the results depend on.
  part-000017.parquet    finished cells, while the sweep is under way.
  cells.parquet          all cells in order, after the end; then there are no parts.
  _timing.parquet        wall times of cells, apart because they differ from run to run.
  _series/cell-000012.parquet    a cell's probes, if they were asked for.

Every file is written under another name, flushed and renamed, so that it is complete or absent.
Readers of Parquet datasets skip names that begin with an underscore.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from bentpipe import __version__
from bentpipe.errors import RequestError, WorkError, reason
from bentpipe.files import locked
from bentpipe.sweeps.definition import Sweep, identity
from bentpipe.sweeps.records import RUN, WALL, merged, table_of

if TYPE_CHECKING:
    from bentpipe.sweeps.cell import Outcome

MANIFEST: Final = "_sweep.json"
_CELLS, _TIMING, _SERIES = "cells.parquet", "_timing.parquet", "_series"
_FORMAT: Final = 1
_UNFINISHED: Final = "_writing-"
# This many parts are merged into one, so that a sweep of a million cells leaves few files.
_MOST_PARTS: Final = 64
_ROWS_IN_GROUP: Final = 1 << 16

_DIFFERENT: Final = {
    "scenario": "the scenario is another",
    "settings": "[set] is another",
    "axes": "the axes are others",
    "series": "whether series are kept is another",
    "controls": "the congestion control in Python is another",
    "defaults": "this bentpipe's defaults are others",
    "bentpipe": "this is another version of bentpipe",
}


class Store:
    """A sweep's results on disk, opened for writing."""

    def __init__(self, folder: Path, sweep: Sweep) -> None:
        self.folder = folder
        self._sweep = sweep
        self._done = bytearray(len(sweep))
        self._next = 0
        # Small parts that are not yet merged.
        self._small: list[Path] = []
        self.failed = 0

    @classmethod
    @contextmanager
    def opened(cls, folder: Path, sweep: Sweep, *, resume: bool) -> Iterator[Store]:
        """Open the folder for writing, and lock it; make it if there is none.

        Raises
        ------
        RequestError
            There are results already and they are not to be resumed, or they are another sweep's,
            or nothing can be written there.
        """
        ours = {"format": _FORMAT, "identity": identity(sweep, version=__version__)}
        manifest = folder / MANIFEST
        if not manifest.is_file() and _in_use(folder):
            raise RequestError(f"--out {folder}: exists, and is no sweep's results")
        if manifest.is_file() and not resume:
            raise RequestError(
                f"--out {folder}: exists; --resume goes on with it, or choose another --out"
            )
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RequestError(f"--out {folder}: {reason(error)}") from None
        if not os.access(folder, os.W_OK | os.X_OK):
            raise RequestError(f"--out {folder}: can't be written to")
        with _locked(folder):
            if manifest.is_file():
                _compare(_manifest(folder), ours, folder)
            else:
                described = json.dumps({**ours, "sweep": sweep.as_json()}, ensure_ascii=False)
                _write(manifest, lambda path: path.write_text(described + "\n", encoding="utf-8"))
            store = cls(folder, sweep)
            store._recover()
            yield store

    @property
    def finished(self) -> int:
        """The number of cells with an outcome."""
        return self._done.count(1)

    def has(self, cell: int) -> bool:
        """Whether a cell has an outcome."""
        return self._done[cell] == 1

    def append(self, outcomes: Sequence[Outcome]) -> None:
        """Store outcomes: when this returns, they survive a crash of the process."""
        outcomes = sorted(outcomes, key=lambda outcome: outcome.cell)
        for outcome in outcomes:
            if outcome.series is not None:
                self._write_series(outcome.cell, outcome.series)
        self._small.append(self._write_part(table_of(outcomes, self._sweep)))
        for outcome in outcomes:
            self._done[outcome.cell] = 1
            self.failed += outcome.error is not None
        if len(self._small) >= _MOST_PARTS:
            self._merge()

    def finish(self) -> None:
        """Write all cells into one sorted file, if all have an outcome."""
        if (self.folder / _CELLS).is_file():
            self._remove(_parts(self.folder))
            return
        parts = _parts(self.folder)
        table, timing = _apart(_in_order([_read(part) for part in parts]))
        _write(self.folder / _TIMING, lambda path: _write_table(timing, path))
        _write(self.folder / _CELLS, lambda path: _write_table(table, path))
        self._remove(parts)

    def _recover(self) -> None:
        """Read which cells have finished, and remove partly written files."""
        for left in (*self.folder.glob(f"{_UNFINISHED}*"), *self.folder.glob(f"*/{_UNFINISHED}*")):
            left.unlink()
        parts = _parts(self.folder)
        self._next = max((int(part.stem.partition("-")[2]) for part in parts), default=-1) + 1
        self._small = parts
        complete = self.folder / _CELLS
        for file in [complete] if complete.is_file() else parts:
            table = _read(file, columns=["cell", "kind", "error"])
            rows = zip(
                table["cell"].to_pylist(),
                table["kind"].to_pylist(),
                table["error"].to_pylist(),
                strict=True,
            )
            for cell, kind, error in rows:
                if kind == RUN and not self._done[cell]:
                    self._done[cell] = 1
                    self.failed += error is not None

    def _merge(self) -> None:
        merging, self._small = self._small, []
        # A reader between the two steps finds some rows twice; duplicates are dropped on reading.
        self._write_part(_in_order([_read(part) for part in merging]))
        self._remove(merging)

    def _write_part(self, table: pa.Table) -> Path:
        path = self.folder / f"part-{self._next:06d}.parquet"
        self._next += 1
        _write(path, lambda unfinished: _write_table(table, unfinished))
        return path

    def _write_series(self, cell: int, content: bytes) -> None:
        folder = self.folder / _SERIES
        folder.mkdir(exist_ok=True)
        _write(folder / series_file(cell), lambda path: path.write_bytes(content))

    def _remove(self, parts: Sequence[Path]) -> None:
        for part in parts:
            part.unlink(missing_ok=True)


def series_file(cell: int) -> str:
    """Return the name of the file with a cell's probes."""
    return f"cell-{cell:06d}.parquet"


def read_store(folder: Path) -> tuple[Sweep, pa.Table, pa.Table]:
    """Read results, also of a sweep that is under way.

    Returns
    -------
        The sweep, the table of its cells, and the wall time of each (columns cell, wall_s).

    Raises
    ------
    RequestError
        The folder does not hold results of a sweep.
    """
    manifest = _manifest(folder)
    sweep = Sweep.from_json(manifest["sweep"])
    if (folder / _CELLS).is_file():
        return sweep, _read(folder / _CELLS), _read(folder / _TIMING)
    tables = [_read(part) for part in _parts(folder)] or [table_of([], sweep)]
    table, timing = _apart(_in_order(tables))
    return sweep, table, timing


def series_path(folder: Path, cell: int) -> Path:
    """Return the path of a cell's probes, if they were kept."""
    return folder / _SERIES / series_file(cell)


def _in_order(parts: Sequence[pa.Table]) -> pa.Table:
    """Concatenate parts into one table, sorted by cell, each cell once."""
    import numpy as np

    table = merged(parts)
    cells = table["cell"].to_numpy()
    part = np.repeat(np.arange(len(parts)), [len(each) for each in parts])
    # If two parts have a cell, because a merge was interrupted, the first one counts.
    first: dict[int, int] = {}
    for cell, where in zip(cells.tolist(), part.tolist(), strict=True):
        first.setdefault(cell, where)
    kept = np.flatnonzero(part == np.fromiter((first[c] for c in cells.tolist()), int, len(cells)))
    order = kept[np.argsort(cells[kept], kind="stable")]
    return table.take(pa.array(order)).combine_chunks()


def _apart(table: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Split the wall times off the table."""
    import numpy as np

    is_run = np.asarray(table["kind"].to_pylist()) == RUN if len(table) else np.zeros(0, bool)
    timing = table.select(["cell", WALL]).filter(pa.array(is_run)).combine_chunks()
    return table.drop_columns([WALL]), timing


def _in_use(folder: Path) -> bool:
    """Return whether the path is a file, or a folder with more than partly written files."""
    if not folder.is_dir():
        return folder.exists()
    return any(not each.name.startswith(_UNFINISHED) for each in folder.iterdir())


def _manifest(folder: Path) -> dict[str, Any]:
    try:
        text = (folder / MANIFEST).read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        raise RequestError(f"{folder}: no sweep's results ({MANIFEST} is not there)") from None
    except (OSError, UnicodeDecodeError) as error:
        raise RequestError(f"{folder}: {MANIFEST} can't be read: {error}") from None
    try:
        manifest = json.loads(text)
    except ValueError as error:
        raise RequestError(f"{folder}: {MANIFEST} is damaged: {error}") from None
    if not isinstance(manifest, dict):
        raise RequestError(f"{folder}: {MANIFEST} is damaged: expected an object")
    if manifest.get("format") != _FORMAT:
        raise RequestError(f"{folder}: results in another format, of another bentpipe")
    return manifest


def _compare(theirs: dict[str, Any], ours: dict[str, Any], folder: Path) -> None:
    then, now = theirs["identity"], ours["identity"]
    # Defaults follow from the other inputs; they are reported only if nothing else differs.
    different = [key for key in _DIFFERENT if then.get(key) != now[key]]
    if len(different) > 1:
        different = [key for key in different if key != "defaults"]
    if different:
        reasons = " and ".join(_DIFFERENT[key] for key in different)
        raise RequestError(
            f"--resume: {folder} holds the results of another sweep: {reasons}; "
            "choose another --out"
        )


def _parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet"))


def _read(path: Path, columns: list[str] | None = None) -> pa.Table:
    try:
        with pq.ParquetFile(path) as file:
            return file.read(columns=columns)
    except (pa.ArrowException, OSError) as error:
        said = " ".join(str(error).split())
        raise WorkError(f"{path}: can't be read ({said}); without it, --resume goes on") from None


def _write_table(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, compression="zstd", row_group_size=_ROWS_IN_GROUP)


def _write(path: Path, write: Any) -> None:
    """Write a file atomically."""
    unfinished = path.with_name(f"{_UNFINISHED}{path.name}")
    write(unfinished)
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(path)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder against other writers."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(folder))
        except BlockingIOError:
            raise RequestError(f"--out {folder}: another sweep is writing there") from None
        yield
