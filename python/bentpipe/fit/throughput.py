"""Measurements of throughput: iperf3's JSON, and flent's data files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bentpipe.errors import RequestError
from bentpipe.fit.estimate import Estimate, bootstrap, median
from bentpipe.fit.losses import count_losses
from bentpipe.fit.measurement import FORWARD, RETURN, Delays, Direction, Measurement, Transfer
from bentpipe.fit.probes import loss_estimates

if TYPE_CHECKING:
    from bentpipe.fit.connection import Floats

# Headers of a TCP segment in IPv4 with timestamps, and the MSS with them.
_TCP_HEADERS: Final = 52
_USUAL_MSS: Final = 1448
_UDP_HEADERS: Final = 28
_LEAST_INTERVALS: Final = 3
# Width of a plateau of throughput, as a share.
_PLATEAU: Final = 0.05
# A queue that lengthens round trips by this share was not empty.
_INFLATED: Final = 1.1
# UDP datagrams lost, as a share, above which more was sent than the link carries.
_OVERLOAD: Final = 0.05


def read_iperf3(path: Path, data: dict[str, Any]) -> Measurement:
    """Read what `iperf3 --json` prints.

    Raises
    ------
    RequestError
        It is the report of a failed test, or has no intervals.
    """
    if isinstance(data.get("error"), str):
        raise RequestError(
            f"{path}: expected a completed test of iperf3, got its error: {data['error'][:200]}"
        )
    try:
        test = data["start"]["test_start"]
        is_udp = test["protocol"] == "UDP"
        backwards = bool(test.get("reverse", 0))
        both = bool(test.get("bidir", 0))
        intervals = [
            (float(each["sum"]["start"]), float(each["sum"]["end"]), float(each["sum"]["bytes"]))
            for each in data["intervals"]
            if not each["sum"].get("omitted", False)
        ]
        end = data["end"]
        connections = int(test.get("num_streams", 1))
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RequestError(f"{path}: expected the JSON of iperf3 (iperf3 --json)") from None
    if both:
        raise RequestError(f"{path}: expected iperf3 in one direction at a time, got --bidir")
    rows = np.asarray(intervals, dtype=np.float64).reshape(-1, 3)
    rows = rows[np.isfinite(rows).all(axis=1) & (rows[:, 1] > rows[:, 0])]
    if len(rows) < _LEAST_INTERVALS:
        raise RequestError(
            f"{path}: expected at least {_LEAST_INTERVALS} intervals of iperf3, got {len(rows)}"
        )
    # The client runs at the user's end: with --reverse, it downloads.
    direction: Direction = FORWARD if backwards else RETURN
    try:
        if is_udp:
            return _udp(path, data, end, rows, direction)
        return _tcp(path, data, end, rows, direction, connections)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError):
        raise RequestError(f"{path}: expected the JSON of iperf3 (iperf3 --json)") from None


def _tcp(
    path: Path,
    data: dict[str, Any],
    end: dict[str, Any],
    rows: Floats,
    direction: Direction,
    connections: int,
) -> Measurement:
    mss = int(data["start"].get("tcp_mss_default") or data["start"].get("tcp_mss") or _USUAL_MSS)
    payload_share = mss / (mss + _TCP_HEADERS)
    rates = 8 * rows[:, 2] / (rows[:, 1] - rows[:, 0])
    rtt_us = [
        [float(each["rtt"]) for each in interval["streams"] if each.get("rtt")]
        for interval in data["intervals"]
    ]
    rtt_s = np.asarray([np.mean(each) / 1e6 for each in rtt_us if each], dtype=np.float64)
    streams = [each["sender"] for each in end["streams"]]
    shortest = [float(each["min_rtt"]) / 1e6 for each in streams if each.get("min_rtt")]
    base_s = min([*shortest, *rtt_s.tolist()], default=None)
    name = path.name
    reasons: dict[str, str] = {
        "forward.loss": "iperf3 counts retransmissions, not losses",
        "return.loss": "iperf3 counts retransmissions, not losses",
    }
    inflated = base_s is not None and len(rtt_s) > 0 and float(rtt_s.max()) > _INFLATED * base_s
    estimates = []
    plateau = plateau_of(rates)
    where = "at the receiver" if direction == FORWARD else "at the sender"
    if plateau is None:
        reasons[f"{direction}.rate"] = "the throughput of iperf3 never stays constant"
    else:
        evidence = "round trips lengthened" if inflated else "no evidence that the link was full"
        rate = _rate_of(
            plateau / payload_share,
            direction,
            name,
            f"plateau of {len(plateau)} intervals {where}, with headers ({evidence})",
            intervals=len(plateau),
        )
        estimates.append(rate)
        if inflated and base_s is not None:
            queue = (float(rtt_s.max()) - base_s) * rate.value / 8
            reasons[f"{direction}.queue"] = (
                f"iperf3 reports mean round trips: the queue held at least {queue / 1e3:.0f} kB"
            )
    settings = [("mss", mss, "B")]
    control = end.get("sender_tcp_congestion")
    found = [
        Estimate(key=f"host.{key}", value=value, unit=unit, source=name, method="stated by iperf3")
        for key, value, unit in settings
    ]
    if isinstance(control, str) and control:
        found.append(
            Estimate(
                key="host.congestion_control",
                value=control,
                unit="",
                source=name,
                method="stated by iperf3",
            )
        )
    delays: tuple[Delays, ...] = ()
    if base_s is not None:
        delays = (
            Delays(
                way="both",
                delay_s=np.asarray(shortest or rtt_s.tolist(), dtype=np.float64),
                time_s=np.zeros(len(shortest) or len(rtt_s)),
                forward_bytes=52 if direction == RETURN else mss + _TCP_HEADERS,
                return_bytes=mss + _TCP_HEADERS if direction == RETURN else 52,
                source=name,
                method="shortest round trip that the kernel reports",
                resolution_s=1e-3,
                shortest_s=base_s,
            ),
        )
    transfer = Transfer(
        direction=direction,
        duration_s=float(rows[-1, 1] - rows[0, 0]),
        time_s=rows[:, 1] - rows[0, 0],
        delivered_bytes=np.cumsum(rows[:, 2]),
        rtt_time_s=(rows[: len(rtt_s), 1] - rows[0, 0]),
        rtt_s=rtt_s,
        congestion_control=control if isinstance(control, str) else None,
        connections=max(1, connections),
    )
    word = "download" if direction == FORWARD else "upload"
    return Measurement(
        path=path,
        kind="iperf3",
        summary=f"TCP {word} of {transfer.duration_s:.0f} s, {connections} connection(s)",
        estimates=(*estimates, *found),
        delays=delays,
        reasons=reasons,
        transfer=transfer,
    )


def _udp(
    path: Path, data: dict[str, Any], end: dict[str, Any], rows: Floats, direction: Direction
) -> Measurement:
    size = int(data["start"]["test_start"]["blksize"])
    total = end.get("sum_received") or end["sum"]
    packets, lost = int(total["packets"]), int(total["lost_packets"])
    seconds = float(total["seconds"])
    if packets < 1 or not 0 <= lost <= packets or seconds <= 0 or size < 1:
        raise ValueError("no datagrams")
    share = lost / packets
    received = 8 * (size + _UDP_HEADERS) * (packets - lost) / seconds
    name = path.name
    estimates = []
    reasons = {}
    if share > _OVERLOAD:
        rates = 8 * rows[:, 2] / (rows[:, 1] - rows[:, 0]) * (size + _UDP_HEADERS) / size
        # Only the receiver's intervals have what arrived.
        samples = rates if direction == FORWARD else np.full(3, received)
        method = f"datagrams received while {share:.0%} were lost, with headers"
        estimates.append(_rate_of(samples, direction, name, method, intervals=len(rows)))
        reasons[f"{direction}.loss"] = "more datagrams were sent than the link carries"
    else:
        fates = np.zeros(packets, dtype=bool)
        fates[:lost] = True
        losses = count_losses(np.random.default_rng(0).permutation(fates))
        estimates += loss_estimates(f"{direction}.loss", losses, name, "datagrams")[:1]
        reasons[f"{direction}.rate"] = f"UDP at {received / 1e6:.3g} Mbit/s does not fill the link"
    word = "download" if direction == FORWARD else "upload"
    return Measurement(
        path=path,
        kind="iperf3",
        summary=f"UDP {word} of {seconds:.0f} s, {packets:,} datagrams",
        estimates=tuple(estimates),
        reasons=reasons,
    )


def _rate_of(
    samples: Floats, direction: Direction, source: str, method: str, *, intervals: int
) -> Estimate:
    """Return the rate of a direction from samples of so many intervals."""
    value, low, high = bootstrap(samples, median)
    return Estimate(
        key=f"{direction}.rate",
        value=value,
        low=low,
        high=high,
        unit="bit/s",
        source=source,
        method=f"{method}; bootstrap",
        weight=0.01 * intervals,
    )


def plateau_of(rates: Floats) -> Floats | None:
    """Return the intervals whose rates are close to the highest that is usual, or None.

    The highest quarter of intervals may be disturbed: buffers make some intervals too fast.
    """
    positive = rates[rates > 0]
    if len(positive) < _LEAST_INTERVALS:
        return None
    centre = float(np.quantile(positive, 0.75))
    near = positive[np.abs(positive / centre - 1) < 2 * _PLATEAU]
    if len(near) < max(_LEAST_INTERVALS, len(positive) // 3):
        return None
    centre = float(np.median(near))
    return np.asarray(positive[np.abs(positive / centre - 1) < 2 * _PLATEAU])


def read_flent(path: Path, data: dict[str, Any]) -> Measurement:
    """Read flent's data file.

    Raises
    ------
    RequestError
        It has no series of TCP or of round trips.
    """
    expected = f"{path}: expected flent's data with series of TCP or ping"
    try:
        x = np.asarray([float(each) for each in data["x_values"]])
        series = {
            name: np.asarray([np.nan if each is None else float(each) for each in values])
            for name, values in data["results"].items()
            if isinstance(values, list) and len(values) == len(x)
        }
    except (KeyError, TypeError, ValueError, AttributeError):
        raise RequestError(expected) from None
    if len(x) < _LEAST_INTERVALS or not np.isfinite(x).all() or np.any(np.diff(x) <= 0):
        raise RequestError(expected)
    name = path.name
    estimates: list[Estimate] = []
    delays: list[Delays] = []
    reasons: dict[str, str] = {
        "forward.loss": "flent's data have no losses",
        "return.loss": "flent's data have no losses",
        "forward.delay": "ping measures round trips only",
    }
    transfers: dict[Direction, tuple[Floats, int]] = {}
    words: tuple[tuple[str, Direction], ...] = (("download", FORWARD), ("upload", RETURN))
    for word, way in words:
        members = [
            values
            for key, values in series.items()
            if key.startswith(f"TCP {word}") and key.split()[-1] not in {"avg", "sum"}
        ]
        if members:
            transfers[way] = np.nansum(members, axis=0) * 1e6, len(members)
    pings = [values for key, values in series.items() if key.startswith("Ping (ms)")]
    pings = [values for values in pings if np.isfinite(values).any()]
    # Values of a mean repeat those of its members.
    rtt = np.asarray(pings[0]) / 1e3 if pings else np.zeros(0)
    if not transfers and not pings:
        raise RequestError(expected)
    for direction, (rates, _) in transfers.items():
        plateau = plateau_of(rates[1:-1])
        if plateau is None:
            reasons[f"{direction}.rate"] = "the throughput never stays constant"
            continue
        rate = _rate_of(
            plateau * (_USUAL_MSS + _TCP_HEADERS) / _USUAL_MSS,
            direction,
            name,
            f"plateau of the TCP goodput in {len(plateau)} intervals, with headers of "
            f"{_TCP_HEADERS} B in {_USUAL_MSS} B",
            intervals=len(plateau),
        )
        estimates.append(rate)
    if len(rtt):
        known = np.isfinite(rtt) & (rtt > 0)
        if known.sum() >= _LEAST_INTERVALS:
            delays.append(
                Delays(
                    way="both",
                    delay_s=rtt[known],
                    time_s=x[known],
                    forward_bytes=84,
                    return_bytes=84,
                    source=name,
                    method=f"shortest of {int(known.sum())} round trips",
                    resolution_s=1e-4,
                )
            )
    for way in (FORWARD, RETURN):
        reasons.setdefault(f"{way}.queue", "flent's pings do not show when a queue was full")
    transfer = None
    for direction in (FORWARD, RETURN):
        if direction in transfers:
            rates, members_count = transfers[direction]
            steps = np.diff(x, prepend=0.0)
            transfer = Transfer(
                direction=direction,
                duration_s=float(x[-1]),
                time_s=x,
                delivered_bytes=np.cumsum(np.nan_to_num(rates) * steps) / 8,
                rtt_time_s=x[: len(rtt)],
                rtt_s=rtt,
                connections=members_count,
            )
            break
    title = str(data.get("metadata", {}).get("NAME", "test"))[:60]
    return Measurement(
        path=path,
        kind="flent",
        summary=f"{title}, {x[-1]:.0f} s",
        estimates=tuple(estimates),
        delays=tuple(delays),
        reasons=reasons,
        transfer=transfer,
    )
