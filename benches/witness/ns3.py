"""Benchmarks with ns-3, `ns3_bulk.cc` and `ns3_fleet.cc`, and recordings of its queues.

As a script, runs each benchmark briefly. Prints the delivered packets per second of wall time and
of processor time::

    python3 benches/witness/ns3.py
    python3 benches/witness/ns3.py --record-queues

With `--record-queues`, writes the output of `ns3_queues.cc` for each queue into the tests of
`crates/link`, which compare with it. As a module, provides `available`, `build` and `run`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

HERE = Path(__file__).parent
MODULES = ("ns3-point-to-point", "ns3-applications", "ns3-traffic-control")

Program = Literal["ns3_bulk", "ns3_fleet"]
PROGRAMS: tuple[Program, ...] = ("ns3_bulk", "ns3_fleet")

RECORDED = HERE.parent.parent / "crates" / "link" / "tests" / "ns3"
# Options of each recording, by its name.
QUEUES = {
    "codel": ("--queue=codel",),
    "codel-ecn": ("--queue=codel", "--ecn=1"),
    "fq-codel": ("--queue=fq-codel",),
    "pie": ("--queue=pie",),
}


@dataclass(frozen=True, kw_only=True)
class Run:
    """Output of a program, and its wall time and processor time (user) in seconds."""

    delivered: int
    queue_drops: int
    error_drops: int
    wall_s: float
    processor_s: float


def available() -> bool:
    """Return whether a compiler, pkg-config and ns-3 are installed."""
    if shutil.which("g++") is None or shutil.which("pkg-config") is None:
        return False
    return subprocess.run(["pkg-config", "--exists", *MODULES], check=False).returncode == 0


def version() -> str:
    """Return the version of the installed ns-3, such as "3.37"."""
    return _pkg_config("--modversion", "ns3-core")[0]


def build(program: Program | Literal["ns3_queues"], directory: Path) -> Path:
    """Compile a program into the directory and return the executable's path.

    Raises
    ------
    RuntimeError
        If it does not compile.
    """
    executable = directory / program
    # --libs-only-l, since --libs also names development files of GSL, which are not needed.
    flags = _pkg_config("--cflags", "--libs-only-l", *MODULES)
    finished = subprocess.run(
        ["g++", "-O2", "-std=c++17", str(HERE / f"{program}.cc"), "-o", str(executable), *flags],
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise RuntimeError(f"{program} did not compile: {finished.stderr.strip()}")
    return executable


def run(
    program: Program,
    *,
    executable: Path | None = None,
    limit_s: float = 3600.0,
    **options: float | str,
) -> Run:
    """Run a program with its options, such as `duration_s=60`.

    Parameters
    ----------
    program
        The program.
    executable
        The path that `build` returned. By default it is built for this run; the build is not timed.
    limit_s
        Limit of the wall time.
    options
        Options as listed by `--help`.

    Raises
    ------
    RuntimeError
        If it does not compile, or fails.
    subprocess.TimeoutExpired
        If it takes longer than the limit.
    """
    with tempfile.TemporaryDirectory() as scratch:
        command = [str(executable or build(program, Path(scratch)))]
        command += [f"--{key}={value}" for key, value in options.items()]
        start_s, start_processor_s = time.perf_counter(), os.times().children_user
        finished = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=limit_s
        )
        wall_s = time.perf_counter() - start_s
        processor_s = os.times().children_user - start_processor_s
    if finished.returncode != 0:
        raise RuntimeError(
            f"{program} failed with {finished.returncode}: {finished.stderr.strip()}"
        )
    words = finished.stdout.split()
    printed = dict(zip(words[::2], map(int, words[1::2]), strict=True))
    return Run(
        delivered=printed["delivered"],
        queue_drops=printed["queue_drops"],
        error_drops=printed.get("error_drops", 0),
        wall_s=wall_s,
        processor_s=processor_s,
    )


def _pkg_config(*arguments: str) -> list[str]:
    """Return the words of pkg-config's output."""
    finished = subprocess.run(
        ["pkg-config", *arguments], capture_output=True, text=True, check=True
    )
    return finished.stdout.split()


def record_queues() -> None:
    """Record the results of ns-3's queues."""
    with tempfile.TemporaryDirectory() as scratch:
        executable = build("ns3_queues", Path(scratch))
        for name, options in QUEUES.items():
            finished = subprocess.run(
                [executable, *options], capture_output=True, text=True, check=True
            )
            (RECORDED / f"{name}.txt").write_text(finished.stdout)


def main() -> int:
    """Run both programs, the transfer also with errors, and print their speeds."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--record-queues", action="store_true", help="record the queues instead")
    arguments = parser.parse_args()
    if not available():
        print("ns-3 cannot be built with (Debian: libns3-dev, g++, pkg-config)", file=sys.stderr)
        return 1
    if arguments.record_queues:
        record_queues()
        return 0
    # Not with a bit error rate of 1e-5: ns-3.37 then never leaves TcpRxBuffer::Add, or crashes.
    runs: tuple[tuple[Program, dict[str, float]], ...] = (
        ("ns3_bulk", {"duration_s": 60}),
        ("ns3_bulk", {"duration_s": 600, "bit_error_rate": 1e-6}),
        ("ns3_fleet", {"duration_s": 40}),
    )
    with tempfile.TemporaryDirectory() as scratch:
        executables = {program: build(program, Path(scratch)) for program in PROGRAMS}
        for program, options in runs:
            result = run(program, executable=executables[program], **options)
            settings = " ".join(f"{key}={value:g}" for key, value in options.items())
            print(
                f"{program} {settings}: {result.delivered} delivered, {result.wall_s:.1f} s wall,"
                f" {result.processor_s:.1f} s processor:"
                f" {result.delivered / result.wall_s:,.0f} and"
                f" {result.delivered / result.processor_s:,.0f} a second"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
