"""Seeds of a sweep, and scenarios that have no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bentpipe import Scenario, run, sweep

NETWORK: dict[str, Any] = {
    "name": "share",
    "duration": "20 s",
    "hosts": {"one": {}, "two": {}, "client": {}},
    "gateways": {"router": {}},
    "links": {
        "one": {"between": ["one", "router"], "rate": "100 Mbit/s", "delay": "1 ms"},
        "two": {"between": ["two", "router"], "rate": "100 Mbit/s", "delay": "5 ms"},
        "satellite": {
            "between": ["router", "client"],
            "rate": "1 Mbit/s",
            "delay": "50 ms",
            "queue": {"limit": "10 packets"},
        },
    },
    "flows": {
        name: {"from": name, "to": "client", "app": {"kind": "bulk"}} for name in ("one", "two")
    },
}


def test_random_start_varies_a_deterministic_network() -> None:
    axes = {"seed": {"count": 4}}
    alike = sweep({"scenario": NETWORK, "axes": axes}).dataset
    assert (alike.goodput_bps.std("seed") == 0.0).all()
    started = {"scenario": NETWORK, "axes": axes, "set": {"flows.two.start": "uniform(0 s, 1 s)"}}
    dataset = sweep(started).dataset
    assert (dataset.goodput_bps.std("seed") > 0.0).all()
    starts = dataset.start_s.sel(flow="two").to_numpy()
    assert len(np.unique(starts)) == 4
    assert ((starts >= 0.0) & (starts < 1.0)).all()


def test_sweep_accepts_a_scenario_dict() -> None:
    axes = {"links.satellite.delay": ["50 ms", "250 ms"]}
    result = sweep({"scenario": NETWORK, "axes": axes})
    flows = result.rows("flow").to_pandas()
    for delay in ("50 ms", "250 ms"):
        alone = run(NETWORK, settings={"links.satellite.delay": delay})
        of = flows[flows["delay_s"] == float(delay.split()[0]) / 1e3]
        assert list(of["goodput_bps"]) == [flow.goodput_bps for flow in alone.summary.flows]
    with pytest.raises(TypeError, match="TOML"):
        sweep({"scenario": {"hosts": None}, "axes": axes})


@pytest.mark.parametrize(
    ("start", "said"), [("0 s", "the seeds make no difference"), ("uniform(0 s, 1 s)", "medians")]
)
def test_command_summarizes_variation_over_seeds(
    bentpipe: Any, tmp_path: Path, start: str, said: str
) -> None:
    (tmp_path / "share.toml").write_text(Scenario.of(NETWORK).text or "", "utf-8")
    (tmp_path / "sweep.toml").write_text(
        f'scenario = "share.toml"\nset.flows.two.start = "{start}"\naxes.seed = {{ count = 3 }}\n',
        "utf-8",
    )
    done = bentpipe("sweep", tmp_path / "sweep.toml", "--out", tmp_path / "out")
    assert done.status == 0, done.err
    assert said in done.out
