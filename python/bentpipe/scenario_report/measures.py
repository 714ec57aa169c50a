"""Measures of what users get: times, scores and rates of each table of flows."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bentpipe.application_metrics import OPINION_SCORES, opinion_scores_of, times_of
from bentpipe.seed_ranges import Range
from bentpipe.units import format_rate, format_seconds

if TYPE_CHECKING:
    from bentpipe.results import FlowResult, GroupResult, Summary

# A table of flows and a measure: ("pages", "page load").
Key = tuple[str, str]

# Parts of other measures, which are not shown on their own in summaries.
_PARTS: Final = frozenset({"first byte", "mouth to ear", "capture to display"})
GOODPUT: Final = "goodput"
TOGETHER: Final = "goodput together"
TRANSFER: Final = "transfer time"
RECEIVED: Final = "received"
# Units whose larger values are better.
_MORE_IS_BETTER: Final = frozenset({"", "bit/s", "%"})


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure of a table's flows in one run.

    `value` is the mean of scores, and otherwise a median: of times in ms, of shares in percent, or
    of the flows' goodputs in bit/s. `tail` is the 95th percentile of
    times, and the least of scores and shares. Of `begun` items, `completed` were completed.
    """

    table: str
    what: str
    unit: str
    value: float
    tail: float | None = None
    completed: int = 0
    begun: int = 0

    @property
    def key(self) -> Key:
        """The table and the measure."""
        return self.table, self.what

    @property
    def more_is_better(self) -> bool:
        """Whether a larger value is better."""
        return self.unit in _MORE_IS_BETTER

    def shown(self, value: float | None = None) -> str:
        """Write a value of this measure, by default its own."""
        return shown(self.value if value is None else value, self.unit)


def shown(value: float | None, unit: str) -> str:
    """Write a value in a unit of measures; a dash for None."""
    if value is None:
        return "–"
    match unit:
        case "ms":
            return format_seconds(value / 1e3)
        case "bit/s":
            return format_rate(value)
        case "%":
            return f"{value:.4g}%"
        case _:
            return f"{value:.2f}"


def measures_of(summary: Summary, tables: Mapping[str, str]) -> dict[Key, Measure]:
    """Return the measures of a run by table and name; `tables` has the table of each flow."""
    flows: dict[str, list[FlowResult]] = {}
    for flow in summary.flows:
        flows.setdefault(tables[flow.name], []).append(flow)
    found = (
        each
        for group in summary.groups
        for each in _measures_of_group(group, flows.get(group.name, []))
    )
    return {each.key: each for each in found}


def _measures_of_group(group: GroupResult, flows: Sequence[FlowResult]) -> Iterator[Measure]:
    for what, (completed, begun), scores in opinion_scores_of(group.extra):
        if (mean := scores.get("mean")) is not None:
            yield Measure(
                table=group.name,
                what=what,
                unit="",
                value=mean,
                tail=scores.get("min"),
                completed=completed,
                begun=begun,
            )
    for what, (completed, begun), times in times_of(group.extra):
        if (median := times.get("p50")) is not None:
            yield Measure(
                table=group.name,
                what=what,
                unit="ms",
                value=median,
                tail=times.get("p95"),
                completed=completed,
                begun=begun,
            )
    yield from _received(group)
    durations = [
        1e3 * (each.finish_s - each.start_s) for each in flows if each.finish_s is not None
    ]
    if durations:
        yield Measure(
            table=group.name,
            what=TRANSFER,
            unit="ms",
            value=statistics.median(durations),
            tail=max(durations) if len(durations) > 1 else None,
            completed=len(durations),
            begun=len(flows),
        )
    goodputs = [each.goodput_bps for each in flows]
    if goodputs:
        yield Measure(
            table=group.name,
            what=GOODPUT,
            unit="bit/s",
            value=statistics.median(goodputs),
            tail=min(goodputs) if len(goodputs) > 1 else None,
        )
    if len(goodputs) > 1:
        yield Measure(table=group.name, what=TOGETHER, unit="bit/s", value=group.goodput_bps)


def _received(group: GroupResult) -> Iterator[Measure]:
    shares: Mapping[str, Any] | None = group.extra.get("received_percent")
    if shares is not None and shares.get("p50") is not None:
        yield Measure(
            table=group.name,
            what=RECEIVED,
            unit="%",
            value=shares["p50"],
            tail=shares.get("min"),
        )


def main_measures(measures: Mapping[Key, Measure]) -> list[Key]:
    """Return the measures that stand for each table.

    The measures of user experience, without parts of others. A table without any is measured by
    the time of its transfers if all of them finished, and else by its goodput.
    """
    tables = dict.fromkeys(table for table, _ in measures)
    found: list[Key] = []
    for table in tables:
        own = {what: each for (name, what), each in measures.items() if name == table}
        felt = [
            what
            for what in own
            if what not in {*_PARTS, GOODPUT, TOGETHER, TRANSFER} and _is_useful(own[what])
        ]
        # A score includes the delay and the losses of its call.
        scores = [what for what in felt if what in OPINION_SCORES]
        chosen = scores or felt
        if not chosen:
            transfer = own.get(TRANSFER)
            finished = transfer is not None and transfer.completed == transfer.begun
            chosen = [TRANSFER if finished else GOODPUT]
        found += [(table, what) for what in chosen]
    return found


def _is_useful(measure: Measure) -> bool:
    return measure.begun == 0 or measure.completed > 0


@dataclass(frozen=True, kw_only=True)
class MeasureRange:
    """A measure of the scenario's own seed, and its range over all seeds."""

    own: Measure
    range: Range
    tail: Range | None

    @property
    def shown_range(self) -> str:
        """Write the range: "6.9 to 7.4 s"; empty if its ends are the same in writing."""
        least, most = self.own.shown(self.range.least), self.own.shown(self.range.most)
        return "" if least == most else joined_range(least, most)

    def to_data(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "table": self.own.table,
            "what": self.own.what,
            "unit": self.own.unit,
            "value": self.own.value,
            "tail": self.own.tail,
            "completed": self.own.completed,
            "begun": self.own.begun,
            "over_seeds": self.range.to_data(),
        }


def joined_range(least: str, most: str) -> str:
    """Write a range of two quantities; a unit that both have is written once."""
    if least == most:
        return least
    number, space, unit = least.partition(" ")
    if space and most.endswith(f" {unit}"):
        return f"{number} to {most}"
    return f"{least} to {most}"


def over_seeds(runs: Sequence[Mapping[Key, Measure]]) -> dict[Key, MeasureRange]:
    """Return the measures of the first run, with their ranges over all runs."""
    found = {}
    for key, own in runs[0].items():
        values = Range.of(each[key].value for each in runs if key in each)
        assert values is not None
        found[key] = MeasureRange(
            own=own,
            range=values,
            tail=Range.of(each[key].tail for each in runs if key in each),
        )
    return found
