"""Results of the simulations, by the claims that they are evidence for."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from statistics import median

from bentpipe.studies.evidence import Runs
from bentpipe.studies.geo_acceptance.cells import SEEDS, Access, Transfer, of, with_losses


class Evidence(Runs[Transfer]):
    """The outcomes of the study's cells."""

    def over(self, access: Access) -> list[Transfer]:
        """Return the transfers over an access that were simulated."""
        return [cell for cell in of(access) if self.has(cell)]

    def time_s(self, cell: Transfer) -> float:
        """Return the time of the transfer with connection setup, seconds; inf if it did not end.

        Raises
        ------
        WorkError
            It was not simulated.
        """
        finish_s = self.result(cell).summary.flows[0].finish_s
        return inf if finish_s is None else finish_s

    def by_seed(self, cell: Transfer) -> list[float]:
        """Return the times of a transfer with each seed that was simulated, seconds."""
        cells = [replace(cell, seed=seed) for seed in SEEDS]
        return [self.time_s(each) for each in cells if self.has(each)]

    def met(self, cell: Transfer) -> bool:
        """Whether the draft's target is met."""
        return self.time_s(cell) < cell.access.target_s

    def best(self, access: Access, *, gateways: str) -> Transfer:
        """Return the fastest transfer over an access, with gateways or without."""
        cells = [cell for cell in self.over(access) if cell.gateways == gateways]
        return min(cells, key=self.time_s)

    def best_median(self, access: Access) -> Transfer:
        """Return the transfer with the least median over seeds, over an access with losses."""
        return min(with_losses(access, SEEDS[0]), key=lambda cell: median(self.by_seed(cell)))
