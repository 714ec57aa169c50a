"""What tests of real time share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


def once_more(test: Callable[..., None]) -> Callable[..., None]:
    """Try again what failed: a busy machine may stop a program for 10 ms, now and then."""

    @functools.wraps(test)
    def tried(*args: Any, **kwargs: Any) -> None:
        try:
            test(*args, **kwargs)
        except AssertionError:
            test(*args, **kwargs)

    return tried
