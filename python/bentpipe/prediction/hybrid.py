"""Window limits of a flow for which a hybrid gateway answers: gaid1998, section 3."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from bentpipe.kinds import gateway_kind

if TYPE_CHECKING:
    from bentpipe.prediction.changes import Table
    from bentpipe.prediction.network import Direction

# Without window scaling, the window is a 16-bit number of bytes (RFC 9293 section 3.1).
LARGEST_UNSCALED_WINDOW: Final = 65_535


@dataclass(frozen=True, kw_only=True)
class Window:
    """A number of bytes that may be sent once a round trip."""

    name: str
    size_bytes: float
    round_trip_s: float


def hybrid_windows(
    flow: Table,
    nodes: Mapping[str, Table],
    downlink: Sequence[Direction],
    uplink: Sequence[Direction],
    *,
    packet_bytes: int,
    segment_bytes: int,
) -> tuple[Window, ...]:
    """Return the windows of gaid1998, section 3, and the host's; none without such a gateway."""
    down = next(
        (
            index
            for index, (before, after) in enumerate(pairwise(downlink), 1)
            if gateway_kind(nodes[before.to]["kind"]).acknowledges
            and nodes[before.to]["facing"] == after.name.rpartition(".")[0]
        ),
        None,
    )
    if down is None:
        return ()
    name = downlink[down - 1].to
    up = next((index for index, each in enumerate(uplink, 1) if each.to == name), None)
    if up is None:
        return ()
    gateway = nodes[name]
    sender, receiver = (nodes[flow[end]]["tcp"] for end in ("from", "to"))

    def round_trip_s(there: Sequence[Direction], back: Sequence[Direction]) -> float:
        # A limit uses the shortest round trip: the flow may send while the delay is least.
        travels = sum(each.least_delay_s for each in (*there, *back))
        return travels + max(each.least_packet_time_s(packet_bytes) for each in there)

    to_server_s = round_trip_s(downlink[:down], uplink[up:])
    to_host_s = round_trip_s(downlink[down:], uplink[:up])
    offered = gateway["receive_buffer_bytes"]
    if sender["send_memory_bytes"] is None:
        # A buffer that grows may hold more: see `FlowPath.largest_window_bytes`.
        offered = min(offered, sender["send_buffer_bytes"])
    if not (sender["window_scaling"] and receiver["window_scaling"]):
        offered = min(offered, LARGEST_UNSCALED_WINDOW)
    windows = [
        Window(name="gateway's window", size_bytes=offered, round_trip_s=to_server_s),
        # Memory is reserved when its window is offered. The data arrives a round trip later and
        # stays until the host acknowledges it.
        Window(
            name="gateway's memory",
            size_bytes=gateway["store_bytes"],
            round_trip_s=to_server_s + to_host_s,
        ),
    ]
    anticipation = gateway["anticipation"]
    factor: float = {"unlimited": math.inf, "strict": 1.0}.get(anticipation) or anticipation
    if factor < math.inf:
        # Segments are not divided: the last one may exceed the window.
        size = factor * receiver["receive_buffer_bytes"] + segment_bytes
        windows.append(Window(name="host's window", size_bytes=size, round_trip_s=to_host_s))
    return tuple(windows)
