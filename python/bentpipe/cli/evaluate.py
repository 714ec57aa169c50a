"""`bentpipe evaluate`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bentpipe.cli.output import made_folder, print_json, writing_to
from bentpipe.cli.progress import quiet_dask
from bentpipe.cli.source import execute_files
from bentpipe.cli.tables import Table, print_prose
from bentpipe.cli.task_progress import task_progress
from bentpipe.evaluation.runner import check_request, find_rule
from bentpipe.evaluation.runner import evaluate as run_evaluation
from bentpipe.evaluation.verdicts import label
from bentpipe.scenario import parse_settings

if TYPE_CHECKING:
    from bentpipe.evaluation.runner import Evaluation


def evaluate(
    *,
    rule: str,
    python: Sequence[Path],
    out: Path,
    only: Sequence[str],
    seeds: int,
    settings: Sequence[str],
    workers: int | None,
    dask: str | None,
    as_json: bool,
) -> None:
    """Simulate a window rule by the criteria of RFC 9743, and print the verdicts.

    A criterion that is not met is a result, not a failure: the exit status is 0.
    """
    execute_files(python)
    found, is_python = find_rule(rule, parse_settings(settings))
    check_request(found, only, workers=workers, dask=dask)
    with made_folder(out), writing_to(out), task_progress() as progress, quiet_dask():
        evaluation = run_evaluation(
            found,
            is_python=is_python,
            out=out,
            only=only,
            seeds=seeds,
            workers=workers,
            dask=dask,
            command=_command(rule, python, only, seeds, settings),
            progress=progress,
        )
    if as_json:
        print_json(evaluation.as_json() | {"report": str(out / "evaluation.html")})
        return
    _print(evaluation, out)


def _command(
    rule: str, python: Sequence[Path], only: Sequence[str], seeds: int, settings: Sequence[str]
) -> str:
    """Return the command line that repeats the evaluation."""
    words = ["bentpipe", "evaluate", rule, "--seeds", str(seeds)]
    for option, values in (("--python", python), ("--only", only), ("--set", settings)):
        for value in values:
            words += [option, str(value)]
    return shlex.join(words)


def _print(evaluation: Evaluation, out: Path) -> None:
    names = [label(each.name) for each in evaluation.rules]
    print(f"{names[0]} by RFC 9743: {evaluation.tally}\n")
    table = Table(
        headings=("section", "criterion", *names),
        left=frozenset(range(len(names) + 2)),
    )
    for section in evaluation.sections:
        verdicts = [each.verdict for each in section.judged]
        table.add(section.criterion.section, section.criterion.title, *verdicts)
    table.print()
    print()
    for section in evaluation.sections:
        print_prose(f"{section.criterion.section} {section.own.verdict}: {section.own.reason}")
    missing = [each for each in evaluation.findings if not each.holds]
    if evaluation.findings:
        appear = len(evaluation.findings) - len(missing)
        print()
        print_prose(
            f"published findings about the references: {appear} of {len(evaluation.findings)} "
            "appear" + (f", not {', '.join(each.claim.id for each in missing)}" if missing else "")
        )
    print(f"wrote {out / 'evaluation.html'}")
