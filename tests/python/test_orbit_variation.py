"""Variation of paths beside published measurements, and traces that reproduce their quantiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from bentpipe.results import run

Numbers = NDArray[np.float64]

# WetLinks (Laniewski et al., TMA 2024), figure 7b: round trips between a terminal and its point of
# presence in ms. Least, quartiles, and the end of the upper whisker, read from the vector graphics
# of the published figure.
WETLINKS_OSNABRUECK = (17.83, 24.83, 30.47, 35.77, 52.17)
WETLINKS_ENSCHEDE = (17.97, 28.34, 33.62, 38.97, 54.86)
QUARTILES = (0.25, 0.5, 0.75)
# Round trips of the example trace of LeoReplayer (Lai et al., SIGCOMM 2025) are not published, but
# its one-way delays are: 11,999 of 10 ms each.
REPLAYER = {0.25: 10.0, 0.5: 11.0, 0.75: 12.0, 0.95: 13.0, 0.99: 14.0}
REPLAYER_MEAN_MS = 10.67
REPLAYER_STEP_MS = 0.914


def network(*, latitude: float, longitude: float, variation: str, duration: str) -> dict[str, Any]:
    """Return echoes over Starlink's first shell, with two gateways in Germany."""
    return {
        "name": "variation",
        "duration": duration,
        "constellations": {"leo": {"preset": "starlink-shell-1"}},
        "sites": {
            "office": {"latitude": f"{latitude} deg", "longitude": f"{longitude} deg"},
            "aerzen": {"latitude": "52.05 deg", "longitude": "9.26 deg"},
            "usingen": {"latitude": "50.33 deg", "longitude": "8.54 deg"},
        },
        "hosts": {"terminal": {}, "pop": {}},
        "links": {
            "satellite": {
                "between": ["terminal", "pop"],
                "rate": "100 Mbit/s",
                "path": {
                    "constellation": "leo",
                    "from": "office",
                    "to": ["aerzen", "usingen"],
                    "variation": variation,
                },
            }
        },
        "flows": {
            "echo": {"from": "terminal", "to": "pop", "app": {"kind": "ping", "interval": "970 ms"}}
        },
        "probes": {"series": ["echo.response_time"], "interval": "every-change"},
    }


def round_trips_ms(of: dict[str, Any] | Path, **settings: str) -> tuple[Numbers, Numbers]:
    """Return the times of the replies in seconds, and the round trips in ms."""
    (series,) = run(of, settings=settings).series.values()
    return np.asarray(series.times_s), 1e3 * np.asarray(series.values)


@pytest.fixture(scope="module")
def osnabrueck() -> Numbers:
    where = network(
        latitude=52.28, longitude=8.02, variation="starlink-europe-2023", duration="4 h"
    )
    return round_trips_ms(where)[1]


def test_quartiles_are_those_of_wetlinks(osnabrueck: Numbers) -> None:
    """The offset was fitted to Osnabrück's quartiles; the least round trip follows."""
    least, *quartiles, whisker = WETLINKS_OSNABRUECK
    assert np.quantile(osnabrueck, QUARTILES) == pytest.approx(quartiles, rel=0.1)
    assert osnabrueck.min() == pytest.approx(least, rel=0.1)
    # Spikes, which are 1.4% of the time, are its outliers.
    assert 0.005 < np.mean(osnabrueck > whisker) < 0.03


def test_a_second_terminal_of_wetlinks_has_a_further_hop(osnabrueck: Numbers) -> None:
    """Enschede's quartiles are all about 3.3 ms above Osnabrück's: the second hop, not the first.

    The orbits over both are the same; with that constant, its quartiles are within 10%, too.
    """
    above = np.subtract(WETLINKS_ENSCHEDE[1:4], WETLINKS_OSNABRUECK[1:4])
    assert np.ptp(above) < 0.5
    where = network(
        latitude=52.22, longitude=6.89, variation="starlink-europe-2023", duration="4 h"
    )
    enschede = np.quantile(round_trips_ms(where)[1], QUARTILES)
    assert enschede == pytest.approx(np.quantile(osnabrueck, QUARTILES), rel=0.03)
    assert enschede + above.mean() == pytest.approx(WETLINKS_ENSCHEDE[1:4], rel=0.1)


def test_jitter_spikes_and_losses_are_those_of_australia() -> None:
    """6.7 ms between successive round trips, 30 to 50 ms at boundaries, 1 to 2% lost (APNIC)."""
    where = network(
        latitude=-33.0, longitude=150.0, variation="starlink-australia-2024", duration="2 h"
    )
    where["sites"]["aerzen"] = {"latitude": "-34 deg", "longitude": "148 deg"}
    where["links"]["satellite"]["path"]["to"] = "aerzen"
    del where["sites"]["usingen"]
    where["flows"]["echo"]["app"]["interval"] = "97 ms"
    result = run(where)
    (series,) = result.series.values()
    at_s, ms = np.asarray(series.times_s), 1e3 * np.asarray(series.values)
    into_slot = (at_s - 1e-3 * ms) % 15.0
    quiet = (into_slot > 0.3) & (into_slot < 14.7)
    together = quiet[1:] & quiet[:-1] & (np.diff(at_s) < 0.15) & (np.diff(into_slot) > 0.0)
    assert np.abs(np.diff(ms))[together].mean() == pytest.approx(6.7, rel=0.1)
    spike = (into_slot > 0.01) & (into_slot < 0.08)
    assert 30.0 < np.median(ms[spike]) - np.median(ms[quiet]) < 50.0
    echoes = result.flow("echo").extra["echoes"]
    # A request and its reply are two packets.
    lost = 1.0 - np.sqrt(echoes["count"] / echoes["requests"])
    assert 0.01 < lost < 0.02


def test_one_way_delays_are_those_of_the_replayers_example() -> None:
    """Quantiles, mean, and steps from one interval of 10 ms to the next."""
    where = network(
        latitude=52.28, longitude=8.02, variation="starlink-replayer-2025", duration="120 s"
    )
    there = where["links"].pop("satellite")
    # Only one direction varies, so that the round trip is its delay.
    where["links"]["there"] = there | {"one_way": True, "in_order": False}
    where["links"]["back"] = {
        "between": ["pop", "terminal"],
        "one_way": True,
        "rate": "10 Gbit/s",
        "delay": "0 s",
    }
    where["flows"]["echo"]["app"]["interval"] = "10 ms"
    _, ms = round_trips_ms(where)
    assert len(ms) > 11_800
    for share, published in REPLAYER.items():
        # Published delays are whole milliseconds.
        assert np.quantile(ms, share) == pytest.approx(published, rel=0.1, abs=0.6), share
    assert ms.mean() == pytest.approx(REPLAYER_MEAN_MS, rel=0.1)
    assert np.abs(np.diff(ms)).mean() == pytest.approx(REPLAYER_STEP_MS, rel=0.1, abs=0.1)
    assert 30.0 < ms.max() < 75.0


REPLAY = """
name = "replay"
duration = "60 s"
hosts = { terminal = {}, pop = {} }
[links.satellite]
between = ["terminal", "pop"]
rate = "1 Gbit/s"
in_order = false
[flows.echo]
from = "terminal"
to = "pop"
app = { kind = "ping", interval = "9.7 ms" }
[probes]
series = ["echo.response_time"]
interval = "every-change"
"""


def recorded_ms(random: np.random.Generator) -> Numbers:
    """Return one-way delays of a minute, one for each 10 ms, with slots and spikes."""
    slots = np.repeat(random.uniform(8.0, 30.0, 4), 1_500)
    delays = slots + random.exponential(2.0, slots.size)
    for boundary in range(1_500, slots.size, 1_500):
        delays[boundary : boundary + 14] += 20.0
    return np.round(delays, 2)


def test_a_replayed_irtt_log_has_its_own_quantiles(tmp_path: Path) -> None:
    """Round trips of replayed probes are those of the log, and so is the share that is lost."""
    random = np.random.default_rng(4)
    up, down = recorded_ms(random), recorded_ms(random)
    lost = random.uniform(size=up.size) < 0.02
    rows = [
        f"{index * 10_000_000},-1,0,0"
        if gone
        else f"{index * 10_000_000},{there + back:.2f},{there},{back}"
        for index, (there, back, gone) in enumerate(zip(up, down, lost, strict=True))
    ]
    text = "timestamp,rtt,uplink,downlink\n" + "\n".join(rows) + "\n"
    (tmp_path / "log.csv").write_text(text, encoding="utf-8")
    trace = '{ file = "log.csv", format = "irtt", column = "%s" }'
    ways = "".join(
        f"[links.satellite.{way}]\ntraces = [{trace % column}]\n"
        for way, column in (("forward", "uplink"), ("return", "downlink"))
    )
    file = tmp_path / "replay.toml"
    file.write_text(REPLAY + ways, encoding="utf-8")
    _, ms = round_trips_ms(file)
    known = (up + down)[~lost]
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    assert np.quantile(ms, shares) == pytest.approx(np.quantile(known, shares), rel=0.02)
    assert ms.mean() == pytest.approx(known.mean(), rel=0.01)
    echoes = run(file, settings={"probes.series": "[]"}).flow("echo").extra["echoes"]
    assert 1.0 - echoes["count"] / echoes["requests"] == pytest.approx(lost.mean(), abs=0.006)


def test_replayed_delays_of_leoreplayer_have_their_own_quantiles(tmp_path: Path) -> None:
    """A pair of traces as LeoCC's: delays by 10 ms, and opportunities to send by 1 ms."""
    random = np.random.default_rng(5)
    up, down = (np.round(recorded_ms(random)) for _ in range(2))
    for name, delays in (("up", up), ("down", down)):
        lines = "\n".join(str(int(each)) for each in delays)
        (tmp_path / f"delay_{name}.txt").write_text(lines + "\n", encoding="utf-8")
    # 12 to 60 Mbit/s: one to five packets a millisecond.
    counts = random.integers(1, 6, 60_000)
    lines = "\n".join(str(at) for at in np.repeat(np.arange(1, 60_001), counts))
    (tmp_path / "bw.txt").write_text(lines + "\n", encoding="utf-8")
    ways = "".join(
        f"[links.satellite.{way}]\ntraces = ["
        f'{{ file = "delay_{name}.txt", format = "leoreplayer" }}, '
        '{ file = "bw.txt", format = "mahimahi" }]\n'
        for way, name in (("forward", "up"), ("return", "down"))
    )
    file = tmp_path / "replay.toml"
    file.write_text(REPLAY.replace('rate = "1 Gbit/s"\n', "") + ways, encoding="utf-8")
    _, ms = round_trips_ms(file)
    shares = (0.05, 0.25, 0.5, 0.75, 0.95)
    recorded = np.quantile(up + down, shares)
    # A packet waits for the next millisecond in each direction.
    assert np.all(np.quantile(ms, shares) - recorded < 3.0)
    assert np.all(np.quantile(ms, shares) - recorded >= -0.05 * recorded)
    # A bulk transfer gets what the recording offers.
    bulk = {"flows.echo.app": '{ kind = "bulk" }', "probes.series": "[]", "duration": "59 s"}
    goodput = run(file, settings=bulk).flow("echo").goodput_bps
    assert goodput == pytest.approx(counts.mean() * 12e6 * 1460 / 1500, rel=0.1)


def test_series_of_a_path_are_written(tmp_path: Path, bentpipe: Any) -> None:
    """`--out` has the series of the path in its Parquet file."""
    import pyarrow.parquet as pq

    out = tmp_path / "result"
    series = '["satellite.path.delay", "satellite.path.elevation", "satellite.path.satellites"]'
    words = ("--set", f"probes.series={series}", "--set", "duration=20s", "--out", out)
    assert bentpipe("run", "leo-office", *words).status == 0
    table = pq.read_table(out / "probes.parquet").to_pandas()
    units = dict(zip(table["series"], table["unit"], strict=True))
    assert units == {
        "satellite.path.delay": "s",
        "satellite.path.elevation": "deg",
        "satellite.path.satellites": "satellites",
    }
    elevation = table[table["series"] == "satellite.path.elevation"]["value"]
    assert len(elevation) > 30
    assert elevation.between(25.0, 90.0).all()


def test_presets_are_listed_with_their_sources(bentpipe: Any) -> None:
    listed = bentpipe("list", "variations").out
    assert "starlink-europe-2023" in listed
    assert "WetLinks" in " ".join(listed.split())
    names = bentpipe("list", "variations", "--json").data["variations"]
    assert len(names) == 3
    for name in names:
        where = network(latitude=50.0, longitude=10.0, variation=name, duration="30 s")
        assert len(round_trips_ms(where)[1]) >= 25


# Elements of a satellite whose drag brings it down within weeks.
FALLING = {
    "OBJECT_NAME": "FALLING",
    "OBJECT_ID": "2008-001A",
    "EPOCH": "2008-09-20T12:25:40.104192",
    "MEAN_MOTION": 16.3,
    "ECCENTRICITY": 0.0006703,
    "INCLINATION": 51.6416,
    "RA_OF_ASC_NODE": 247.4627,
    "ARG_OF_PERICENTER": 130.536,
    "MEAN_ANOMALY": 325.0288,
    "EPHEMERIS_TYPE": 0,
    "CLASSIFICATION_TYPE": "U",
    "NORAD_CAT_ID": 99999,
    "ELEMENT_SET_NO": 292,
    "REV_AT_EPOCH": 56353,
    "BSTAR": 0.01,
    "MEAN_MOTION_DOT": 0,
    "MEAN_MOTION_DDOT": 0,
}


def test_decayed_satellites_are_reported(tmp_path: Path, bentpipe: Any) -> None:
    """A satellite that has come down by the start serves nobody, and is named."""
    (tmp_path / "falling.json").write_text(json.dumps([FALLING]), encoding="utf-8")
    file = tmp_path / "falling.toml"
    file.write_text(
        'name = "falling"\nduration = "60 s"\n'
        'constellations.one = { file = "falling.json", start = "2008-11-20T00:00:00Z" }\n'
        'sites.here = { latitude = "48 deg", longitude = "11 deg" }\n'
        "hosts = { server = {}, client = {} }\n"
        'links.l = { between = ["server", "client"], rate = "8 Mbit/s", delay = "50 ms" }\n'
        'flows.download = { from = "server", to = "client", app = { kind = "bulk" } }\n',
        encoding="utf-8",
    )
    found = bentpipe("orbit", file)
    assert found.status == 0
    assert "1 decayed by the start (FALLING)" in " ".join(found.out.split())
    fresh = bentpipe("orbit", file, "--set", 'constellations.one.start="2008-09-20T13:00:00Z"')
    assert "decayed" not in fresh.out
