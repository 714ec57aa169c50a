"""Predicted shares of transfers: acknowledgments, the end of a transfer, both directions."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import bentpipe
from bentpipe.prediction.acks import Acks, hold_back
from bentpipe.prediction.fluid import Transfer, while_they_last
from bentpipe.prediction.max_min_fairness import Uses, levels

# A segment with its headers and an acknowledgment, with timestamps.
SEGMENT, ACK, PAYLOAD = 1500, 52, 1448


def _satellite(
    uplink: str,
    *,
    downloads: int = 0,
    uploads: int = 0,
    downlink: str = "10 Mbit/s",
    duration: str = "120 s",
    tcp: dict[str, Any] | None = None,
    **uplink_keys: Any,
) -> dict[str, Any]:
    """Return a terminal behind a satellite, with transfers to it and from it."""
    bulk = {"kind": "bulk"}
    down = {f"down-{n}": {"from": "server", "to": "client", "app": bulk} for n in range(downloads)}
    up = {f"up-{n}": {"from": "client", "to": "server", "app": bulk} for n in range(uploads)}
    return {
        "name": "satellite",
        "duration": duration,
        "hosts": {"server": {"tcp": tcp or {}}, "client": {"tcp": tcp or {}}},
        "gateways": {"hub": {}},
        "links": {
            "lan": {"between": ["server", "hub"], "rate": "1 Gbit/s", "delay": "1 ms"},
            "satellite": {
                "between": ["hub", "client"],
                "delay": "250 ms",
                "forward": {"rate": downlink},
                "return": {"rate": uplink, **uplink_keys},
            },
        },
        "flows": down | up,
    }


def _predicted_bps(network: dict[str, Any]) -> dict[str, float]:
    """Return what each flow is likely to get, by name."""
    flows = bentpipe.predict(network).flows
    return {flow.name: flow.lowest_bps for flow in flows}


def _simulated_bps(network: dict[str, Any]) -> dict[str, float]:
    flows = bentpipe.run(network, no_probes=True).summary.flows
    return {flow.name: flow.goodput_bps for flow in flows}


def _sum(found: dict[str, float], name: str) -> float:
    return sum(rate for flow, rate in found.items() if flow.startswith(name))


def test_uploads_get_the_rate_left_by_download_acks() -> None:
    network = _satellite("512 kbit/s", downloads=4, uploads=2)
    predicted, ran = _predicted_bps(network), _simulated_bps(network)
    # (The uploads' own acknowledgments, which go down, are 14 a second.)
    down = 10e6 / SEGMENT / 8
    acks_bps = 8 * ACK * down / 2
    assert _sum(predicted, "up") == pytest.approx((512e3 - acks_bps) * PAYLOAD / SEGMENT, rel=2e-3)
    assert _sum(predicted, "down") == pytest.approx(8 * PAYLOAD * down, rel=2e-3)
    # (What it said of them before was 494 kbit/s: the whole link.)
    assert _sum(ran, "up") == pytest.approx(_sum(predicted, "up"), rel=0.15)
    assert _sum(ran, "down") == pytest.approx(_sum(predicted, "down"), rel=0.25)


def test_ack_streams_share_a_link_equally_with_data() -> None:
    network = _satellite("128 kbit/s", downloads=4, uploads=2)
    predicted, ran = _predicted_bps(network), _simulated_bps(network)
    # Six share the uplink: two with their data, four with acknowledgments of two segments each.
    share_bps = 128e3 / 6
    assert _sum(predicted, "up") == pytest.approx(2 * share_bps * PAYLOAD / SEGMENT, rel=1e-3)
    assert _sum(predicted, "down") == pytest.approx(4 * share_bps * 2 * PAYLOAD / ACK, rel=1e-3)
    for flow in bentpipe.predict(network).flows:
        assert flow.lowest == "fair share"
    assert _sum(ran, "up") == pytest.approx(_sum(predicted, "up"), rel=0.25)
    # Which is nearer than the whole downlink, 9.65 Mbit/s, that was said before.
    assert 0.7 < _sum(ran, "down") / _sum(predicted, "down") < 1.4


def test_ack_sharing_is_symmetric_in_both_directions() -> None:
    up = _satellite("512 kbit/s", downloads=4, uploads=2)
    mirrored = _satellite("10 Mbit/s", downloads=2, uploads=4, downlink="512 kbit/s")
    for one, other in (("up", "down"), ("down", "up")):
        found = _sum(_predicted_bps(mirrored), one)
        assert found == pytest.approx(_sum(_predicted_bps(up), other), rel=1e-6)


def test_uploads_and_acks_of_terminals_share_a_carrier() -> None:
    access = {"kind": "on-demand", "carrier": "inroute"}
    network = _satellite(
        "512 kbit/s",
        downloads=1,
        uploads=1,
        downlink="40 Mbit/s",
        duration="600 s",
        access=access,
    )
    network["hosts"]["client"]["count"] = 5
    network["carriers"] = {"inroute": {"rate": "512 kbit/s"}}
    predicted, ran = _predicted_bps(network), _simulated_bps(network)
    for number in range(1, 6):
        # A tenth of the carrier each. The window allows 25.9 Mbit/s and must not be named as the
        # limit.
        share_bps = 512e3 / 10
        down, up = f"down-0-{number}", f"up-0-{number}"
        assert predicted[down] == pytest.approx(share_bps * 2 * PAYLOAD / ACK, rel=1e-3)
        assert predicted[up] == pytest.approx(share_bps * PAYLOAD / SEGMENT, rel=1e-3)
    assert _sum(ran, "down") == pytest.approx(_sum(predicted, "down"), rel=0.25)
    assert _sum(ran, "up") == pytest.approx(_sum(predicted, "up"), rel=0.35)


def test_rate_measuring_senders_share_the_ack_clock() -> None:
    tcp = {"congestion_control": "bbr"}
    network = _satellite("32 kbit/s", downloads=4, tcp=tcp)
    predicted, ran = _predicted_bps(network), _simulated_bps(network)
    clock_bps = 32e3 * 2 * PAYLOAD / ACK
    # Before, each was said to get it: 7.1 Mbit/s in all, of which there are 1.6.
    assert _sum(predicted, "down") == pytest.approx(clock_bps)
    assert _sum(ran, "down") == pytest.approx(clock_bps, rel=0.15)


def test_acks_dropped_by_a_full_queue_do_not_limit_senders() -> None:
    network = _satellite("32 kbit/s", downloads=16)
    predicted, ran = _predicted_bps(network), _simulated_bps(network)
    assert _sum(predicted, "down") == pytest.approx(10e6 * PAYLOAD / SEGMENT)
    assert _sum(ran, "down") == pytest.approx(_sum(predicted, "down"), rel=0.15)


def _acks(**changes: Any) -> Acks:
    plain: dict[str, Any] = {
        "direction": "satellite.return",
        "queue": 100.0,
        "time_s": 0.01,
        "round_trip_s": 0.5,
        "window": 60.0,
        "measures_its_rate": False,
    }
    return Acks(**plain | changes)


def test_windows_within_the_queue_limit_are_ack_clocked() -> None:
    # 50 are on their way, 100 wait.
    assert hold_back([_acks(), _acks()])
    assert not hold_back([_acks()] * 3)
    # Those that wait at terminals of their own have a queue each.
    assert hold_back([_acks(direction=name) for name in "abc"])
    # A rate-measuring sender keeps two bandwidth-delay products in flight, for any larger window.
    assert hold_back([_acks(measures_its_rate=True, window=1e6)] * 3)
    assert not hold_back([_acks(measures_its_rate=True, window=1e6, queue=40.0)] * 3)


def test_ack_suppression_leaves_the_link_to_data() -> None:
    network = _satellite("128 kbit/s", downloads=1, uploads=1, acks={"kind": "suppression"})
    predicted, ran = _predicted_bps(network), _simulated_bps(network)
    assert predicted["up-0"] == pytest.approx(128e3 * PAYLOAD / SEGMENT, rel=1e-3)
    assert 0.65 * predicted["up-0"] < ran["up-0"] < predicted["up-0"]


def test_finished_transfer_releases_its_share() -> None:
    network = _satellite("2 Mbit/s", downloads=1, downlink="2 Mbit/s")
    short = {"from": "server", "to": "client", "app": {"kind": "bulk", "size": "1 MB"}}
    network["flows"]["short"] = {**short, "start": "20 s"}
    predicted, ran = _predicted_bps(network), _simulated_bps(network)
    whole_bps = 2e6 * PAYLOAD / SEGMENT
    # Half of the link while it lasts: 8 Mbit of 232 (before: half of it all the time).
    expected = whole_bps - 8e6 / 120
    assert predicted["down-0"] == pytest.approx(expected, rel=1e-3)
    assert predicted["short"] == pytest.approx(whole_bps / 2, rel=1e-3)
    assert ran["down-0"] == pytest.approx(expected, rel=0.1)


def test_sequential_transfers_do_not_share() -> None:
    network = _satellite("2 Mbit/s", downloads=1)
    network["flows"]["down-0"]["app"] = {"kind": "bulk", "size": "1 MB"}
    late = {"from": "server", "to": "client", "app": {"kind": "bulk"}, "start": "60 s"}
    network["flows"]["late"] = late
    for flow in bentpipe.predict(network).flows:
        assert "fair share" not in flow.estimates_bps


def test_bidirectional_transfer_has_a_share_in_each_direction() -> None:
    network = _satellite("2 Mbit/s", downloads=1, downlink="2 Mbit/s")
    both = {"kind": "bulk", "direction": "both"}
    network["flows"]["both"] = {"from": "client", "to": "server", "app": both}
    predicted, ran = _predicted_bps(network), _simulated_bps(network)
    half_bps = 1e6 * PAYLOAD / SEGMENT
    assert predicted["down-0"] == pytest.approx(half_bps, rel=0.03)
    assert predicted["both"] == pytest.approx(3 * half_bps, rel=0.03)
    assert sum(ran.values()) == pytest.approx(4 * half_bps, rel=0.25)


@pytest.mark.parametrize(
    ("keys", "timestamps", "ack_bytes"),
    [
        ({"tunnel": True}, True, ACK + 20),
        ({"compression": "rfc1144"}, True, ACK + 1),
        ({"compression": "rfc1144"}, False, 7),
        ({"compression": "v42bis"}, True, 0.4 * ACK),
        ({"compression": "v42bis", "tunnel": True}, False, 0.4 * 60),
    ],
)
def test_ack_rate_uses_the_size_on_the_link(
    keys: dict[str, Any], timestamps: bool, ack_bytes: float
) -> None:
    # So slow that the queue holds all that BBR has on its way.
    rate = 19_200 if ack_bytes > 7 else 2400
    tcp = {"congestion_control": "bbr", "timestamps": timestamps}
    network = _satellite(f"{rate} bit/s", downloads=1, tcp=tcp, **keys)
    (flow,) = bentpipe.predict(network).flows
    payload = PAYLOAD if timestamps else PAYLOAD + 12
    assert flow.lowest == "uplink ACKs"
    expected = rate * 2 * payload / ack_bytes
    assert flow.estimates_bps["uplink ACKs"] == pytest.approx(expected)
    assert 0.85 * expected < _simulated_bps(network)["down-0"] <= 1.01 * expected


def test_faded_terminals_send_less_in_equal_carrier_time() -> None:
    access = {"kind": "on-demand", "carrier": "inroute", "volume_based": True}
    plain = {"rate": "512 kbit/s", "access": access}
    storm = plain | {"schedule": [{"at": "0 s", "rate": "128 kbit/s"}]}
    network = {
        "name": "storm",
        "duration": "120 s",
        "hosts": {"hub": {}, "clear": {"count": 4}, "faded": {"count": 4}},
        "carriers": {"inroute": {"rate": "1 Mbit/s"}},
        "links": {
            name: {
                "between": [name, "hub"],
                "delay": "250 ms",
                "forward": forward,
                "return": {"rate": "10 Mbit/s"},
            }
            for name, forward in (("clear", plain), ("faded", storm))
        },
        "flows": {
            name: {"from": name, "to": "hub", "app": {"kind": "bulk"}}
            for name in ("clear", "faded")
        },
    }
    predicted, ran = _predicted_bps(network), _simulated_bps(network)
    eighth_bps = 1e6 / 8 * PAYLOAD / SEGMENT
    assert predicted["clear-1"] == pytest.approx(eighth_bps)
    assert predicted["faded-1"] == pytest.approx(eighth_bps / 4)
    for name in ("clear", "faded"):
        assert _sum(ran, name) == pytest.approx(_sum(predicted, name), rel=0.15)


def _two_at_home(
    uplink: str, *, delay: str, window: str, control: str, queue: str | None = None
) -> dict[str, Any]:
    """Return a terminal with an uploader behind it, and somebody with a small window."""
    network = _satellite(uplink)
    network["hosts"] = {
        "server": {},
        "uploader": {"tcp": {"congestion_control": control}},
        "reader": {"tcp": {"receive_buffer": window}},
    }
    network["gateways"]["terminal"] = {}
    network["links"]["satellite"] |= {"between": ["hub", "terminal"], "delay": delay}
    if queue is not None:
        network["links"]["satellite"]["return"]["queue"] = {"limit": queue}
    for host in ("uploader", "reader"):
        home = {"between": ["terminal", host], "rate": "1 Gbit/s", "delay": "1 ms"}
        network["links"][host] = home
    bulk = {"kind": "bulk"}
    network["flows"] = {
        "upload": {"from": "uploader", "to": "server", "app": bulk},
        "download": {"from": "server", "to": "reader", "app": bulk},
    }
    return network


@pytest.mark.parametrize("control", ["cubic", "reno"])
@pytest.mark.parametrize("window", ["16 KiB", "64 KiB"])
@pytest.mark.parametrize(
    ("uplink", "delay", "queue"),
    [
        ("128 kbit/s", "20 ms", None),
        ("512 kbit/s", "250 ms", None),
        ("2 Mbit/s", "20 ms", None),
        ("2 Mbit/s", "250 ms", None),
        ("512 kbit/s", "20 ms", "100 kB"),
    ],
)
def test_window_limit_includes_delay_of_a_queue_filled_by_an_upload(
    uplink: str, delay: str, queue: str | None, window: str, control: str
) -> None:
    network = _two_at_home(uplink, delay=delay, window=window, control=control, queue=queue)
    for flow in bentpipe.predict(network).flows:
        if flow.name == "download":
            # Without the queue, the window over 20 ms is 2.7 Mbit/s, a hundred times as much.
            assert flow.lowest == "window, behind queues"
            assert flow.estimates_bps[flow.lowest] < 0.7 * flow.limits_bps["window"]
    predicted, ran = _predicted_bps(network), _simulated_bps(network)
    assert ran["download"] == pytest.approx(predicted["download"], rel=0.25)
    # The few acknowledgments of the slow download leave nearly all of the capacity.
    assert ran["upload"] == pytest.approx(predicted["upload"], rel=0.1)


def test_window_limit_without_standing_queue_has_no_queueing_delay() -> None:
    network = _two_at_home("512 kbit/s", delay="250 ms", window="64 KiB", control="cubic")

    def behind(network: dict[str, Any]) -> bool:
        flows = bentpipe.predict(network).flows
        return any("window, behind queues" in flow.estimates_bps for flow in flows)

    assert behind(network)
    # A fair queue has one for each; BBR by itself leaves it empty; who ends is not always there.
    fair = {"rate": "512 kbit/s", "queue": {"kind": "fair"}}
    satellite = network["links"]["satellite"]
    assert not behind(
        network | {"links": network["links"] | {"satellite": satellite | {"return": fair}}}
    )
    paced = _two_at_home("512 kbit/s", delay="250 ms", window="64 KiB", control="bbr")
    assert not behind(paced)
    upload = network["flows"]["upload"]
    ends = {"upload": upload | {"app": {"kind": "bulk", "size": "1 MB"}}}
    assert not behind(network | {"flows": network["flows"] | ends})


@pytest.mark.parametrize("seed", range(100))
def test_levels_are_max_min_fair_at_equal_costs(seed: int) -> None:
    """A user could get more only at the cost of a user that has no more."""
    draw = random.Random(seed)
    users, resources = draw.randint(1, 12), draw.randint(1, 6)
    pairs = {(draw.randrange(users), draw.randrange(resources)) for _ in range(3 * users)}
    user, resource = (np.array(each, dtype=np.intp) for each in zip(*sorted(pairs), strict=True))
    cost = np.ones(len(user))
    # Some as large as others: ties, which no rounding may decide.
    free = np.array([draw.choice([1.0, 2.0, draw.uniform(0.5, 5.0)]) for _ in range(resources)])
    wanted = np.array([draw.uniform(0.1, 3.0) for _ in range(users)])
    table = Uses(user=user, resource=resource, cost=cost, weight=cost)
    rates, _ = levels(table, free=free, wanted=wanted)
    load = np.bincount(resource, weights=rates[user], minlength=resources)
    assert (load <= free * (1 + 1e-9)).all()
    for one in range(users):
        if rates[one] >= wanted[one] * (1 - 1e-9):
            continue
        # A bottleneck: full, and nobody has more of it.
        mine = resource[user == one]
        assert any(
            load[each] >= free[each] * (1 - 1e-9)
            and rates[one] >= rates[user[resource == each]].max() * (1 - 1e-9)
            for each in mine
        )


def test_two_bottlenecks_of_the_same_transfers_do_not_both_defer() -> None:
    """A LAN of 100 Mbit/s for ten, and 20 Mbit/s for each two of them."""
    network = _satellite("5 Mbit/s", downloads=2, uploads=1, downlink="20 Mbit/s")
    network["hosts"]["client"]["count"] = 5
    network["links"]["lan"]["rate"] = "100 Mbit/s"
    predicted = _predicted_bps(network)
    assert _sum(predicted, "down") == pytest.approx(100e6 * PAYLOAD / SEGMENT, rel=0.01)


def test_transfers_share_only_while_they_overlap() -> None:
    def half_each(here: Any) -> tuple[Any, Any]:
        return np.where(here, 1.0 / max(here.sum(), 1), 0.0), here & (here.sum() > 1)

    def transfer(start_s: float, bits: float) -> Transfer:
        return Transfer(flow="", start_s=start_s, duration_s=10.0 - start_s, bits=bits)

    # Alone for 2 s, both for 2, alone for 6; and one that nobody ever meets.
    both = [transfer(0.0, float("inf")), transfer(2.0, 1.0)]
    goodput, held_back = while_they_last(both, half_each)
    assert goodput == pytest.approx([0.9, 0.5])
    assert held_back.tolist() == [True, True]
    goodput, held_back = while_they_last([transfer(0.0, 1.0), transfer(2.0, 1.0)], half_each)
    assert goodput == pytest.approx([1.0, 1.0])
    assert held_back.tolist() == [False, False]


def test_unresponsive_traffic_keeps_its_rate_over_uploads() -> None:
    """Samples that come faster than the uplink carries them, beside a download and an upload."""
    network = _satellite("256 kbit/s", downloads=2, uploads=1, duration="300 s")
    samples = {"kind": "packets", "size": "200 B", "interval": "50 ms"}
    network["flows"]["samples"] = {"from": "client", "to": "server", "count": 8, "app": samples}
    predicted, ran = _predicted_bps(network), _simulated_bps(network)
    offered = 8 * 8 * 228 / 0.05 / 256e3
    assert offered > 1.1
    # The downloads want their downlink's halves; of the acknowledgments of it, as much gets through
    # as of the samples.
    acks = 10e6 / SEGMENT / 2 * ACK / 256e3 * 2
    through = acks / (acks + offered)
    expected = 256e3 * through * 2 * PAYLOAD / ACK
    assert _sum(predicted, "down") == pytest.approx(expected, rel=0.01)
    assert _sum(ran, "down") == pytest.approx(expected, rel=0.25)
    # A transfer that loses an eighth of its segments has as good as nothing.
    assert predicted["up-0"] == 0.0
    assert ran["up-0"] < 0.05 * 256e3
