"""`bentpipe predict`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from bentpipe.cli.output import print_json
from bentpipe.cli.source import execute_files, find_scenario, told_apart
from bentpipe.cli.tables import Table
from bentpipe.prediction import FlowPrediction
from bentpipe.prediction import predict as evaluate
from bentpipe.units import format_bytes, format_rate, format_seconds


def predict(*, file: str, settings: Sequence[str], python: Sequence[Path], as_json: bool) -> None:
    """Evaluate and print."""
    execute_files(python)
    scenario = find_scenario(file, settings)
    with told_apart(scenario, command="predict"):
        prediction = evaluate(scenario)
    if as_json:
        print_json(asdict(prediction))
        return
    alike = Counter(flow.like for flow in prediction.flows)
    first = [flow for flow in prediction.flows if flow.like == flow.name]
    for number, flow in enumerate(first):
        if number:
            print()
        _print_flow(prediction.scenario, flow, alike[flow.name])


def _of_the_lowest(flow: FlowPrediction) -> str:
    """Return the remark beside the kind of the lowest limit or estimate."""
    if flow.margin is not None:
        verb = "likely binds" if flow.lowest in flow.estimates_bps else "binds"
        return f": {verb}, within {flow.margin:.0%}"
    if not flow.keeps_sending and flow.lowest != "offered":
        # An application that pauses may send less than all of them allow.
        return ": the lowest"
    return ": the lowest, not likely"


def _print_doubts(flow: FlowPrediction) -> None:
    """Print why the lowest is not likely, if it is not and the flow sends all the time."""
    if not flow.doubts:
        return
    ignored = {what.replace(": ", " has ", 1) for what in flow.ignored}
    doubts = [doubt for doubt in flow.doubts if doubt not in ignored]
    if len(doubts) < len(flow.doubts):
        doubts.append("no formula knows of what is ignored")
    table = Table(headings=("", ""), left=frozenset({1}), prose=True)
    for number, doubt in enumerate(doubts):
        table.add("" if number else "not likely", doubt)
    table.print()


def _add_way_back(facts: Table, flow: FlowPrediction) -> None:
    back = "ACKs" if flow.over_tcp else "back"
    facts.add(back, " → ".join(flow.uplink), f"bottleneck {flow.uplink_bottleneck}")
    facts.add("round trip", format_seconds(flow.round_trip_s), "unloaded")
    if not flow.over_tcp:
        return
    facts.add("window", format_bytes(flow.window_bytes), f"{flow.window_segments} segments")
    saturation = flow.saturation_window_bytes
    if saturation is None and "uplink ACKs" not in flow.estimates_bps:
        facts.add("saturation", "–", "no formula knows what becomes of the ACKs on their way")
    elif saturation is None:
        facts.add("saturation", "never", "the uplink's ACKs are slower than the downlink")
    else:
        facts.add("saturation", format_bytes(saturation), "the window that fills the downlink")


def _print_flow(scenario: str, flow: FlowPrediction, alike: int) -> None:
    size = "until the end" if flow.transfer_bytes is None else format_bytes(flow.transfer_bytes)
    others = "" if alike == 1 else f" and {alike - 1:,} alike"
    print(f"{scenario}, flow {flow.name}{others}: {size}")
    facts = Table(headings=("", "", ""), left=frozenset({1}), prose=True)
    facts.add("data", " → ".join(flow.downlink), f"bottleneck {flow.downlink_bottleneck}")
    if flow.uplink:
        _add_way_back(facts, flow)
    else:
        facts.add("delay", format_seconds(flow.round_trip_s), "to a group, unloaded")
    if flow.loss_rate:
        what = "of the data segments" if flow.uplink else "of the datagrams, to each by itself"
        facts.add("loss", f"{flow.loss_rate:.3g}", what)
    for part in flow.parts:
        governs = part.name == min(flow.parts, key=lambda each: each.lowest_bps).name
        what = f"{part.lowest}: {format_rate(part.lowest_bps)}" + (", governs" if governs else "")
        facts.add("split part", part.name, what)
    for what in flow.ignored:
        facts.add("ignored", what, "no formula knows of it")
    facts.print()
    print()

    limits = Table(headings=("", "goodput", ""), left=frozenset({2}))
    for name, rate in sorted(flow.rates_bps.items(), key=lambda item: item[1]):
        kind = "an estimate" if name in flow.estimates_bps else "a limit"
        if name == flow.lowest:
            kind += _of_the_lowest(flow)
        # A flow in both directions has the sum of both links' rates.
        shown = name.replace("downlink", "both ways") if flow.two_way else name
        limits.add(shown, format_rate(rate), kind)
    limits.print()
    _print_doubts(flow)
    if not flow.models:
        return
    print()
    answers = flow.models
    # Models of transfers do not apply to pages, all for one reason.
    of_transfers = tuple(each for each in answers if each.name != "http")
    reasons = {each.reason for each in of_transfers}
    is_said_once = len(of_transfers) > 1 and len(reasons) == 1
    if is_said_once and not any(each.applies for each in of_transfers):
        print(f"none of the {len(of_transfers)} models applies: {reasons.pop()}")
        answers = tuple(each for each in answers if each.name == "http")
        if not answers:
            return
        print()
    models = Table(headings=("model", "goodput", "transfer time", "applies"), prose=True)
    for answer in answers:
        goodput = "–" if answer.throughput_bps is None else format_rate(answer.throughput_bps)
        verdict = "yes" if answer.applies else "no"
        time = format_seconds(answer.transfer_time_s)
        models.add(answer.name, goodput, time, f"{verdict}: {answer.reason}")
    models.print()
