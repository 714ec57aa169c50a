"""Where `emulate` runs what it is given, if nobody says where."""

from __future__ import annotations

import pytest

from bentpipe import predict
from bentpipe.cli.compare import _predicted
from bentpipe.cli.emulate import _commands
from bentpipe.scenario import Scenario

NETWORK = {
    "name": "two",
    "duration": "10 s",
    "hosts": {"near": {}, "far": {}},
    "links": {"sky": {"between": ["near", "far"], "rate": "1 Mbit/s", "delay": "10 ms"}},
}


@pytest.mark.parametrize(
    ("app", "client"),
    [
        ({"kind": "bulk"}, "far"),
        ({"kind": "bulk", "direction": "download"}, "near"),
        ({"kind": "web"}, "near"),
        ({"kind": "ftp"}, "near"),
        ({"kind": "ftp", "direction": "upload"}, "far"),
        ({"kind": "mail"}, "far"),
    ],
)
def test_command_runs_at_the_client_end_of_the_flow(app: dict[str, object], client: str) -> None:
    flow = {"from": "near", "to": "far", "app": app}
    resolved = Scenario.of({**NETWORK, "flows": {"first": flow}}).resolved()

    def host(serve: list[str], shell: str | None = None) -> str:
        *_, last = _commands(resolved, command=["true"], shell=shell, serve=serve)
        return last.host

    other = {"near": "far", "far": "near"}[client]
    assert host([]) == client
    assert host([f"{other}=iperf3 -s"]) == client
    # Between two programs on one host there is no network.
    assert host([f"{client}=iperf3 -s"]) == other
    assert host(["near=iperf3 -s", "far=iperf3 -s"]) == client
    assert host([f"{client}=iperf3 -s"], shell=client) == client


def test_comparison_shows_the_prediction_as_estimate_or_limit() -> None:
    echo = {"from": "near", "to": "far", "app": {"kind": "ping", "size": "56 B"}}
    bulk = {"from": "near", "to": "far", "app": {"kind": "bulk"}}
    (echoes,) = predict({**NETWORK, "flows": {"echo": echo}}).flows
    # 56 bytes a second.
    assert _predicted(echoes) == "≈ 448 bit/s"
    (alone,) = predict({**NETWORK, "flows": {"first": bulk}}).flows
    assert _predicted(alone) == "≤ 965 kbit/s"
    first, _ = predict({**NETWORK, "flows": {"first": bulk, "second": bulk}}).flows
    assert _predicted(first) == "≈ 483 kbit/s"
