"""`bentpipe fit`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bentpipe.cli.output import WriteErrors, check_place, print_json
from bentpipe.cli.progress import ERASE, somebody_looks
from bentpipe.cli.tables import Table, print_prose
from bentpipe.errors import RequestError
from bentpipe.files import atomic_write
from bentpipe.fit import NAME, FitProgress
from bentpipe.fit import fit as fit_measurements
from bentpipe.units import format_rate

if TYPE_CHECKING:
    from bentpipe.fit import Fit
    from bentpipe.results import RunResult


def fit(*, files: Sequence[str], out: Path | None, figure: Path | None, as_json: bool) -> None:
    """Fit a scenario to measurements; print the estimates, and what is not determined."""
    name = "fitted"
    if out is not None:
        if out.suffix != ".toml" or not NAME.fullmatch(out.stem):
            raise RequestError(
                f'--out {out}: expected a name of letters, digits, "-" and "_" that ends in .toml'
            )
        check_place(out, "--out")
        name = out.stem
    if figure is not None:
        if figure.suffix not in {".svg", ".png"}:
            raise RequestError(f"--figure {figure}: expected a file that ends in .svg or .png")
        check_place(figure, "--figure")
    with _progress() as progress:
        found = fit_measurements(*files, name=name, progress=progress)
    errors = WriteErrors()
    if out is not None:
        with errors.kept(out), atomic_write(out) as part:
            part.write_text(found.toml, encoding="utf-8")
    result = None
    if figure is not None:
        from bentpipe.plot.fit_plot import write_fit_plot

        result = found.simulate()
        with errors.kept(figure):
            write_fit_plot(found, result, figure)
    if as_json:
        print_json(found.to_data(result))
    else:
        _print(found, result)
        if errors.first is None:
            for path in (out, figure):
                if path is not None:
                    print(f"wrote {path}")
            if out is not None:
                print(f"try: bentpipe advise {out}")
    errors.raise_first()


def _print(found: Fit, result: RunResult | None) -> None:
    for each in found.measurements:
        print_prose(f"{each.path}: {each.kind}, {each.summary}", indent="  ")
        for note in each.notes:
            print_prose(f"  {note}", indent="  ")
    print()
    table = Table(
        headings=("quantity", "estimate", "95% interval", "source", "method"),
        left=frozenset({3}),
        prose=True,
    )
    for row in found.rows():
        table.add(*row)
    table.print()
    if found.undetermined:
        print("\nNot determined by the measurements:\n")
        missing = Table(headings=("quantity", "assumed", "why"), left=frozenset({1}), prose=True)
        for lack in found.undetermined:
            missing.add(lack.key, lack.assumed, lack.reason)
        missing.print()
    print()
    if result is not None and found.measured_goodput_bps is not None:
        simulated = sum(flow.goodput_bps for flow in result.summary.flows)
        print(
            f"goodput: measured {format_rate(found.measured_goodput_bps)}, simulated "
            f"{format_rate(simulated)}"
        )


@contextmanager
def _progress() -> Iterator[FitProgress | None]:
    if not somebody_looks():
        yield None
        return

    def show(path: Path, read: int, whole: int) -> None:
        share = min(1.0, read / max(1, whole))
        sys.stderr.write(f"{ERASE}reading {path.name}: {share:.0%}")
        sys.stderr.flush()

    try:
        yield show
    finally:
        sys.stderr.write(ERASE)
        sys.stderr.flush()
