"""The processors that this process may use."""

from __future__ import annotations

import os


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def shared_cores(cores: int, simulations: int) -> int:
    """Return the number of cores for each of a number of simulations at a time."""
    return max(1, cores // max(1, simulations))
