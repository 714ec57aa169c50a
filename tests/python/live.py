"""Shared by tests in real time."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bentpipe import _native

OBSTACLE = _native.emulation_obstacle()
# Tests that need namespaces and TUN devices are skipped without them; the reason is printed.
live = pytest.mark.skipif(OBSTACLE is not None, reason=str(OBSTACLE))

# The machine is disturbed if it wakes a sleeping thread later than this.
STALL_MS = 10.0
ATTEMPTS = 3
# Longest wait for a second without a stall before a repetition.
CALM_S = 30.0
# Repetitions in this process that no report has named yet (see conftest.py).
repetitions: list[str] = []


class StallMeter:
    """The longest time by which the machine woke a thread too late."""

    PERIOD_S = 0.001

    def __init__(self) -> None:
        self.longest_ms = 0.0

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Measure during a block."""
        ended = threading.Event()

        def measure() -> None:
            while not ended.is_set():
                before = time.monotonic()
                time.sleep(self.PERIOD_S)
                late_ms = 1e3 * (time.monotonic() - before - self.PERIOD_S)
                self.longest_ms = max(self.longest_ms, late_ms)

        thread = threading.Thread(target=measure)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def wait_for_calm() -> None:
    """Wait for a second in which the machine wakes no thread late, at most `CALM_S`."""
    end = time.monotonic() + CALM_S
    while time.monotonic() < end:
        meter = StallMeter()
        with meter.running():
            time.sleep(1.0)
        if meter.longest_ms < STALL_MS:
            return


def repeated_after_stall(test: Callable[..., None]) -> Callable[..., None]:
    """Repeat a test that failed while the machine was disturbed, at most twice.

    A failure on an undisturbed machine stands. The summary of the tests names each repetition.
    """

    @functools.wraps(test)
    def repeated(*args: Any, **kwargs: Any) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            meter = StallMeter()
            try:
                with meter.running():
                    test(*args, **kwargs)
            except AssertionError as failure:
                if meter.longest_ms < STALL_MS or attempt == ATTEMPTS:
                    raise
                what = (str(failure).splitlines() or ["assertion failed"])[0]
                repetitions.append(f"machine stalled for {meter.longest_ms:.0f} ms; {what}")
                wait_for_calm()
            else:
                return

    return repeated
