"""Shared by tests in real time."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import pytest

from bentpipe import _native

OBSTACLE = _native.emulation_obstacle()
# Tests that need namespaces and TUN devices are skipped without them; the reason is printed.
live = pytest.mark.skipif(OBSTACLE is not None, reason=str(OBSTACLE))


def up_to_three_times(test: Callable[..., None]) -> Callable[..., None]:
    """Try again what failed, twice: a busy machine stops a program for 10 ms, now and then."""

    @functools.wraps(test)
    def retried(*args: Any, **kwargs: Any) -> None:
        for _ in range(2):
            with contextlib.suppress(AssertionError):
                return test(*args, **kwargs)
        return test(*args, **kwargs)

    return retried
