"""`bentpipe run`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bentpipe.cli.output import (
    WriteErrors,
    captures,
    check_place,
    made_folder,
    print_json,
    writing_to,
)
from bentpipe.cli.progress import CaptureWatch, run_progress, seeds_text, watching
from bentpipe.cli.run_tables import print_summary
from bentpipe.cli.source import execute_files, find_scenario, told_apart
from bentpipe.errors import RequestError
from bentpipe.files import atomic_write
from bentpipe.results import ProbesNotWrittenError
from bentpipe.results import run as simulate

if TYPE_CHECKING:
    from bentpipe.results import RunResult


def run(
    *,
    file: str,
    seed: int | None,
    seeds: int | None = None,
    settings: Sequence[str],
    out: Path | None,
    pcap: Sequence[str],
    snap: int | None,
    python: Sequence[Path],
    everyone: bool,
    as_json: bool,
    rrul: bool = False,
    flent: Path | None = None,
    cores: int | None = None,
) -> None:
    """Simulate, write what was asked for, print the summary."""
    if seeds is not None:
        refuse_files(out=out, pcap=pcap, flent=flent)
        if cores is not None:
            raise RequestError("--cores is of one run: --seeds simulates several at a time")
    if flent is not None:
        check_place(flent, "--flent")
    execute_files(python)
    scenario = find_scenario(file, settings)
    if rrul:
        from bentpipe.flent import rrul as rrul_on

        with told_apart(scenario, command="run"):
            scenario = rrul_on(scenario)
    if seeds is not None:
        from bentpipe.cli.seed_tables import print_seeds
        from bentpipe.seed_ranges import run_seeds

        with told_apart(scenario, command="run"), run_progress(seeds_text) as progress:
            runs = run_seeds(scenario, seeds=seeds, seed=seed, progress=progress)
        if as_json:
            print_json(runs.to_data())
        else:
            print_seeds(runs, everyone=everyone)
        return
    errors = WriteErrors()
    # Before the run: nobody should wait for a result that has no place to go.
    with made_folder(out) as folder, captures(pcap, folder) as captured:
        with told_apart(scenario, command="run"), writing_to(out), run_progress() as progress:
            if captured:
                watch = CaptureWatch([path for _, path in captured], snapped=snap is not None)
                progress = watching(watch, progress)
            try:
                result = simulate(
                    scenario,
                    seed=seed,
                    pcap=captured,
                    snap=snap,
                    default_probes=folder is not None or flent is not None,
                    probes_to=None if folder is None else folder / PROBES,
                    no_probes=folder is None and flent is None,
                    progress=progress,
                    cores=cores,
                )
            except ProbesNotWrittenError as error:
                result, errors.first = error.result, error

        written = [path for _, path in captured]
        if folder is not None and errors.first is None:
            with errors.kept(folder):
                written = write_result(result, folder) + written
                replace_earlier(folder, written)
        if flent is not None and errors.first is None:
            from bentpipe.flent import write_flent

            with errors.kept(flent):
                write_flent(result, scenario, flent)
                written.append(flent)
    if result.undivided is not None:
        print(f"bentpipe: one core: {result.undivided}", file=sys.stderr)
    if as_json:
        print_json(result.summary_json)
    else:
        print_summary(result.summary, everyone=everyone)
        if result.cores > 1:
            print(f"\nsimulated on {result.cores} cores")
        if written:
            print("\nwrote")
            for path in written:
                print(f"  {path}")
    errors.raise_first()


def refuse_files(*, out: Path | None, pcap: Sequence[str], flent: Path | None) -> None:
    """Refuse files of one run beside `--seeds`.

    Raises
    ------
    RequestError
        A file of one run is asked for.
    """
    for name, asked in (("--out", out), ("--pcap", pcap), ("--flent", flent)):
        if asked:
            raise RequestError(f"{name} is of one run: without --seeds, with --seed N")


def write_result(result: RunResult, folder: Path) -> list[Path]:
    """Write the summary and the plots; the probes are in PROBES there already."""
    from bentpipe.plot import write_run_plots
    from bentpipe.plot.application_plots import write_application_plots

    summary = folder / "summary.json"
    with atomic_write(summary) as part:
        part.write_text(result.summary_json.rstrip() + "\n", encoding="utf-8")
    probes = folder / PROBES
    plots, left_out = write_run_plots(result, folder)
    if left_out:
        print(
            f"bentpipe: no plots of their own for {left_out:,} more flows and links: overview.svg "
            f"has the flows' goodput, {probes} what was recorded",
            file=sys.stderr,
        )
    recorded = {name.rpartition(".")[2] for name in result.series}
    if recorded and not recorded & _OF_OVERVIEW:
        print(
            "bentpipe: no overview.svg: probes.series has neither goodput nor a queue nor losses",
            file=sys.stderr,
        )
    plots += write_application_plots(result.summary, folder)
    return [summary, probes, *plots]


PROBES = "probes.parquet"
# Quantities of overview.svg.
_OF_OVERVIEW = frozenset({"goodput", "queue", "queue_max", "lost", "dropped"})
# File with the names of what the last `run --out` wrote there, one per line.
_WRITTEN = ".bentpipe-wrote"


def replace_earlier(folder: Path, written: Sequence[Path]) -> None:
    """Remove what an earlier run wrote into the folder and this one did not.

    A plot of another network would be taken for one of this. Nothing else in the folder is touched.
    """
    notes = folder / _WRITTEN
    names = [path.name for path in written if path.parent == folder]
    try:
        earlier = notes.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        earlier = []
    for name in set(earlier) - set(names):
        # Only a name right there: the file may have been edited.
        if Path(name).name == name:
            (folder / name).unlink(missing_ok=True)
    with atomic_write(notes) as part:
        part.write_text("".join(f"{name}\n" for name in names), encoding="utf-8")
