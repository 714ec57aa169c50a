"""Probes in a Parquet file, written during a run and read in parts.

Tidy form: columns series, time_s, value, unit. An hour with eight every-change series is
gigabytes. Therefore neither the run nor a plot keeps all of it in memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from bentpipe.arrow_columns import of_numbers, repeated
from bentpipe.row_groups import RowGroups
from bentpipe.series import Series

Floats = NDArray[np.float64]
# Samples as the simulator passes them: times in seconds, values, unit.
Columns = tuple[Floats, Floats, str]

# Names and units repeat for every sample: dictionary-encoded they take almost no space.
_LABEL: Final = pa.dictionary(pa.int32(), pa.string())
SCHEMA: Final = pa.schema(
    [("series", _LABEL), ("time_s", pa.float64()), ("value", pa.float64()), ("unit", _LABEL)]
)
# A series with at least this many rows in a batch has its own row group, so that readers of other
# series skip it. Shorter series share row groups up to this size: each group costs a reader time,
# and repeats the sample times, which most series have in common.
_OWN_GROUP_ROWS: Final = 1 << 14
_GROUP_ROWS: Final = 1 << 19
# A plot shows the extremes of this many intervals of a row group; it is some 1,000 points wide.
_STRETCHES: Final = 2000


class ProbeWriter:
    """Writes the probes of a run as they are recorded; the simulator calls `take`.

    The file gets its name when it is complete. If writing fails, `error` has the reason and nothing
    more is written: the run continues without probes.
    """

    def __init__(self, target: Path | IO[bytes]) -> None:
        self._target = target
        self._part = (
            target.with_name(f".{target.name}.part") if isinstance(target, Path) else target
        )
        try:
            self._writer = pq.ParquetWriter(self._part, SCHEMA)
        except BaseException:
            # On a full disk, even the file's first bytes cannot be written.
            if isinstance(self._part, Path):
                self._part.unlink(missing_ok=True)
            raise
        self._units: dict[str, str] = {}
        self.error: OSError | None = None

    def take(self, columns: Mapping[str, Columns]) -> None:
        """Write records: name -> (times in seconds, values, unit)."""
        if self.error is not None:
            return
        try:
            self._take(columns)
        except OSError as error:
            self._fail(error)

    def _take(self, columns: Mapping[str, Columns]) -> None:
        self._units |= {name: unit for name, (_, _, unit) in columns.items()}
        group: list[pa.Table] = []
        rows = 0
        for name, each in columns.items():
            table = _table(name, *each)
            if len(table) >= _OWN_GROUP_ROWS:
                self._write([table])
            elif len(table):
                group.append(table)
                rows += len(table)
                if rows >= _GROUP_ROWS:
                    self._write(group)
                    group, rows = [], 0
        if group:
            self._write(group)

    def _write(self, group: list[pa.Table]) -> None:
        """Write tables as one row group."""
        whole = pa.concat_tables(group).unify_dictionaries()
        self._writer.write_table(whole, row_group_size=len(whole))

    def _fail(self, error: OSError) -> None:
        name = error.filename or (str(self._target) if isinstance(self._target, Path) else None)
        # Arrow's message contains more than the system's.
        said = str(error) if error.errno is None else os.strerror(error.errno)
        self.error = OSError(error.errno, said, name)

    def filed(self) -> FiledSeries:
        """Return the series of the complete file."""
        return FiledSeries(self._target, self._units)

    def __enter__(self) -> ProbeWriter:
        """Return the writer, which writes until the end of the block."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Give the file its name; remove the partial file if the run failed."""
        if kind is None and self.error is None:
            try:
                self._writer.close()
                if isinstance(self._target, Path) and isinstance(self._part, Path):
                    self._part.replace(self._target)
            except OSError as error:
                self._fail(error)
            else:
                return
        # On a full disk, the end of the file cannot be written either.
        with suppress(OSError):
            self._writer.close()
        if isinstance(self._part, Path):
            self._part.unlink(missing_ok=True)


class FiledSeries(Mapping[str, Series]):
    """The series in a file. Each is read on access; short files are kept in memory."""

    def __init__(self, source: Path | IO[bytes], units: Mapping[str, str]) -> None:
        self._rows = RowGroups(source)
        self._units = units

    @property
    def units(self) -> Mapping[str, str]:
        """The unit of each series, also of those without a sample."""
        return self._units

    def __getitem__(self, name: str) -> Series:
        """Read one series."""
        return self._joined(name, lambda times_s, values: (times_s, values))

    def __contains__(self, name: object) -> bool:
        """Whether there is such a series; does not read its samples."""
        return name in self._units

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._units)

    def __len__(self) -> int:
        """Return the number of series."""
        return len(self._units)

    def outline(self, name: str) -> Series:
        """Read one series, reduced to as many points as a plot can show."""
        return self._joined(name, _extremes)

    def parts(self, name: str) -> Iterator[Series]:
        """Yield one series row group by row group: an hour of samples may not fit into memory."""
        if name not in self._units:
            raise KeyError(name)
        for times_s, values in self._rows.pieces(name):
            if len(times_s):
                yield Series(times_s=times_s, values=values, unit=self._units[name])

    def _joined(
        self,
        name: str,
        each: Callable[[Floats, Floats], tuple[Floats, Floats]],
    ) -> Series:
        if name not in self._units:
            raise KeyError(name)
        pieces = [each(*piece) for piece in self._rows.pieces(name)]
        empty = np.zeros(0)
        return Series(
            times_s=np.concatenate([empty, *(times for times, _ in pieces)]),
            values=np.concatenate([empty, *(values for _, values in pieces)]),
            unit=self._units[name],
        )


def tidy(series: Mapping[str, Series]) -> pa.Table:
    """Return the probes in one table: series, time_s, value, unit."""
    pieces = [_table(name, each.times_s, each.values, each.unit) for name, each in series.items()]
    return pa.concat_tables(pieces).unify_dictionaries() if pieces else SCHEMA.empty_table()


def _extremes(times_s: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return the lowest and highest sample of each interval, and the first and last sample."""
    count = len(values)
    if count <= 4 * _STRETCHES:
        return times_s, values
    stretch = -(-count // _STRETCHES)
    whole = count - count % stretch
    starts = np.arange(0, whole, stretch)
    blocks = values[:whole].reshape(-1, stretch)
    rest = np.arange(whole, count)
    keep = np.unique(
        np.concatenate([[0, count - 1], starts + blocks.argmin(1), starts + blocks.argmax(1), rest])
    )
    return times_s[keep], values[keep]


def _table(name: str, times_s: Floats, values: Floats, unit: str) -> pa.Table:
    return pa.table(
        {
            "series": repeated(name, len(times_s)),
            "time_s": of_numbers(times_s, pa.float64()),
            "value": of_numbers(values, pa.float64()),
            "unit": repeated(unit, len(times_s)),
        },
        schema=SCHEMA,
    )
