"""Page loads of a web flow: what the model of `bentpipe.model.http` needs, and its answer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from bentpipe import model
from bentpipe.model.http import BROWSER_CONNECTIONS, NO_TLS, Handshake
from bentpipe.prediction.obstacles import lossless_obstacle
from bentpipe.prediction.predictions import ModelAnswer
from bentpipe.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from bentpipe.prediction.changes import Table
    from bentpipe.prediction.paths import FlowPath

# Flights of usual lengths, as the simulator's browser has them: RFC 8446 and RFC 5246; by the
# version, and whether the connection resumes a session.
_HANDSHAKES: Final = {
    ("off", False): NO_TLS,
    ("off", True): NO_TLS,
    ("1.3", False): Handshake(exchanges=((517, 3_600),), with_request_bytes=80),
    ("1.3", True): Handshake(exchanges=((600, 250),), with_request_bytes=80),
    ("1.2", False): Handshake(exchanges=((250, 3_500), (126, 51))),
    ("1.2", True): Handshake(exchanges=((500, 150),), with_request_bytes=51),
}
# A typical page where pages are random, by kind: bytes of the document, objects, bytes of each. The
# median page of the Web Almanac has 71 requests and 2412 kB; 3GPP's (TR 25.892) is the mean one.
_TYPICAL: Final = {
    "web-almanac": (33_972, 70, 33_972),
    "3gpp": (10_710, 4, 7_758),
}
# Deviation from runs on random networks: the largest, or the mean and four standard deviations
# where that is more, rounded up to the next 5% (tests/python/test_prediction_pages.py).
MARGIN: Final = 0.25


@dataclass(frozen=True, kw_only=True)
class WebPage:
    """Pages of a web flow; typical ones where they are random."""

    kind: str
    document_bytes: int
    objects: int
    object_bytes: int
    levels: int
    pipelined: bool
    tls: str
    resumption: bool
    request_bytes: int
    think_s: float

    @classmethod
    def of(cls, app: Table) -> WebPage | None:
        """Return the pages of a resolved application; None if it has none."""
        if app["kind"] != "web":
            return None
        page = app["page"]
        kind = page if isinstance(page, str) else "fixed"
        sizes = ("document_bytes", "objects", "object_bytes")
        found = _TYPICAL[kind] if isinstance(page, str) else tuple(page[name] for name in sizes)
        document_bytes, objects, object_bytes = found
        return cls(
            kind=kind,
            document_bytes=document_bytes,
            objects=objects,
            object_bytes=object_bytes,
            levels=app["levels"],
            pipelined=app["http"] == "2",
            tls=app["tls"],
            resumption=app["resumption"],
            request_bytes=app["request_bytes"],
            think_s=app["think_s"],
        )


def page_load(path: FlowPath) -> ModelAnswer | None:
    """Return the model's answer for the first page of a web flow; None for other applications."""
    page = path.page
    if page is None:
        return None
    name = "http"
    size = page.document_bytes + page.objects * page.object_bytes
    obstacle = _obstacle(path, page, size)
    if obstacle is not None:
        return ModelAnswer(name=name, applies=False, reason=obstacle)
    answer = model.http.page(
        path=path.asymmetric(),
        document_bytes=page.document_bytes,
        objects=page.objects,
        object_bytes=page.object_bytes,
        levels=page.levels,
        pipelined=page.pipelined,
        request_bytes=page.request_bytes,
        think_s=page.think_s,
        first_handshake=_HANDSHAKES[page.tls, page.resumption],
        later_handshake=_HANDSHAKES[page.tls, True],
        window_segments=path.window_segments,
        initial_window_segments=path.initial_window_segments,
        delayed_ack_s=0.0 if path.quick_acks else path.delayed_ack_s,
        counts_segments=path.counts_bytes,
        grows_if_unused=path.grows_if_unused,
    )
    which = "the first page"
    if page.kind != "fixed":
        which = f"a first page of usual size ({1 + page.objects} requests, {format_bytes(size)})"
    return ModelAnswer(
        name=name,
        applies=True,
        reason=(
            f"{which}, from the SYN to the last byte; the first byte is there after "
            f"{format_seconds(float(answer.first_byte_s))}; runs with such a page differ by up to "
            f"{MARGIN:.0%}"
        ),
        throughput_bps=float(answer.throughput_bps),
        transfer_time_s=float(answer.load_s),
    )


def _obstacle(path: FlowPath, page: WebPage, size_bytes: int) -> str | None:
    """Return why the model does not apply; None if it does."""
    if path.parts:
        return "gateways split the connection; the model has one connection from end to end"
    # The margin was measured with HyStart, and with ACKs that are not delayed at first.
    plain = replace(path, transfer_bytes=size_bytes, quick_acks=0, slow_start="byte-counting")
    obstacle = lossless_obstacle(plain)
    if obstacle is None and path.segments_per_ack == 1:
        obstacle = "it assumes delayed ACKs"
    if obstacle is not None:
        return obstacle
    asymmetric = path.asymmetric()
    at_once = page.objects if page.pipelined else min(page.objects, BROWSER_CONNECTIONS)
    request_bits = 8.0 * (page.request_bytes + path.header_bytes)
    queue_s = at_once * request_bits / path.up_bottleneck.rate_bps
    # RFC 6298 section 2.2: the first timeout is three round trips.
    round_trip_s = float(asymmetric.round_trip_s)
    timeout_s = max(path.minimum_rto_s, 3.0 * round_trip_s)
    if path.initial_window_segments == 1 and round_trip_s + path.delayed_ack_s >= timeout_s:
        return (
            "the ACK of the first segment is delayed until the retransmission timer expires; "
            "it assumes no timeouts"
        )
    if queue_s > timeout_s - round_trip_s:
        return (
            f"{at_once} requests at once take the uplink {format_seconds(queue_s)}, so that "
            "retransmission timers expire; it assumes no timeouts"
        )
    return None
