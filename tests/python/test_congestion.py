"""Congestion controls written in Python."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import bentpipe
from bentpipe import cli, congestion
from bentpipe._native import Ack, RunError, Window
from bentpipe.errors import RequestError
from bentpipe.scenario import Scenario

from .networks import pair

TEXT = """
name = "lossy"
duration = "30 s"
[hosts.server.tcp]
congestion_control = "reno"
[hosts.client]
[links.satellite]
between = ["server", "client"]
rate = "10 Mbit/s"
delay = "50 ms"
queue = { limit = "50 packets" }
errors = { bit_error_rate = 3e-7 }
[flows.download]
from = "server"
to = "client"
app = { kind = "bulk" }
[probes]
series = ["download.congestion_window", "download.slow_start_threshold", "download.sent"]
interval = "every-change"
"""
CONTROL = "hosts.server.tcp.congestion_control"


@pytest.fixture(autouse=True)
def _empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(congestion, "_classes", {})


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    return Scenario(path=tmp_path / "lossy.toml", text=TEXT)


class Reno:
    """RFC 5681 as the built-in rule counts: acknowledged bytes, whole segments."""

    def __init__(self) -> None:
        self.credit = 0

    def on_ack(self, window: Window, ack: Ack) -> None:
        self.credit += ack.acknowledged
        while self.credit >= window.congestion_window:
            self.credit -= int(window.congestion_window)
            window.congestion_window += window.segment

    def on_congestion(
        self, window: Window, event: congestion.Event, flight_size: int, now_s: float
    ) -> None:
        assert now_s >= 0
        window.slow_start_threshold = max(flight_size // 2, 2 * window.segment)
        timeout = event == "timeout"
        window.congestion_window = window.segment if timeout else window.slow_start_threshold
        self.credit = 0


def _without_wall_time(result: bentpipe.RunResult) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(result.summary_json)
    del summary["wall_s"]
    return summary


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_python_reno_equals_built_in_reno(scenario: Scenario, seed: int) -> None:
    bentpipe.congestion_control("my-reno")(Reno)
    built_in = bentpipe.run(scenario, seed=seed)
    mine = bentpipe.run(scenario, seed=seed, settings={CONTROL: "my-reno"})
    assert built_in.flow().fast_recoveries > 3
    assert _without_wall_time(mine) == _without_wall_time(built_in)
    for name, series in built_in.series.items():
        assert np.array_equal(mine.series[name].times_s, series.times_s)
        assert np.array_equal(mine.series[name].values, series.values)


def test_each_sender_has_one_instance(scenario: Scenario) -> None:
    made = []

    @bentpipe.congestion_control("counted")
    class Counted(Reno):
        def __init__(self) -> None:
            super().__init__()
            made.append(self)

    bentpipe.run(scenario, settings={CONTROL: "counted"})
    assert len(made) == 1


def test_every_callback_is_invoked(scenario: Scenario) -> None:
    called: set[str] = set()

    @bentpipe.congestion_control("all")
    class All(Reno):
        def on_established(self, window: Window, rtt_s: float | None, now_s: float) -> None:
            called.add("on_established")
            assert window.congestion_window == 10 * window.segment
            assert window.slow_start_threshold == math.inf
            assert window.in_slow_start
            assert rtt_s == pytest.approx(now_s)
            assert "segment=1448" in repr(window)

        def on_delivery(self, window: Window, ack: Ack) -> None:
            called.add("on_delivery" if ack.acknowledged else "duplicate")
            assert ack.delivered >= ack.acknowledged
            assert ack.minimum_rtt_s is None or ack.minimum_rtt_s >= 0.1

        def slow_start_growth(self, window: Window, counted: int, ack: Ack) -> float:
            called.add("slow_start_growth")
            assert ack.smoothed_rtt_s is not None
            assert ack.smoothed_rtt_s > 0.1
            return counted / 2

        def on_application_limited(self) -> None:
            called.add("on_application_limited")

        def on_recovery_exit(self, window: Window, now_s: float) -> None:
            called.add("on_recovery_exit")

    short = {"flows.download.app.size": "3 MB", CONTROL: "all"}
    bentpipe.run(scenario, settings=short)
    assert called == {
        *("on_established", "on_delivery", "duplicate", "slow_start_growth"),
        *("on_application_limited", "on_recovery_exit"),
    }


def test_python_rule_replaces_slow_start(scenario: Scenario) -> None:
    @bentpipe.congestion_control("fixed")
    class Fixed:
        owns_slow_start = True

        def on_ack(self, window: Window, ack: Ack) -> None:
            window.congestion_window = 20 * window.segment

        def on_congestion(self, window: Window, event: str, flight_size: int, now_s: float) -> None:
            window.congestion_window = 20 * window.segment

    result = bentpipe.run(scenario, settings={CONTROL: "fixed"})
    assert set(result.series["download.congestion_window"].values) <= {
        n * 1448.0 for n in range(1, 21)
    }


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("window.congestion_window = float('nan')", "ValueError: congestion_window: expected"),
        ("window.congestion_window = -1", "ValueError: congestion_window: expected bytes"),
        ("window.congestion_window = 1e400", "got inf"),
        ("window.congestion_window = 'much'", "TypeError"),
        ("window.slow_start_threshold = float('nan')", "slow_start_threshold: expected bytes"),
        ("window.cwnd = 3", "AttributeError"),
        ("window.segment = 3", "AttributeError"),
    ],
)
def test_callback_exception_ends_the_run(scenario: Scenario, statement: str, message: str) -> None:
    @bentpipe.congestion_control("broken")
    class Broken(Reno):
        def on_ack(self, window: Window, ack: Ack) -> None:
            exec(statement)

    with pytest.raises(RunError, match=message) as raised:
        bentpipe.run(scenario, settings={CONTROL: "broken"})
    line = str(raised.value)
    assert line.startswith('congestion control "broken": on_ack: ')
    assert "\n" not in line
    cause = raised.value.__cause__
    assert cause is not None
    frames = traceback.extract_tb(cause.__traceback__)
    assert any(frame.name == "on_ack" for frame in frames)


@pytest.mark.parametrize("growth", [math.nan, -1.0, math.inf, "three"])
def test_invalid_slow_start_growth_ends_the_run(scenario: Scenario, growth: object) -> None:
    @bentpipe.congestion_control("broken")
    class Broken(Reno):
        def slow_start_growth(self, window: Window, counted: int, ack: Ack) -> object:
            return growth

    with pytest.raises(RunError, match="slow_start_growth"):
        bentpipe.run(scenario, settings={CONTROL: "broken"})


CLEAN = {"links.satellite.errors.bit_error_rate": 0, "probes.series": ["download.pacing_rate"]}


@pytest.mark.parametrize("pacing", ["auto", "on", "20 Mbit/s"])
def test_python_rule_sets_the_pacing_rate(scenario: Scenario, pacing: str) -> None:
    @bentpipe.congestion_control("paced")
    class Paced(Reno):
        def pacing_rate(self, window: Window) -> float:
            return 2e6

    settings = CLEAN | {CONTROL: "paced", "hosts.server.tcp.pacing": pacing}
    result = bentpipe.run(scenario, settings=settings)
    assert result.flow().goodput_bps == pytest.approx(2e6, rel=0.02)
    assert set(result.series["download.pacing_rate"].values) == {2e6}


def test_rule_without_pacing_rate_is_paced_only_when_enabled(scenario: Scenario) -> None:
    @bentpipe.congestion_control("late")
    class Late(Reno):
        def pacing_rate(self, window: Window) -> float | None:
            return None if window.in_slow_start else 2e6

    def rates(pacing: str) -> set[float]:
        settings = {CONTROL: "late", "hosts.server.tcp.pacing": pacing}
        result = bentpipe.run(scenario, settings={**CLEAN, **settings})
        return set(result.series["download.pacing_rate"].values)

    # In slow start, "on" paces at what follows from the window; "auto" doesn't.
    assert rates("auto") == {2e6}
    assert len(rates("on")) > 10
    assert rates("off") == set()


@pytest.mark.parametrize("rate", [math.nan, -1.0, 0, math.inf, "fast", (1, 2)])
@pytest.mark.parametrize("pacing", ["auto", "on"])
def test_invalid_pacing_rate_ends_the_run(scenario: Scenario, rate: object, pacing: str) -> None:
    calls = []

    @bentpipe.congestion_control("broken")
    class Broken(Reno):
        def pacing_rate(self, window: Window) -> object:
            calls.append(rate)
            return rate

    message = f'^congestion control "broken": pacing_rate: .*expected bit/s.*, got {rate!r}$'
    message = message.replace("(1, 2)", r"\(1, 2\)")
    settings = {CONTROL: "broken", "hosts.server.tcp.pacing": pacing}
    with pytest.raises(RunError, match=message):
        bentpipe.run(scenario, settings=settings)
    assert len(calls) == 1


def test_out_of_range_windows_are_clamped(scenario: Scenario) -> None:
    @bentpipe.congestion_control("extreme")
    class Extreme(Reno):
        def on_ack(self, window: Window, ack: Ack) -> None:
            window.congestion_window = 1e30

        def on_congestion(
            self, window: Window, event: congestion.Event, flight_size: int, now_s: float
        ) -> None:
            window.congestion_window = 0
            window.slow_start_threshold = 0

    settings = {CONTROL: "extreme", "hosts.server.tcp.send_buffer": "300 kB"}
    result = bentpipe.run(scenario, settings=settings)
    window = result.series["download.congestion_window"].values
    assert window.min() >= 1448
    assert window.max() <= 2**40
    assert result.flow().bytes_delivered > 1_000_000


def test_keyboard_interrupt_in_a_callback_propagates(scenario: Scenario) -> None:
    @bentpipe.congestion_control("interrupted")
    class Interrupted(Reno):
        def on_ack(self, window: Window, ack: Ack) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bentpipe.run(scenario, settings={CONTROL: "interrupted"})


def test_constructor_with_arguments_ends_the_run(scenario: Scenario) -> None:
    @bentpipe.congestion_control("needy")
    class Needy(Reno):
        def __init__(self, gain: float) -> None:
            super().__init__()
            self.gain = gain

    with pytest.raises(RunError, match="gain"):
        bentpipe.run(scenario, settings={CONTROL: "needy"})


def test_invalid_rule_names_are_refused(scenario: Scenario) -> None:
    with pytest.raises(bentpipe.ScenarioError, match='got "mine"'):
        bentpipe.run(scenario, settings={CONTROL: "mine"})
    bentpipe.congestion_control("mine")(Reno)
    settings = scenario.with_settings({CONTROL: "mine"})
    assert settings.resolved()["nodes"][0]["tcp"]["congestion_control"] == "mine"
    with pytest.raises(bentpipe.ScenarioError, match='did you mean "mine"'):
        bentpipe.run(scenario, settings={CONTROL: "minne"})
    for name in ("reno", "two words", "", "a.b"):
        with pytest.raises(RequestError, match="expected"):
            bentpipe.congestion_control(name)
    with pytest.raises(RequestError, match="on_ack and on_congestion"):
        bentpipe.congestion_control("empty")(object)  # type: ignore[type-var]


def test_example_rule_runs(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "congestion_control.py"
    finished = subprocess.run(
        [sys.executable, str(example)], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    rates = {
        line.split()[0].rstrip(":"): float(line.split()[1]) for line in finished.stdout.splitlines()
    }
    assert rates["gentle"] > rates["reno"]


def test_python_rule_runs_from_the_command_line(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples" / "congestion_control.py"
    command = [sys.executable, "-m", "bentpipe", "run", "leo-pass", "--json"]
    command += ["--set", "duration=5 s", "--set", f"{CONTROL}=gentle"]
    finished = subprocess.run(
        [*command, "--python", str(example)], capture_output=True, text=True, check=True
    )
    assert json.loads(finished.stdout)["flows"][0]["bytes_delivered"] > 0
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n", encoding="utf-8")
    finished = subprocess.run(
        [*command, "--python", str(broken)], capture_output=True, text=True, check=False
    )
    assert finished.returncode == 2
    assert "ZeroDivisionError" in finished.stderr
    assert finished.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["predict", "advise", "compare"])
def test_all_commands_accept_python_rules(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = tmp_path / "rule.py"
    rule.write_text(
        "import bentpipe\n"
        "@bentpipe.congestion_control('mine')\n"
        "class Mine:\n"
        "    def on_ack(self, window, ack):\n"
        "        window.congestion_window += ack.acknowledged\n"
        "    def on_congestion(self, window, event, flight_size, now_s):\n"
        "        window.congestion_window = window.segment\n",
        encoding="utf-8",
    )
    scenario = pair("small", duration="3 s", rate="2 Mbit/s", delay="20 ms", size="50 kB")
    (tmp_path / "small.toml").write_text(scenario, encoding="utf-8")
    words = [command, str(tmp_path / "small.toml"), "--set", f"{CONTROL}=mine"]
    assert cli.execute(words) == 2
    assert 'got "mine"' in capsys.readouterr().err
    status = cli.execute([*words, "--python", str(rule)])
    said = capsys.readouterr()
    if command == "compare":
        # The kernel has no such rule, if this machine emulates at all.
        assert status in {1, 2}
        assert "Traceback" not in said.err
        assert 'expected one of "reno"' not in said.err
    else:
        assert (status, said.err) == (0, "")
