"""Row groups of a Parquet file of probes: which rows of which series they hold.

A plot reads all series, some of them twice, and a row group has rows of many series. Row groups
that were read are therefore cached, up to the size of one group that the simulator writes. In
larger groups, only the requested rows are read, each time.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Rows in the cache, 16 bytes each: 16 MiB, as many records as a run buffers before writing.
_KEPT_ROWS: Final = 1 << 20


class _Place(NamedTuple):
    """Rows of a series: row group, first row, number of rows."""

    group: int
    begin: int
    rows: int


class RowGroups:
    """The rows of a file with the columns series, time_s and value."""

    def __init__(self, source: Path | IO[bytes]) -> None:
        self._source = source
        # State of the file when it was indexed: another run may have overwritten it since.
        self._stamp: tuple[int, int, int] | None = None
        self._metadata: pq.FileMetaData | None = None
        self._places: dict[str, list[_Place]] = {}
        self._kept: dict[int, tuple[Floats, Floats]] = {}

    def pieces(self, name: str) -> Iterator[tuple[Floats, Floats]]:
        """Yield a series' times and values by row group; the arrays are read-only."""
        self._look()
        file = None
        for place in self._places.get(name, []):
            columns = self._kept.get(place.group)
            if columns is None:
                file = file or self._open()
                columns = self._read(file, place.group)
            times_s, values = (column[place.begin :][: place.rows] for column in columns)
            yield times_s, values

    def _look(self) -> None:
        """Index the series of the file, once per file."""
        stamp = None
        if isinstance(self._source, Path):
            status = self._source.stat()
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
        if self._metadata is not None and stamp == self._stamp:
            return
        self._stamp, self._metadata = stamp, None
        self._places.clear()
        self._kept.clear()
        file = self._open()
        for group in range(file.num_row_groups):
            for name, begin, rows in _runs(file, group):
                self._places.setdefault(name, []).append(_Place(group, begin, rows))
        self._metadata = file.metadata

    def _open(self) -> pq.ParquetFile:
        if not isinstance(self._source, Path):
            self._source.seek(0)
        return pq.ParquetFile(self._source, metadata=self._metadata)

    def _read(self, file: pq.ParquetFile, group: int) -> tuple[Floats, Floats]:
        rows = file.read_row_group(group, columns=["time_s", "value"])
        columns = _numbers(rows["time_s"]), _numbers(rows["value"])
        if len(rows) <= _KEPT_ROWS:
            while sum(len(times_s) for times_s, _ in self._kept.values()) + len(rows) > _KEPT_ROWS:
                del self._kept[next(iter(self._kept))]
            self._kept[group] = columns
        return columns


def _runs(file: pq.ParquetFile, group: int) -> Iterator[tuple[str, int, int]]:
    """Yield the series of a row group one after another: name, first row, number of rows."""
    described = file.metadata.row_group(group)
    known = described.column(0).statistics
    if known is not None and known.has_min_max and known.min == known.max:
        yield known.min, 0, described.num_rows
        return
    begin = 0
    for chunk in file.read_row_group(group, columns=["series"])["series"].chunks:
        names = chunk.dictionary.to_pylist()
        labels = np.frombuffer(chunk.indices.buffers()[1], np.int32, len(chunk), 4 * chunk.offset)
        starts = np.flatnonzero(np.diff(labels, prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(labels)], strict=True):
            yield names[labels[start]], begin + start, end - start
        begin += len(chunk)


# Through a buffer: `to_numpy` imports pandas, too.
def _numbers(column: pa.ChunkedArray) -> Floats:
    chunks = [
        np.frombuffer(chunk.buffers()[1], np.float64, len(chunk), 8 * chunk.offset)
        for chunk in column.chunks
        if len(chunk)
    ]
    return chunks[0] if len(chunks) == 1 else np.concatenate([np.zeros(0), *chunks])
