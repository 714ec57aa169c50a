"""Fits recover the parameters of networks that are known. Tolerances: known_networks.py."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

import bentpipe
from bentpipe import toml
from bentpipe.fit import Fit, fit

from .known_networks import (
    DELAY_TOLERANCE,
    FILTERED,
    GEO,
    LEAST_COVERAGE,
    LEAST_DELAY_TOLERANCE_S,
    LEO,
    MODEM,
    QUEUE_TOLERANCE,
    RATE_TOLERANCE,
    KnownNetwork,
)

PLACES = ("sender", "receiver")
# Networks in which the data fill their link, and no other.
FILLED = [GEO, LEO, *(GEO.queue_of_bdp(share) for share in (0.5, 2, 4))]
LOSSES = (0.001, 0.005, 0.01, 0.02)
LOSSY = [
    *(replace(GEO, loss=loss) for loss in LOSSES),
    *(replace(LEO, loss=loss) for loss in LOSSES),
]
# The link of the acknowledgments is full.
LIMITED = [
    MODEM,
    FILTERED,
    replace(GEO, return_bps=64e3, name="slow-return"),
    replace(GEO, return_bps=9.6e3, acks={"kind": "filter"}, name="geo-filtered", duration_s=60.0),
]


def named(network: KnownNetwork) -> str:
    return f"{network.name}-{network.queue_packets}-{network.loss}"


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """Return a function that fits the capture of a network's download at one end."""

    @cache
    def captured(name: str, network_id: int) -> tuple[Path, Path]:
        return networks[network_id].captures(tmp_path_factory.mktemp(name))

    networks: dict[int, KnownNetwork] = {}

    def found(network: KnownNetwork, place: str) -> Fit:
        networks[id(network)] = network
        sender, receiver = captured(network.name, id(network))
        return fit(sender if place == "sender" else receiver)

    return found


def value(found: Fit, key: str) -> float:
    return float(found.estimates[key].value)


def contains(found: Fit, key: str, truth: float) -> bool:
    each = found.estimates[key]
    assert each.low is not None
    assert each.high is not None
    return each.low <= truth <= each.high


def assert_delay(found: Fit, network: KnownNetwork) -> None:
    truth = 2 * network.one_way_s
    tolerance = max(LEAST_DELAY_TOLERANCE_S, DELAY_TOLERANCE * truth)
    assert value(found, "round_trip.delay") == pytest.approx(truth, abs=tolerance)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("network", FILLED, ids=named)
def test_full_link_gives_rate_delay_and_queue(fitted, network: KnownNetwork, place: str) -> None:  # type: ignore[no-untyped-def]
    found = fitted(network, place)
    assert value(found, "forward.rate") == pytest.approx(network.rate_bps, rel=RATE_TOLERANCE)
    assert value(found, "forward.queue") == pytest.approx(
        network.queue_packets, rel=QUEUE_TOLERANCE
    )
    if place == "sender":
        # At the receiver, timestamps include queuing in the sending host: see docs/fit.md.
        assert contains(found, "forward.queue", network.queue_packets)
    assert_delay(found, network)
    # All losses are those of the queue.
    assert value(found, "forward.loss") == 0.0
    # Acknowledgments are no load.
    assert "return.rate" not in found.estimates
    assert "return.acks" not in found.estimates


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("network", LOSSY, ids=named)
def test_random_losses_are_told_from_those_of_the_queue(  # type: ignore[no-untyped-def]
    fitted, network: KnownNetwork, place: str
) -> None:
    found = fitted(network, place)
    assert value(found, "forward.rate") == pytest.approx(network.rate_bps, rel=RATE_TOLERANCE)
    assert contains(found, "forward.loss", network.loss)
    assert "forward.loss.burst" not in found.estimates
    assert_delay(found, network)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("burst", [2.0, 4.0, 10.0])
def test_bursts_of_losses_are_found(fitted, burst: float, place: str) -> None:  # type: ignore[no-untyped-def]
    network = replace(LEO, loss=0.01, mean_burst=burst, duration_s=60.0, name="bursts")
    found = fitted(network, place)
    # The share that this seed gives; `test_intervals_contain_the_truth` has the probability.
    link = next(
        each
        for each in bentpipe.run(network.scenario()).summary.links
        if each.name == "satellite.forward"
    )
    share = link.packets_lost / (link.packets_lost + link.packets_delivered)
    assert value(found, "forward.loss") == pytest.approx(share, rel=0.05)
    assert contains(found, "forward.loss.burst", burst)


@pytest.mark.parametrize("place", PLACES)
def test_both_kinds_of_losses_in_one_capture(fitted, place: str) -> None:  # type: ignore[no-untyped-def]
    network = replace(LEO, loss=2e-4, queue_packets=40, duration_s=60.0, name="both")
    found = fitted(network, place)
    assert value(found, "forward.queue") == pytest.approx(40, rel=QUEUE_TOLERANCE)
    assert contains(found, "forward.loss", network.loss)


@pytest.mark.parametrize("network", LIMITED, ids=named)
@pytest.mark.parametrize("place", PLACES)
def test_full_return_link_gives_its_rate(fitted, network: KnownNetwork, place: str) -> None:  # type: ignore[no-untyped-def]
    found = fitted(network, place)
    assert value(found, "return.rate") == pytest.approx(network.return_bps, rel=RATE_TOLERANCE)
    assert_delay(found, network)
    if "forward.rate" in found.estimates:
        assert value(found, "forward.rate") == pytest.approx(network.rate_bps, rel=RATE_TOLERANCE)
    if place == "receiver":
        # Arrivals show the queue of the data, whatever the acknowledgments do.
        assert value(found, "forward.queue") == pytest.approx(
            network.queue_packets, rel=QUEUE_TOLERANCE
        )
        is_filtered = "return.acks" in found.estimates
        assert is_filtered == (network.acks is not None)
    else:
        missing = {each.key for each in found.undetermined}
        assert "forward.queue" in missing


@pytest.mark.parametrize("place", PLACES)
def test_fixed_receive_buffer_is_found(fitted, place: str) -> None:  # type: ignore[no-untyped-def]
    network = replace(GEO, receiver={"receive_buffer": "200 kB"}, name="buffer")
    found = fitted(network, place)
    assert value(found, "receiver.receive_buffer") == pytest.approx(200e3, rel=0.02)
    # The window is 200 kB and the path holds 700 kB: packets leave back to back all the same.
    assert value(found, "forward.rate") == pytest.approx(network.rate_bps, rel=RATE_TOLERANCE)
    assert "forward.queue" in {each.key for each in found.undetermined}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("changed", ["nothing", "v6", "timestamps", "sack"])
def test_upload_gives_the_return_direction(tmp_path: Path, changed: str, place: str) -> None:
    network = replace(LEO, rate_bps=10e6, queue_packets=50, duration_s=8.0)
    scenario = network.scenario()
    # The sender opens the connection.
    upload = {"from": "server", "to": "client", "app": {"kind": "bulk"}}
    scenario["flows"] = {"upload": upload}
    if changed == "v6":
        scenario["ip"] = "v6"
    elif changed != "nothing":
        tcp = {"tcp": {changed: False}}
        scenario["hosts"] = {"server": tcp, "client": tcp}
    path = tmp_path / "upload.pcapng"
    link = "lan@server" if place == "sender" else "home@client"
    bentpipe.run(scenario, pcap=[(link, path)], snap=100)
    found = fit(path)
    assert value(found, "return.rate") == pytest.approx(10e6, rel=RATE_TOLERANCE)
    assert_delay(found, network)
    missing = {each.key for each in found.undetermined}
    if changed == "timestamps" and place == "receiver":
        assert {"return.queue", "return.loss"} <= missing
    else:
        assert value(found, "return.queue") == pytest.approx(50, rel=QUEUE_TOLERANCE)
    if changed == "sack" and place == "sender":
        assert "return.loss" in missing
    assert found.scenario.resolved()["flows"][0]["name"] == "upload"


def test_settings_of_hosts_are_read(fitted) -> None:  # type: ignore[no-untyped-def]
    settings = {"mss": "1200 B", "timestamps": False, "initial_window": "4 segments"}
    network = replace(
        LEO, sender=settings, receiver={"timestamps": False, "mss": "1200 B"}, name="settings"
    )
    for place in PLACES:
        found = fitted(network, place)
        assert value(found, "host.mss") == 1200.0
        assert found.estimates["host.timestamps"].value == "off"
        assert found.estimates["host.sack"].value == "on"
        assert value(found, "host.initial_window") == 4.0
        hosts = toml.read(found.toml)["hosts"]
        assert hosts["server"]["tcp"] == {
            "mss": "1200 B",
            "timestamps": False,
            "initial_window": "4 segments",
        }
        assert hosts["client"]["tcp"] == {"mss": "1200 B", "timestamps": False}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "network",
    [GEO, LEO, FILTERED, replace(GEO, loss=0.005, duration_s=120.0)],
    ids=named,
)
def test_fitted_scenario_has_the_measured_goodput(  # type: ignore[no-untyped-def]
    fitted, network: KnownNetwork, place: str
) -> None:
    found = fitted(network, place)
    measured = found.measured_goodput_bps
    assert measured is not None
    if network.loss:
        # Random losses fall on other packets with each seed.
        runs = bentpipe.run_seeds(found.scenario, seeds=20)
        goodputs = [summary.flows[0].goodput_bps for summary in runs.summaries]
        assert min(goodputs) <= measured <= max(goodputs)
    else:
        simulated = bentpipe.run(found.scenario).summary.flows[0].goodput_bps
        assert simulated == pytest.approx(measured, rel=0.05)


SEEDS = range(1, 41)


def test_intervals_contain_the_truth(tmp_path: Path) -> None:
    """At least 90% of the 95% intervals contain the truth, for each quantity."""
    hits: dict[str, list[bool]] = {}
    for seed in SEEDS:
        lossy = replace(
            LEO, loss=0.002 * (1 + seed % 5), seed=seed, duration_s=8.0, name=f"lossy-{seed}"
        )
        bursty = replace(
            LEO, loss=0.01, mean_burst=3.0, seed=seed, duration_s=8.0, name=f"bursty-{seed}"
        )
        for network in (lossy, bursty):
            folder = tmp_path / network.name
            folder.mkdir()
            for place, path in zip(PLACES, network.captures(folder), strict=True):
                found = fit(path)
                truths = {
                    "forward.rate": network.rate_bps,
                    "round_trip.delay": 2 * network.one_way_s,
                    "forward.loss": network.loss,
                }
                if network.mean_burst and "forward.loss.burst" in found.estimates:
                    truths["forward.loss.burst"] = network.mean_burst
                kind = "bursty" if network.mean_burst else "lossy"
                for key, truth in truths.items():
                    name = f"{kind} {place} {key}"
                    hits.setdefault(name, []).append(contains(found, key, truth))
                path.unlink()
    shares = {name: sum(each) / len(each) for name, each in hits.items()}
    print(shares)
    low = {name: share for name, share in shares.items() if share < LEAST_COVERAGE}
    assert not low
