"""Numbers of one simulation of an evaluation."""

from __future__ import annotations

from math import inf, nan
from statistics import median
from typing import TYPE_CHECKING

import numpy as np

from bentpipe.studies.evidence import Curve

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bentpipe.evaluation.networks import Cell
    from bentpipe.results import FlowResult, RunResult

from bentpipe.evaluation.networks import SEGMENT

# Shortest interval of which the least queue counts as standing: CoDel's (RFC 8289 section 3.1).
_INTERVAL_S = 0.1


class Observed:
    """A simulation and its result.

    Times `from_s` and `until_s` are those of the network, unless they are given.
    """

    def __init__(self, cell: Cell, result: RunResult) -> None:
        self.cell = cell
        self.network = cell.network
        self.result = result

    def curve(self, name: str) -> Curve:
        """Return the known samples of a probe."""
        series = self.result.series[name]
        return Curve(times_s=series.times_s, values=series.values).known()

    def flows(self, name: str) -> list[FlowResult]:
        """Return the flows of a table, in order."""
        (table,) = [each for each in self.cell.flows if each.name == name]
        known = {flow.name: flow for flow in self.result.summary.flows}
        return [known[each] for each in table.names()]

    def goodputs(
        self, name: str, *, from_s: float | None = None, until_s: float | None = None
    ) -> list[float]:
        """Return the goodput of each flow of a table, bit/s."""
        start_s, end_s = self._times(from_s, until_s)
        found = []
        for flow in self.flows(name):
            delivered = self.curve(f"{flow.name}.delivered")
            if not len(delivered.times_s):
                found.append(0.0)
                continue
            first, last = delivered.at(np.array([start_s, end_s]))
            found.append(8.0 * float(last - first) / (end_s - start_s))
        return found

    def goodput(
        self, *names: str, from_s: float | None = None, until_s: float | None = None
    ) -> float:
        """Return the goodput of all flows of some tables together, bit/s."""
        return sum(
            each for name in names for each in self.goodputs(name, from_s=from_s, until_s=until_s)
        )

    def utilisation(
        self, *names: str, from_s: float | None = None, until_s: float | None = None
    ) -> float:
        """Return the goodput of some tables as a share of the bottleneck's highest goodput."""
        goodput = self.goodput(*names, from_s=from_s, until_s=until_s)
        return goodput / self.network.goodput_bps

    def queue_s(self) -> Curve:
        """Return the queuing delay at the bottleneck; the link has a constant rate."""
        queue = self.curve("bottleneck.forward.queue_bytes")
        start_s, end_s = self._times(None, None)
        inside = (queue.times_s >= start_s) & (queue.times_s <= end_s)
        delays = queue.values[inside] * 8.0 / self.network.rate_bps
        return Curve(times_s=queue.times_s[inside], values=delays)

    def standing_queue(self) -> float:
        """Return the mean standing queue in round trips without queues.

        A standing queue is the least of an interval: bursts that drain within it do not count.
        """
        queue = self.queue_s()
        interval = max(round(max(_INTERVAL_S, self.network.rtt_s) / self.network.sample_s), 1)
        whole = len(queue.values) // interval * interval
        if not whole:
            return nan
        least = queue.values[:whole].reshape(-1, interval).min(axis=1)
        return float(least.mean()) / self.network.rtt_s

    def mean_queue(self) -> float:
        """Return the mean queuing delay in round trips without queues."""
        return float(self.queue_s().values.mean()) / self.network.rtt_s

    def dropped(self, *, from_s: float | None = None, until_s: float | None = None) -> float:
        """Return the share of segments that the bottleneck's queue drops."""
        start_s, end_s = self._times(from_s, until_s)
        first, last = self.curve("bottleneck.forward.dropped").at(np.array([start_s, end_s]))
        bulk = [each.name for each in self.cell.flows if "bulk" in each.app]
        arrived = self.goodput(*bulk, from_s=start_s, until_s=end_s)
        arrived *= (end_s - start_s) / 8.0 / SEGMENT
        drops = float(last - first)
        return drops / (drops + arrived) if drops + arrived else 0.0

    def completion_s(self, name: str) -> float:
        """Return the median completion time of the flows of a table; inf for unfinished ones."""
        return median(
            inf if flow.finish_s is None else flow.finish_s - flow.start_s
            for flow in self.flows(name)
        )

    def application(self, name: str, metric: str) -> float:
        """Return the mean of an application metric of a flow; NaN without a value."""
        (flow,) = self.flows(name)
        value = (flow.extra.get(metric) or {}).get("mean")
        return nan if value is None else float(value)

    def _times(self, from_s: float | None, until_s: float | None) -> tuple[float, float]:
        start_s = self.network.settle_s if from_s is None else from_s
        return start_s, self.network.duration_s if until_s is None else until_s


def jain(goodputs: Sequence[float]) -> float:
    """Return Jain's fairness index: 1 for equal goodputs, 1/n if one of n flows has all."""
    squares = sum(each * each for each in goodputs)
    return sum(goodputs) ** 2 / (len(goodputs) * squares) if squares else nan


def ratio(one: float, other: float) -> float:
    """Return a ratio; NaN if both are zero or infinite."""
    if one != one or other != other or (one == other and one in {0.0, inf}):
        return nan
    return one / other if other else inf
