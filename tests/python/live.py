"""What tests of real time share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest

from bentpipe import _native

OBSTACLE = _native.emulation_obstacle()
# What needs namespaces and TUN devices is skipped where there are none, and says why.
live = pytest.mark.skipif(OBSTACLE is not None, reason=str(OBSTACLE))


def once_more(test: Callable[..., None]) -> Callable[..., None]:
    """Try again what failed: a busy machine may stop a program for 10 ms, now and then."""

    @functools.wraps(test)
    def tried(*args: Any, **kwargs: Any) -> None:
        try:
            test(*args, **kwargs)
        except AssertionError:
            test(*args, **kwargs)

    return tried
