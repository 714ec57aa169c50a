"""Results of the simulations, by the claims that they are evidence for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.evidence import Curve, Runs
from bentpipe.studies.gaid1998.cells import (
    DURATION_S,
    RECEIVED,
    SATELLITE_BPS,
    Download,
)
from bentpipe.studies.gaid1998.runs import Cell

if TYPE_CHECKING:
    from bentpipe.results import FlowResult, GatewayResult


class Evidence(Runs[Cell]):
    """The outcomes of the study's cells."""

    def flow(self, cell: Cell) -> FlowResult:
        """Return the result of the download."""
        return self.result(cell).summary.flows[0]

    def hub(self, cell: Cell) -> GatewayResult:
        """Return the gateway's counters."""
        return self.result(cell).summary.gateways[0]

    def counted(self, cell: Cell, part: str, name: str) -> int:
        """Return one of the gateway's counters."""
        return int(self.hub(cell).extra[part][name])

    def curve(self, cell: Cell, series: str) -> Curve:
        """Return a probe's samples."""
        found = self.result(cell).series[series]
        return Curve(times_s=found.times_s, values=found.values)

    def received_bytes(self, cell: Cell) -> int:
        """Return the bytes that the host's application has received."""
        return int(self.flow(cell).bytes_delivered)

    def throughput_bps(self, cell: Cell) -> float:
        """Return the throughput at the host over the whole run."""
        return 8.0 * self.received_bytes(cell) / DURATION_S

    def sent_mb(self, download: Download) -> float:
        """Return the data of the server that the gateway has received in order, Mbyte."""
        return float(self.curve(download, RECEIVED).known().values[-1]) / 1e6

    def dropped(self, cell: Cell) -> int:
        """Return the number of packets lost or dropped on the satellite."""
        links = self.result(cell).summary.links
        forward = next(each for each in links if each.name == "satellite.forward")
        return int(forward.packets_lost + forward.packets_dropped)

    def satellite_bytes(self, cell: Cell) -> float:
        """Return the bytes that the gateway sent on the satellite, retransmissions included."""
        links = self.result(cell).summary.links
        forward = next(each for each in links if each.name == "satellite.forward")
        return float(forward.utilization) * SATELLITE_BPS * DURATION_S / 8.0
