"""How far a run has come: one line on stderr, where that is a terminal."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import IO, Final

from bentpipe.files import partial_path
from bentpipe.units import format_bytes, format_seconds

# A shorter run shows no progress.
SILENT_S: Final = 1.0
_EVERY_S: Final = 0.2
ERASE: Final = "\r\x1b[K"

# Bytes from which on a capture is announced.
LARGE_CAPTURE: Final = 100_000_000
# Bytes of the longest IPv6 and TCP headers.
HEADERS_ONLY: Final = 100

Report = Callable[[float, float], None]


def somebody_looks() -> bool:
    """Return whether stderr is a terminal that can erase a line."""
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


class CaptureWatch:
    """Announces captures that become large, once each, while they are being written."""

    def __init__(self, captures: Sequence[Path], *, snapped: bool) -> None:
        self._small = list(captures)
        self._hint = "" if snapped else f"; --snap {HEADERS_ONLY} keeps no more than the headers"

    def look(self, now_s: float, duration_s: float) -> None:
        """Announce each capture that has become large since the last look."""
        for path in list(self._small):
            size = _size_of(path)
            if size < LARGE_CAPTURE:
                continue
            self._small.remove(path)
            # A run may end before its duration, and a rate may change.
            whole = size * duration_s / now_s if now_s > 0.0 else 0.0
            end = f"; {format_bytes(whole)} at the end if it goes on so" if whole > size else ""
            if somebody_looks():
                sys.stderr.write(ERASE)
            print(
                f"bentpipe: {path}: {format_bytes(size)} after {format_seconds(now_s)} "
                f"of {format_seconds(duration_s)}{end}{self._hint}",
                file=sys.stderr,
            )


def _size_of(path: Path) -> int:
    """Return the size of a capture that is being written; 0 if there is no file."""
    for place in (partial_path(path), path):
        with suppress(OSError):
            return place.stat().st_size
    return 0


def watching(watch: CaptureWatch, report: Report | None) -> Report:
    """Return a report that also looks at captures."""

    def look(now_s: float, duration_s: float) -> None:
        watch.look(now_s, duration_s)
        if report is not None:
            report(now_s, duration_s)

    return look


def progress_text(simulated_s: float, duration_s: float, *, elapsed_s: float) -> str:
    """Say how far the run is, how fast, and how long it still takes.

    At most so long: a run ends early when there is nothing left to happen.
    """
    share = simulated_s / duration_s
    text = f"{format_seconds(simulated_s)} of {format_seconds(duration_s)} simulated ({share:.0%})"
    speed = simulated_s / elapsed_s
    if speed > 0.0:
        left_s = (duration_s - simulated_s) / speed
        text += f", {speed:.3g} times real time, at most {_clock_time(left_s)} left"
    return text


def seeds_text(finished: float, seeds: float, *, elapsed_s: float) -> str:
    """Say how many runs have finished, and how long the others still take."""
    text = f"{finished:.0f} of {seeds:.0f} seeds simulated"
    if finished:
        text += f", {_clock_time(elapsed_s * (seeds - finished) / finished)} left"
    return text


def _clock_time(seconds: float) -> str:
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, seconds_left = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {seconds_left:02} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} min"


class ProgressLine:
    """A line that is written over itself. Silent for the first second."""

    def __init__(
        self,
        stream: IO[str],
        *,
        clock: Callable[[], float],
        write: Callable[..., str] = progress_text,
    ) -> None:
        self._write = write
        self._stream = stream
        self._clock = clock
        self._began = clock()
        self._next = self._began + SILENT_S
        self._shown = False

    def report(self, done: float, whole: float) -> None:
        """Show the part done so far, if the last update was long enough ago."""
        now = self._clock()
        if now < self._next:
            return
        self._next = now + _EVERY_S
        self._shown = True
        text = self._write(done, whole, elapsed_s=now - self._began)
        self._stream.write(ERASE + text)
        self._stream.flush()

    def erase(self) -> None:
        """Leave no trace: what was asked for is printed next."""
        if self._shown:
            self._stream.write(ERASE)
            self._stream.flush()


@contextmanager
def run_progress(write: Callable[..., str] = progress_text) -> Iterator[Report | None]:
    """Yield a function that shows progress as `write` states it; None without a terminal.

    The function takes what is done and all there is: seconds of a run, or runs.
    """
    if not somebody_looks():
        yield None
        return
    line = ProgressLine(sys.stderr, clock=monotonic, write=write)
    try:
        yield line.report
    finally:
        line.erase()


@contextmanager
def quiet_dask() -> Iterator[None]:
    """Suppress Dask's tracebacks of a lost cluster, which commands report in one line."""
    if os.environ.get("BENTPIPE_TRACEBACK"):
        yield
        return
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


def simulations_text(done: int, known: int, *, elapsed_s: float) -> str:
    """Write how many simulations are done, and how long those take that are known to be needed."""
    text = f"{done:,} of {known:,} simulations"
    if 0 < done < known:
        text += f", at least {format_seconds(float(round(elapsed_s * (known - done) / done)))} left"
    return text


@contextmanager
def simulations_progress() -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function that shows how many simulations of those known are done; None if unseen."""
    if not somebody_looks():
        yield None
        return

    began = monotonic()

    def show(done: int, known: int) -> None:
        text = simulations_text(done, known, elapsed_s=monotonic() - began)
        sys.stderr.write(ERASE + text)
        sys.stderr.flush()

    try:
        show(0, 1)
        yield show
    finally:
        sys.stderr.write(ERASE)
        sys.stderr.flush()
