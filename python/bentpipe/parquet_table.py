"""Parquet tables as text for the engine, which reads tables as comma-separated values."""

from __future__ import annotations

import io
from typing import Any

# Limits of a table: decompressed bytes, rows, and columns of a path's description.
MOST_BYTES = 256 << 20
MOST_ROWS = 4_000_000
MOST_COLUMNS = 64


def parquet_as_csv(content: bytes) -> str:
    """Return a Parquet file's table as comma-separated values; null is an empty field.

    Nothing is quoted.

    Raises
    ------
    ValueError
        It is not a Parquet file, it is too large, or a column is not numeric. One-line message.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        _check(file)
        table = file.read()
        text = io.BytesIO()
        options = pyarrow.csv.WriteOptions(include_header=False)
        pyarrow.csv.write_csv(table, text, write_options=options)
    except (pa.ArrowException, OSError) as error:
        first = str(error).partition("\n")[0]
        raise ValueError(f"not a Parquet file that can be read: {first}") from None
    names = ",".join(table.column_names)
    return f"{names}\n{text.getvalue().decode()}"


def _check(file: Any) -> None:
    import pyarrow.types as kinds

    metadata = file.metadata
    if metadata.num_rows > MOST_ROWS:
        raise ValueError(f"expected at most {MOST_ROWS} rows, got {metadata.num_rows}")
    if metadata.num_columns > MOST_COLUMNS:
        raise ValueError(f"expected at most {MOST_COLUMNS} columns, got {metadata.num_columns}")
    groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
    if sum(group.total_byte_size for group in groups) > MOST_BYTES:
        raise ValueError(f"expected at most {MOST_BYTES >> 20} MiB of columns")
    for field in file.schema_arrow:
        kind = field.type
        if any(mark in field.name for mark in ',;\t"\r\n'):
            raise ValueError(f"expected a name like time (s) or delay_ms, got {field.name!r}")
        if not (kinds.is_integer(kind) or kinds.is_floating(kind) or kinds.is_null(kind)):
            raise ValueError(f"column {field.name}: expected numbers, got {kind}")
