"""Every quantity of the reference records values in a network that has it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import bentpipe
from bentpipe import _native
from bentpipe.scenario import Scenario

# Together these have each kind of subject: all gateways, capacity on demand, processors, pacing,
# paths over satellites.
NETWORKS: Mapping[str, Mapping[str, object]] = {
    "hybrid-web": {
        "duration": "60 s",
        "hosts.server.tcp.congestion_control": "bbr",
        "hosts.server.processing.time": "10 us",
    },
    "split-multiplexing": {"duration": "20 s"},
    "rcs2-terminals": {"duration": "20 s"},
    "transatlantic": {"duration": "60 s"},
}
SUBJECTS = {"host": "HOST", "split": "split", "hybrid": "hybrid"}


def quantities() -> dict[str, list[str]]:
    """Return the names of all quantities by subject, as the reference lists them."""

    def found(part: Any) -> Iterator[Mapping[str, Any]]:
        if isinstance(part, dict):
            if "x-quantities" in part:
                yield part["x-quantities"]
            part = list(part.values())
        if isinstance(part, list):
            for each in part:
                yield from found(each)

    (listed,) = found(json.loads(_native.json_schema()))
    return {subject: [each["name"] for each in all_of] for subject, all_of in listed.items()}


def series_of(scenario: Scenario, names: Mapping[str, list[str]]) -> dict[str, tuple[str, str]]:
    """Return all series that a scenario may have, each with its subject and quantity."""
    resolved = scenario.resolved()
    subjects = {
        "FLOW": [each["name"] for each in resolved["flows"][:40]],
        "LINK.forward": [
            f"{each['name']}.{way}"
            for each in resolved["links"][:6]
            for way in ("forward", "return")
            if each.get(way)
        ],
        "LINK.path": [f"{each['name']}.path" for each in resolved["links"][:6] if each.get("path")],
    }
    for node in resolved["nodes"][:60]:
        kind = SUBJECTS.get(node["kind"], "other")
        if kind != "other":
            subjects.setdefault(kind, []).append(node["name"])
        if node.get("processing"):
            subjects.setdefault("other", []).append(node["name"])
    return {
        f"{owner}.{quantity}": (subject, quantity)
        for subject, all_of in names.items()
        for kind, owners in subjects.items()
        if kind in subject
        for owner in owners
        for quantity in all_of
    }


def test_every_quantity_records_values() -> None:
    names = quantities()
    missing = {(subject, each) for subject, all_of in names.items() for each in all_of}
    for network, settings in NETWORKS.items():
        scenario = Scenario.of(network).with_settings(settings)
        series = series_of(scenario, names)
        result = bentpipe.run(scenario, settings={"probes.series": list(series)})
        missing -= {of for name, of in series.items() if len(result.series[name].values)}
    assert missing == set()
