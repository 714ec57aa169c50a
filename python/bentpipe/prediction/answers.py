"""What the closed forms say: of a scenario, of a flow, of a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ModelAnswer:
    """What one model says of one flow; no numbers where it doesn't apply."""

    name: str
    applies: bool
    reason: str
    throughput_bps: float | None = None
    transfer_time_s: float | None = None


@dataclass(frozen=True, kw_only=True)
class FlowPrediction:
    """The closed forms' view of one flow.

    Times run from the first data segment's departure to the last byte's arrival: the handshake,
    one round trip more, isn't in them. Rates are application bits per second.

    Of what is no TCP, windows are zero. Of calls and echoes the round trip is that of their own
    packets; of a flow to a group, on which nothing comes back, `uplink` is empty, its
    bottleneck has no name, and the round trip is the way there.
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
    # Nothing passes these; `binding` is the lowest.
    limits_bps: Mapping[str, float]
    binding: str
    # These a flow may pass: what its ACKs or its rule's answer to loss would come to in the long
    # run, or its share of a link if all transfers over it got the same. Of a rule for which there
    # is no formula, nothing is said about losses.
    estimates_bps: Mapping[str, float]
    # The lowest of the limits and estimates.
    lowest: str
    # Share of the lowest by which the goodput may differ from it: above for an estimate, and below.
    # None where an assumption of the formula fails; `doubts` has those that do.
    margin: float | None = None
    doubts: tuple[str, ...] = ()
    models: tuple[ModelAnswer, ...]
    # What the path does that the formulas don't know of: 'satellite.return: acks "compaction"'.
    ignored: tuple[str, ...] = ()
    # What the flow does; whether data both ways is its goodput; whether TCP carries it.
    application: str = "bulk"
    two_way: bool = False
    over_tcp: bool = True
    # The first flow with the same prediction, but for the names of links.
    like: str = ""
    # Where gateways split the connection: each part's prediction, in the order of the data. The
    # slowest governs, and all that is said above but the route is that part's.
    parts: tuple[FlowPrediction, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The predictions for every flow of a scenario."""

    scenario: str
    flows: tuple[FlowPrediction, ...]
