"""Directions that change with time: averages, the states of a run, and a line for the reader."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, Final

Table = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Averages:
    """The averages of a link direction over a run, without outages and fades."""

    rate_bps: float
    delay_s: float
    bit_error_rate: float
    packet_loss_rate: float


# A course with more steps than this in a run is taken at its average.
_MOST_STEPS: Final = 1_000


@dataclass(frozen=True, kw_only=True)
class State:
    """A direction from an instant of the run on, until the next state begins.

    `away`: within an outage, in which the direction carries nothing.
    """

    from_s: float
    rate_bps: float
    delay_s: float
    bit_error_rate: float
    packet_loss_rate: float
    away: bool


def states(settings: Table, duration_s: float) -> tuple[State, ...]:
    """Return the states of a resolved scenario's direction, in order of time; none if constant.

    A quantity whose course is not listed, or has very many steps, keeps its average.
    """
    changes = settings["changes"]
    if changes is None:
        return ()
    average = averages(settings)
    rate = _unrolled(changes["rate"], settings["rate_bps"], duration_s)
    delay = _unrolled(changes["delay"], settings["delay_s"], duration_s)
    losses = _unrolled(changes["losses"], (0.0, 0.0), duration_s)
    away = _outages(changes["outages"], duration_s)
    times_s = {at_s for course in (rate, delay, losses, away) for at_s, _ in course or ()}
    if not times_s:
        return ()
    errors = settings["errors"]
    corruption = changes.get("corruption", 0.0)

    def at(from_s: float) -> State:
        packets, bits = average.packet_loss_rate, average.bit_error_rate
        if losses is not None:
            lost_packets, lost_bits = _value(losses, from_s)
            kept = (1.0 - errors["packet_loss_rate"]) * (1.0 - lost_packets) * (1.0 - corruption)
            packets = 1.0 - kept
            bits = 1.0 - (1.0 - errors["bit_error_rate"]) * (1.0 - lost_bits)
        return State(
            from_s=from_s,
            rate_bps=average.rate_bps if rate is None else max(1.0, _value(rate, from_s)),
            delay_s=average.delay_s if delay is None else _value(delay, from_s),
            bit_error_rate=bits,
            packet_loss_rate=packets,
            away=bool(away) and _value(away, from_s),
        )

    return tuple(at(each) for each in sorted({0.0} | times_s))


_Course = list[tuple[float, Any]]


def _value(course: _Course, at_s: float) -> Any:
    return course[bisect_right(course, at_s, key=lambda step: step[0]) - 1][1]


def _unrolled(profile: Table | None, before: Any, duration_s: float) -> _Course | None:
    """Return the steps of a profile until the end of the run; None where they are not known."""
    steps = None if profile is None else profile.get("course")
    # Between the steps of a ramp the value is none of theirs.
    if not steps or profile is None or profile.get("ramps"):
        return None
    period_s = profile["every_s"]
    rounds = 1 if period_s is None else int(duration_s / period_s) + 1
    if rounds * len(steps) > _MOST_STEPS:
        return None
    course: _Course = [(0.0, before)] if steps[0][0] > 0.0 else []
    for number in range(rounds):
        begins_s = number * (period_s or 0.0)
        course += [(begins_s + at_s, value) for at_s, value in steps]
    return [step for step in course if step[0] < duration_s]


def _outages(outages: Iterable[Table], duration_s: float) -> _Course:
    """Return when a direction is away and when not, as steps; empty if it never is."""
    intervals: list[tuple[float, float]] = []
    for each in outages:
        every_s = each["every_s"]
        rounds = 1 if every_s is None else int(duration_s / every_s) + 1
        for number in range(min(rounds, _MOST_STEPS)):
            begins_s = each["at_s"] + number * (every_s or 0.0)
            intervals.append((begins_s, begins_s + each["lasts_s"]))
    course: _Course = [(0.0, False)] if intervals else []
    for begins_s, ends_s in sorted(intervals):
        if course[-1][0] >= begins_s and len(course) > 1:
            # It begins before the one before it has ended.
            ends_s = max(ends_s, course.pop()[0])
        else:
            course.append((begins_s, True))
        course.append((ends_s, False))
    return [step for step in course if step[0] < duration_s]


def shares(
    courses: Sequence[Sequence[State]], *, from_s: float, until_s: float
) -> list[tuple[float, tuple[State | None, ...]]]:
    """Return the joint states of several directions, each with its share of the time.

    A direction without states has None.
    """
    times_s = sorted({from_s} | {each.from_s for course in courses for each in course})
    times_s = [each for each in times_s if from_s <= each < until_s]
    found: dict[tuple[State | None, ...], float] = {}
    for begins_s, ends_s in zip(times_s, [*times_s[1:], until_s], strict=True):
        joint = tuple(
            course[bisect_right(course, begins_s, key=attrgetter("from_s")) - 1] if course else None
            for course in courses
        )
        found[joint] = found.get(joint, 0.0) + ends_s - begins_s
    lasts_s = until_s - from_s
    return [(length_s / lasts_s, joint) for joint, length_s in found.items()]


def averages(settings: Table) -> Averages:
    """Return the averages of a resolved scenario's direction."""
    changes = settings["changes"] or {}
    rate, delay, losses = (changes.get(key) for key in ("rate", "delay", "losses"))
    errors = settings["errors"]
    bits, packets = errors["bit_error_rate"], errors["packet_loss_rate"]
    if losses is not None:
        # A packet that survives the constant losses may meet those that change.
        bits = 1.0 - (1.0 - bits) * (1.0 - losses["mean_bit_error_rate"])
        packets = 1.0 - (1.0 - packets) * (1.0 - losses["mean_packet_loss_rate"])
    # A packet with a wrong checksum is lost to its connection.
    packets = 1.0 - (1.0 - packets) * (1.0 - changes.get("corruption", 0.0))
    return Averages(
        # A rate of zero would make a packet's time infinite; 1 bit/s is the lowest rate in a file.
        rate_bps=settings["rate_bps"] if rate is None else max(1.0, rate["mean_bps"]),
        delay_s=settings["delay_s"] if delay is None else delay["mean_s"],
        bit_error_rate=bits,
        packet_loss_rate=packets,
    )


def best(settings: Table) -> tuple[float, float]:
    """Return the highest rate that a direction ever has, bit/s, and its least delay, seconds."""
    changes = settings["changes"] or {}
    rate, delay = changes.get("rate"), changes.get("delay")
    # Before the first step, the direction has its own rate and delay.
    rates = [settings["rate_bps"], None if rate is None else rate.get("most_bps", rate["mean_bps"])]
    delays = [settings["delay_s"], None if delay is None else delay["least_s"]]
    return (
        max([1.0, *(each for each in rates if each is not None)]),
        min([each for each in delays if each is not None], default=0.0),
    )


def changing(settings: Table) -> tuple[str, ...]:
    """Return in words the changes of a direction that no formula includes."""
    changes = settings["changes"]
    if changes is None:
        return ()
    words = {
        "rate": "a rate that changes",
        "delay": "a delay that changes",
        "losses": "losses that change",
        "outages": "outages",
        "fading": "fading",
        "duplication": "duplication",
        "reordering": "reordering",
    }
    return tuple(text for key, text in words.items() if changes[key])
