"""The predictions of the closed forms for a scenario, a flow and a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bentpipe.kinds import applications

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Follows an application's name where both ends send.
BOTH_WAYS: Final = " both ways"


@dataclass(frozen=True, kw_only=True)
class ModelAnswer:
    """The prediction of one model for one flow; no numbers where the model does not apply."""

    name: str
    applies: bool
    reason: str
    throughput_bps: float | None = None
    transfer_time_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class FlowPrediction:
    """The prediction of the closed forms for one flow.

    Times run from the first data segment's departure to the last byte's arrival. They do not
    include the handshake, which takes one more round trip. Rates are application bits per second.

    Windows are zero without TCP. The round trip of calls and echoes is that of their own packets.
    For a flow to a group nothing is sent back: `uplink` is empty, its bottleneck has no name, and
    the round trip is the delay to the receiver.
    """

    name: str
    downlink: tuple[str, ...]
    uplink: tuple[str, ...]
    downlink_bottleneck: str
    uplink_bottleneck: str
    round_trip_s: float
    capacity_bps: float
    loss_rate: float
    window_segments: int
    window_bytes: int
    saturation_window_bytes: int | None
    transfer_bytes: int | None
    # No flow exceeds these; `binding` is the lowest.
    limits_bps: Mapping[str, float]
    binding: str
    # A flow may exceed these: the long-run rate that its ACKs allow, the law of loss of its window
    # rule (where there is one), or an equal share of a link.
    estimates_bps: Mapping[str, float]
    # The lowest of the limits and estimates.
    lowest: str
    # Share of the lowest value by which the goodput may differ from it, up or down. None where an
    # assumption of the formula fails: `doubts` lists those that do.
    margin: float | None = None
    doubts: tuple[str, ...] = ()
    models: tuple[ModelAnswer, ...]
    # Parts of the path that no formula includes, such as 'satellite.return: acks "compaction"'.
    ignored: tuple[str, ...] = ()
    # The application, whether data in both directions is goodput, and whether TCP carries it.
    application: str = "bulk"
    two_way: bool = False
    over_tcp: bool = True
    # Name of the first flow with the same prediction, apart from the names of links.
    like: str = ""
    # Where gateways split the connection: the prediction for each part, in the order of the data.
    # The slowest part governs: the fields above are those of this part, apart from the route.
    parts: tuple[FlowPrediction, ...] = ()

    @property
    def rates_bps(self) -> dict[str, float]:
        """The limits and the estimates."""
        return {**self.limits_bps, **self.estimates_bps}

    @property
    def keeps_sending(self) -> bool:
        """Whether the application always has data to send."""
        kind = applications().get(self.application.removesuffix(BOTH_WAYS))
        return kind is not None and kind.keeps_sending

    @property
    def lowest_bps(self) -> float:
        """The value of the lowest limit or estimate."""
        return self.rates_bps[self.lowest]


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The predictions for every flow of a scenario."""

    scenario: str
    flows: tuple[FlowPrediction, ...]

    def plot(self) -> Figure:
        """Return each flow's limits and estimates as bars, the lowest marked."""
        from bentpipe.plot.prediction_plot import prediction_figure

        return prediction_figure(self)

    def _repr_html_(self) -> str:
        from bentpipe.notebook import html_of_prediction

        return html_of_prediction(self)
