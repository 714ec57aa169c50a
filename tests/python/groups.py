"""Groups of tests: those of a group run one after the other, in one process."""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path

HERE = Path(__file__).parent

# Files that compare durations on the machine's clock with a simulation, and those that load all
# cores with packets: one group, one at a time. Other tests in real time mostly wait for timers of
# the kernel or for a process.
COMPARE_DURATIONS = frozenset(
    {
        "test_access.py",
        "test_crashes.py",
        "test_emulation_applications.py",
        "test_emulation_paths.py",
        "test_fit_live.py",
        "test_gateway_attacks.py",
        "test_gateway_datagrams.py",
        "test_gateway_load.py",
        "test_gateway_pair.py",
        "test_hybrid_live.py",
        "test_live_tools.py",
        "test_orbits_live.py",
        "test_split_live.py",
    }
)
# Files that calculate and take longest. They run first, so that no process ends with one.
LONGEST = frozenset(
    {
        "test_advise.py",
        "test_advise_seeds.py",
        "test_cli_out.py",
        "test_fit_recovery.py",
        "test_commands_dask.py",
        "test_documented_commands.py",
        "test_evaluate.py",
        "test_plots.py",
        "test_report_command.py",
        "test_sweep.py",
        "test_sweep_dask.py",
    }
)
# Niceness of tests that only calculate. Tests in real time have the machine's usual one.
NICE = 10


def file_of(node_id: str) -> str:
    """Return the path of the file that a test is in, below the folder of all tests."""
    path = node_id.partition("::")[0]
    return path.partition("tests/python/")[2] or path


@functools.cache
def is_in_real_time(file: str) -> bool:
    """Whether a file has tests on the machine's clock: it imports from `live` or `boxes`."""
    text = (HERE / file).read_text("utf-8")
    return re.search(r"^from \.(live|boxes) import", text, re.MULTILINE) is not None


def group_of(node_id: str) -> str:
    """Return the group of a test.

    The tests of a file share what its fixtures set up.
    """
    file = file_of(node_id)
    return "compare durations" if file in COMPARE_DURATIONS else file


def order(node_id: str) -> int:
    """Return the rank of a test's group: those in real time first, then those that take longest."""
    file = file_of(node_id)
    if file in COMPARE_DURATIONS:
        return 0
    if is_in_real_time(file):
        return 1
    return 2 if file in LONGEST else 3


@contextlib.contextmanager
def precedence(node_id: str) -> Iterator[None]:
    """Run a test with the niceness of its kind.

    Only root may lower it again. Other users have no tests in real time, but for those without
    namespaces.
    """
    if os.geteuid() != 0 or is_in_real_time(file_of(node_id)):
        yield
        return
    before = os.getpriority(os.PRIO_PROCESS, 0)
    os.setpriority(os.PRIO_PROCESS, 0, max(before, NICE))
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
