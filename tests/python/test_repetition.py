"""A test in real time is repeated only after a stall of the machine, and the summary says so."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

import pytest

from . import live


class _FixedMeter:
    """A meter that measures the same stall each time."""

    longest_ms = 0.0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        yield


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> type[_FixedMeter]:
    monkeypatch.setattr(live, "StallMeter", _FixedMeter)
    monkeypatch.setattr(live, "repetitions", [])
    monkeypatch.setattr(live, "CALM_S", 0.0)
    monkeypatch.setattr(_FixedMeter, "longest_ms", 0.0)
    return _FixedMeter


def _failing(times: int) -> tuple[list[int], Callable[..., None]]:
    """Return the attempts so far, and a test that fails that many times."""
    attempts: list[int] = []

    @live.repeated_after_stall
    def test() -> None:
        attempts.append(len(attempts))
        assert len(attempts) > times, "too early"

    return attempts, test


def _taken() -> list[str]:
    """Return the repetitions and forget them: the summary is not about these tests."""
    taken = [each.partition(";")[0] for each in live.repetitions]
    live.repetitions.clear()
    return taken


@pytest.mark.usefixtures("meter")
def test_failure_without_stall_is_not_repeated() -> None:
    attempts, test = _failing(1)
    with pytest.raises(AssertionError):
        test()
    assert len(attempts) == 1
    assert _taken() == []


def test_failure_after_stall_is_repeated_and_reported(meter: type[_FixedMeter]) -> None:
    meter.longest_ms = 25.0
    attempts, test = _failing(2)
    test()
    assert len(attempts) == 3
    assert _taken() == ["machine stalled for 25 ms"] * 2


def test_third_failure_stands(meter: type[_FixedMeter]) -> None:
    meter.longest_ms = 25.0
    attempts, test = _failing(3)
    with pytest.raises(AssertionError):
        test()
    assert len(attempts) == live.ATTEMPTS
    assert _taken() == ["machine stalled for 25 ms"] * 2


def test_stall_meter_measures_a_late_wake_up(monkeypatch: pytest.MonkeyPatch) -> None:
    asleep = time.sleep
    monkeypatch.setattr(time, "sleep", lambda seconds: asleep(seconds + 0.05))
    meter = live.StallMeter()
    with meter.running():
        asleep(0.06)
    assert meter.longest_ms >= 50.0
