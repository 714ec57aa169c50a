"""Paths over satellites in real time have the delays that `bentpipe orbit` states."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from bentpipe.emulation import emulate
from bentpipe.orbits import orbit
from bentpipe.results import run

from .boxes import gateway, row
from .boxes import live as live_boxes
from .live import live, repeated_after_stall

# A site that crosses a sixth of the equator in 12 s, from below one geostationary satellite to
# below another: the delay grows by milliseconds a second, and jumps when the other one serves.
SCENARIO = """
name = "crossing"
duration = "12 s"
constellations.geo.longitudes = ["0 deg", "60 deg"]
sites.ship = { track = "ship.csv", min_elevation = "5 deg" }
sites.gateway = { latitude = "45 deg", longitude = "0 deg", min_elevation = "5 deg" }
hosts = { left = {}, right = {} }

[links.satellite]
between = ["left", "right"]
rate = "10 Mbit/s"
path = { constellation = "geo", from = "ship", to = "gateway", slot = "2 s", step = "100 ms" }

[flows.echo]
from = "left"
to = "right"
app = { kind = "ping", interval = "50 ms" }
"""
TRACK = "time (s),latitude,longitude\n0,0,0\n12,0,60\n"
# Kernel and engine take less on a machine that is not stalled.
WITHIN_MS = 1.5


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "ship.csv").write_text(TRACK, encoding="utf-8")
    path = tmp_path / "crossing.toml"
    path.write_text(SCENARIO, encoding="utf-8")
    return path


@live
@repeated_after_stall
@pytest.mark.parametrize("variation", [None, "uniform(0 ms, 60 ms)"])
def test_emulation_has_the_round_trips_of_the_simulation(file: Path, variation: str | None) -> None:
    """The quantiles of echoes between kernel sockets are those of simulated ones.

    So they are with a variation from slot to slot, which is drawn from the same seed.
    """
    settings = {} if variation is None else {"links.satellite.path.variation": variation}
    simulated, real = (
        json.loads(each.summary_json)["flows"][0]["echoes"]["time_ms"]
        for each in (run(file, settings=settings), emulate(file, settings=settings))
    )
    assert simulated["max"] - simulated["min"] > 10 * WITHIN_MS
    for name in ("min", "mean", "p50"):
        ours, theirs = simulated[name], real[name]
        assert abs(theirs - ours) < WITHIN_MS, (name, ours, theirs)


@live_boxes
@repeated_after_stall
def test_a_satellite_of_the_laboratory_has_the_delays_of_the_path(file: Path) -> None:
    """Each ping through `bentpipe-gateway --link` takes as long as the path at its time."""
    path = orbit(file).tables["paths"]
    words = ("--link", "satellite", "--interface", "left=to-left", "--interface", "right=to-right")
    with row("left", "sky", "right") as (left, sky, _):
        before = time.time()
        with gateway(sky, file, *words):
            ready = time.time()
            printed = left.run("ping", "-D", "-n", "-i", "0.05", "-c", "200", "10.2.0.2")
    replies = re.findall(r"^\[([\d.]+)\].* time=([\d.]+) ms", printed, re.MULTILINE)
    received_s, measured_ms = np.array(replies, dtype=float).T
    assert len(measured_ms) >= 190
    sent_s = received_s - measured_ms / 1e3

    def expected_ms(begins_s: float) -> NDArray[np.float64]:
        there = np.interp(sent_s - begins_s, path["at_s"], path["delay_s"])
        back = np.interp(sent_s - begins_s + there, path["at_s"], path["delay_s"])
        return np.asarray((there + back) * 1e3)

    # The link began at a time between its start and its report that it is ready.
    wrong_ms = np.array(
        [
            np.quantile(np.abs(measured_ms - expected_ms(begins_s)), 0.9)
            for begins_s in np.arange(before, ready + 0.01, 0.01)
        ]
    )
    assert np.ptp(measured_ms) > 10 * WITHIN_MS
    assert wrong_ms.min() < WITHIN_MS, wrong_ms
