"""Results of the simulations and of the orbits, by the claims that they are evidence for."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

import numpy as np

from bentpipe.orbits import Orbit, orbit
from bentpipe.studies.evidence import Runs
from bentpipe.studies.leo_orbits.cells import (
    LONDON,
    SEEDS,
    Cell,
    City,
    measured,
    office,
    rule,
    to_city,
)

LIGHT_M_PER_S = 299_792_458.0
# Light in glass is slower by this factor (Handley 2018).
GLASS = 1.47
EARTH_M = 6_371_008.8


class Evidence(Runs[Cell]):
    """The outcomes of the study's cells, and the geometry of their scenarios."""

    def __init__(self, outcomes: Mapping[Cell, Any]) -> None:
        super().__init__(outcomes)
        self._orbits: dict[Cell, Orbit] = {}

    def orbit(self, cell: Cell) -> Orbit:
        """Return the geometry of a cell, computed once."""
        if cell not in self._orbits:
            self._orbits[cell] = orbit(cell.scenario())
        return self._orbits[cell]

    def goodput_bps(self, name: str, loss: float) -> list[float]:
        """Return the goodput with a window rule by seed."""
        return self._goodputs([rule(name, loss, seed) for seed in SEEDS])

    def measured_bps(self, name: str, gateway: str = "router") -> list[float]:
        """Return the goodput over the measured variation by seed."""
        return self._goodputs([measured(name, seed, gateway) for seed in SEEDS])

    def _goodputs(self, cells: list[Cell]) -> list[float]:
        runs = [self.result(each) for each in cells if self.has(each)]
        return [float(each.flow("download").goodput_bps) for each in runs]

    def page_ms(self, satellites: str, gateways: str = "router") -> list[float]:
        """Return the median page load time of an office by seed, over its users."""
        cells = [office(satellites, seed, gateways) for seed in SEEDS]
        return [self._page_ms(each) for each in cells if self.has(each)]

    def _page_ms(self, cell: Cell) -> float:
        flows = self.result(cell).summary.flows
        times = [1e3 * float(page["load_s"]) for flow in flows for page in flow.extra["pages"]]
        return median(times)

    def space_over_fibre(self, city: City, shell: str) -> float:
        """Return the delay over satellites, relative to light in glass on the great circle."""
        path = self.orbit(to_city(city, shell=shell)).path("space")
        fibre_s = great_circle_m(LONDON, city) * GLASS / LIGHT_M_PER_S
        return float(path["delay_s"]["median"] / fibre_s)


def great_circle_m(one: City, other: City) -> float:
    """Return the distance between two places on a sphere."""
    north = np.radians([one.latitude, other.latitude])
    east = np.radians(other.longitude - one.longitude)
    cosine = np.sin(north).prod() + np.cos(north).prod() * np.cos(east)
    return float(EARTH_M * np.arccos(cosine))
