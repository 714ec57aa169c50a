"""The study of gaid1998, as a quick run makes it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from bentpipe.studies import get
from bentpipe.studies.evidence import Curve
from bentpipe.studies.gaid1998.cells import FITTED, SETS, Open, standard, traced
from bentpipe.studies.gaid1998.figures import envelope
from bentpipe.studies.gaid1998.fragmentation import NETWORKS, fragments
from bentpipe.studies.gaid1998.future import MEMORIES, WINDOWS
from bentpipe.studies.gaid1998.open_settings import SEARCH, open_of, setting_of
from bentpipe.studies.gaid1998.runs import every_cell
from bentpipe.studies.gaid1998.stalls import timer_stalls
from bentpipe.studies.open_settings import committed

STUDY = "gaid1998"
FIGURES = (
    *("1", "2", "3", "6", "7", "8", "12"),
    *(str(n) for n in range(16, 45)),
    *(f"A{n}" for n in range(1, 16)),
)
TABLES = ("1", "2", "3", "4", "5", "6", "A14", "A15")
# Claims that fail, and why.
FAILING = {"window-over-t1": "contradiction", "fast-retransmit-congestion": "setting"}
# Claims that hold because the setting was searched so that they do.
SEARCHED = {"standard-seven", "larger-windows", "ack-timeout"}


def test_every_figure_is_written(has_figures: bool) -> None:
    assert has_figures


def test_tables_are_written_as_tables(reproduction: Path) -> None:
    for number in TABLES:
        assert (reproduction / STUDY / f"table-{number}.csv").is_file()


def test_bounded_memory_figure_equals_the_example_sweep() -> None:
    sweep = Path(__file__).parents[2] / "examples" / "hybrid-memory.toml"
    hub = tomllib.loads(sweep.read_text())["axes"]["gateways"]["hub"]
    assert (tuple(hub["memory"]), tuple(hub["receive_buffer"])) == (MEMORIES, WINDOWS)


def test_failing_claims_are_the_documented_ones(claims: dict[str, Any]) -> None:
    failing = {id_: each["cause"]["kind"] for id_, each in claims.items() if not each["holds"]}
    assert failing == FAILING


def test_searched_claims_are_called_fitted(claims: dict[str, Any]) -> None:
    assert {id_ for id_, each in claims.items() if each["source"] == "fitted"} == SEARCHED


def test_figures_of_claims_exist(claims: dict[str, Any]) -> None:
    named = {number for claim in claims.values() for number in claim["figures"]}
    assert named <= {*FIGURES, *TABLES}


def test_controls_would_fail_their_claims(claims: dict[str, Any]) -> None:
    values = {id_: claim["values"] for id_, claim in claims.items()}
    assert min(values["window-over-t"]["control_kbyte_s"]) > 16.384
    assert max(values["standard-faster"]["control_with_over_without"]) < 1.5
    assert max(values["forty-times"]["control_kbps"]) < 400.0
    assert max(values["merely-the-same"]["control"]) < 0.5
    assert min(values["zero-window"]["times_closed"]) >= 1


def test_the_setting_is_the_best_of_the_search() -> None:
    rows = committed(STUDY)
    used = next(row for row in rows if row.setting == setting_of(FITTED))
    assert used.within == max(row.within for row in rows)
    assert SEARCH.published.keys() >= SEARCHED
    # The claims of the search contradict each other: none meets all of them.
    assert used.within == len(SEARCH.published) - 1


@pytest.mark.parametrize("open_", [FITTED, Open(held_by_host=False)])
def test_settings_are_parameters_and_back(open_: Any) -> None:
    assert open_of(setting_of(open_)) == open_


def test_seven_mbyte_are_read_from_figure_17(reproduction: Path) -> None:
    rows = pq.read_table(reproduction / STUDY / "figure-17.parquet").to_pylist()
    total = [row for row in rows if row["curve"] == "from the server"]
    assert total[-1]["time_s"] == pytest.approx(100.0, abs=0.2)
    assert total[-1]["value"] == pytest.approx(7.0, rel=0.072)


def test_figure_16_has_a_curve_without_the_gateway(reproduction: Path) -> None:
    rows = pq.read_table(reproduction / STUDY / "figure-16.parquet").to_pylist()
    assert "at the host, without the gateway" in {row["curve"] for row in rows}


@pytest.mark.parametrize("number", [22, 28, 36, 42])
def test_the_host_measures_round_trips(reproduction: Path, number: int) -> None:
    rows = pq.read_table(reproduction / STUDY / f"figure-{number}.parquet").to_pylist()
    host = [row["value"] for row in rows if row["curve"] == "host to server"]
    # By modem and satellite.
    assert min(host) > 250.0


def test_nothing_is_acknowledged_before_it_is_received(reproduction: Path) -> None:
    rows = pq.read_table(reproduction / STUDY / "figure-32.parquet").to_pylist()
    received = [row for row in rows if row["curve"] == "received by the host"]
    times = np.array([row["time_s"] for row in received])
    ends = np.maximum.accumulate([row["value"] for row in received])
    acknowledged = [row for row in rows if row["curve"] == "acknowledged by the host"]
    for row in acknowledged:
        before = times <= row["time_s"]
        assert row["value"] <= (ends[before][-1] if before.any() else 0.0)
    assert any(row["curve"] == "received a second time" for row in rows)


def test_an_envelope_has_the_range_of_every_interval() -> None:
    curve = Curve(times_s=np.array([0.1, 0.2, 0.9, 2.5]), values=np.array([1.0, 3.0, 2.0, 7.0]))
    least, median, most = envelope(curve, 1.0)
    assert least.tolist() == [1.0, 7.0]
    assert median.times_s.tolist() == [0.5, 2.5]
    assert median.values.tolist() == [2.0, 7.0]
    assert most.tolist() == [3.0, 7.0]


class _Acknowledged:
    """Evidence with one ACK number series."""

    def __init__(self, samples: list[tuple[float, float]]) -> None:
        times, values = zip(*samples, strict=True)
        self._curve = Curve(times_s=np.array(times), values=np.array(values))

    def curve(self, *_: object) -> Curve:
        return self._curve


def test_stalls_that_follow_one_another_are_a_cycle() -> None:
    # Three stalls of 0.5 s, 45 kbyte apart; steady progress for 2 s; one stall alone.
    samples = [
        (0.9, 0.0),
        (1.0, 1e3),
        (1.5, 2e3),
        (1.6, 46e3),
        (2.1, 47e3),
        (2.2, 91e3),
        (2.7, 92e3),
    ]
    samples += [(2.7 + 0.1 * step, 92e3 + 1e3 * step) for step in range(1, 21)]
    samples += [(5.0, 2e5)]
    evidence: Any = _Acknowledged(samples)
    stalls = timer_stalls(evidence, traced(bulk=True))
    assert (stalls.cycles, stalls.rounds) == (2, 4)
    assert stalls.gain_bytes == 45e3
    assert stalls.round_s == pytest.approx(0.6)
    # From 1.0 to 2.7 s and from 4.7 to 5.0 s, of 100 s.
    assert stalls.share == pytest.approx(0.02)


def test_more_fragments_lose_more(reproduction: Path) -> None:
    assert [fragments(mtu) for _, mtu, _ in NETWORKS] == [1, 1, 1, 1, 1, 2, 3, 6]
    rows = pq.read_table(reproduction / STUDY / "table-1.parquet").to_pylist()
    assert [row["fragments of 1500 bytes"] for row in rows] == [1, 1, 1, 1, 1, 2, 3, 6]
    received = [row["received with 1% loss (Mbyte)"] for row in rows]
    assert received[4] > received[5] > received[6] > received[7]


def test_the_host_of_a_lan_with_arp_waits_for_the_address(reproduction: Path) -> None:
    rows = pq.read_table(reproduction / STUDY / "table-A14.parquet").to_pylist()
    known, resolved = (row["first segment sent (ms)"] for row in rows[1:3])
    # A request and its answer: a round trip of 2 ms, and two frames of 84 bytes.
    assert resolved - known == pytest.approx(2.0 + 2 * 84 * 8 / 10e3, abs=0.01)


def test_a_policy_with_less_of_both_is_never_dearer(reproduction: Path) -> None:
    rows = pq.read_table(reproduction / STUDY / "figure-A13.parquet").to_pylist()
    for row in rows:
        parts = row["satellite_mbyte_per_mbyte"] + row["line_price"] * row["line_minutes_per_mbyte"]
        assert row["cost_per_mbyte"] == pytest.approx(parts)
        # Received data were sent before.
        assert row["satellite_mbyte_per_mbyte"] > 1.0


def test_cells_are_unique_and_include_the_quick_ones() -> None:
    cells = every_cell(quick=False)
    assert len(cells) == len(set(cells))
    assert set(every_cell(quick=True)) <= set(cells)


def test_standard_windows_equal_the_papers() -> None:
    windows = [(standard(n).host_window_bytes, standard(n).window_bytes) for n in SETS]
    assert windows == [
        (4_096, 64_000),
        (45_000, 64_000),
        (45_000, 1_000_000),
        (1_000_000, 1_000_000),
        (1_000_000, 1_000_000),
    ]
    assert [standard(n).ack_timeout_s for n in SETS] == [0.2, 0.2, 0.2, 0.2, 0.01]


def test_claim_ids_are_unique() -> None:
    study = get("gaid1998")
    assert len({claim.id for claim in study.claims}) == len(study.claims)
