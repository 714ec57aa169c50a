"""Combines several measurements into one description of the path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from bentpipe.fit.estimate import RESOLUTION, Estimate, Undetermined
from bentpipe.fit.measurement import FORWARD, RETURN, Delays, Direction, Measurement, Transfer

_DIRECTIONS: Final[tuple[Direction, ...]] = (FORWARD, RETURN)
# Samples of a delay's distribution: 1/0.05 - 1 times the distance of the two shortest is the 95%
# bound of an end point (Robson and Whitlock 1964).
_END_POINT: Final = 19.0
# Where a rate is unknown in both directions, the link must not limit anything.
_UNLIMITED_BPS: Final = 100e6
_WORDS: Final = {FORWARD: "from the server to the client", RETURN: "from the client to the server"}


@dataclass(frozen=True, kw_only=True)
class Path:
    """The fitted path: estimates by key, and what is assumed in place of the others."""

    estimates: dict[str, Estimate]
    undetermined: tuple[Undetermined, ...]
    # Values of the scenario by direction, estimated or assumed.
    rate_bps: dict[str, float]
    delay_s: dict[str, float]
    transfer: Transfer | None
    delays: tuple[Delays, ...]


def combine(measurements: Sequence[Measurement]) -> Path:
    """Return the path that all measurements together describe."""
    best = _best(measurements)
    least = {key: each for key, each in best.items() if key.endswith(".least")}
    best = {key: each for key, each in best.items() if not key.endswith(".least")}
    reasons = _reasons(measurements)
    missing: list[Undetermined] = []
    rates: dict[str, float] = {}
    for way in _DIRECTIONS:
        found = best.get(f"{way}.rate")
        if found is not None:
            rates[way] = float(found.value)
    assumed = dict(rates)
    for way in _DIRECTIONS:
        if way in rates:
            continue
        other = RETURN if way == FORWARD else FORWARD
        low = least.get(f"{way}.rate.least")
        at_least = float(low.value) if low is not None else 0.0
        assumed[way] = max(rates.get(other, _UNLIMITED_BPS), at_least)
        same = "the rate of the other direction" if other in rates else "a fast link"
        if at_least and assumed[way] <= at_least:
            same = "the highest rate that was seen"
        missing.append(
            Undetermined(
                key=f"{way}.rate", reason=reasons.get(f"{way}.rate", "not measured"), assumed=same
            )
        )
    delays = [each for measurement in measurements for each in measurement.delays]
    delay_s = _add_delays(best, missing, delays, assumed, rates, reasons, least)
    _add_losses(best, missing, reasons)
    for way in _DIRECTIONS:
        _add_queue(way, best, missing, reasons, least)
        if f"{way}.acks" in reasons and f"{way}.acks" not in best:
            missing.append(
                Undetermined(key=f"{way}.acks", reason=reasons[f"{way}.acks"], assumed="none")
            )
    if not any(key in best for key in ("host.congestion_control",)):
        missing.append(
            Undetermined(
                key="host.congestion_control",
                reason="several rules explain the same segments",
                assumed="cubic",
            )
        )
    transfers = [each.transfer for each in measurements if each.transfer is not None]
    return Path(
        estimates=best,
        undetermined=tuple(missing),
        rate_bps=assumed,
        delay_s=delay_s,
        transfer=transfers[0] if transfers else None,
        delays=tuple(delays),
    )


def _best(measurements: Sequence[Measurement]) -> dict[str, Estimate]:
    """Return the estimate of each quantity that rests on most samples."""
    best: dict[str, Estimate] = {}
    for each in (each for measurement in measurements for each in measurement.estimates):
        known = best.get(each.key)
        is_bound = each.key.endswith(".least")
        if known is None or (
            float(each.value) > float(known.value) if is_bound else each.weight > known.weight
        ):
            best[each.key] = each
    return best


def _reasons(measurements: Sequence[Measurement]) -> dict[str, str]:
    """Return why quantities are not determined; a capture knows more than a probe."""
    found: dict[str, str] = {}
    for measurement in sorted(measurements, key=lambda each: each.kind != "capture"):
        for key, reason in measurement.reasons.items():
            found.setdefault(key, reason)
    return found


def _add_delays(
    best: dict[str, Estimate],
    missing: list[Undetermined],
    delays: Sequence[Delays],
    assumed: dict[str, float],
    rates: dict[str, float],
    reasons: dict[str, str],
    least: dict[str, Estimate],
) -> dict[str, float]:
    """Add the delays, without queuing and transmission; return those of both directions."""
    ways = {
        way: [
            _without_transmission(each, assumed, rates, least) for each in delays if each.way == way
        ]
        for way in ("both", FORWARD, RETURN)
    }
    if ways[FORWARD] and ways[RETURN]:
        found: dict[str, float] = {}
        for way in _DIRECTIONS:
            value, low, high, own = min(ways[way])
            best[f"{way}.delay"] = _delay(f"{way}.delay", value, low, high, delays_of(own, delays))
            found[way] = max(0.0, value)
        return found
    if not ways["both"]:
        reason = "no delay was measured"
        missing.append(Undetermined(key="delay", reason=reason, assumed="0 ms"))
        return {FORWARD: 0.0, RETURN: 0.0}
    value, low, high, own = min(ways["both"])
    value = max(0.0, value)
    best["round_trip.delay"] = _delay("round_trip.delay", value, low, high, delays_of(own, delays))
    missing.append(
        Undetermined(
            key="forward.delay",
            reason=reasons.get("forward.delay", "only round trips were measured"),
            assumed="half of the round trip in each direction",
        )
    )
    return {FORWARD: value / 2, RETURN: value / 2}


def delays_of(index: int, delays: Sequence[Delays]) -> Delays:
    """Return the delays with this identity."""
    return next(each for each in delays if id(each) == index)


def _delay(key: str, value: float, low: float, high: float, delays: Delays) -> Estimate:
    return Estimate(
        key=key,
        value=value,
        low=max(0.0, low),
        high=high,
        unit="s",
        source=delays.source,
        method=f"{delays.method}, less transmission times; order statistics",
    )


def _without_transmission(
    delays: Delays,
    assumed: dict[str, float],
    rates: dict[str, float],
    least: dict[str, Estimate],
) -> tuple[float, float, float, int]:
    """Return the least delay without transmission times, its interval, and the identity."""
    sizes = {FORWARD: delays.forward_bytes, RETURN: delays.return_bytes}
    used = [way for way in _DIRECTIONS if delays.way in ("both", way)]
    value = delays.least_s - sum(8 * sizes[way] / assumed[way] for way in used)
    low = high = value
    for way in used:
        if way not in rates:
            # The packet may have taken no time, or that at the lowest rate that is possible.
            high += 8 * sizes[way] / assumed[way]
            bound = least.get(f"{way}.rate.least")
            if bound is not None:
                low -= 8 * sizes[way] * (1 / float(bound.value) - 1 / assumed[way])
    ordered = np.sort(delays.delay_s)
    if len(ordered) > 1:
        # The path may be shorter than the shortest of the samples.
        end = _END_POINT * float(ordered[1] - ordered[0])
        low -= min(end, float(np.quantile(ordered, 0.1) - ordered[0]))
    half = max(delays.resolution_s / 2, RESOLUTION * max(value, 0.0))
    return value, low - half, high + half, id(delays)


def _add_losses(
    best: dict[str, Estimate], missing: list[Undetermined], reasons: dict[str, str]
) -> None:
    """Assign the losses of probes to a direction, and name the directions without any."""
    both = best.pop("both.loss", None)
    burst = best.pop("both.loss.burst", None)
    if both is not None:
        known = best.get("forward.loss")
        if known is None:
            best["forward.loss"] = _moved(both, "forward.loss")
            if burst is not None:
                best["forward.loss.burst"] = _moved(burst, "forward.loss.burst")
            missing.append(
                Undetermined(
                    key="return.loss",
                    reason=reasons.get("loss.direction", "the direction is unknown"),
                    assumed=f"all losses {_WORDS[FORWARD]}",
                )
            )
            return
        if both.low is not None and known.high is not None and both.low > known.high:
            rest = _moved(both, "return.loss", less=known)
            best.setdefault("return.loss", rest)
    missing += [
        Undetermined(
            key=f"{way}.loss",
            reason=reasons.get(f"{way}.loss", "not measured"),
            assumed="no random losses",
        )
        for way in _DIRECTIONS
        if f"{way}.loss" not in best
    ]


def _moved(each: Estimate, key: str, less: Estimate | None = None) -> Estimate:
    off = float(less.value) if less is not None else 0.0
    low, high = each.low, each.high
    if less is not None and less.low is not None and less.high is not None:
        low = None if low is None else max(0.0, low - less.high)
        high = None if high is None else max(0.0, high - less.low)
    method = each.method if less is None else f"{each.method}, less the other direction's"
    return Estimate(
        key=key,
        value=max(0.0, float(each.value) - off),
        low=low,
        high=high,
        unit=each.unit,
        source=each.source,
        method=method,
        weight=each.weight,
    )


def _add_queue(
    way: Direction,
    best: dict[str, Estimate],
    missing: list[Undetermined],
    reasons: dict[str, str],
    least: dict[str, Estimate],
) -> None:
    key = f"{way}.queue"
    if key not in best:
        bound = least.get(f"{key}.least")
        assumed = "one bandwidth-delay product"
        if bound is not None and float(bound.value) >= 1:
            assumed += f", and at least {float(bound.value):.0f} packets"
            best[f"{key}.least"] = bound
        reason = reasons.get(key, "it was never filled")
        missing.append(Undetermined(key=key, reason=reason, assumed=assumed))
    elif f"{key}.kind" in reasons:
        missing.append(
            Undetermined(key=f"{key}.kind", reason=reasons[f"{key}.kind"], assumed="drop-tail")
        )


def describe(undetermined: Sequence[Undetermined]) -> Iterator[str]:
    """Yield a sentence for each quantity that is not determined."""
    for each in undetermined:
        yield f"{each.key}: {each.reason}; assumed: {each.assumed}"
