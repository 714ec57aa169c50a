"""Progress of work in tasks: a bar on a terminal, else a line for each task."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from bentpipe.cli.progress import somebody_looks
from bentpipe.studies.runner import Progress


class _Lines(Progress):
    """Progress for a log: one line for each task that begins."""

    def begin(self, task: str, total: int) -> None:
        print(f"{task} ({total})" if total > 1 else task, file=sys.stderr, flush=True)


@contextmanager
def task_progress() -> Iterator[Progress]:
    """Give a progress bar on stderr if that is a terminal, and else a line for each task."""
    if not somebody_looks():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    class Shown(Progress):
        def __init__(self, bars: Bars) -> None:
            self._bars = bars
            self._task = bars.add_task("", total=None)

        def begin(self, task: str, total: int) -> None:
            self._bars.reset(self._task, description=task, total=total)

        def step(self) -> None:
            self._bars.advance(self._task)

    with Bars(console=Console(stderr=True), transient=True) as bars:
        yield Shown(bars)
