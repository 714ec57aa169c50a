"""Groups of tests: which run one after the other, and that pytest-xdist obeys them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from .groups import COMPARE_DURATIONS, HERE, LONGEST, group_of, is_in_real_time, order

PARALLEL = ["--numprocesses", "2", "-p", "no:cacheprovider", "-v"]


def _text(name: str) -> str:
    return (HERE / name).read_text("utf-8")


def test_listed_files_are_there_and_in_real_time() -> None:
    assert [file for file in sorted(COMPARE_DURATIONS) if not is_in_real_time(file)] == []
    assert [file for file in sorted(LONGEST) if is_in_real_time(file)] == []


def test_tests_of_a_file_are_one_group_and_those_in_real_time_are_first() -> None:
    assert group_of("tests/python/test_a.py::test_b[x::y]") == "test_a.py"
    shared = {group_of(f"tests/python/{file}::test") for file in COMPARE_DURATIONS}
    assert len(shared) == 1
    names = [path.name for path in sorted(HERE.glob("test_*.py"))]
    ranks = sorted(names, key=order)
    marked = [name for name in names if re.search(r"^@live$|= live$", _text(name), re.MULTILINE)]
    assert all(map(is_in_real_time, marked))
    last = max(at for at, name in enumerate(ranks) if is_in_real_time(name))
    assert all(map(is_in_real_time, ranks[: last + 1]))


def test_xdist_runs_a_group_in_one_process() -> None:
    files = [
        str(Path(__file__).with_name(f"test_{name}.py")) for name in ("plain_words", "rfc_table")
    ]
    command = [sys.executable, "-m", "pytest", *PARALLEL, *files]
    # Without what the process of this test was told.
    outer = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(
        command, cwd=HERE.parents[1], env=outer, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
    processes: dict[str, set[str]] = {}
    for process, test in re.findall(r"^\[(gw\d)\].*? PASSED (\S+)", done.stdout, re.MULTILINE):
        processes.setdefault(group_of(test), set()).add(process)
    assert sorted(processes) == [Path(file).name for file in files]
    assert [len(each) for each in processes.values()] == [1, 1]
