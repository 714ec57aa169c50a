"""Results of applications as tables: times of pages, responses, files, mails; calls; video."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from bentpipe.application_metrics import times_of
from bentpipe.cli.tables import Table
from bentpipe.units import format_rate, format_seconds

if TYPE_CHECKING:
    from bentpipe.results import FlowResult, GroupResult

# The quantiles of a distribution of times, with their headings.
_QUANTILES: Final = {"mean": "mean", "median": "p50", "95%": "p95", "99%": "p99", "longest": "max"}

_Told = tuple[str, Mapping[str, Any]]


def application_tables(
    flows: Sequence[FlowResult],
    groups: Sequence[GroupResult] = (),
    *,
    members: Mapping[str, Sequence[FlowResult]] | None = None,
) -> list[Table]:
    """Return the tables of these flows' and groups' applications.

    `members`: the flows of each group, for metrics that groups do not sum up.
    """
    of = members or {}
    told: list[_Told] = [
        (each.name, {**each.extra, **_calls_of(of.get(each.name, ()))}) for each in groups
    ]
    told += [(each.name, each.extra) for each in flows]
    tables = (
        _times(told),
        _receptions(told),
        _calls(told),
        _video_calls(told),
        _video(told),
        _activities(told),
    )
    return [table for table in tables if table is not None]


def _times(told: Sequence[_Told]) -> Table | None:
    rows = [(name, *row) for name, each in told for row in _rows(each)]
    if not rows:
        return None
    table = Table(headings=("flow", "what", "number", *_QUANTILES))
    for name, what, number, times in rows:
        seconds = (times.get(key) for key in _QUANTILES.values())
        cells = (format_seconds(None if each is None else each / 1e3) for each in seconds)
        table.add(name, what, number, *cells)
    return table


def _rows(told: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, float | None]]]:
    for what, number, times in times_of(told):
        done, begun = number
        yield what, f"{done:,}" if done == begun else f"{done:,} of {begun:,}", times


def _receptions(told: Sequence[_Told]) -> Table | None:
    table = Table(headings=("group's flow", "each got: least", ": median", ": mean", ": most"))
    found = False
    for name, each in told:
        shares = each.get("received_percent")
        if shares is None or shares["mean"] is None:
            continue
        found = True
        table.add(name, *(f"{shares[key]:.4g}%" for key in ("min", "p50", "mean", "max")))
    return table if found else None


def _calls_of(flows: Sequence[FlowResult]) -> dict[str, list[Mapping[str, Any]]]:
    return {
        key: [call for flow in flows for call in flow.extra.get(key) or ()]
        for key in ("calls", "video_calls")
    }


def _calls(told: Sequence[_Told]) -> Table | None:
    mos_headings = ("MOS: least", ": median", ": mean", ": best")
    table = Table(headings=("flow", "calls", *mos_headings, "packets lost", "late"))
    found = False
    for name, each in told:
        mos = each.get("call_mos")
        if mos is None:
            continue
        found = True
        cells = ("–" if mos[key] is None else f"{mos[key]:.2f}" for key in _MOS)
        table.add(name, f"{each.get('calls_begun', 0):,}", *cells, *_unheard(each))
    return table if found else None


def _unheard(told: Mapping[str, Any]) -> Iterator[str]:
    """Write which share of the calls' packets did not come, and came too late to be played."""
    ways = [call[way] for call in told.get("calls") or () for way in ("there", "back")]
    heard = [way for way in ways if way is not None]
    packets = sum(way["packets"] for way in heard)
    for what in ("lost", "late"):
        yield f"{sum(way[what] for way in heard) / packets:.2%}" if packets else "–"


def _video_calls(told: Sequence[_Told]) -> Table | None:
    headings = ("flow", "video calls", "rate: least", "mean", "not shown", "freezes", "frozen")
    table = Table(headings=(*headings, "MOS: least", "mean"))
    found = False
    for name, each in told:
        mos, rate = each.get("video_call_mos"), each.get("video_call_rate_bps")
        if mos is None or rate is None:
            continue
        found = True
        rates = ("–" if rate[key] is None else format_rate(rate[key]) for key in ("min", "mean"))
        scores = ("–" if mos[key] is None else f"{mos[key]:.2f}" for key in ("min", "mean"))
        table.add(name, f"{each.get('video_calls_begun', 0):,}", *rates, *_unseen(each), *scores)
    return table if found else None


def _unseen(told: Mapping[str, Any]) -> Iterator[str]:
    """Write which share of the frames was not shown, how many freezes there were and how long."""
    ways = [call[way] for call in told.get("video_calls") or () for way in ("there", "back")]
    seen = [way for way in ways if way is not None]
    frames = sum(way["frames"] for way in seen)
    yield f"{1.0 - sum(way['shown'] for way in seen) / frames:.2%}" if frames else "–"
    yield f"{sum(way['freezes'] for way in seen):,}"
    yield format_seconds(sum(way["frozen_s"] for way in seen))


_MOS: Final = ("min", "p50", "mean", "max")


def _video(told: Sequence[_Told]) -> Table | None:
    table = Table(headings=("flow", "played", "stalls", "stalled", "mean rate", "switches"))
    found = False
    for name, each in told:
        video = each.get("video")
        if video is None:
            continue
        found = True
        rate = video["rate_bps"]
        table.add(
            name,
            format_seconds(video["played_s"]),
            f"{video['stalls']:,}",
            format_seconds(video["stalled_s"]),
            "–" if rate is None else format_rate(rate),
            f"{video['switches']:,}",
        )
    return table if found else None


def _activities(told: Sequence[_Told]) -> Table | None:
    rows = [(name, done) for name, each in told for done in each.get("activities") or ()]
    if not rows:
        return None
    table = Table(headings=("users", "application", "begun", "finished", "failed"))
    for name, done in rows:
        counts = (f"{done[key]:,}" for key in ("begun", "finished", "failed"))
        table.add(name, done["name"], *counts)
    return table
