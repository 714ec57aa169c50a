"""Fits of what Linux measures over `emulate`: ping, iperf3, and captures of its transfer."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bentpipe.cli import execute
from bentpipe.fit import Fit, fit
from bentpipe.scenario import Scenario

from .known_networks import (
    DELAY_TOLERANCE,
    LEAST_DELAY_TOLERANCE_S,
    LEO,
    QUEUE_TOLERANCE,
    RATE_TOLERANCE,
    KnownNetwork,
)
from .live import live, repeated_after_stall

pytestmark = [
    live,
    *(
        pytest.mark.skipif(shutil.which(tool) is None, reason=f"{tool} is not installed")
        for tool in ("ping", "iperf3")
    ),
]

# Settings of the hosts of `emulate` here.
CONTROL = Path("/proc/sys/net/ipv4/tcp_congestion_control")
NETWORK = replace(
    LEO,
    name="live",
    rate_bps=8e6,
    return_bps=2e6,
    delay_s=0.1,
    queue_packets=133,
    duration_s=40.0,
)
LOSSY = replace(NETWORK, name="live-lossy", loss=0.01)


def measure(network: KnownNetwork, folder: Path) -> dict[str, Path]:
    """Ping, and download for 12 s, over a network in real time; return the measurements."""
    scenario = network.scenario()
    file = folder / "live.toml"
    file.write_text(Scenario.from_data(scenario).text or "", encoding="utf-8")
    ping, iperf = folder / "ping.txt", folder / "iperf.json"
    script = (
        f"ping -D -c 20 -i 0.2 server > {ping}; "
        "for i in 1 2 3 4 5; do "
        f"iperf3 -c server -R -t 12 --json > {iperf} && exit 0; sleep 0.3; done; exit 1"
    )
    captured = ["--pcap", "lan@server", "--pcap", "home@client", "--snap", "100"]
    served = ["--serve", "server=iperf3 -s -1", "--shell", "client"]
    command = ["emulate", str(file), *served, "--out", str(folder), *captured]
    assert execute([*command, "--", "sh", "-c", script]) == 0
    return {
        "ping": ping,
        "iperf3": iperf,
        "sender": folder / "lan@server.pcapng",
        "receiver": folder / "home@client.pcapng",
    }


def value(found: Fit, key: str) -> float:
    return float(found.estimates[key].value)


def assert_delay(found: Fit) -> None:
    truth = 2 * NETWORK.one_way_s
    tolerance = max(LEAST_DELAY_TOLERANCE_S, DELAY_TOLERANCE * truth)
    assert value(found, "round_trip.delay") == pytest.approx(truth, abs=tolerance)


@repeated_after_stall
def test_download_over_a_known_network_gives_its_parameters(
    tmp_path_factory: pytest.TempPathFactory, capfd: Any
) -> None:
    measured = measure(NETWORK, tmp_path_factory.mktemp("live"))
    del capfd
    for place in ("sender", "receiver"):
        found = fit(measured[place])
        assert value(found, "forward.rate") == pytest.approx(8e6, rel=RATE_TOLERANCE)
        assert value(found, "forward.queue") == pytest.approx(133, rel=QUEUE_TOLERANCE)
        assert value(found, "forward.loss") < 1e-3
        assert_delay(found)
    for kind in ("ping", "iperf3"):
        assert_delay(fit(measured[kind], measured["receiver"]))
    alone = fit(measured["iperf3"])
    assert value(alone, "forward.rate") == pytest.approx(8e6, rel=2 * RATE_TOLERANCE)
    assert alone.estimates["host.congestion_control"].value == CONTROL.read_text().strip()


@repeated_after_stall
def test_random_losses_over_a_known_network_are_found(
    tmp_path_factory: pytest.TempPathFactory, capfd: Any
) -> None:
    measured = measure(LOSSY, tmp_path_factory.mktemp("lossy"))
    del capfd
    for place in ("sender", "receiver"):
        found = fit(measured[place])
        loss = found.estimates["forward.loss"]
        assert loss.low is not None
        assert loss.high is not None
        # One interval in twenty misses the truth: twice as wide, one in ten thousand.
        estimate = float(loss.value)
        assert 2 * loss.low - estimate < LOSSY.loss < 2 * loss.high - estimate
        assert_delay(found)
