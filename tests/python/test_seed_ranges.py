"""Host timing drawn from the seed, and the ranges of results over seeds."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest

import bentpipe
from bentpipe.cli import execute
from bentpipe.errors import RequestError
from bentpipe.seed_ranges import Range

LINUX: dict[str, Any] = {
    "server": {"tcp": {"profile": "linux", "congestion_control": "cubic", "blocking_writes": True}},
    "client": {"tcp": {"profile": "linux"}},
}
LAN = {"between": ["server", "hub"], "rate": "1 Gbit/s", "delay": "2 ms"}


def _down(start: str) -> dict[str, Any]:
    return {"from": "server", "to": "client", "start": start, "app": {"kind": "bulk"}}


# A return link that acknowledgments fill, and that a suppressing queue thins out.
SUPPRESSION: dict[str, Any] = {
    "name": "cubic-suppression",
    "duration": "25 s",
    "seed": 7,
    "hosts": LINUX,
    "gateways": {"hub": {"kind": "router"}},
    "links": {
        "lan": LAN,
        "satellite": {
            "between": ["hub", "client"],
            "forward": {
                "rate": "8 Mbit/s",
                "delay": "260 ms",
                "queue": {"kind": "drop-tail", "limit": "350 packets"},
            },
            "return": {
                "rate": "16 kbit/s",
                "delay": "200 ms",
                "acks": {"kind": "suppression"},
            },
        },
    },
    "flows": {"down": _down("0 s")},
}
# Two flows that share a bottleneck fairly, the second five seconds later.
FAIR: dict[str, Any] = SUPPRESSION | {
    "name": "two-flows-fq-codel",
    "links": {
        "lan": LAN,
        "satellite": {
            "between": ["hub", "client"],
            "forward": {
                "rate": "12 Mbit/s",
                "delay": "280 ms",
                "queue": {"kind": "fq-codel"},
            },
            "return": {"rate": "512 kbit/s", "delay": "280 ms"},
        },
    },
    "flows": {"first": _down("0 s"), "second": _down("5 s")},
}
FIXED = {"randomness.host_timing": False}
SHORT = {"duration": "8 s"}


def _summary(scenario: Any, seed: int, **settings: object) -> dict[str, Any]:
    """Return a run's summary without the fields that differ between all runs."""
    result = bentpipe.run(scenario, seed=seed, settings=settings, no_probes=True)
    told: dict[str, Any] = json.loads(result.summary_json)
    return {key: value for key, value in told.items() if key not in ("wall_s", "seed")}


# Goodput of three runs of Linux 6.18 in `emulate`, in Mbit/s.
KERNEL = (
    ("suppression", "down", (3.53, 4.51, 3.53)),
    ("fair", "first", (3.27, 3.94, 3.43)),
    pytest.param(
        "fair",
        "second",
        (3.13, 2.13, 2.73),
        # The range was seen before this test was marked.
        marks=pytest.mark.xfail(
            reason="3.21 to 3.71 Mbit/s with 20 seeds, 1.87 to 3.77 with 400", strict=True
        ),
    ),
)
SEEDS = 20


@functools.cache
def _over_seeds(scenario: str) -> bentpipe.SeedRuns:
    return bentpipe.run_seeds({"suppression": SUPPRESSION, "fair": FAIR}[scenario], seeds=SEEDS)


@pytest.mark.parametrize(("scenario", "flow", "kernel"), KERNEL)
def test_kernel_goodput_lies_in_the_simulated_range(
    scenario: str, flow: str, kernel: tuple[float, ...]
) -> None:
    ours = _over_seeds(scenario).goodput_bps(flow)
    assert all(ours.contains(1e6 * each) for each in kernel), ours
    # The range is not so wide that it would contain any value.
    assert ours.most < 1.5 * max(kernel) * 1e6
    assert ours.least > 0.7 * min(kernel) * 1e6


def test_result_is_a_function_of_the_seed() -> None:
    first, second = _summary(SUPPRESSION, 1, **SHORT), _summary(SUPPRESSION, 2, **SHORT)
    assert first == _summary(SUPPRESSION, 1, **SHORT)
    assert first["flows"] != second["flows"]
    # The start within a millisecond.
    starts = [each["flows"][0]["start_s"] for each in (first, second)]
    assert starts[0] != starts[1]
    assert all(0.0 <= each < 1e-3 for each in starts)


def test_result_without_host_timing_is_independent_of_the_seed() -> None:
    first, second = (_summary(SUPPRESSION, seed, **SHORT, **FIXED) for seed in (1, 2))
    assert first == second
    assert first["flows"][0]["start_s"] == 0.0


def test_host_timing_applies_to_linux_profile_hosts_only() -> None:
    others = SHORT | {
        "hosts.server.tcp.profile": "rfc",
        "hosts.client.tcp.profile": "rfc",
        "hosts.server.tcp.blocking_writes": False,
    }
    first, second = (_summary(SUPPRESSION, seed, **others) for seed in (1, 2))
    assert first == second == _summary(SUPPRESSION, 1, **others, **FIXED)


def test_additional_host_does_not_change_other_random_streams() -> None:
    more = FAIR | {"hosts": LINUX | {"third": {"tcp": {"profile": "linux"}}}}
    more["links"] = FAIR["links"] | {"aside": {**LAN, "between": ["third", "hub"]}}
    alone, beside = _summary(FAIR, 3, **SHORT), _summary(more, 3, **SHORT)
    assert alone["flows"] == beside["flows"]


def test_recording_does_not_change_random_draws() -> None:
    plain = bentpipe.run(SUPPRESSION, settings=SHORT, no_probes=True).summary
    recorded = bentpipe.run(SUPPRESSION, settings=SHORT).summary
    assert plain.flows == recorded.flows
    assert plain.links == recorded.links


def test_ranges_equal_those_of_the_runs() -> None:
    runs = bentpipe.run_seeds(FAIR, seeds=5, seed=11, settings=SHORT, workers=2)
    assert runs.seeds == (11, 12, 13, 14, 15)
    one_by_one = [
        bentpipe.run(FAIR, seed=seed, settings=SHORT).summary.flows[0].goodput_bps
        for seed in runs.seeds
    ]
    assert runs.goodput_bps("first") == Range.of(one_by_one)
    data = runs.to_data()
    first = data["flows"][0]
    assert first["name"] == "first"
    assert first["goodput_bps"]["median"] == sorted(one_by_one)[2]
    assert (first["goodput_bps"]["min"], first["goodput_bps"]["count"]) == (min(one_by_one), 5)
    assert first["outcome"] == {"running": 5}
    assert first["rtt_ms"]["min"]["count"] == 5
    assert data["seeds"] == [11, 12, 13, 14, 15]
    assert "wall_s" not in data


def test_invalid_seed_counts_are_refused() -> None:
    with pytest.raises(RequestError, match="expected 1 to 1,000 seeds"):
        bentpipe.run_seeds(FAIR, seeds=0)


@pytest.mark.parametrize(
    ("values", "wide"), [((100.0, 102.0, 104.0), False), ((100.0, 102.0, 108.0), True)]
)
def test_range_above_5_percent_is_wide(values: tuple[float, ...], wide: bool) -> None:
    found = Range.of([*values, None])
    assert found is not None
    assert (found.is_wide, found.count) == (wide, 3)
    assert found.contains(values[0])
    assert not found.contains(values[0] - 1.0)
    assert found.contains(values[0] - 1.0, slack=1.0)
    assert Range.of([None]) is None


def test_run_seeds_prints_medians_and_ranges(capsys: pytest.CaptureFixture[str]) -> None:
    # Pages and calls have rows of their own.
    words = ["run", "geo-voice", "--seeds", "3", "--set", "duration=20 s"]
    assert execute(words) == 0
    said = capsys.readouterr().out
    assert "3 seeds from 1 to 3" in said
    assert "goodput: median" in said
    assert "MOS" in said
    assert execute([*words, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["seeds"] == [1, 2, 3]
    assert any("call_mos" in flow for flow in data["flows"])


@pytest.mark.parametrize("option", [("--out", "folder"), ("--pcap", "satellite")])
def test_single_run_options_are_refused_with_seeds(
    option: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["run", "geo-voice", "--seeds", "2", *option]) == 2
    assert f"{option[0]} is of one run" in capsys.readouterr().err
