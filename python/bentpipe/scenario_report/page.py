"""The report as one HTML file: everything is in it, and it asks for nothing else."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup, escape

from bentpipe import _native
from bentpipe.advice.remedies import Network
from bentpipe.files import atomic_write
from bentpipe.report.templates import template
from bentpipe.scenario_report import wording
from bentpipe.scenario_report.diagram import diagrams
from bentpipe.scenario_report.differences import Difference, differences, written_differences
from bentpipe.scenario_report.figures import panel_of, panel_svg
from bentpipe.scenario_report.measures import GOODPUT, Key, MeasureRange, shown
from bentpipe.scenario_report.topology import Topology, topology
from bentpipe.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from bentpipe.advice import RemedyResult
    from bentpipe.scenario_report.evidence import Evidence, Report, Sensitivity
    from bentpipe.scenario_report.topology import Way

_FOLDER: Final = Path(__file__).parent
# Rows of tables, and rows of figures: one for each measure.
_MOST_REMEDIES: Final = 12
_MOST_MEASURES: Final = 5
_MOST_DIFFERENCES: Final = 40
# Limits in the order of the legend, with their names.
_LIMITS: Final = {
    "slow_start": "slow start",
    "congestion_window": "congestion window",
    "receive_window": "receive window",
    "send_buffer": "send buffer",
    "pacing": "pacing",
    "recovery": "loss recovery",
    "application": "application",
}


@dataclass(frozen=True, kw_only=True)
class ScenarioSection:
    """The section of one scenario. `prefix` begins the identifiers of its elements."""

    evidence: Evidence
    prefix: str

    @cached_property
    def network(self) -> Network:
        """The scenario in the form that paths and links are read from."""
        return Network.of(self.evidence.scenario, _native.lists())

    @cached_property
    def topology(self) -> Topology:
        """The network as the diagram shows it."""
        return topology(self.network, self.evidence.summary)

    @property
    def diagrams(self) -> Markup:
        """The diagram for wide pages, and the one for narrow ones."""
        first = ""
        if self.topology.flows:
            first = self.topology.flows[0].start
        return Markup(diagrams(self.topology, first=first))

    @property
    def summary(self) -> list[str]:
        """The findings of the summary."""
        told = self.sentences[:_MOST_MEASURES]
        if (more := len(self.sentences) - len(told)) > 0:
            told.append(f"And {more} more findings: see “What users get”.")
        busiest = self.main_limit
        if busiest is not None:
            told.append(busiest)
        told.append(wording.remedy_sentence(self.evidence))
        told += [
            sentence
            for each in self.evidence.sensitivities
            if each.variation.kind == "users" and wording.is_sensitive(self.evidence, each)
            for sentence in (wording.sensitivity_sentence(self.evidence, each),)
        ]
        return [wording.capital(each) for each in told]

    @cached_property
    def sentences(self) -> list[str]:
        """A sentence about each main measure."""
        return wording.what_users_get(self.evidence)

    @property
    def has_more_sentences(self) -> bool:
        """Whether the summary has not all of them."""
        return len(self.sentences) > _MOST_MEASURES

    @property
    def main_limit(self) -> str | None:
        """The limit of the table with the most data."""
        groups = {group.name: group for group in self.evidence.summary.groups}
        found = [each for each in self.limits if each.table in groups]
        if not found:
            return None
        most = max(found, key=lambda each: groups[each.table].bytes_delivered)
        return most.sentence

    @cached_property
    def limits(self) -> list[wording.TableLimit]:
        """The limit of each table of flows."""
        return wording.limits(self.evidence)

    @property
    def ways(self) -> list[Way]:
        """The directions of all links; one of several ends of a broadcast link."""
        found = {way.name: way for link in self.topology.links for way in link.ways}
        return list(found.values())

    @property
    def queue_sentence(self) -> str:
        """The longest queue, and the one that drops most."""
        return wording.queue_sentence(self.ways)

    @property
    def measures(self) -> list[MeasureRange]:
        """The measures of the table of what users get."""
        return list(self.evidence.measures.values())

    @property
    def details(self) -> list[tuple[str, str]]:
        """Losses of calls, freezes of video calls and stalls of videos, by table."""
        return _details(self.evidence)

    @cached_property
    def parties(self) -> list[wording.PartyAdvice]:
        """The best remedy of each party."""
        return wording.by_party(self.evidence)

    @cached_property
    def together(self) -> RemedyResult | None:
        """The best remedy, if several parties have to make it."""
        return wording.together(self.evidence)

    @cached_property
    def remedies(self) -> list[RemedyResult]:
        """The remedies of the table, the best first."""
        helpful = [each for each in self.evidence.advice.remedies if wording.helps(each)]
        shown_ones = helpful[:_MOST_REMEDIES]
        # Those that the text names are in the table.
        named = [each.best for each in self.parties if each.best is not None]
        return shown_ones + [each for each in named if each not in shown_ones]

    @property
    def useless(self) -> list[str]:
        """The names of remedies that give less than 2% more."""
        return [
            each.remedy.name for each in self.evidence.advice.remedies if not wording.helps(each)
        ]

    @property
    def effect_columns(self) -> list[Key]:
        """The measures of user experience that remedies have values of."""
        experienced = {(each.flow, each.what) for each in self.evidence.advice.experiences}
        return [key for key in self.evidence.main if key in experienced][:_MOST_MEASURES]

    def effect(self, result: RemedyResult, key: Key) -> str:
        """Return a measure with a remedy, in words."""
        for each in wording.effects(self.evidence, result):
            if (each.table, each.what) == key:
                return shown(each.then, each.unit)
        return "–"

    @property
    def sensitivities(self) -> list[tuple[Sensitivity, str, list[Markup]]]:
        """Each variation: its sentence and its figures."""
        found = []
        for place, each in enumerate(self.evidence.sensitivities):
            figures = []
            for number, key in enumerate(each.keys(self.evidence.main)[:_MOST_MEASURES]):
                panel = panel_of([("", each)], key)
                if panel is not None:
                    name = f"{self.prefix}-v{place}-{number}"
                    figures.append(Markup(panel_svg(panel, name=name)))
            found.append((each, wording.sensitivity_sentence(self.evidence, each), figures))
        return found

    @cached_property
    def predictions(self) -> list[wording.PredictedRow]:
        """The predictions beside what was simulated."""
        return wording.predicted_rows(self.evidence)

    @property
    def prediction_sentence(self) -> str:
        """How far predictions and simulation agree."""
        return wording.prediction_sentence(self.predictions)


def _details(evidence: Evidence) -> list[tuple[str, str]]:
    told = []
    calls: dict[str, list[Mapping[str, Any]]] = {}
    video: dict[str, list[Mapping[str, Any]]] = {}
    for flow in evidence.summary.flows:
        table = evidence.tables[flow.name]
        for key, ends in (("calls", calls), ("video_calls", video)):
            for call in flow.extra.get(key) or ():
                ends.setdefault(table, []).extend(
                    call[way] for way in ("there", "back") if call[way] is not None
                )
    for table, heard in calls.items():
        packets = sum(each["packets"] for each in heard)
        if packets:
            lost, late = (sum(each[what] for each in heard) / packets for what in ("lost", "late"))
            told.append((table, f"{lost:.2%} of the calls' packets lost, {late:.2%} too late."))
    for table, seen in video.items():
        frames = sum(each["frames"] for each in seen)
        if frames:
            missing = 1.0 - sum(each["shown"] for each in seen) / frames
            freezes = sum(each["freezes"] for each in seen)
            frozen = format_seconds(sum(each["frozen_s"] for each in seen))
            told.append(
                (
                    table,
                    f"{missing:.2%} of the frames not shown, {freezes:,} freezes, {frozen} frozen.",
                )
            )
    for group in evidence.summary.groups:
        played = group.extra.get("video")
        if played is not None:
            stalled = format_seconds(played["stalled_s"])
            rate = (
                ""
                if played["rate_bps"] is None
                else f", {format_rate(played['rate_bps'])} on average"
            )
            told.append((group.name, f"{played['stalls']:,} stalls, {stalled} in total{rate}."))
        for each in group.extra.get("activities") or ():
            counts = (
                f"{each['begun']:,} begun, {each['finished']:,} finished, {each['failed']:,} failed"
            )
            told.append((group.name, f"{each['name']}: {counts}."))
    return told


@dataclass(frozen=True, kw_only=True)
class ComparedRow:
    """A measure of several scenarios, and the change relative to the first one."""

    table: str
    what: str
    values: tuple[str, ...]
    ranges: tuple[str, ...]
    changes: tuple[str, ...]
    better: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Compared:
    """The section of several scenarios side by side."""

    sections: Sequence[ScenarioSection]

    @property
    def labels(self) -> list[str]:
        """The scenarios as they were named on the command line."""
        return [section.evidence.label for section in self.sections]

    @cached_property
    def differences(self) -> list[Difference]:
        """The keys with different values."""
        return differences([section.evidence.resolved for section in self.sections])

    @cached_property
    def written(self) -> list[Difference]:
        """The keys of the files, with settings applied, that have different values."""
        return written_differences([section.evidence.scenario for section in self.sections])

    @property
    def keys(self) -> list[Key]:
        """The main measures of all scenarios."""
        return list(dict.fromkeys(key for each in self.sections for key in each.evidence.main))

    @cached_property
    def rows(self) -> list[ComparedRow]:
        """The main measures and the goodput of each table, side by side."""
        goodputs = [
            key for each in self.sections for key in each.evidence.measures if key[1] == GOODPUT
        ]
        return [self._row(key) for key in dict.fromkeys([*self.keys, *goodputs])]

    def _row(self, key: Key) -> ComparedRow:
        found = [section.evidence.measures.get(key) for section in self.sections]
        first = found[0]
        changes, better = [], []
        for each in found:
            if each is None or first is None or each is first or not first.own.value:
                changes.append("")
                better.append("")
                continue
            change = each.own.value / first.own.value - 1.0
            changes.append(f"{change:+.0%}")
            good = (change > 0.0) == each.own.more_is_better
            better.append("" if abs(change) < 0.02 else ("better" if good else "worse"))
        return ComparedRow(
            table=key[0],
            what=key[1],
            values=tuple("–" if each is None else each.own.shown() for each in found),
            ranges=tuple("" if each is None else each.shown_range for each in found),
            changes=tuple(changes),
            better=tuple(better),
        )

    @property
    def sentences(self) -> list[str]:
        """The changes of the other scenarios relative to the first one, in sentences."""
        told = []
        main = {(row.table, row.what): row for row in self.rows}
        for place, label in enumerate(self.labels[1:], start=1):
            changed = [
                f"{table}: {what} {row.values[place]} instead of {row.values[0]} "
                f"({row.better[place]})"
                for (table, what), row in main.items()
                if (table, what) in self.keys and row.better[place]
            ]
            if changed:
                told.append(f"{label}: {'; '.join(changed)}.")
            elif not any(self._has_both(key, place) for key in self.keys):
                told.append(f"{label}: no measure in common with {self.labels[0]}.")
            else:
                told.append(f"{label}: no main measure changes by 2% or more.")
        return told

    def _has_both(self, key: Key, place: int) -> bool:
        """Whether the first scenario and the one at a place have a measure."""
        return all(key in self.sections[each].evidence.measures for each in (0, place))

    @property
    def figures(self) -> list[Markup]:
        """The measures along the variations that all scenarios have."""
        found = []
        by_subject: dict[tuple[str, str], list[tuple[str, Sensitivity]]] = {}
        for section in self.sections:
            for each in section.evidence.sensitivities:
                variation = each.variation
                named = by_subject.setdefault((variation.kind, variation.subject), [])
                named.append((section.evidence.label, each))
        for place, several in enumerate(by_subject.values()):
            if len(several) < len(self.sections):
                continue
            # A time that some scenario or value lacks is replaced by the goodput in all.
            keys = self.keys
            for _, each in several:
                keys = each.keys(keys)
            for number, key in enumerate(list(dict.fromkeys(keys))[:_MOST_MEASURES]):
                panel = panel_of(several, key)
                if panel is not None:
                    found.append(Markup(panel_svg(panel, name=f"compared-{place}-{number}")))
        return found


def findings(report: Report) -> list[tuple[str, list[str]]]:
    """Return the sentences of the summaries, by the label of the scenario."""
    sections = _sections(report)
    told = [(each.evidence.label, each.summary) for each in sections]
    if len(sections) > 1:
        told.append(("compared", Compared(sections=sections).sentences))
    return told


def _sections(report: Report) -> list[ScenarioSection]:
    return [
        ScenarioSection(evidence=each, prefix=f"s{number}")
        for number, each in enumerate(report.scenarios, start=1)
    ]


def render(report: Report) -> str:
    """Return the report as HTML."""
    filters: dict[str, Callable[..., Any]] = {
        "bytes": format_bytes,
        "capital": wording.capital,
        "measure": shown,
        "rate": format_rate,
        "seconds": format_seconds,
        "who": wording.who,
        "changed": wording.changed_items,
        "lead": _lead,
    }
    sections = _sections(report)
    from bentpipe.studies.provenance import Provenance

    return template(_FOLDER / "report.html", filters).render(
        report=report,
        sections=sections,
        compared=Compared(sections=sections) if len(sections) > 1 else None,
        provenance=Provenance(command=report.command, workers=report.where),
        limits=_LIMITS,
        most_differences=_MOST_DIFFERENCES,
        effect_sentence=wording.effect_sentence,
        remedy_sentence=wording.remedy_sentence,
        resources=wording.resources,
    )


def _lead(sentence: str) -> Markup:
    """Return a sentence whose subject, before the first colon, is bold."""
    subject, colon, rest = sentence.partition(": ")
    if not colon:
        return escape(sentence)
    return Markup("<strong>{}:</strong> {}").format(subject, rest)


def write_report(report: Report, path: Path) -> None:
    """Write the report as HTML."""
    page = render(report)
    with atomic_write(path) as part:
        part.write_text(page, encoding="utf-8")
