"""The file of probes by row groups: short series share some, and none is read once a plot."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import bentpipe
from bentpipe.plot import write_run_plots
from bentpipe.probe_file import ProbeWriter
from bentpipe.row_groups import RowGroups

MANY = 90
LONG = "satellite.forward.queue"


def probe_samples(
    part: int, *, many: int = MANY, rows: int = 500, long: int = 20_000
) -> dict[str, Any]:
    """Return what the simulator hands over at once: short series, and a long one among them."""
    lengths = {f"download-{number}.goodput": rows for number in range(1, many + 1)}
    lengths = {"first.sent": rows, LONG: long, **lengths, "nothing.sent": 0}
    begin = 10.0 * part
    return {
        name: (np.linspace(begin, begin + 9.0, length), np.arange(length) + hash_of(name), "x")
        for name, length in lengths.items()
    }


def hash_of(name: str) -> float:
    return float(sum(map(ord, name)))


def write_probe_file(target: Any, parts: Sequence[Mapping[str, Any]]) -> Any:
    with ProbeWriter(target) as writer:
        for part in parts:
            writer.take(part)
    return writer.filed()


@pytest.mark.parametrize("in_memory", [True, False])
def test_series_read_back_equal_the_written_samples(tmp_path: Path, in_memory: bool) -> None:
    parts = [probe_samples(part) for part in range(3)]
    target = io.BytesIO() if in_memory else tmp_path / "probes.parquet"
    filed = write_probe_file(target, parts)
    assert list(filed) == list(parts[0])
    for name in filed:
        times_s, values = (np.concatenate([part[name][of] for part in parts]) for of in (0, 1))
        assert np.array_equal(filed[name].times_s, times_s)
        assert np.array_equal(filed[name].values, values)
        in_parts = [each.values for each in filed.parts(name)]
        assert [len(each) for each in in_parts] == [
            len(part[name][0]) for part in parts if values.size
        ]
        assert np.array_equal(np.concatenate([np.zeros(0), *in_parts]), values)


def test_short_series_share_a_row_group(tmp_path: Path) -> None:
    path = tmp_path / "probes.parquet"
    write_probe_file(path, [probe_samples(0), probe_samples(1)])
    metadata = pq.ParquetFile(path).metadata
    rows = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    assert sorted(rows) == sorted(2 * [20_000, (MANY + 1) * 500])
    # Enough groups that reading one flow does not read the whole file.
    write_probe_file(path, [probe_samples(0, many=2000, rows=1000)])
    metadata = pq.ParquetFile(path).metadata
    rows = [metadata.row_group(index).num_rows for index in range(metadata.num_row_groups)]
    assert (len(rows), sum(rows)) == (5, 2001 * 1000 + 20_000)
    assert max(rows) < (1 << 19) + 1000


def test_row_group_cache_is_bounded(tmp_path: Path) -> None:
    path = tmp_path / "probes.parquet"
    parts = [probe_samples(part, rows=2000, long=1 << 19) for part in range(5)]
    filed = write_probe_file(path, parts)
    rows = RowGroups(path)
    most = 0
    for name in filed:
        for _ in rows.pieces(name):
            most = max(most, sum(len(times_s) for times_s, _ in rows._kept.values()))
    assert 0 < most <= 1 << 20 < pq.ParquetFile(path).metadata.num_rows


def test_replaced_probe_file_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "probes.parquet"
    filed = write_probe_file(path, [probe_samples(0)])
    assert filed["first.sent"].times_s[0] == 0.0
    write_probe_file(path, [probe_samples(7, many=3)])
    assert filed["first.sent"].times_s[0] == 70.0
    assert len(filed["download-9.goodput"].values) == 0


def test_plots_read_each_row_group_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred flows have hundreds of series: each was looked for in all rows, and some twice."""
    hundred = {
        "name": "hundred",
        "duration": "5 s",
        "hosts": {"server": {}, "client": {"count": 100}},
        "gateways": {"hub": {}},
        "links": {
            "satellite": {"between": ["server", "hub"], "rate": "20 Mbit/s", "delay": "250 ms"},
            "access": {"between": ["hub", "client"], "rate": "10 Mbit/s", "delay": "2 ms"},
        },
        "flows": {"download": {"from": "server", "to": "client", "app": {"kind": "bulk"}}},
    }
    result = bentpipe.run(hundred, probes_to=tmp_path / "probes.parquet")
    assert len(result.series) > 150
    read: list[tuple[int, str]] = []
    read_row_group = pq.ParquetFile.read_row_group

    def counting(file: Any, index: int, columns: list[str]) -> Any:
        read.extend((index, column) for column in columns)
        return read_row_group(file, index, columns=columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", counting)
    files, _ = write_run_plots(result, tmp_path)
    assert len(files) > 20
    assert {column for _, column in read} == {"series", "time_s", "value"}
    assert len(read) == len(set(read))
