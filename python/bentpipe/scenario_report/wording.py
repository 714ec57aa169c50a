"""Findings of a report in sentences: what users get, what limits it, what would help."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from bentpipe.advice.trials import WORTHWHILE
from bentpipe.advice.wording import SPELLED, full_resources, usual_flow
from bentpipe.application_metrics import OPINION_SCORES
from bentpipe.scenario_report.measures import GOODPUT, RECEIVED, TRANSFER, MeasureRange, shown
from bentpipe.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from bentpipe.advice import FlowLimits, RemedyResult
    from bentpipe.prediction import FlowPrediction
    from bentpipe.results import GroupResult
    from bentpipe.scenario_report.evidence import Evidence, Sensitivity
    from bentpipe.scenario_report.measures import Key
    from bentpipe.scenario_report.topology import Way
    from bentpipe.scenario_report.variations import Variation

# The event that a measure is the time of.
_ITEMS: Final = {
    "page load": "to load a page",
    "first byte": "to the first byte of a page",
    "response": "for a response",
    "file": "for a file",
    "mail": "to deliver a mail",
    "echo": "for an echo",
    "packet delay": "for a packet to arrive",
    "mouth to ear": "from mouth to ear",
    "capture to display": "from capture to display",
    "start-up": "until a video starts",
    TRANSFER: "for a transfer",
}
_MANY: Final = {
    "page load": "pages loaded",
    "response": "requests answered",
    "file": "files transferred",
    "mail": "mails delivered",
    "echo": "echo requests answered",
    "packet delay": "packets received",
    TRANSFER: "transfers finished",
}
# ITU-T G.107 (06/2015), table B.1: the least score, and the satisfaction of users.
_SATISFACTION: Final = (
    (4.34, "users very satisfied (ITU-T G.107)"),
    (4.03, "users satisfied (ITU-T G.107)"),
    (3.60, "some users dissatisfied (ITU-T G.107)"),
    (3.10, "many users dissatisfied (ITU-T G.107)"),
    (2.58, "nearly all users dissatisfied (ITU-T G.107)"),
)
_TOO_BAD: Final = "not recommended by ITU-T G.107"
_SCALES: Final = {"MOS": "4.5", "video MOS": "5"}
PARTIES: Final = {
    "server": "server operator",
    "client": "host at home",
    "gateway": "gateway operator",
    "operator": "link operator",
}
_CHANGES: Final = {
    "server": "hosts that send data",
    "client": "hosts that only receive",
    "gateway": "gateways on the way",
    "operator": "links, their queues and capacity",
}
_WHY: Final = {
    "downlink": "The link is full: only a higher rate, or less data, gives more.",
    "capacity": "All capacity that the terminal may be granted is used.",
    "carrier": "The carrier is full: more for one terminal is less for the others.",
    "processing": "A processor on the way is busy all the time.",
    "acknowledgments": "The path of the acknowledgments is full; they set the pace of the data.",
    "gateway": "The gateway's window is full: the limit is on the other side of it.",
    "slow_start": ("The window is still growing: for this amount of data, the round trip is long."),
    "congestion_window": (
        "The congestion window holds the senders back: over a long round trip it grows slowly."
    ),
    "receive_window": "The receive window is smaller than what the path holds.",
    "send_buffer": "The send buffer is smaller than what the path holds.",
    "application": "The application has no more to send; the network has room.",
    "pacing": "The sender spaces its segments at a rate below that of the path.",
    "recovery": "The senders repair losses for this time.",
}
# Ratio that stands for that of a measure which some value of a variation does not have.
_MISSING: Final = 2.0
# Effects of a remedy that a sentence names.
_MOST_EFFECTS: Final = 4
# Gain from which "times as much" reads better than a percentage.
_TIMES: Final = 3.0
# A change of a measure that is worth a sentence.
_NOTABLE: Final = 0.05


def listed(words: Sequence[str]) -> str:
    """Write a list: "a, b and c"."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def capital(text: str) -> str:
    """Return a sentence with a capital letter."""
    return text[:1].upper() + text[1:]


def measure_sentence(measure: MeasureRange, *, flows: int, seeds: int) -> str:
    """Return a sentence about a measure: "pages: a page loads in 7.08 s (median)"."""
    own = measure.own
    parts = _value(measure, flows)
    if own.what in _ITEMS and own.tail is not None and own.completed > 1:
        tail = own.shown(own.tail)
        parts.append(
            f"{tail} for the longest" if own.what == TRANSFER else f"5% take {tail} or more"
        )
    if own.what == RECEIVED:
        parts.append(f"{own.shown(own.tail)} at the worst receiver")
    if measure.shown_range:
        parts.append(f"{measure.shown_range} over {seeds} seeds")
    if own.what in _MANY and own.completed < own.begun:
        parts.append(f"{own.completed:,} of {own.begun:,} {_MANY[own.what]}")
    return f"{own.table}: {'; '.join(parts)}."


def _value(measure: MeasureRange, flows: int) -> list[str]:
    own = measure.own
    if own.what in OPINION_SCORES:
        told = f"{own.what} {own.shown()} of {_SCALES[own.what]} on average"
        return [told, satisfaction(own.value)] if own.what == "MOS" else [told]
    if own.what == GOODPUT:
        each = f" by each of {flows:,} flows (median)" if flows > 1 else ""
        return [f"{own.shown()} delivered{each}"]
    if own.what == RECEIVED:
        return [f"{own.shown()} of the data received, median of the receivers"]
    median = " (median)" if own.completed > 1 else ""
    return [f"{own.shown()} {_ITEMS[own.what]}{median}"]


def satisfaction(score: float) -> str:
    """Return the satisfaction of users at a mean opinion score of calls (ITU-T G.107)."""
    return next((words for least, words in _SATISFACTION if score >= least), _TOO_BAD)


def what_users_get(evidence: Evidence) -> list[str]:
    """Return a sentence about each main measure, and about flows that failed."""
    groups = {group.name: group for group in evidence.summary.groups}
    told = [
        measure_sentence(
            evidence.measures[key],
            flows=groups[key[0]].flows,
            seeds=len(evidence.runs.seeds),
        )
        for key in evidence.main
    ]
    for group in groups.values():
        told += _failures(group)
    return told


def _failures(group: GroupResult) -> Iterator[str]:
    failed = {
        outcome: number
        for outcome, number in group.outcomes.items()
        if outcome not in ("running", "finished") and number
    }
    if failed:
        told = listed([f"{number:,} {outcome}" for outcome, number in failed.items()])
        yield f"{group.name}: of {group.flows:,} flow{'s' if group.flows > 1 else ''}, {told}."
    if not group.bytes_delivered:
        yield f"{group.name}: nothing was delivered."


@dataclass(frozen=True, kw_only=True)
class TableLimit:
    """The limit of the flows of a table, and the shares of its senders' time."""

    table: str
    flows: int
    sentence: str
    shares: Mapping[str, float]


def limits(evidence: Evidence) -> list[TableLimit]:
    """Return what limits each table of flows."""
    members: dict[str, list[FlowLimits]] = {}
    for flow in evidence.advice.flows:
        members.setdefault(evidence.tables[flow.name], []).append(flow)
    return [
        TableLimit(
            table=table,
            flows=len(flows),
            sentence=_limit(table, usual_flow(flows)) + _retransmitted(evidence, table, flows),
            shares=dict(usual_flow(flows).limits),
        )
        for table, flows in members.items()
    ]


def _retransmitted(evidence: Evidence, table: str, flows: Sequence[FlowLimits]) -> str:
    """Return how much the senders of a table sent again, where losses hold them back."""
    if usual_flow(flows).verdict not in ("congestion_window", "recovery", "slow_start"):
        return ""
    own = [flow for flow in evidence.summary.flows if evidence.tables[flow.name] == table]
    sent = sum(flow.segments_sent for flow in own)
    again = sum(flow.segments_retransmitted for flow in own)
    timeouts = sum(flow.timeouts for flow in own)
    if not again:
        return " Nothing was sent twice."
    told = f" {_percent(again / sent)} of the segments were sent again"
    return f"{told}, with {timeouts:,} timeouts." if timeouts > 1 else f"{told}."


def _limit(table: str, flow: FlowLimits) -> str:
    match flow.verdict:
        case "downlink":
            what = f"{flow.downlink} itself, used for {flow.downlink_used:.0%} of the time"
        case "acknowledgments" if flow.full_carrier is None:
            what = (
                f"the acknowledgments' path, {flow.uplink}, used for {flow.uplink_used:.0%} of "
                "the time"
            )
        case "processing" if flow.processor is not None:
            what = f"the processor of {flow.processor.name} ({flow.processor.used:.0%} busy)"
        case "gateway":
            what = f"the part of the path beyond {flow.gateway}"
        case "carrier" | "acknowledgments" if flow.full_carrier is not None:
            what = f"the carrier {flow.full_carrier.name} ({flow.full_carrier.used:.0%} used)"
        case _:
            share = flow.limits.get(flow.verdict)
            of_time = f", {share:.0%} of its senders' time" if share is not None else ""
            what = f"{SPELLED[flow.verdict]}{of_time}"
    if flow.verdict == "application" and not flow.limits:
        return f"{table}: limited by the application, which sends at its own rate."
    return f"{table}: limited by {what}. {_WHY[flow.verdict]}"


def resources(evidence: Evidence) -> list[str]:
    """Return sentences about busy processors and full carriers."""
    return list(full_resources(evidence.advice.flows))


def queue_sentence(ways: Sequence[Way]) -> str:
    """Return a sentence about the queue in which packets wait longest."""
    waiting = [way for way in ways if way.queue_time_s]
    if not waiting:
        return "No packets wait in any queue."
    longest = max(waiting, key=lambda way: way.queue_time_s or 0.0)
    dropping = max(ways, key=lambda way: way.dropped)
    told = (
        f"The longest queue is that of {longest.name}: {format_bytes(longest.queue_max_bytes)} at "
        f"most, {format_seconds(longest.queue_time_s)} to send."
    )
    if not dropping.dropped:
        return f"{told} No queue drops packets."
    share = dropping.dropped / (dropping.delivered + dropping.lost + dropping.dropped)
    return (
        f"{told} {dropping.name} drops {dropping.dropped:,} packets, {_percent(share)} of those "
        "that it is offered."
    )


def _percent(share: float) -> str:
    return f"{100.0 * share:.2g}%" if share < 0.1 else f"{share:.0%}"


@dataclass(frozen=True, kw_only=True)
class Effect:
    """The effect of a remedy on a measure: both values with the scenario's own seed."""

    table: str
    what: str
    unit: str
    now: float
    then: float
    gain: float

    @property
    def words(self) -> str:
        """The effect in words: "pages: page load 5.23 s instead of 7.08 s"."""
        return (
            f"{self.table}: {self.what} {shown(self.then, self.unit)} instead of "
            f"{shown(self.now, self.unit)}"
        )


def effects(evidence: Evidence, result: RemedyResult) -> list[Effect]:
    """Return the effects of a remedy on the main measures of user experience."""
    main = set(evidence.main)
    return [
        Effect(
            table=experience.flow,
            what=experience.what,
            unit=experience.unit,
            now=experience.value,
            then=better.value,
            gain=better.gain,
        )
        for experience in evidence.advice.experiences
        if (experience.flow, experience.what) in main
        for better in experience.remedies
        if better.result is result
    ]


def helps(result: RemedyResult) -> bool:
    """Return whether a remedy gives 2% more, in goodput or overall."""
    return result.gain >= WORTHWHILE or result.overall_gain >= WORTHWHILE


def who(result: RemedyResult) -> str:
    """Return who has to change something: "server operator and gateway operator"."""
    if result.remedy.every_network:
        return "all networks on the path"
    return listed([PARTIES[party] for party in result.remedy.who])


def changed_items(result: RemedyResult) -> str:
    """Return the items of the scenario that a remedy changes: "internet, users"."""
    named = (key.split(".") for key, _ in result.remedy.settings)
    return ", ".join(dict.fromkeys(parts[1] if len(parts) > 1 else parts[0] for parts in named))


def gain_in_words(gain: float) -> str:
    """Write a gain: "+6%", "unchanged", "37 times as much"."""
    if gain >= _TIMES:
        return f"{gain:.3g} times as much"
    change = f"{gain - 1.0:+.0%}"
    return "unchanged" if change in ("+0%", "-0%") else change


def effect_sentence(evidence: Evidence, result: RemedyResult) -> str:
    """Return what a remedy gives, in one sentence."""
    found = sorted(effects(evidence, result), key=lambda each: -each.gain)
    better = [each.words for each in found if each.gain >= WORTHWHILE]
    worse = [each.words for each in found if each.gain <= 1.0 / WORTHWHILE]
    goodput = f"goodput of all flows {gain_in_words(result.gain)}"
    if len(evidence.summary.flows) == 1:
        rates = (result.goodput_bps, evidence.advice.goodput_bps)
        then, now = map(format_rate, rates)
        goodput = f"goodput {then} instead of {now}, {gain_in_words(result.gain)}"
    more = len(better) - _MOST_EFFECTS
    rest = [f"{more} more measures better"] if more > 0 else []
    told = "; ".join([*better[:_MOST_EFFECTS], *rest, goodput])
    return capital(f"{told}; but {'; '.join(worse)}." if worse else f"{told}.")


@dataclass(frozen=True, kw_only=True)
class PartyAdvice:
    """The best remedy that one party can make alone, or the reason why there is none."""

    party: str
    scope: str
    best: RemedyResult | None
    sentence: str
    tried: int


def by_party(evidence: Evidence) -> list[PartyAdvice]:
    """Return the best remedy of each party that has any."""
    found = []
    for party, words in PARTIES.items():
        own = [
            each
            for each in evidence.advice.remedies
            if each.remedy.who == (party,) and not each.remedy.every_network
        ]
        if not own:
            continue
        helpful = [each for each in own if helps(each)]
        best = max(helpful, key=lambda each: (each.overall_gain, each.gain), default=None)
        if best is None:
            number = (
                f"None of the {len(own)} changes that were tried"
                if len(own) > 1
                else ("The one change that was tried")
            )
            sentence = f"{number} {'gives' if len(own) > 1 else 'does not give'} 2% more."
        else:
            sentence = effect_sentence(evidence, best)
        found.append(
            PartyAdvice(
                party=capital(words),
                scope=_CHANGES[party],
                best=best,
                sentence=sentence,
                tried=len(own),
            )
        )
    return found


def best_remedy(evidence: Evidence) -> RemedyResult | None:
    """Return the best remedy of all, if one helps; those of every network do not count."""
    return next(
        (
            each
            for each in evidence.advice.remedies
            if helps(each) and not each.remedy.every_network
        ),
        None,
    )


def together(evidence: Evidence) -> RemedyResult | None:
    """Return the best remedy if several parties make it and it is 2% better than one party's."""
    best = best_remedy(evidence)
    if best is None or len(best.remedy.who) < 2:
        return None
    alone = max(
        (each.best.overall_gain for each in by_party(evidence) if each.best is not None),
        default=1.0,
    )
    return best if best.overall_gain >= WORTHWHILE * alone else None


def remedy_sentence(evidence: Evidence) -> str:
    """Return the sentence of the summary about remedies."""
    best = best_remedy(evidence)
    tried = len(evidence.advice.remedies)
    if best is None:
        if not tried:
            return "Remedies: none applies to this network."
        return f"Remedies: none of the {tried:,} changes that were simulated gives 2% more."
    one = best
    single = [each for each in by_party(evidence) if each.best is not None]
    if len(best.remedy.who) > 1 and together(evidence) is None and single:
        one = max(
            (each.best for each in single if each.best is not None),
            key=lambda each: each.overall_gain,
        )
    return (
        f"Best remedy: “{one.remedy.name}”, by the {who(one)}. {effect_sentence(evidence, one)} "
        f"{tried:,} changes were simulated."
    )


def is_sensitive(evidence: Evidence, sensitivity: Sensitivity) -> bool:
    """Return whether any main measure changes by more than 5% along a variation."""
    return any(ratio >= 1.0 + _NOTABLE for ratio, _ in _changes(evidence, sensitivity))


def _changes(evidence: Evidence, sensitivity: Sensitivity) -> list[tuple[float, Key]]:
    """Return the ratio of the largest and the smallest value of each main measure."""
    found = []
    points = [each for each in sensitivity.points if not each.error]
    for key in sensitivity.keys(evidence.main):
        values = [m.range.median for each in points if (m := each.measure(key))]
        if not values or max(values) <= 0.0:
            continue
        # With some value nothing is completed: of few items, by chance.
        is_missing = len(values) < len(points) or min(values) <= 0.0
        found.append((_MISSING if is_missing else max(values) / min(values), key))
    return found


def sensitivity_sentence(evidence: Evidence, sensitivity: Sensitivity) -> str:
    """Return what changes most along a variation."""
    variation = sensitivity.variation
    subject = capital(variation.subject)
    if variation.why_not:
        return f"{subject}: not varied, because {variation.why_not}."
    refused = [each for each in sensitivity.points if each.error]
    known = [each for each in sensitivity.points if not each.error]
    if len(known) < 2:
        why = refused[0].error if refused else "no value could be simulated"
        return f"{subject}: not varied ({why})."
    found = _changes(evidence, sensitivity)
    first, last = known[0].value.words, known[-1].value.words
    if not found or max(found)[0] < 1.0 + _NOTABLE:
        return f"{subject}: from {first} to {last}, nothing changes by more than 5%."
    _, key = max(found)
    told: list[str] = []
    for point in (known[0], known[-1]):
        measure = point.measure(key)
        if not point.value.is_present:
            told.append(f"{_median(measure)} with {_with(variation, point.value.words)}")
    now = next(each for each in known if each.value.is_present)
    present = now.measure(key)
    return (
        f"{subject}: {key[0]}, {key[1]}, {listed(told)}; {_median(present)} now, with "
        f"{_with(variation, now.value.words)}."
    )


def _median(measure: MeasureRange | None) -> str:
    return "none completed" if measure is None else measure.own.shown(measure.range.median)


def _with(variation: Variation, words: str) -> str:
    if variation.kind != "losses" or words != "none":
        return words
    return f"no {variation.subject.partition(' of ')[0]}"


@dataclass(frozen=True, kw_only=True)
class PredictedRow:
    """The prediction of a table's flows beside what was simulated.

    `verdict` is "agrees" or "differs" where the formulas claim a margin, and else empty.
    """

    table: str
    flows: int
    predicted: str
    basis: str
    simulated: str
    difference: str
    verdict: str
    notes: tuple[str, ...]


def predicted_rows(evidence: Evidence) -> list[PredictedRow]:
    """Return the predictions of each table of flows, for the flow with the median goodput."""
    simulated = {flow.name: flow for flow in evidence.summary.flows}
    tables: dict[str, list[FlowPrediction]] = {}
    for flow in evidence.prediction.flows:
        tables.setdefault(evidence.tables[flow.name], []).append(flow)
    rows = []
    for table, flows in tables.items():
        ordered = sorted(flows, key=lambda flow: simulated[flow.name].goodput_bps)
        # Of two in the middle the lower one: a flow, and not a mean of two.
        flow = ordered[(len(ordered) - 1) // 2]
        result = simulated[flow.name]
        rows.append(_predicted_goodput(table, len(flows), flow, result.goodput_bps))
        page_load = evidence.measures.get((table, "page load"))
        for answer in flow.models:
            predicted_s, time_s = answer.transfer_time_s, result.transfer_time_s
            if answer.name == "http":
                time_s = None if page_load is None else page_load.own.value / 1e3
            if answer.applies and predicted_s is not None and time_s is not None:
                rows.append(
                    PredictedRow(
                        table=table,
                        flows=len(flows),
                        predicted=f"≈ {format_seconds(predicted_s)}",
                        basis=f"{answer.name} (model)",
                        simulated=format_seconds(time_s),
                        difference=_signed(time_s / predicted_s - 1.0),
                        verdict="",
                        notes=(),
                    )
                )
    return rows


def _signed(change: float) -> str:
    return f"{change:+.0%}".replace("-0%", "0%").replace("+0%", "0%")


def _predicted_goodput(
    table: str, number: int, flow: FlowPrediction, goodput_bps: float
) -> PredictedRow:
    is_estimate = flow.lowest in flow.estimates_bps
    lowest_bps = flow.lowest_bps
    difference = goodput_bps / lowest_bps - 1.0 if lowest_bps > 0.0 else 0.0
    verdict = ""
    if flow.margin is not None:
        verdict = "agrees" if abs(difference) <= flow.margin else "differs"
    notes = flow.doubts or tuple(f"{each}: no formula includes it" for each in flow.ignored)
    margin = f", ± {flow.margin:.0%}" if flow.margin is not None else ""
    # Other applications send less than an estimate of what the path carries.
    sends_so_much = flow.keeps_sending or flow.lowest == "offered"
    if lowest_bps <= 0.0:
        compared = "–"
    elif flow.margin is not None or (is_estimate and sends_so_much):
        compared = _signed(difference)
    else:
        share = goodput_bps / lowest_bps
        compared = "below 1% of it" if share < 0.01 else f"{_percent(share)} of it"
    return PredictedRow(
        table=table,
        flows=number,
        predicted=f"{'≈' if is_estimate else '≤'} {format_rate(lowest_bps)}{margin}",
        basis=f"{flow.lowest} ({'estimate' if is_estimate else 'limit'})",
        simulated=format_rate(goodput_bps),
        difference=compared,
        verdict=verdict,
        notes=notes,
    )


def prediction_sentence(rows: Sequence[PredictedRow]) -> str:
    """Return how far the predictions agree with the simulation."""
    agree = [row.table for row in rows if row.verdict == "agrees"]
    differ = [row.table for row in rows if row.verdict == "differs"]
    bound = [row.table for row in rows if not row.verdict and row.notes]
    told = []
    if agree:
        told.append(f"Formulas and simulation agree within the stated margin for {listed(agree)}.")
    if differ:
        told.append(f"They differ by more than the stated margin for {listed(differ)}.")
    if bound:
        told.append(
            f"For {listed(bound)} the formulas claim no margin, because an assumption of theirs "
            "does not hold: the value is an upper bound or an orientation."
        )
    return " ".join(told)
