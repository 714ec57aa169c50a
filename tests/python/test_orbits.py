"""Orbits: against independent implementations and published figures, and `bentpipe orbit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from bentpipe.orbits import TABLES, orbit
from bentpipe.plot.coastline import land
from bentpipe.plot.orbit_plots import _extent, draw_delay
from bentpipe.prediction import predict
from bentpipe.scenario import Scenario

from .commands import assert_refused

# The International Space Station, from the documentation of the TLE format (NASA, 2008).
ISS = (
    "1 25544U 98067A   08264.51782528 -.00002182  00000-0 -11606-4 0  2927\n"
    "2 25544  51.6416 247.4627 0006703 130.5360 325.0288 15.72125391563537\n"
)
HEAD = """
hosts = { server = {}, client = {} }
links.satellite = { between = ["server", "client"], rate = "8 Mbit/s", delay = "50 ms" }
flows.download = { from = "server", to = "client", app = { kind = "bulk" } }
"""


@pytest.fixture
def station(tmp_path: Path) -> Path:
    """A scenario with the space station and a site."""
    (tmp_path / "iss.tle").write_text(f"ISS (ZARYA)\n{ISS}", encoding="utf-8")
    file = tmp_path / "station.toml"
    file.write_text(
        'name = "station"\nduration = "24 h"\n'
        + HEAD
        + '[constellations.iss]\nfile = "iss.tle"\nstart = "2008-09-21T00:00:00Z"\n'
        '[sites.here]\nlatitude = "48.0 deg"\nlongitude = "11.0 deg"\nheight = "500 m"\n'
        'min_elevation = "10 deg"\n',
        encoding="utf-8",
    )
    return file


def test_a_day_of_one_satellite_is_skyfields(station: Path) -> None:
    """Latitude, longitude, height and passes of the station are those of skyfield."""
    skyfield = pytest.importorskip("skyfield.api", reason="needs skyfield")
    timescale = skyfield.load.timescale(builtin=True)
    satellite = skyfield.EarthSatellite(*ISS.split("\n")[:2], "ISS", timescale)
    for hour in range(0, 24, 3):
        found = orbit(station, at_s=hour * 3600.0).tables["satellites"]
        place = skyfield.wgs84.geographic_position_of(
            satellite.at(timescale.utc(2008, 9, 21, hour))
        )
        # UTC stands for UT1, half a second apart at most: 230 m on the ground.
        metres = 111_000.0
        north = (found["latitude_deg"][0] - place.latitude.degrees) * metres
        east = (found["longitude_deg"][0] - place.longitude.degrees + 180.0) % 360.0 - 180.0
        east *= metres * np.cos(np.radians(place.latitude.degrees))
        assert abs(north) < 50.0
        assert abs(east) < 260.0
        assert abs(found["height_m"][0] - place.elevation.m) < 50.0
    site = skyfield.wgs84.latlon(48.0, 11.0, elevation_m=500.0)
    begins, ends = timescale.utc(2008, 9, 21), timescale.utc(2008, 9, 22)
    times, kinds = satellite.find_events(site, begins, ends, altitude_degrees=10.0)
    passes = orbit(station).tables["passes"]
    for column, kind in (("rises_s", 0), ("sets_s", 2)):
        of_kind = [time for time, each in zip(times, kinds, strict=True) if each == kind]
        expected = [(time - begins) * 86_400.0 for time in of_kind]
        assert len(expected) > 2
        assert np.allclose(passes[column], expected, atol=1.5)


def test_the_delay_of_a_path_is_geometry() -> None:
    """The delay over Starlink's shell lies between those of the zenith and of 25 degrees."""
    found = orbit("leo-office")
    path = found.path("satellite")
    light = 299_792.458
    # 5 ms in addition; 1,123 km at 25 degrees on a sphere of the mean radius.
    assert 2 * 550 / light < path["delay_s"]["min"] - 5e-3
    assert path["delay_s"]["max"] - 5e-3 < 2 * 1_130 / light
    assert path["available"] == 1.0
    assert path["gaps"] == 0
    samples = found.frame("paths")
    assert samples["elevation_deg"].min() >= 25.0
    assert samples["gateway_elevation_deg"].min() >= 25.0
    assert set(samples["gateway"]) <= {"gateway-west", "gateway-east"}


def test_between_continents_space_is_faster_than_glass() -> None:
    """London to New York: the median round trip is below that of a cable on the great circle.

    Handley (HotNets 2018) and Hypatia (IMC 2020) find the same of such shells.
    """
    path = orbit("transatlantic").path("space")
    great_circle = 2 * 5_570e3 / (299_792_458.0 * 2 / 3)
    assert 2 * path["delay_s"]["min"] > 2 * 5_570e3 / 299_792_458.0
    assert 2 * path["delay_s"]["median"] < great_circle
    assert path["satellites"]["max"] >= 3


def test_files_and_pictures(tmp_path: Path, bentpipe: Any) -> None:
    """`--out` writes the summary, the tables and the pictures; `--json` prints the summary."""
    import pyarrow.parquet as pq

    out = tmp_path / "sky"
    assert bentpipe("orbit", "leo-office", "--set", "duration=60s", "--out", out).status == 0
    for name in TABLES:
        assert pq.read_table(out / f"{name}.parquet").num_rows > 0 or name == "outages"
    for name in ("satellite.sky.svg", "satellite.delay.svg", "map.svg"):
        assert (out / name).stat().st_size > 10_000
    # The folder may exist.
    again = bentpipe("orbit", "leo-office", "--set", "duration=60s", "--out", out, "--json")
    assert again.status == 0
    printed = again.data
    assert printed == json.loads((out / "orbit.json").read_text(encoding="utf-8"))


def test_delays_of_many_handovers_are_drawn_as_a_range() -> None:
    """A line for each satellite of a day would fill the picture."""
    found = orbit("leo-office", settings={"duration": "3 h"})
    assert found.path("satellite")["handovers"] > 200
    figure = Figure()
    draw_delay(figure, orbit=found, link="satellite")
    for axes in figure.axes:
        (line,) = axes.lines
        assert np.asarray(line.get_xdata()).size < 1_000
    round_trip_ms = 2e3 * np.asarray(found.tables["paths"]["delay_s"])
    (band,) = figure.axes[0].collections
    heights = np.asarray(band.get_paths()[0].vertices, dtype=float)[:, 1]
    assert heights.min() == pytest.approx(round_trip_ms.min())
    assert heights.max() == pytest.approx(round_trip_ms.max())


def test_land_has_no_line_across_the_map() -> None:
    """Outlines are continuous over the date line, and Antarctica's is closed along the pole."""
    outlines = land()
    assert len(outlines) > 100
    for outline in outlines:
        steps = np.abs(np.diff(outline[:, 0]))
        along_pole = np.abs(outline[:-1, 1]) == 90.0
        assert steps[~along_pole].max() < 90.0
    assert min(outline[:, 1].min() for outline in outlines) == -90.0


def test_map_shows_the_sites_or_the_whole_earth() -> None:
    """The map's edges are around the sites, with the same ratio; it never ends beyond a pole."""
    for places in ([[13.4, 52.5], [8.7, 50.1]], [[-74.0, 40.7], [0.0, 51.5]], [[10.0, 88.0]]):
        west, east, south, north = _extent(np.array(places))
        assert all(west < x < east and south < y < north for x, y in places)
        assert -90.0 <= south < north <= 90.0
        assert (east - west) / (north - south) == pytest.approx(1.8)
    for far in ([[170.0, 0.0], [-170.0, 0.0]], [[175.0, -30.0]]):
        assert _extent(np.array(far)) == (-180.0, 180.0, -90.0, 90.0)


def test_a_scenario_without_orbits_is_refused(bentpipe: Any) -> None:
    """There is nothing to show of it."""
    assert_refused(bentpipe("orbit", "geo-rain"), "no orbits")
    assert_refused(bentpipe("orbit", "leo-office", "--at", "-1"), "--at -1: expected 0 or more")


def test_old_elements_are_mentioned(station: Path, bentpipe: Any) -> None:
    """The age of elements is printed, with a warning after two weeks."""
    fresh = bentpipe("orbit", station).out
    assert "elements 0.5 to 0.5 days old" in fresh
    assert "positions of old elements" not in fresh
    start = 'constellations.iss.start="2009-09-21T00:00:00Z"'
    old = bentpipe("orbit", station, "--set", start).out
    assert "365" in old
    assert "positions of old elements are wrong by kilometres a day" in old


def test_prediction_uses_the_delays_of_the_path() -> None:
    """The round trip that `predict` states is that of the orbits, on average."""
    scenario = Scenario.find("leo-office")
    flow = next(flow for flow in predict(scenario).flows if flow.name == "download")
    path = orbit(scenario).path("satellite")
    # 2 ms and 1 ms on the ground in each direction, and some transmission.
    assert flow.round_trip_s == pytest.approx(2 * path["delay_s"]["mean"] + 6e-3, abs=5e-4)
