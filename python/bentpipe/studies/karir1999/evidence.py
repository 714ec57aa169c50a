"""Results of the simulations, by the claims that they are evidence for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bentpipe.studies.evidence import Floats, Runs
from bentpipe.studies.karir1999.cells import LINK_BPS, Cell, Download, Remedy

if TYPE_CHECKING:
    from bentpipe.results import FlowResult, GatewayResult


class Evidence(Runs[Cell]):
    """The outcomes of the study's cells."""

    def flow(self, cell: Cell) -> FlowResult:
        """Return the result of the (first) download."""
        return self.result(cell).summary.flows[0]

    def flows(self, cell: Cell) -> Sequence[FlowResult]:
        """Return the results of all downloads."""
        return self.result(cell).summary.flows

    def gateways(self, cell: Cell) -> Sequence[GatewayResult]:
        """Return the gateways' counters."""
        return self.result(cell).summary.gateways

    def end_s(self, cell: Cell) -> float:
        """Return the arrival of the last byte, or the end of the run, in seconds."""
        summary = self.result(cell).summary
        finishes = [flow.finish_s for flow in summary.flows]
        return max(summary.duration_s if each is None else each for each in finishes)

    def link_bps(self, cell: Download) -> float:
        """Return the satellite link's throughput during the download, headers included."""
        links = self.result(cell).summary.links
        forward = next(each for each in links if each.name == "satellite.forward")
        return 8.0 * forward.bytes_delivered / self.end_s(cell)

    def rtt_ms(self, cell: Download) -> float:
        """Return the mean of the round trips that the server measured, milliseconds."""
        mean = self.flow(cell).rtt_ms.mean
        return float("nan") if mean is None else mean

    def download_s(self, cell: Download) -> float:
        """Return the download time, seconds."""
        return self.end_s(cell)

    def curve(self, cell: Download, series: str) -> tuple[Floats, Floats]:
        """Return a probe's times and values."""
        found = self.result(cell).series[series]
        return found.times_s, found.values

    def busy_s(self, cell: Download) -> float:
        """Return the time for which the server has data of the file to send, in seconds."""
        times, sent = self.curve(cell, "download.sent")
        first = self.flow(cell).first_data_s or 0.0
        done = times[np.searchsorted(sent, sent.max())]
        return float(done) - first

    def utilisation(self, cell: Download, until_s: float) -> tuple[Floats, Floats]:
        """Return figure 5's curve: the share of the time so far at 100% utilisation of the server.

        The server is fully utilised in every second at whose start it has data of the file to send.
        """
        times, sent = self.curve(cell, "download.sent")
        seconds = np.arange(1.0, until_s + 1.0)
        index = np.searchsorted(times, seconds - 1.0 + 1e-9, side="right") - 1
        begun = np.where(index >= 0, sent[np.maximum(index, 0)], 0.0)
        full = begun < sent.max()
        share: Floats = np.cumsum(full) / seconds
        return seconds, share

    def link_packets(self, cell: Download, link: str) -> int:
        """Return the packets that a direction of a link delivered."""
        links = self.result(cell).summary.links
        return next(each for each in links if each.name == link).packets_delivered

    def hub_arrivals(self, cell: Download) -> int:
        """Return the packets that arrived at the hub."""
        return sum(self.link_packets(cell, each) for each in ("lan.forward", "satellite.return"))

    def router_passes_per_s(self, cell: Download) -> float:
        """Return how often a packet passes the hub's IP layer, per second of the download.

        A router passes each packet once. With split connections, a packet that arrives goes up to
        TCP, and one that leaves comes down from it.
        """
        passes = self.hub_arrivals(cell)
        if self.gateways(cell):
            leaving = ("satellite.forward", "lan.return")
            passes += sum(self.link_packets(cell, each) for each in leaving)
        return passes / self.end_s(cell)

    def throughput(self, cell: Download) -> tuple[Floats, Floats]:
        """Return figure 4's curve: the link's throughput each second, bit/s."""
        times, values = self.curve(cell, "satellite.forward.utilization")
        return times, values * LINK_BPS

    def goodput_bps(self, cell: Remedy) -> float:
        """Return the download's goodput."""
        return self.flow(cell).goodput_bps

    def page_s(self, cell: Remedy) -> tuple[float, float]:
        """Return the median and the 90th percentile of page load times."""
        loads = [page["load_s"] for page in self.flow(cell).extra["pages"]]
        # A page that is incomplete at the end took longer than all complete ones.
        whole = [float("inf") if each is None else float(each) for each in loads]
        median, most = np.quantile(whole, [0.5, 0.9], method="lower")
        return float(median), float(most)

    def count(self, cell: Cell, *path: str) -> int:
        """Return the sum of a counter over the gateways: `count(cell, "packets", "dropped")`."""
        total = 0
        for gateway in self.gateways(cell):
            value: Any = {**gateway.extra, "bytes_held": gateway.bytes_held}
            for key in path:
                value = value.get(key, {})
            total += int(value or 0)
        return total

    def most(self, cell: Cell, *path: str) -> int:
        """Return the highest of a counter among the gateways."""
        highest = 0
        for gateway in self.gateways(cell):
            value: Any = {**gateway.extra, "bytes_held": gateway.bytes_held}
            for key in path:
                value = value.get(key, {})
            highest = max(highest, int(value or 0))
        return highest


def jain(rates: Sequence[float]) -> float:
    """Return Jain's index: 1 if all are equal, 1/n if one has everything."""
    values = np.asarray(rates)
    squares = float((values**2).sum())
    return float(values.sum() ** 2 / (len(values) * squares)) if squares else 1.0
