"""Results of the simulations, by the claims that they are evidence for."""

from __future__ import annotations

import json
from collections.abc import Iterable
from math import inf
from typing import Any

from bentpipe.studies.evidence import Runs
from bentpipe.studies.quic_acceptance.cells import Access, Cell, Transfer, of


class Evidence(Runs[Cell]):
    """The outcomes of the study's cells."""

    def over(self, access: Access) -> list[Transfer]:
        """Return the transfers over an access that were simulated."""
        return [cell for cell in of(access) if self.has(cell)]

    def time_s(self, cell: Cell) -> float:
        """Return the time of a file or a page with its handshake, seconds; inf if it did not end.

        Raises
        ------
        WorkError
            It was not simulated.
        """
        finish_s = self.result(cell).summary.flows[0].finish_s
        return inf if finish_s is None else finish_s

    def quic(self, cell: Transfer) -> dict[str, Any]:
        """Return the results of a transfer's QUIC connections."""
        (flow,) = json.loads(self.result(cell).summary_json)["flows"]
        found: dict[str, Any] = flow["quic"]
        return found

    def failure(self, cell: Transfer) -> str:
        """Return the reason why the connection failed; empty if it did not."""
        return self.quic(cell)["opener"]["failure"] or ""

    def best(self, access: Access, rules: Iterable[str] = ()) -> Transfer:
        """Return the fastest transfer over an access, with one of these rules or any."""
        allowed = set(rules)
        cells = self.over(access)
        return min((cell for cell in cells if not allowed or cell.rule in allowed), key=self.time_s)
