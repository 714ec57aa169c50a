"""`bentpipe predict`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from bentpipe.cli.output import console, new_table, plain_table, print_json
from bentpipe.prediction import FlowPrediction
from bentpipe.prediction import predict as evaluate
from bentpipe.scenario import Scenario, parse_settings
from bentpipe.units import format_bytes, format_rate, format_seconds


def predict(*, file: str, settings: Sequence[str], as_json: bool) -> None:
    """Evaluate and print."""
    prediction = evaluate(Scenario.find(file).with_settings(parse_settings(settings)))
    if as_json:
        print_json(asdict(prediction))
        return
    for flow in prediction.flows:
        _print_flow(prediction.scenario, flow)


def _print_flow(scenario: str, flow: FlowPrediction) -> None:
    size = "until the end" if flow.transfer_bytes is None else format_bytes(flow.transfer_bytes)
    print(f"{scenario}, flow {flow.name}: {size}")
    facts = plain_table()
    facts.add_row("data", " → ".join(flow.downlink), f"bottleneck {flow.downlink_bottleneck}")
    facts.add_row("ACKs", " → ".join(flow.uplink), f"bottleneck {flow.uplink_bottleneck}")
    facts.add_row("round trip", format_seconds(flow.round_trip_s), "unloaded")
    facts.add_row("window", format_bytes(flow.window_bytes), f"{flow.window_segments} segments")
    saturation = flow.saturation_window_bytes
    if saturation is None:
        facts.add_row("saturation", "never", "the uplink's ACKs are slower than the downlink")
    else:
        facts.add_row("saturation", format_bytes(saturation), "the window that fills the downlink")
    if flow.loss_rate:
        facts.add_row("loss", f"{flow.loss_rate:.3g}", "of the data segments")
    for what in flow.ignored:
        facts.add_row("ignored", what, "no formula knows of it")
    console().print(facts)

    limits = new_table("limit", "goodput", "")
    for name, rate in sorted(flow.limits_bps.items(), key=lambda item: item[1]):
        limits.add_row(name, format_rate(rate), "binds" if name == flow.binding else "")
    console().print(limits)

    models = new_table("model", "goodput", "transfer time")
    models.add_column("applies", ratio=1)
    for answer in flow.models:
        goodput = "–" if answer.throughput_bps is None else format_rate(answer.throughput_bps)
        verdict = "yes" if answer.applies else "no"
        time = format_seconds(answer.transfer_time_s)
        models.add_row(answer.name, goodput, time, f"{verdict}: {answer.reason}")
    console().print(models)
