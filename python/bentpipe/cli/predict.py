"""`bentpipe predict`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from bentpipe.cli.output import print_json
from bentpipe.cli.source import find_scenario, told_apart
from bentpipe.cli.tables import Table
from bentpipe.prediction import FlowPrediction
from bentpipe.prediction import predict as evaluate
from bentpipe.units import format_bytes, format_rate, format_seconds


def predict(*, file: str, settings: Sequence[str], as_json: bool) -> None:
    """Evaluate and print."""
    scenario = find_scenario(file, settings)
    with told_apart(scenario, command="predict"):
        prediction = evaluate(scenario)
    if as_json:
        print_json(asdict(prediction))
        return
    for number, flow in enumerate(prediction.flows):
        if number:
            print()
        _print_flow(prediction.scenario, flow)


def _print_flow(scenario: str, flow: FlowPrediction) -> None:
    size = "until the end" if flow.transfer_bytes is None else format_bytes(flow.transfer_bytes)
    print(f"{scenario}, flow {flow.name}: {size}")
    facts = Table(headings=("", "", ""), left=frozenset({1}), prose=True)
    facts.add("data", " → ".join(flow.downlink), f"bottleneck {flow.downlink_bottleneck}")
    facts.add("ACKs", " → ".join(flow.uplink), f"bottleneck {flow.uplink_bottleneck}")
    facts.add("round trip", format_seconds(flow.round_trip_s), "unloaded")
    facts.add("window", format_bytes(flow.window_bytes), f"{flow.window_segments} segments")
    saturation = flow.saturation_window_bytes
    if saturation is None:
        facts.add("saturation", "never", "the uplink's ACKs are slower than the downlink")
    else:
        facts.add("saturation", format_bytes(saturation), "the window that fills the downlink")
    if flow.loss_rate:
        facts.add("loss", f"{flow.loss_rate:.3g}", "of the data segments")
    for what in flow.ignored:
        facts.add("ignored", what, "no formula knows of it")
    facts.print()
    print()

    limits = Table(headings=("limit", "goodput", ""), left=frozenset({2}))
    for name, rate in sorted(flow.limits_bps.items(), key=lambda item: item[1]):
        limits.add(name, format_rate(rate), "binds" if name == flow.binding else "")
    limits.print()
    print()

    models = Table(headings=("model", "goodput", "transfer time", "applies"), prose=True)
    for answer in flow.models:
        goodput = "–" if answer.throughput_bps is None else format_rate(answer.throughput_bps)
        verdict = "yes" if answer.applies else "no"
        time = format_seconds(answer.transfer_time_s)
        models.add(answer.name, goodput, time, f"{verdict}: {answer.reason}")
    models.print()
