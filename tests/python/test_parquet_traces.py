"""A path's course from a Parquet file is that of the same table as CSV."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import bentpipe
from bentpipe.results import run

COLUMNS: dict[str, list[float | None]] = {
    "time (s)": [0.0, 1.0, 2.0, 3.0],
    "rate (Mbit/s)": [8.0, 2.0, None, 5.5],
    "delay_ms": [20.0, 20.0, 35.0, None],
    "packet_loss_rate (%)": [0.0, 0.0, 1.0, 0.0],
}
CSV = """time (s),rate (Mbit/s),delay_ms,packet_loss_rate (%)
0,8,20,0
1,2,20,0
2,,35,1
3,5.5,,0
"""


def write(folder: Path, columns: dict[str, Any], name: str = "rain.parquet") -> Path:
    pq.write_table(pa.table(columns), folder / name)
    return scenario(folder, name)


def scenario(folder: Path, name: str) -> Path:
    path = folder / "rain.toml"
    path.write_text(f"""
name = "rain"
duration = "6 s"
hosts.a = {{}}
hosts.b = {{}}
[links.l]
between = ["a", "b"]
forward = {{ traces = [{{ file = "{name}", every = "5 s" }}] }}
return = {{ rate = "1 Mbit/s", delay = "20 ms" }}
[flows.f]
from = "a"
to = "b"
app = {{ kind = "bulk" }}
""")
    return path


def refusal(path: Path) -> str:
    with pytest.raises(bentpipe.ScenarioError) as error:
        run(path)
    return str(error.value)


def test_parquet_trace_equals_the_csv_trace(tmp_path: Path) -> None:
    (tmp_path / "rain.csv").write_text(CSV)
    told = [
        json.loads(run(path).summary_json)
        for path in (write(tmp_path, COLUMNS), scenario(tmp_path, "rain.csv"))
    ]
    for each in told:
        each["wall_s"] = 0.0
    assert told[0] == told[1]
    assert told[0]["flows"][0]["bytes_delivered"] > 1_000_000


def test_trace_errors_name_the_row_or_column(tmp_path: Path) -> None:
    backwards = {**COLUMNS, "time (s)": [0.0, 2.0, 1.0, 3.0]}
    assert "rain.parquet: row 3: " in refusal(write(tmp_path, backwards))
    words = {**COLUMNS, "delay_ms": ["20", "fast", "35", "40"]}
    assert "column delay_ms: expected numbers, got string" in refusal(write(tmp_path, words))
    nameless = {**COLUMNS, "dealy_ms": COLUMNS["delay_ms"]}
    assert "did you mean" in refusal(write(tmp_path, nameless))
    commas = {**COLUMNS, "a,b": COLUMNS["delay_ms"]}
    assert "expected a name like" in refusal(write(tmp_path, commas))
    (tmp_path / "rain.parquet").write_bytes(b"time (s),rate\n")
    assert "not a Parquet file that can be read" in refusal(tmp_path / "rain.toml")


def test_oversized_trace_is_refused_before_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bentpipe import parquet_table

    many = {f"delay{index}_ms": [1.0] for index in range(65)}
    assert "expected at most 64 columns, got 65" in refusal(write(tmp_path, many))
    monkeypatch.setattr(parquet_table, "MOST_ROWS", 3)
    assert "expected at most 3 rows, got 4" in refusal(write(tmp_path, COLUMNS))


def test_corrupted_trace_is_read_or_refused_in_one_line(tmp_path: Path) -> None:
    path = write(tmp_path, COLUMNS)
    whole = (tmp_path / "rain.parquet").read_bytes()
    luck = random.Random(1)
    for _ in range(150):
        broken = bytearray(whole)
        for _ in range(luck.randint(1, 4)):
            broken[luck.randrange(len(broken))] = luck.randrange(256)
        (tmp_path / "rain.parquet").write_bytes(
            broken[: luck.choice([None, luck.randrange(len(broken))])]
        )
        said = ""
        try:
            run(path, settings={"duration": "10 ms"})
        except bentpipe.ScenarioError as error:
            said = str(error)
        assert "\n" not in said
