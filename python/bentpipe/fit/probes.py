"""Probes of delay and loss: output of ping, and IRTT's JSON."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from bentpipe.errors import RequestError
from bentpipe.fit.estimate import Estimate
from bentpipe.fit.losses import Losses, count_losses
from bentpipe.fit.measurement import FORWARD, RETURN, Delays, Measurement

PING_REPLY: Final = re.compile(
    r"^(?:\[(?P<at>\d+\.\d+)\] )?(?P<size>\d+) bytes from .*?icmp_seq=(?P<number>\d+) .*?"
    r"time[=<](?P<time>\d+(?:\.\d+)?) ?ms(?P<twice>.*DUP!)?"
)
_SENT: Final = re.compile(r"^(\d+) packets transmitted, (\d+) (?:packets )?received")
_SHORTEST: Final = re.compile(r"^(?:rtt|round-trip) min/avg/max/\w+ = ([\d.]+)/")
# IPv4 and UDP headers of IRTT's packets.
_UDP_HEADERS: Final = 28
_ICMP_HEADER: Final = 8
_LEAST_PROBES: Final = 2
# ping counts in 16 bits.
_MODULUS: Final = 1 << 16
# Numbers of replies that a file may skip at most, against memory for a nonsensical number.
_MOST_MISSING: Final = 1 << 20


def read_ping(path: Path, lines: Iterator[str]) -> Measurement:
    """Read the output of ping.

    Raises
    ------
    RequestError
        There are fewer than two replies.
    """
    numbers: list[int] = []
    times_ms: list[float] = []
    decimals: list[int] = []
    at: list[float] = []
    size, sent, shortest_ms = 64, None, None
    is_v6 = False
    rounds = 0
    for line in lines:
        if (reply := PING_REPLY.match(line)) is not None:
            if reply["twice"]:
                continue
            number = int(reply["number"]) + rounds
            if numbers and number < numbers[-1] - _MODULUS // 2:
                rounds += _MODULUS
                number += _MODULUS
            numbers.append(number)
            times_ms.append(float(reply["time"]))
            decimals.append(len(reply["time"].partition(".")[2]))
            if reply["at"]:
                at.append(float(reply["at"]))
            size = int(reply["size"])
            is_v6 = is_v6 or ":" in line.split("icmp_seq", 1)[0].removesuffix(": ")
        elif (summary := _SENT.match(line)) is not None:
            sent = int(summary[1])
        elif (extremes := _SHORTEST.match(line)) is not None:
            shortest_ms = float(extremes[1])
    if len(numbers) < _LEAST_PROBES:
        raise RequestError(
            f"{path}: expected the output of ping with at least {_LEAST_PROBES} replies, "
            f"got {len(numbers)}"
        )
    first = min(numbers[0], 1)
    last = first + sent - 1 if sent else max(numbers)
    last = max(last, max(numbers))
    if last - first > _MOST_MISSING + len(numbers):
        raise RequestError(f"{path}: expected the output of ping, got icmp_seq={last}")
    received = np.zeros(last - first + 1, dtype=bool)
    received[np.asarray(numbers) - first] = True
    # ping rounds down: from 100 ms on to whole milliseconds.
    resolution_s = 10.0 ** -min(decimals) / 1e3
    times = np.asarray(times_ms) / 1e3 + (resolution_s / 2 if resolution_s >= 1e-4 else 0.0)
    elapsed = (
        np.asarray(at) - at[0] if len(at) == len(numbers) else np.asarray(numbers, float) - first
    )
    length = size + (40 if is_v6 else 20)
    name = path.name
    losses = count_losses(~received)
    reasons = {
        "forward.delay": "ping measures round trips only",
        "loss.direction": "ping does not show in which direction a probe or its reply was lost",
        "forward.rate": "ping does not load the link",
        "return.rate": "ping does not load the link",
        "forward.queue": "ping does not fill a queue",
        "return.queue": "ping does not fill a queue",
    }
    return Measurement(
        path=path,
        kind="ping",
        summary=f"{len(received)} probes of {length} B, {len(numbers)} replies",
        estimates=(
            *loss_estimates("both.loss", losses, name, "probes"),
            jitter(times, name, resolution_s),
        ),
        delays=(
            Delays(
                way="both",
                delay_s=times,
                time_s=elapsed,
                forward_bytes=length,
                return_bytes=length,
                source=name,
                method=f"shortest of {len(numbers)} round trips",
                resolution_s=1e-6 if shortest_ms is not None else resolution_s,
                shortest_s=None if shortest_ms is None else shortest_ms / 1e3,
            ),
        ),
        reasons=reasons,
    )


def read_irtt(path: Path, data: dict[str, Any]) -> Measurement:
    """Read IRTT's JSON (`irtt client -o`).

    Raises
    ------
    RequestError
        It is not what IRTT writes, or has fewer than two round trips.
    """
    try:
        trips = data["round_trips"]
        length = int(data["config"]["length"]) + _UDP_HEADERS
        fates = [str(each["lost"]) for each in trips]
        times_s = np.asarray([_sent_at(each, index) for index, each in enumerate(trips)])
        rtt = [each["delay"].get("rtt") for each in trips]
        up = [each["delay"].get("send") for each in trips]
        down = [each["delay"].get("receive") for each in trips]
        delays = [_delays(each) for each in (rtt, up, down)]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        raise RequestError(
            f"{path}: expected IRTT's JSON with round_trips (irtt client -o)"
        ) from None
    name = path.name
    whole = [value for value in delays[0] if value is not None]
    if len(whole) < _LEAST_PROBES:
        raise RequestError(
            f"{path}: expected IRTT's JSON with at least {_LEAST_PROBES} round trips, "
            f"got {len(whole)}"
        )
    times_s = times_s - times_s[0]
    found: list[Delays] = []
    for way, values, sizes in (
        ("both", delays[0], (length, length)),
        (RETURN, delays[1], (0, length)),
        (FORWARD, delays[2], (length, 0)),
    ):
        known = np.asarray([value is not None for value in values])
        if known.sum() < _LEAST_PROBES:
            continue
        found.append(
            Delays(
                way=way,  # type: ignore[arg-type]
                delay_s=np.asarray([value for value in values if value is not None]),
                time_s=times_s[known],
                forward_bytes=sizes[0],
                return_bytes=sizes[1],
                source=name,
                method=f"shortest of {int(known.sum())} "
                + ("round trips" if way == "both" else "one-way delays"),
            )
        )
    notes = []
    one_way = [each for each in found if each.way != "both"]
    if any(each.least_s <= 0 for each in one_way):
        notes.append("one-way delays below zero: the clocks of both ends differ; not used")
        found = [each for each in found if each.way == "both"]
    lost = np.asarray([fate != "false" for fate in fates])
    lost_up = np.asarray([fate == "true_up" for fate in fates])
    lost_down = np.asarray([fate == "true_down" for fate in fates])
    estimates = [jitter(np.asarray(whole), name)]
    reasons = dict.fromkeys(
        ("forward.rate", "return.rate", "forward.queue", "return.queue"),
        "probes do not load the link",
    )
    if (lost & ~lost_up & ~lost_down).any():
        estimates += loss_estimates("both.loss", count_losses(lost), name, "probes")
        reasons["loss.direction"] = "the direction of some losses is unknown to IRTT"
    else:
        # A probe that was lost on the way up does not come down.
        estimates += loss_estimates("return.loss", count_losses(lost_up), name, "probes")
        estimates += loss_estimates(
            "forward.loss", count_losses(lost_down[~lost_up]), name, "probes"
        )
    if len(found) == 1:
        reasons["forward.delay"] = "no one-way delays were measured"
    return Measurement(
        path=path,
        kind="IRTT",
        summary=f"{len(trips)} probes of {length} B, {len(whole)} round trips",
        estimates=tuple(estimates),
        delays=tuple(found),
        reasons=reasons,
        notes=tuple(notes),
    )


def _sent_at(trip: dict[str, Any], index: int) -> float:
    stamps = trip.get("timestamps", {}).get("client", {}).get("send", {})
    value = stamps.get("monotonic", stamps.get("wall"))
    return float(index) if value is None else float(value) / 1e9


def _delays(values: Sequence[Any]) -> list[float | None]:
    found = [None if value is None else float(value) / 1e9 for value in values]
    if not all(value is None or np.isfinite(value) for value in found):
        raise ValueError("not finite")
    return found


def jitter(delays_s: np.ndarray, source: str, resolution_s: float = 1e-6) -> Estimate:
    """Return the variation of delays: the distance of the 95% and the 5% quantile."""
    from bentpipe.fit.estimate import bootstrap

    def spread(samples: np.ndarray) -> np.ndarray:
        low, high = np.quantile(samples, [0.05, 0.95], axis=1)
        return np.asarray(high - low)

    value, low, high = bootstrap(np.asarray(delays_s, dtype=np.float64), spread)
    return Estimate(
        key="delay.variation",
        value=value,
        low=max(0.0, low - resolution_s),
        high=high + resolution_s,
        unit="s",
        source=source,
        method="95% less 5% quantile of the delays; bootstrap",
        weight=len(delays_s),
    )


def loss_estimates(key: str, losses: Losses, source: str, what: str) -> list[Estimate]:
    """Return the estimates of a loss rate and, if losses come in bursts, of their length."""
    interval = "Wilson's interval" if losses.mean_burst is None else "Wilson's interval, widened"
    found = [
        Estimate(
            key=key,
            value=losses.rate,
            low=losses.low,
            high=losses.high,
            unit="1",
            source=source,
            method=f"{losses.random:,} of {losses.packets:,} {what}; {interval}",
            weight=losses.packets,
        )
    ]
    if losses.mean_burst is not None:
        mean, low, high = losses.mean_burst
        found.append(
            Estimate(
                key=f"{key}.burst",
                value=mean,
                low=low,
                high=high,
                unit="packets",
                source=source,
                method=f"mean length of {losses.bursts} bursts; geometric lengths",
                weight=losses.packets,
            )
        )
    return found
