"""Results of the simulations, by the claims that they are evidence for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bentpipe.studies.evidence import Curve, Floats, Runs
from bentpipe.studies.samaraweera1999.cells import (
    PIPE_BYTES,
    ROUND_TRIP_S,
    STAGGERED_DURATION_S,
    STAGGERS_S,
    Download,
    staggered,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bentpipe.results import DirectionResult, FlowResult

# Packets that arrive within this time are a burst; the link sends 2 packets in it.
BURST_S = 0.02
# End of figure 12's first transient, in seconds.
SETTLED_S = 10.0
# Until then no ACK has come back.
_FIRST_S = 0.5


class Evidence(Runs[Download]):
    """The outcomes of the study's cells."""

    def flow(self, download: Download, session: int = 1) -> FlowResult:
        """Return the result of a session."""
        return self.result(download).flow(f"session-{session}")

    def flows(self, download: Download) -> list[FlowResult]:
        """Return the results of all sessions."""
        return [self.flow(download, session) for session in range(1, download.sessions + 1)]

    def direction(self, download: Download, name: str) -> DirectionResult:
        """Return the counters of a direction of the satellite link: "forward" or "return"."""
        links = self.result(download).summary.links
        return next(each for each in links if each.name == f"dvb.{name}")

    def curve(self, download: Download, series: str) -> Curve:
        """Return a probe's samples."""
        found = self.result(download).series[series]
        return Curve(times_s=found.times_s, values=found.values)

    def window(self, download: Download, session: int = 1) -> Curve:
        """Return the congestion window, bytes."""
        return self.curve(download, f"session-{session}.congestion_window")

    def sent(self, download: Download, session: int = 1) -> Curve:
        """Return the sender's position in its stream, bytes."""
        return self.curve(download, f"session-{session}.sent")

    def queue(self, download: Download, name: str = "forward") -> Curve:
        """Return a queue of the satellite link, packets."""
        return self.curve(download, f"dvb.{name}.queue")

    def goodput_bps(self, download: Download) -> float:
        """Return the goodput of all sessions together, from the start to the end."""
        return sum(8.0 * flow.bytes_delivered for flow in self.flows(download)) / (
            download.duration_s
        )

    def timeouts(self, download: Download) -> int:
        """Return the retransmission timeouts of all sessions."""
        return sum(flow.timeouts for flow in self.flows(download))

    def retransmitted(self, download: Download) -> int:
        """Return the retransmissions of all sessions, in segments."""
        return sum(flow.segments_retransmitted for flow in self.flows(download))

    def needless_retransmissions(self, download: Download) -> int:
        """Return the number of retransmissions beyond the lost and dropped segments."""
        forward = self.direction(download, "forward")
        return self.retransmitted(download) - forward.packets_lost - forward.packets_dropped

    def time_to_send_s(self, download: Download, amounts: Floats) -> Floats:
        """Return the times when the sender first reached these amounts, seconds; NaN if never."""
        sent = self.sent(download)
        highest = np.maximum.accumulate(sent.values)
        index = np.searchsorted(highest, amounts)
        times = np.append(sent.times_s, np.nan)
        found: Floats = times[index]
        return found

    def largest_burst(self, download: Download, after_s: float = 0.0) -> float:
        """Return the largest growth of the satellite interface's queue within a burst, packets."""
        queue = self.queue(download)
        ends = np.arange(after_s + BURST_S, float(download.duration_s), BURST_S)
        grown = queue.at(ends) - queue.at(ends - BURST_S)
        return float(grown.max())

    def sent_mb(self, download: Download) -> float:
        """Return the sender's highest position in its stream, MB."""
        return float(self.sent(download).values.max()) / 1e6

    def ack_bytes(self, download: Download) -> float:
        """Return the mean length of a packet on the return link, with framing."""
        back = self.direction(download, "return")
        return back.bytes_delivered / back.packets_delivered

    def reduction(self, download: Download, unmodified: Download) -> float:
        """Return the share by which a method shortens ACKs, framing included."""
        return 1.0 - self.ack_bytes(download) / self.ack_bytes(unmodified)

    def crossing(self, late: Download, early: Download) -> tuple[float, float]:
        """Return the time and the sent bytes (MB) at which `late` overtakes `early` for good.

        Both are NaN if it stays behind, and 0 if it is ahead from the beginning.
        """
        times = np.arange(_FIRST_S, float(late.duration_s), BURST_S)
        one = self.sent(late).at(times)
        other = self.sent(early).at(times)
        behind = np.flatnonzero(one <= other)
        if not len(behind):
            return 0.0, 0.0
        last = int(behind[-1])
        if last == len(times) - 1:
            return np.nan, np.nan
        return float(times[last]), float(one[last]) / 1e6

    def mean_rtt_s(self, download: Download) -> float:
        """Return the mean round trip that the first session's sender measured, seconds."""
        mean_ms = self.flow(download).rtt_ms.mean
        return np.nan if mean_ms is None else mean_ms / 1e3

    def burst_peak(self, download: Download) -> float:
        """Return the longest queue of the satellite interface that empties within two round trips.

        Those of slow start do. A queue that stays is that of a window larger than the pipe.
        """
        queue = self.queue(download)
        empty = np.flatnonzero(queue.values == 0.0)
        peaks = np.maximum.reduceat(queue.values, empty)[:-1]
        lasting_s = np.diff(queue.times_s[empty])
        return float(peaks[lasting_s <= 2.0 * ROUND_TRIP_S].max())

    def times_empty(self, download: Download) -> int:
        """Return how often the return queue empties after the first transient."""
        queue = self.queue(download, "return").between(SETTLED_S, download.duration_s)
        return int(((queue[:-1] > 0) & (queue[1:] == 0)).sum())

    def queue_of_pipe(self, download: Download) -> float:
        """Return the longest queue of the satellite interface over the bandwidth-delay product."""
        return float(self.curve(download, "dvb.forward.queue_bytes").values.max()) / PIPE_BYTES

    def shares_bps(self, queue: str, return_bps: int) -> NDArray[np.float64]:
        """Return figure 10's goodputs while all three sessions were active.

        One row for each stagger, one column for each session.
        """
        rows = []
        for stagger_s in STAGGERS_S:
            download = staggered(queue, return_bps, stagger_s)
            start_s = 2 * stagger_s
            bits = []
            for session in (1, 2, 3):
                delivered = self.curve(download, f"session-{session}.delivered")
                before = float(delivered.at(start_s)) if session < 3 else 0.0
                bits.append(8.0 * (self.flow(download, session).bytes_delivered - before))
            rows.append([each / (STAGGERED_DURATION_S - start_s) for each in bits])
        return np.array(rows)


def jain(rates: NDArray[np.float64]) -> float:
    """Return Jain's index, the mean over rows: 1 if all are equal, 1/n if one has everything."""
    squares = rates.shape[1] * (rates**2).sum(axis=1)
    return float((rates.sum(axis=1) ** 2 / squares).mean())
