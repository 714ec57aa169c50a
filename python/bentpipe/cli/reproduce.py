"""`bentpipe reproduce`."""

from __future__ import annotations

import shlex
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bentpipe import studies
from bentpipe.cli.output import made_folder, print_json, writing_to
from bentpipe.cli.progress import quiet_dask
from bentpipe.cli.task_progress import task_progress
from bentpipe.studies.runner import reproduce as run_studies
from bentpipe.studies.study import CAUSES, tally

if TYPE_CHECKING:
    from bentpipe.studies.runner import DrawnFigure, Reproduced, Reproduction
    from bentpipe.studies.study import Verdict


def reproduce(
    *,
    names: Sequence[str],
    quick: bool,
    out: Path,
    workers: int | None,
    dask: str | None,
    as_json: bool,
) -> None:
    """Run the studies and print which claims hold.

    A claim that doesn't hold is a result, not a failure: the exit status is 0.
    """
    chosen = [studies.get(name) for name in dict.fromkeys(names or studies.names())]
    with made_folder(out), writing_to(out), task_progress() as progress, quiet_dask():
        reproduction = run_studies(
            chosen,
            out=out,
            quick=quick,
            workers=workers,
            dask=dask,
            command=_command(names, quick=quick, workers=workers, dask=dask),
            progress=progress,
        )
    for line in reproduction.inconsistencies():
        print(f"bentpipe: warning: {line}", file=sys.stderr)
    if as_json:
        print_json(_as_data(reproduction, out))
        return
    for each in reproduction.studies:
        _print_study(each)
    print(f"all: {tally(reproduction.verdicts)}")
    print(f"wrote {out / 'report.html'}")


def _command(names: Sequence[str], *, quick: bool, workers: int | None, dask: str | None) -> str:
    """Return the command line that repeats the run; where its results go is left out."""
    words = ["bentpipe", "reproduce", *names]
    if quick:
        words.append("--quick")
    if workers is not None:
        words += ["--workers", str(workers)]
    if dask is not None:
        words += ["--dask", dask]
    return shlex.join(words)


def _as_data(reproduction: Reproduction, folder: Path) -> dict[str, Any]:
    return {
        "report": str(folder / "report.html"),
        "provenance": reproduction.provenance.as_json(),
        "studies": [
            {
                "study": each.study.key,
                "cells": each.cells,
                "cells_csv": str(each.cells_csv),
                "simulation_s": each.simulation_s,
                "analysis_s": each.analysis_s,
                "figures": [_files(drawn) for drawn in each.figures if drawn.svg is not None],
                "tables": [_files(drawn) for drawn in each.figures if drawn.svg is None],
                "claims": [verdict.as_json() for verdict in each.verdicts],
            }
            for each in reproduction.studies
        ],
    }


def _files(drawn: DrawnFigure) -> dict[str, str]:
    files = {"svg": drawn.svg, "parquet": drawn.parquet, "csv": drawn.csv}
    return {"id": drawn.figure.id} | {
        kind: str(path) for kind, path in files.items() if path is not None
    }


def _print_study(reproduced: Reproduced) -> None:
    figures = sum(drawn.svg is not None for drawn in reproduced.figures)
    tables = len(reproduced.figures) - figures
    print(
        f"{reproduced.study.key}: {reproduced.cells} simulations, {figures} figures, "
        f"{tables} tables; {tally(reproduced.verdicts)}"
    )
    for verdict in reproduced.verdicts:
        mark = "holds       " if verdict.holds else "DOESN'T HOLD"
        print(f"  {mark}  {verdict.claim.id}")
        if not verdict.holds:
            indent = " " * 16
            for text in (verdict.measurement.measured, _cause(verdict)):
                print(textwrap.fill(text, 96, initial_indent=indent, subsequent_indent=indent))


def _cause(verdict: Verdict) -> str:
    cause = verdict.claim.cause
    return "cause: not stated" if cause is None else f"cause: {CAUSES[cause.kind]}. {cause.text}"
