"""Results of the simulations, beside the formulas' predictions of the same transfers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np
from numpy.typing import NDArray

from bentpipe import model
from bentpipe.errors import WorkError
from bentpipe.studies.obata2000 import cells

if TYPE_CHECKING:
    from bentpipe.results import RunResult
    from bentpipe.studies.obata2000.cells import Network, Transfer

Floats = NDArray[np.float64]

EXISTING_READINGS: Final = {
    "published": "no maximum window, a buffer of one bandwidth-delay product",
    "windowed": "a cycle from half the maximum window to all of it",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Comparison:
    """Throughputs of the same transfers, application bits per second."""

    transfers: Sequence[Transfer]
    simulated_bps: Floats
    formula_bps: Floats
    corrected_bps: Floats
    # Whether an arrival coincided with a delayed-ACK timer, so that the result is arbitrary.
    tied: NDArray[np.bool_]

    @property
    def formula_error(self) -> Floats:
        """Relative error of the printed formula."""
        return self.formula_bps / self.simulated_bps - 1.0

    @property
    def axis_error(self) -> Floats:
        """Error of the printed formula as a share of the axis of figures 5 and 6."""
        return (self.formula_bps - self.simulated_bps) / cells.AXIS_BPS

    @property
    def corrected_error(self) -> Floats:
        """Relative error of the corrected formula."""
        return self.corrected_bps / self.simulated_bps - 1.0


class Evidence:
    """The outcomes of the study's cells, by the claims that they are evidence for."""

    def __init__(self, outcomes: Mapping[Transfer, RunResult]) -> None:
        self.outcomes = outcomes

    def simulated_bps(self, transfer: Transfer) -> float:
        """Return a transfer's throughput as the paper defines it: payload over time.

        The time runs from the first data segment to the last byte; for a connection of a given
        duration, to its end.
        """
        flow = self.outcomes[transfer].flow()
        if transfer.file_bytes is None and transfer.duration_s is not None:
            start_s = flow.first_data_s if flow.first_data_s is not None else flow.start_s
            return 8.0 * flow.bytes_delivered / (transfer.duration_s - start_s)
        time_s = flow.transfer_time_s
        if time_s is None:
            raise WorkError(f"a transfer didn't end: {transfer.scenario().command()}")
        return 8.0 * flow.bytes_delivered / time_s

    def compare(self, transfers: Sequence[Transfer]) -> Comparison:
        """Compare formulas and simulation of file transfers."""
        corrected = _corrected(transfers)
        return Comparison(
            transfers=transfers,
            simulated_bps=np.array([self.simulated_bps(each) for each in transfers]),
            formula_bps=formula_bps(transfers),
            corrected_bps=corrected.throughput_bps,
            tied=corrected.timer_tied,
        )

    @cached_property
    def figures_5_and_6(self) -> Comparison:
        """Every cell of figures 5 and 6 that was simulated, for both readings of KByte."""
        return self.compare([each for each in cells.figures_5_and_6() if each in self.outcomes])

    def figures_5_and_6_of(self, kbyte_bytes: int) -> Comparison:
        """Every cell of figures 5 and 6 with one reading of KByte."""
        return self.compare(cells.figures_5_and_6([kbyte_bytes]))

    @cached_property
    def random(self) -> Comparison:
        """The random networks that were simulated."""
        return self.compare([each for each in cells.random_cells() if each in self.outcomes])

    def vsat(self, network: Network) -> Comparison:
        """Return figure 7's or figure 8's and 10's transfers of table 1's file."""
        return self.compare(cells.vsat_cells(network, timed=False))

    @cached_property
    def saturation_windows(self) -> dict[str, int | None]:
        """The smallest even window that fills the downlink, in segments, by network.

        None where no simulated window does.
        """
        return {
            name: self._saturation_window(network)
            for name, network in cells.saturation_networks().items()
        }

    def _saturation_window(self, network: Network) -> int | None:
        capacity_bps = float(network.path().capacity_bps)
        for window, (shorter, longer) in sorted(cells.saturation_cells(network).items()):
            times = [self.outcomes[each].flow().transfer_time_s for each in (shorter, longer)]
            if times[0] is None or times[1] is None:
                raise WorkError(f"a transfer didn't end: {longer.scenario().command()}")
            first, second = cells.SATURATION_FILES
            rate_bps = 8.0 * (second - first) / (times[1] - times[0])
            # A window one step too small loses 2 to 4%; the measurement of the rate is accurate to
            # 0.05%.
            if rate_bps >= 0.995 * capacity_bps:
                return window
        return None


def formula_bps(
    transfers: Sequence[Transfer], *, delayed_ack_s: float = cells.DELAYED_ACK_S
) -> Floats:
    """Return the paper's formula as printed, bits per second."""
    return model.obata2000.transfer(
        path=_path(transfers),
        transfer_bytes=_sizes(transfers),
        window_segments=_windows(transfers),
        delayed_ack_s=delayed_ack_s,
    ).throughput_bps


def corrected_bps(transfers: Sequence[Transfer]) -> Floats:
    """Return our corrected formula, bits per second."""
    return _corrected(transfers).throughput_bps


def existing_bps(transfers: Sequence[Transfer], *, reading: str) -> Floats:
    """Return the existing formula [4], bits per second, in one of `EXISTING_READINGS`."""
    path = _path(transfers)
    pipe = path.round_trip_s / path.packet_time_s
    windows = _windows(transfers)
    if reading == "published":
        answer = model.lakshman.throughput(path=path, buffer_segments=pipe, segments_per_ack=2)
    else:
        # The buffer never overflows: the window alone ends the cycle.
        answer = model.lakshman.throughput(
            path=path,
            buffer_segments=windows,
            segments_per_ack=2,
            maximum_window_segments=windows,
        )
    return np.asarray(answer.throughput_bps)


def _corrected(transfers: Sequence[Transfer]) -> model.DelayedAckPrediction:
    return model.delayed_ack.transfer(
        path=_path(transfers),
        transfer_bytes=_sizes(transfers),
        window_segments=_windows(transfers),
        delayed_ack_s=[each.network.delayed_ack_s for each in transfers],
    )


def _path(transfers: Sequence[Transfer]) -> model.AsymmetricPath:
    networks = [each.network for each in transfers]
    return model.AsymmetricPath(
        downlink_rate_bps=[each.downlink_bps for each in networks],
        uplink_rate_bps=[each.uplink_bps for each in networks],
        downlink_delay_s=[each.downlink_delay_s for each in networks],
        uplink_delay_s=[each.uplink_delay_s for each in networks],
        segment_payload_bytes=cells.SEGMENT_BYTES,
        header_bytes=cells.HEADER_BYTES,
        ack_bytes=cells.ACK_BYTES,
        redundancy=[float(each.redundancy) for each in networks],
    )


def _windows(transfers: Sequence[Transfer]) -> Floats:
    return np.array([each.window_segments for each in transfers], dtype=np.float64)


def _sizes(transfers: Sequence[Transfer]) -> Floats:
    return np.array([each.file_bytes for each in transfers], dtype=np.float64)
