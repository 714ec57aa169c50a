"""`bentpipe report`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bentpipe.cli.declaring import check_text
from bentpipe.cli.output import WriteErrors, check_place, print_json
from bentpipe.cli.progress import quiet_dask, simulations_progress
from bentpipe.cli.source import execute_files, find_scenario, told_apart
from bentpipe.cli.tables import print_prose
from bentpipe.errors import RequestError
from bentpipe.scenario_report import gather


def report(
    *,
    files: Sequence[str],
    out: Path,
    settings: Sequence[str],
    seeds: int | None,
    quick: bool,
    workers: int | None,
    dask: str | None,
    python: Sequence[Path],
    as_json: bool,
) -> None:
    """Simulate, write the report, print its findings."""
    check_text(out, "--out")
    check_place(out, "--out")
    if list(files).count("-") > 1:
        raise RequestError("-: standard input can be read once")
    execute_files(python)
    scenarios = [(file, find_scenario(file, settings)) for file in files]
    with ExitStack() as kept, simulations_progress() as progress, quiet_dask():
        for _, scenario in scenarios:
            kept.enter_context(told_apart(scenario, command="report"))
        gathered = gather(
            scenarios,
            seeds=seeds,
            quick=quick,
            workers=workers,
            dask=dask,
            command=_command(files, settings, seeds=seeds, quick=quick, python=python),
            progress=progress,
        )
    # Imports matplotlib, for which a refusal does not wait.
    from bentpipe.scenario_report.page import findings, write_report

    errors = WriteErrors()
    with errors.kept(out):
        write_report(gathered, out)
    if as_json:
        print_json({"report": None if errors.first is not None else str(out), **gathered.to_data()})
    else:
        for label, sentences in findings(gathered):
            print(label)
            for sentence in sentences:
                print_prose(f"  {sentence}")
            print()
        if errors.first is None:
            print(f"wrote {out}")
    errors.raise_first()


def _command(
    files: Sequence[str],
    settings: Sequence[str],
    *,
    seeds: int | None,
    quick: bool,
    python: Sequence[Path],
) -> str:
    """Return the command line that repeats the report.

    The place of the report and that of the simulations are left out: they change no result.
    """
    words = ["bentpipe", "report", *files]
    for setting in settings:
        words += ["--set", setting]
    for path in python:
        words += ["--python", str(path)]
    if seeds is not None:
        words += ["--seeds", str(seeds)]
    if quick:
        words.append("--quick")
    return shlex.join(words)
