"""Load time of a web page: the sending periods of obata2000 for requests and objects over HTTP.

The paper's future work is "to extend current evaluation formula to the HTTP performance
evaluation". Its formula is a sum of sending periods (equations 8, 10 and 12): period n of a
connection sends w(n) segments and lasts t(n) = max(rtt, a(n), q(n-1)) (equation 2). A page is a
sequence of such transfers over one or several connections. Four rules extend the equations:

1. A response is requested. It begins at the server d_req / Q_ter + tau_ter after the client sends
   the request, and after the server's think time. A connection begins with a round trip for SYN
   and SYN-ACK and the exchanges of TLS, which are small responses.
2. A connection keeps its window. Equations 7 and 11 begin with w(0) = 1 for the first response
   alone; a later one begins with the window that the ones before it have left. A request
   acknowledges all data that arrived before it, so that d of equation 4 applies only within a
   response.
3. Connections share both links. A period's data follows the data of earlier periods, whichever
   connection sent it, and its ACKs and requests follow earlier ones. For one connection this is
   equation 2: the next period begins when the first ACK arrives (rtt, equation 3), not before its
   predecessor's data has left (a(n), equation 5), and its ACKs need q(n) (equation 6).
4. An object is requested when the object that refers to it has arrived. HTTP/1.1 requests one at a
   time on each connection, HTTP/2 all at once on one, answered in order.

As in the paper, nothing is lost, every second segment is acknowledged, and segments of a period
travel together. The window grows by one segment for each ACK (equation 1), or with
`counts_segments` by the segments that it covers. Two corrections of `delayed_ack` are included: of
an odd number of segments, the last waits for the next period while there is more to send; and ACKs
that queue on the uplink space out the segments that they release.

The recursion has one step per period: a page of 100 objects takes some hundred steps. Arguments
broadcast; cells are evaluated one after the other. On random networks (docs/predict.md), page loads
in the simulator are within 25% of the prediction, half of them within 1%.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from ._arrays import (
    BITS_PER_BYTE,
    FloatArray,
    at_least,
    common_shape,
    non_negative,
    positive,
    whole_segments,
)
from .obata2000 import DELAYED_ACK_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import ArrayLike

    from .path import AsymmetricPath

# Connections of a browser to one server.
BROWSER_CONNECTIONS = 6

# Bytes of a client's flight and of the server's answer.
Exchange = tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class Handshake:
    """The exchanges that follow SYN and SYN-ACK, and the bytes sent with the first request."""

    exchanges: Sequence[Exchange] = ()
    with_request_bytes: float = 0.0


NO_TLS = Handshake()


@dataclass(frozen=True, kw_only=True, eq=False)
class PagePrediction:
    """Prediction of a page load for one or many cells, in the broadcast shape.

    Attributes
    ----------
    load_s : ndarray of float
        From the first SYN to the last byte of the last object, seconds.
    first_byte_s : ndarray of float
        From the first SYN to the document's first segment, seconds.
    throughput_bps : ndarray of float
        Bits of all objects over the load time; never above the path's capacity.
    """

    load_s: FloatArray
    first_byte_s: FloatArray
    throughput_bps: FloatArray


def page(
    *,
    path: AsymmetricPath,
    document_bytes: ArrayLike,
    objects: ArrayLike,
    object_bytes: ArrayLike,
    window_segments: ArrayLike,
    levels: ArrayLike = 1,
    pipelined: bool = False,
    connections: int = BROWSER_CONNECTIONS,
    request_bytes: ArrayLike = 400.0,
    think_s: ArrayLike = 0.0,
    first_handshake: Handshake = NO_TLS,
    later_handshake: Handshake = NO_TLS,
    initial_window_segments: ArrayLike = 1.0,
    delayed_ack_s: ArrayLike = DELAYED_ACK_S,
    counts_segments: bool = False,
    grows_if_unused: bool = True,
) -> PagePrediction:
    """Load time of a page with a document and equal objects.

    Parameters
    ----------
    path : AsymmetricPath
    document_bytes, object_bytes : array_like
        Sizes of the document and of each object, bytes. Above 0.
    objects : array_like
        Objects besides the document, a whole number.
    window_segments : array_like
        Advertised window in segments, rounded down; at least 1.
    levels : array_like, default 1
        Levels of discovery: the document refers to the objects of the first, each of these to one
        of the second, and so on.
    pipelined : bool, default False
        HTTP/2: all requests at once on one connection. Otherwise HTTP/1.1.
    connections : int, default 6
        Most connections at a time with HTTP/1.1.
    request_bytes : array_like, default 400
        Bytes of a request.
    think_s : array_like, default 0
        Time of the server for each request, seconds.
    first_handshake, later_handshake : Handshake
        TLS of the first connection and of further ones.
    initial_window_segments : array_like, default 1
        w(0), segments; at least 1.
    delayed_ack_s : array_like, default 0.2
        d of equation 4, seconds.
    counts_segments : bool, default False
        Whether an ACK opens the window by the segments that it covers.
    grows_if_unused : bool, default True
        Whether a window grows in a period that sends less than half of it. RFC 7661 says no.

    Returns
    -------
    PagePrediction
    """
    cells = {
        "packet_s": path.packet_time_s,
        "byte_s": path.packet_time_s / (path.packet_bits / BITS_PER_BYTE),
        "header_bytes": np.asarray(path.header_bytes, dtype=np.float64),
        "segment_bytes": np.asarray(path.segment_payload_bytes, dtype=np.float64),
        "ack_s": path.ack_time_s,
        "up_byte_s": BITS_PER_BYTE / np.asarray(path.uplink_rate_bps, dtype=np.float64),
        "down_delay_s": np.asarray(path.downlink_delay_s, dtype=np.float64),
        "up_delay_s": np.asarray(path.uplink_delay_s, dtype=np.float64),
        "document_bytes": positive("document_bytes", document_bytes),
        "objects": non_negative("objects", objects),
        "object_bytes": positive("object_bytes", object_bytes),
        "levels": at_least("levels", positive("levels", levels), 1.0),
        "window": whole_segments("window_segments", window_segments),
        "initial_window": whole_segments("initial_window_segments", initial_window_segments),
        "request_bytes": positive("request_bytes", request_bytes),
        "think_s": non_negative("think_s", think_s),
        "timer_s": non_negative("delayed_ack_s", delayed_ack_s),
    }
    shape = common_shape(cells)
    flat = {name: np.broadcast_to(array, shape).ravel() for name, array in cells.items()}
    load, first = np.empty(math.prod(shape)), np.empty(math.prod(shape))
    for index in range(len(load)):
        constants = _Constants(**{name: float(array[index]) for name, array in flat.items()})
        loading = _Loading(
            constants,
            most=1 if pipelined else connections,
            pipelined=pipelined,
            handshakes=(first_handshake, later_handshake),
            counts_segments=counts_segments,
            grows_if_unused=grows_if_unused,
        )
        load[index], first[index] = loading.run()
    bits = BITS_PER_BYTE * (flat["document_bytes"] + flat["objects"] * flat["object_bytes"])
    capacity = np.broadcast_to(path.capacity_bps, shape)
    return PagePrediction(
        load_s=load.reshape(shape),
        first_byte_s=first.reshape(shape),
        throughput_bps=np.minimum((bits / load).reshape(shape), capacity),
    )


@dataclass(frozen=True, kw_only=True)
class _Constants:
    """The cell: times in seconds, sizes in bytes, windows in segments."""

    packet_s: float
    byte_s: float
    header_bytes: float
    segment_bytes: float
    ack_s: float
    up_byte_s: float
    down_delay_s: float
    up_delay_s: float
    document_bytes: float
    objects: float
    object_bytes: float
    levels: float
    window: float
    initial_window: float
    request_bytes: float
    think_s: float
    timer_s: float


@dataclass(kw_only=True)
class _Connection:
    """A connection: the server's window, in segments, and backlog; what the client waits for."""

    window: float
    handshake: deque[Exchange]
    with_request_bytes: float
    is_ready: bool = False
    # Responses requested and not yet complete.
    waiting: int = 0
    # Responses to send: object (None for an exchange of the handshake) and missing bytes.
    backlog: deque[tuple[int | None, float]] = field(default_factory=deque)
    # Sent in this period, and the time at which the next may begin.
    sent_bytes: float = 0.0
    segments: int = 0
    next_s: float = 0.0
    period: int = 0
    first_ack_due: bool = True
    # Whether the window left a part of the backlog.
    backlog_left: bool = False
    # Time for each byte that queued ACKs allow, if they are slower than the downlink.
    release_s: float = 0.0


class _Loading:
    """The load of one page, period by period."""

    def __init__(
        self,
        constants: _Constants,
        *,
        most: int,
        pipelined: bool,
        handshakes: tuple[Handshake, Handshake],
        counts_segments: bool,
        grows_if_unused: bool,
    ) -> None:
        self._of = constants
        self._most = most
        self._pipelined = pipelined
        self._handshakes = handshakes
        self._counts_segments = counts_segments
        self._grows_if_unused = grows_if_unused
        self._sizes = [constants.document_bytes] + [constants.object_bytes] * int(constants.objects)
        self._children = _children(int(constants.objects), int(constants.levels))
        self._missing = len(self._sizes)
        self._wanted: deque[int] = deque([0])
        self._connections: list[_Connection] = []
        self._down_free_s = self._up_free_s = 0.0
        self._first_byte_s = math.inf
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._numbers = count()

    def run(self) -> tuple[float, float]:
        """Return the times of the last byte and of the document's first segment."""
        now_s = 0.0
        self._dispatch(now_s)
        while self._missing:
            now_s, _, event = heapq.heappop(self._events)
            event(now_s)
        return now_s, self._first_byte_s

    def _at(self, time_s: float, event: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (time_s, next(self._numbers), event))

    def _dispatch(self, now_s: float) -> None:
        """Request wanted objects on free connections, and open connections for the others."""
        for connection in self._connections:
            while (
                self._wanted
                and connection.is_ready
                and (self._pipelined or connection.waiting == 0)
            ):
                object_ = self._wanted.popleft()
                request_bytes = self._of.request_bytes + connection.with_request_bytes
                connection.with_request_bytes = 0.0
                size = self._sizes[object_]
                self._request(connection, object_, (request_bytes, size), now_s)
        coming = sum(not each.is_ready for each in self._connections)
        for _ in range(min(len(self._wanted) - coming, self._most - len(self._connections))):
            self._open(now_s)

    def _open(self, now_s: float) -> None:
        handshake = self._handshakes[min(len(self._connections), 1)]
        connection = _Connection(
            window=min(self._of.initial_window, self._of.window),
            handshake=deque(handshake.exchanges),
            with_request_bytes=handshake.with_request_bytes,
        )
        self._connections.append(connection)
        # SYN and SYN-ACK are about as long as ACKs.
        there_s = self._upload(now_s, self._of.ack_s)
        self._at(there_s, lambda at_s: self._accept(connection, at_s))

    def _accept(self, connection: _Connection, now_s: float) -> None:
        back_s = self._download(now_s, self._of.byte_s * self._of.header_bytes)
        self._at(back_s, lambda at_s: self._shake_hands(connection, at_s))

    def _shake_hands(self, connection: _Connection, now_s: float) -> None:
        if connection.handshake:
            self._request(connection, None, connection.handshake.popleft(), now_s)
        else:
            connection.is_ready = True
            self._dispatch(now_s)

    def _request(
        self, connection: _Connection, object_: int | None, exchange: Exchange, now_s: float
    ) -> None:
        request_bytes, response_bytes = exchange
        packets = math.ceil(request_bytes / self._of.segment_bytes)
        size = request_bytes + packets * self._of.header_bytes
        acknowledges_all = connection.waiting == 0
        connection.waiting += 1
        arrives_s = self._upload(now_s, size * self._of.up_byte_s)

        def answer(at_s: float) -> None:
            if acknowledges_all:
                connection.next_s = at_s
            connection.backlog.append((object_, response_bytes))
            self._send(connection, at_s)

        self._at(arrives_s + (0.0 if object_ is None else self._of.think_s), answer)

    def _send(self, connection: _Connection, now_s: float) -> None:
        """Send what the window allows; the rest in the next period."""
        segment = self._of.segment_bytes
        if now_s >= connection.next_s:
            self._begin_period(connection)
        began_s = max(now_s, self._down_free_s)
        segments = 0
        while connection.backlog:
            object_, missing = connection.backlog[0]
            room = connection.window * segment - connection.sent_bytes
            # Only the last segment of a response is shorter than a full one.
            size = missing if missing <= room else room // segment * segment
            if size <= 0.0:
                break
            if object_ == 0:
                first = min(size, segment) + self._of.header_bytes
                first_s = began_s + first * self._of.byte_s + self._of.down_delay_s
                self._first_byte_s = min(self._first_byte_s, first_s)
            packets = math.ceil(size / segment)
            time_s = (size + packets * self._of.header_bytes) * self._of.byte_s
            arrives_s = self._download(now_s, time_s)
            segments += packets
            connection.sent_bytes += size
            # A segment leaves when the ACK that allows it has arrived.
            released_s = now_s + connection.sent_bytes * connection.release_s
            arrives_s = max(arrives_s, released_s + self._of.down_delay_s)
            if size < missing:
                connection.backlog[0] = (object_, missing - size)
            else:
                connection.backlog.popleft()
                self._at(arrives_s, partial(self._arrived, connection, object_))
        if segments:
            self._acknowledge(connection, segments, began_s)

    def _begin_period(self, connection: _Connection) -> None:
        """Open the window by the ACKs of the period before: equation 1."""
        segment = self._of.segment_bytes
        # With more to send, the last of an odd number of segments waits for the next period.
        odd = connection.backlog_left and connection.segments > 1
        waits = connection.segments % 2 if odd else 0
        acks = math.ceil((connection.segments - waits) / 2)
        acknowledged = connection.sent_bytes / segment - waits
        grown = acknowledged if self._counts_segments else acks
        is_used = 2.0 * connection.sent_bytes > connection.window * segment
        if self._grows_if_unused or is_used:
            connection.window = min(connection.window + grown, self._of.window)
        is_queued = acks > 1 and self._of.ack_s > 2.0 * self._of.packet_s
        window_bytes = connection.window * segment
        connection.release_s = acks * self._of.ack_s / window_bytes if is_queued else 0.0
        connection.sent_bytes, connection.segments = waits * segment, waits
        connection.first_ack_due = True
        connection.period += 1

    def _acknowledge(self, connection: _Connection, segments: int, began_s: float) -> None:
        """Let the first ACK of a period allow the next one: equations 3 and 4."""
        pair = max(1, min(2 - connection.segments, segments))
        connection.segments += segments
        connection.backlog_left = bool(connection.backlog)
        if not connection.first_ack_due:
            return
        connection.first_ack_due = False
        connection.next_s = math.inf
        pair_s = began_s + pair * self._of.packet_s + self._of.down_delay_s
        if connection.segments == 1 and connection.backlog_left:
            pair_s += self._of.timer_s
        self._at(pair_s, partial(self._first_ack, connection, connection.period))

    def _first_ack(self, connection: _Connection, period: int, now_s: float) -> None:
        if period != connection.period:
            # A request has acknowledged the period's data.
            return
        # Behind the ACKs and requests that the uplink carries: q(n-1).
        arrives_s = self._upload(now_s, self._of.ack_s)
        if self._of.ack_s > 2.0 * self._of.packet_s:
            # The period's other ACKs queue, and arrive at the server one after the other.
            self._up_free_s += (math.ceil(connection.segments / 2) - 1) * self._of.ack_s
        connection.next_s = arrives_s
        self._at(arrives_s, partial(self._send, connection))

    def _arrived(self, connection: _Connection, object_: int | None, now_s: float) -> None:
        connection.waiting -= 1
        if object_ is None:
            self._shake_hands(connection, now_s)
            return
        self._missing -= 1
        self._wanted.extend(self._children[object_])
        self._dispatch(now_s)

    def _upload(self, now_s: float, time_s: float) -> float:
        """Return the arrival at the server of what the client sends now."""
        self._up_free_s = max(now_s, self._up_free_s) + time_s
        return self._up_free_s + self._of.up_delay_s

    def _download(self, now_s: float, time_s: float) -> float:
        """Return the arrival at the client of what the server sends now."""
        self._down_free_s = max(now_s, self._down_free_s) + time_s
        return self._down_free_s + self._of.down_delay_s


def _children(objects: int, levels: int) -> list[list[int]]:
    """Return the objects that each object refers to; 0 is the document."""
    each = max(1, math.ceil(objects / max(1, min(levels, objects))))
    found: list[list[int]] = [[] for _ in range(objects + 1)]
    for number in range(1, objects + 1):
        found[0 if number <= each else number - each].append(number)
    return found
