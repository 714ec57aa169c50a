"""Results of the simulations by claim: medians and quartiles over seeds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bentpipe.errors import WorkError
from bentpipe.studies.vanzara2014.cells import (
    DURATION_S,
    PAYLOAD_BYTES,
    POINTS_S,
    RECEIVED,
    SAMPLES_S,
    SEEDS,
    SMALL_FILE_SEEDS,
    WINDOW,
    Contest,
    StudyCell,
    Transfer,
    over_seeds,
)

if TYPE_CHECKING:
    from bentpipe.results import FlowResult, RunResult

Floats = NDArray[np.float64]
# 10 s, 20 s, ... 600 s.
TIMES_S: Floats = np.arange(POINTS_S, DURATION_S + 1, POINTS_S, dtype=np.float64)
SECONDS: Floats = np.arange(SAMPLES_S, DURATION_S + 1, SAMPLES_S, dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class Spread:
    """A quantity over seeds."""

    median: float
    lower_quartile: float
    upper_quartile: float
    runs: int

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Summarise the values."""
        low, middle, high = np.percentile(values, (25, 50, 75))
        return cls(
            median=float(middle),
            lower_quartile=float(low),
            upper_quartile=float(high),
            runs=len(values),
        )


@dataclass(frozen=True, kw_only=True)
class Sharing:
    """Shares of the link in a contest; goodputs in bit/s, delay in seconds."""

    jain: float
    subject_bps: float
    rival_bps: float
    queueing_delay_s: float


def _at(times_s: Floats, values: Floats, wanted_s: Floats) -> Floats:
    """Return the samples at the wanted times; a sample holds until the next one."""
    index = np.searchsorted(times_s, wanted_s + 1e-9, side="right") - 1
    return np.append(values, 0.0)[index]


def received_bits(outcome: RunResult, times_s: Floats = TIMES_S) -> Floats:
    """Return the bits received by each time, in order or not, each counted once."""
    series = outcome.series[RECEIVED]
    return 8.0 * _at(series.times_s, series.values, times_s)


class Evidence:
    """The outcomes of the study's cells."""

    def __init__(self, outcomes: Mapping[StudyCell, RunResult]) -> None:
        self.outcomes = outcomes

    def has(self, transfer: Transfer) -> bool:
        """Whether the transfer was simulated, with the first seed at least."""
        return replace(transfer, seed=SEEDS[0]) in self.outcomes

    def transfers(self, transfer: Transfer) -> list[Transfer]:
        """Return the transfer with every simulated seed.

        Raises
        ------
        WorkError
            There is none.
        """
        seeds = SMALL_FILE_SEEDS if transfer.file_bytes is not None else SEEDS
        found = [each for each in over_seeds(transfer, seeds) if each in self.outcomes]
        if not found:
            raise WorkError(f"not simulated: {transfer.scenario().command()}")
        return found

    def flow(self, transfer: Transfer) -> FlowResult:
        """Return the result of a transfer."""
        return self.outcomes[transfer].flow()

    def received_bits(self, transfer: Transfer, times_s: Floats = TIMES_S) -> Floats:
        """Return the bits received by each time of a transfer of ten minutes, in order or not."""
        return received_bits(self.outcomes[transfer], times_s)

    def window_packets(self, transfer: Transfer) -> Floats:
        """Return the congestion window at each of `SECONDS`, in packets."""
        series = self.outcomes[transfer].series[WINDOW]
        return _at(series.times_s, series.values, SECONDS) / PAYLOAD_BYTES

    def curves_bps(self, transfer: Transfer) -> Floats:
        """Return goodputs from the start to each of `TIMES_S`, one row a seed."""
        return np.array([self.received_bits(each) / TIMES_S for each in self.transfers(transfer)])

    def rates_bps(self, transfer: Transfer) -> Floats:
        """Return goodputs in each interval that ends at one of `TIMES_S`, one row a seed."""
        rows = [np.diff(self.received_bits(each), prepend=0.0) for each in self.transfers(transfer)]
        return np.array(rows) / POINTS_S

    def reached_s(self, transfer: Transfer, rate_bps: float) -> float:
        """Return the first time at which a second's goodput reaches a rate; infinity if never."""
        rates = np.diff(self.received_bits(transfer, SECONDS), prepend=0.0) / SAMPLES_S
        there = np.flatnonzero(rates >= rate_bps)
        return float(SECONDS[there[0]]) if len(there) else float("inf")

    def goodput_bps(self, transfer: Transfer) -> float:
        """Return a single run's goodput: over ten minutes, or over the file's time.

        A file's time runs from the first data segment to its last byte, without the handshake.
        """
        flow = self.flow(transfer)
        if transfer.file_bytes is None:
            return float(self.received_bits(transfer, TIMES_S[-1:])[0]) / DURATION_S
        if flow.transfer_time_s is None:
            raise WorkError(f"a transfer didn't end: {transfer.scenario().command()}")
        return 8.0 * transfer.file_bytes / flow.transfer_time_s

    def goodputs_bps(self, transfer: Transfer) -> list[float]:
        """Return the goodput of every seed."""
        return [self.goodput_bps(each) for each in self.transfers(transfer)]

    def spread(self, transfer: Transfer) -> Spread:
        """Return the goodput over seeds, bit/s."""
        return Spread.of(self.goodputs_bps(transfer))

    def median_bps(self, transfer: Transfer) -> float:
        """Return the median goodput over seeds."""
        return self.spread(transfer).median

    def median_of(self, transfer: Transfer, what: Callable[[FlowResult], float]) -> float:
        """Return the median over seeds of another quantity of a run."""
        return float(np.median([what(self.flow(each)) for each in self.transfers(transfer)]))

    def sharing(self, contest: Contest) -> Sharing | None:
        """Return the shares of a contest's flows, if it was simulated."""
        if contest not in self.outcomes:
            return None
        result = self.outcomes[contest]
        flows = result.summary.flows
        rates = np.array([8.0 * each.bytes_delivered / DURATION_S for each in flows])
        subject = np.array([each.name.startswith("subject") for each in flows])
        trips_ms = [each.rtt_ms.mean for each in flows if each.rtt_ms.mean is not None]
        least_ms = min(each.rtt_ms.min for each in flows if each.rtt_ms.min is not None)
        return Sharing(
            jain=float(rates.sum() ** 2 / (len(rates) * (rates**2).sum())),
            subject_bps=float(rates[subject].mean()),
            rival_bps=float(rates[~subject].mean()),
            queueing_delay_s=(float(np.mean(trips_ms)) - least_ms) / 1e3,
        )
