"""`bentpipe reproduce`."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bentpipe import studies
from bentpipe.cli.output import made_folder, print_json, writing_to
from bentpipe.cli.progress import somebody_looks
from bentpipe.studies.runner import Progress
from bentpipe.studies.runner import reproduce as run_studies

if TYPE_CHECKING:
    from bentpipe.studies.runner import DrawnFigure, Reproduced


def reproduce(*, names: Sequence[str], quick: bool, out: Path, as_json: bool) -> None:
    """Run the studies and say what became of the claims.

    A claim that doesn't hold is a result, not a failure: the exit status is 0.
    """
    chosen = [studies.get(name) for name in dict.fromkeys(names or studies.names())]
    with made_folder(out), writing_to(out), _progress() as progress:
        reproduced = run_studies(chosen, out=out, quick=quick, progress=progress)
    if as_json:
        print_json(_as_data(reproduced, out))
        return
    for each in reproduced:
        _print_study(each)
    print(f"wrote {out / 'report.html'}")


def _as_data(reproduced: Sequence[Reproduced], folder: Path) -> dict[str, Any]:
    return {
        "report": str(folder / "report.html"),
        "studies": [
            {
                "study": each.study.key,
                "cells": each.cells,
                "figures": [_files(drawn) for drawn in each.figures if drawn.svg is not None],
                "tables": [_files(drawn) for drawn in each.figures if drawn.svg is None],
                "claims": [verdict.as_json() for verdict in each.verdicts],
            }
            for each in reproduced
        ],
    }


def _files(drawn: DrawnFigure) -> dict[str, str]:
    files = {"svg": drawn.svg, "parquet": drawn.parquet, "csv": drawn.csv}
    return {"id": drawn.figure.id} | {
        kind: str(path) for kind, path in files.items() if path is not None
    }


def _print_study(reproduced: Reproduced) -> None:
    held = sum(verdict.holds for verdict in reproduced.verdicts)
    print(
        f"{reproduced.study.key}: {reproduced.cells} simulations, "
        f"{len(reproduced.figures)} figures, {held} of {len(reproduced.verdicts)} claims hold"
    )
    for verdict in reproduced.verdicts:
        mark = "holds       " if verdict.holds else "DOESN'T HOLD"
        print(f"  {mark}  {verdict.claim.id}")
        if not verdict.holds:
            indent = " " * 16
            print(textwrap.fill(verdict.measurement.measured, 96, initial_indent=indent,
                                subsequent_indent=indent))  # fmt: skip


class _Lines(Progress):
    """Progress for a log: one line for each task that begins."""

    def begin(self, task: str, total: int) -> None:
        print(f"{task} ({total})" if total > 1 else task, file=sys.stderr, flush=True)


@contextmanager
def _progress() -> Iterator[Progress]:
    """Give a progress bar on stderr if that is a terminal, and else a line for each study."""
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
