"""Our corrected formula: a loss-free Reno transfer with delayed ACKs, exact in each round.

The formula of obata2000 gives each round one duration, max(rtt, a, q). A window of w segments has
ceil(w/2) ACKs. In its figures 5 and 6, with ns-2's delayed ACK of 100 ms and d = 200 ms in the
formula, this is within 2% of the axis (1250 kbit/s) of the simulation. Relative to each value, four
simplifications cost up to 18%, and up to 23% if the receiver waits 200 ms as well (a window of five
segments). The percentages below are those with 200 ms:

1. A window with an odd number of segments leaves one without a partner. Its ACK waits for the
   delayed-ACK timer d. Segments released by this ACK travel d behind the rest, and a round later d
   further behind. This ends when the next round's first segment arrives within d of the last.
   From then on one segment of the window is always waiting. An odd window W usually ends as W - 1
   segments every rtt - D, not W every rtt. (D is a segment's time on the downlink; 1 in 11 segments
   is the 8% of the 16 KByte cells.)
2. Once paired like that, W segments make (W - 1)/2 ACKs a round, not ceil(W/2). Where the ACKs are
   the limit, odd windows are faster than the formula says (7% for 11 segments over 4 kbit/s).
3. Slow start has odd rounds too. Their last segment is acknowledged d later or together with the
   next round. The window therefore grows more slowly than by ceil(w/2). In figure 5's 192 KByte
   cell, the rounds are 1 2 3 5 6 9 15 21 ... segments. The formula has 1 2 3 5 8 12 18 27 (2 to 3%
   of the transfer).
4. t_max charges the first full window with the ACKs of a full window before it. There were only
   those of the last, smaller slow-start round (4% at 128 KByte over 4 kbit/s, the other way).

The recurrence
--------------
A *round* is the set of segments released by the ACKs of the round before. Let D = alpha P / Q_sat
be a segment's time on the downlink and A = d_ack / Q_ter an ACK's on the uplink. In a round with
segments i = 0, 1, ... released at s(i):

* Downlink: x(i) = max(s(i), x(i-1)) + D; arrival r(i) = x(i) + tau_sat.
* Client: the first segment of a pair starts the timer, the second sends the ACK, g = r(i).
  If r(i+1) - r(i) >= d, the timer expires first: g = r(i) + d, and the pairs restart.
  The last segment of an odd run waits for the first of the next round, or for the timer.
* Uplink: y(j) = max(g(j), y(j-1)) + A; the ACK reaches the server at e(j) = y(j) + tau_ter.
* Server: ACK j covers the segments up to c(j) and opens the window by one.
  Segments up to c(j) + min(cwnd + j, W) may leave.
  Each is released by the first ACK that allows it: s = e(j).
  With `counts_segments`, an ACK opens the window by the number of segments that it covers.

Both recursions are linear in the max-plus algebra. Their solution is that of Lindley's recursion,
a running maximum: x(i) = (i+1) D + max(x(-1), max over k <= i of (s(k) - k D)). Therefore a round
costs a few array operations, whatever its size, for any number of transfers side by side.

Ties
----
The timer spaces segments out by exactly d. Therefore, in a later round, a second segment can arrive
in the very instant in which the first one's timer expires. This follows from the dynamics, and
happens in a few networks of a thousand. The order of the two events decides every round, and the
throughput with it (14% in one network). In ns-2, rounding and the order of events decide: the
arrival came first in three of four such networks. The model takes `arrival_wins_ties` as an
argument, and reports in `timer_tied` that the answer may depend on it.

The steady state
----------------
Once the window is at its maximum, a round is a function of the one before that commutes with
shifts in time. A max-plus system of this kind becomes periodic after a finite transient. The timer
adds a switch, which depends on differences of times only. The code looks for a round that equals
an earlier one up to a shift. It uses Brent's cycle search: it compares with a stored round, and
stores a new one at every power of two. From there the rest is closed-form. Suppose that the same
round returns lambda rounds later, S segments and P seconds further on. Then k cycles take k P, and
S d_seg / P is the long-run throughput. Only the last, incomplete cycle is evaluated again. For an
even window of w segments in pairs the cycle is one round with P = max(tau + 2D + A, w D, A w/2).
That is obata2000's t_max. For an odd window, it is usually one round of w - 1 segments with
P = max(tau + D + A, (w-1) D, A (w-1)/2). If no cycle is found before the transfer ends, every round
has been evaluated.

Cost: a transfer takes (transient + one or two cycles) rounds, not one step per packet. The
transient is about log_1.5(W) rounds plus, for an odd window, a few times rtt/d.

Assumptions
-----------
No loss, no queue limits, no SYN exchange, and no Nagle hold-back of the last segment. Slow start
lasts until the advertised window (infinite initial threshold). The receiver never acknowledges
early (no quick-ACK phase). Its timer runs from the first unacknowledged segment, as in ns-2's
DelAck sink and RFC 1122 section 4.2.3.2. A BSD-style 200 ms heartbeat is not modelled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ._arrays import (
    BITS_PER_BYTE,
    BoolArray,
    FloatArray,
    IntArray,
    common_shape,
    non_negative,
    positive,
    whole_segments,
)
from ._rounds import Transfers, first_round, next_round, same, snapshot
from .obata2000 import DELAYED_ACK_S

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .path import AsymmetricPath

_BLOCK_ELEMENTS = 2_000_000
"""Transfers are worked on in blocks of about this many (transfer, segment) elements: 16 MB each
array, a dozen alive at a time."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DelayedAckPrediction:
    """Prediction of the corrected formula for one or many transfers, in the broadcast shape.

    Attributes
    ----------
    transfer_time_s : ndarray of float
        First segment leaves the server to last byte at the client, seconds.
    throughput_bps : ndarray of float
        Transfer bits over that time, application bits per second.
    rounds : ndarray of int
        Rounds evaluated, cycles jumped over not counted: the cost of the answer.
    cycle_rounds : ndarray of int
        lambda, rounds in a steady-state cycle; 0 where the transfer ended before one repeated.
    cycle_segments : ndarray of int
        S, segments in a cycle; 0 likewise.
    cycle_time_s : ndarray of float
        P, seconds in a cycle; NaN likewise.
    timer_tied : ndarray of bool
        True where an arrival met a timer in one instant, so that `arrival_wins_ties` decided.
    """

    transfer_time_s: FloatArray
    throughput_bps: FloatArray
    rounds: IntArray
    cycle_rounds: IntArray
    cycle_segments: IntArray
    cycle_time_s: FloatArray
    timer_tied: BoolArray


@dataclass(kw_only=True)
class _Answer:
    """Flat result arrays, filled in as transfers end."""

    last_arrival_s: FloatArray
    rounds: IntArray
    cycle_rounds: IntArray
    cycle_segments: IntArray
    cycle_time_s: FloatArray
    timer_tied: BoolArray


def transfer(
    *,
    path: AsymmetricPath,
    transfer_bytes: ArrayLike,
    window_segments: ArrayLike,
    delayed_ack_s: ArrayLike = DELAYED_ACK_S,
    initial_window_segments: ArrayLike = 1.0,
    counts_segments: bool = False,
    arrival_wins_ties: bool = True,
) -> DelayedAckPrediction:
    """Time and throughput of a loss-free transfer, exact under the assumptions above.

    Parameters
    ----------
    path : AsymmetricPath
    transfer_bytes : array_like
        F, application bytes, above 0; the last segment carries what is left over, and only its
        own bytes take time on the downlink.
    window_segments : array_like
        W, advertised window in segments, rounded down; at least 1.
    delayed_ack_s : array_like, default 0.2
        d, seconds; 0 acknowledges every segment at once.
    initial_window_segments : array_like, default 1
        Segments sent before the first ACK, rounded down; at least 1.
    counts_segments : bool, default False
        Whether an ACK opens the window by the segments it covers (RFC 3465 without a limit, as in
        Linux) and not by one (RFC 5681, as in the paper).
    arrival_wins_ties : bool, default True
        Whether a segment that arrives in the instant of the delayed-ACK timer is still covered by
        the ACK (it pairs up), or just missed it.

    Returns
    -------
    DelayedAckPrediction

    Notes
    -----
    A round is held in memory: some 150 bytes for each segment of the widest window, or of the
    transfer where that is smaller.
    """
    arguments = {
        "packet_s": path.packet_time_s,
        "ack_s": path.ack_time_s,
        "down_delay_s": np.asarray(path.downlink_delay_s, dtype=np.float64),
        "up_delay_s": np.asarray(path.uplink_delay_s, dtype=np.float64),
        "delayed_ack_s": non_negative("delayed_ack_s", delayed_ack_s),
        "window_segments": whole_segments("window_segments", window_segments),
        "initial_window_segments": whole_segments(
            "initial_window_segments", initial_window_segments
        ),
        "transfer_bytes": positive("transfer_bytes", transfer_bytes),
        "payload_bytes": np.asarray(path.segment_payload_bytes, dtype=np.float64),
    }
    shape = common_shape(arguments)
    flat = {
        name: np.ascontiguousarray(np.broadcast_to(array, shape)).ravel()
        for name, array in arguments.items()
    }
    segments = np.ceil(flat["transfer_bytes"] / flat["payload_bytes"])
    # No transfer sees more of a window than its own length; this also keeps inputs in int64.
    window = np.minimum(flat["window_segments"], segments)
    transfers = Transfers(
        packet_s=flat["packet_s"],
        ack_s=flat["ack_s"],
        down_delay_s=flat["down_delay_s"],
        up_delay_s=flat["up_delay_s"],
        timer_s=flat["delayed_ack_s"],
        window=window.astype(np.int64),
        initial_window=np.minimum(flat["initial_window_segments"], segments).astype(np.int64),
        segments=segments.astype(np.int64),
        arrival_wins_ties=np.full(len(segments), arrival_wins_ties, dtype=np.bool_),
        counts_segments=np.full(len(segments), counts_segments, dtype=np.bool_),
    )
    answer = _solve_in_blocks(transfers)

    missing_bytes = segments * flat["payload_bytes"] - flat["transfer_bytes"]
    downlink_bps = np.broadcast_to(np.asarray(path.downlink_rate_bps, dtype=np.float64), shape)
    redundancy = np.broadcast_to(np.asarray(path.redundancy, dtype=np.float64), shape)
    not_sent_s = redundancy * (missing_bytes.reshape(shape) * BITS_PER_BYTE) / downlink_bps
    time = answer.last_arrival_s.reshape(shape) - not_sent_s
    bits = flat["transfer_bytes"].reshape(shape) * BITS_PER_BYTE
    # The recurrence cannot exceed the link's rate; the minimum removes rounding errors only.
    time = np.maximum(time, bits / path.capacity_bps)
    return DelayedAckPrediction(
        transfer_time_s=time,
        throughput_bps=np.minimum(bits / time, path.capacity_bps),
        rounds=answer.rounds.reshape(shape),
        cycle_rounds=answer.cycle_rounds.reshape(shape),
        cycle_segments=answer.cycle_segments.reshape(shape),
        cycle_time_s=answer.cycle_time_s.reshape(shape),
        timer_tied=answer.timer_tied.reshape(shape),
    )


def _solve_in_blocks(transfers: Transfers) -> _Answer:
    count = len(transfers.segments)
    answer = _Answer(
        last_arrival_s=np.zeros(count),
        rounds=np.zeros(count, dtype=np.int64),
        cycle_rounds=np.zeros(count, dtype=np.int64),
        cycle_segments=np.zeros(count, dtype=np.int64),
        cycle_time_s=np.full(count, np.nan),
        timer_tied=np.zeros(count, dtype=np.bool_),
    )
    # Similar windows side by side: a block is padded to its longest round.
    order = np.argsort(transfers.window, kind="stable")
    begin = 0
    while begin < count:
        widest = np.maximum(transfers.window[order[begin:]], 1)
        fits = np.arange(1, len(widest) + 1) * widest <= _BLOCK_ELEMENTS
        end = begin + max(1, int(np.count_nonzero(fits)))
        _solve(transfers, order[begin:end], answer)
        begin = end
    return answer


def _solve(transfers: Transfers, index: IntArray, answer: _Answer) -> None:
    """Evaluate the transfers at `index` to their ends, and write the results into `answer`."""
    keep = np.zeros(len(transfers.segments), dtype=np.bool_)
    keep[index] = True
    index = np.flatnonzero(keep)
    live = transfers.rows(keep)
    now = first_round(live)
    kept = snapshot(now)
    kept_at, turn = 0, 0
    while True:
        done = now.base + now.size >= live.segments
        if bool(np.any(done)):
            answer.last_arrival_s[index[done]] = now.last_arrival()[done]
            answer.rounds[index[done]] = turn + 1
            answer.timer_tied[index[done]] = now.tied[done]
            rest = ~done
            if not bool(np.any(rest)):
                return
            index, live, now, kept = index[rest], live.rows(rest), now.rows(rest), kept.rows(rest)
        now = next_round(now, live)
        turn += 1
        here = snapshot(now)
        found = same(here, kept) & (answer.cycle_rounds[index] == 0)
        if bool(np.any(found)):
            segments = here.base - kept.base
            seconds = here.origin - kept.origin
            cycles = np.where(
                found, (live.segments - now.base - now.size) // np.maximum(segments, 1), 0
            )
            now.base = now.base + cycles * segments
            shift = cycles * seconds
            now.arrival = now.arrival + shift[:, None]
            now.uplink_free = now.uplink_free + shift
            answer.cycle_rounds[index[found]] = turn - kept_at
            answer.cycle_segments[index[found]] = segments[found]
            answer.cycle_time_s[index[found]] = seconds[found]
        if turn & (turn - 1) == 0:
            kept, kept_at = snapshot(now), turn
