#!/usr/bin/env python3
"""Search the settings that a paper leaves open for those that give the paper's numbers.

Simulates every setting of `bentpipe.studies.KEY.open_settings`, writes `open_settings.csv` beside
it, and prints the settings that meet the most published values.

Usage:

    python tools/search_open_settings.py KEY [--workers N] [--best N]
"""

from __future__ import annotations

import argparse
from typing import Any

from rich.console import Console
from rich.progress import Progress

from bentpipe.studies.open_settings import OpenSettings, Row, search_of


def main() -> None:
    """Search, write the CSV file, and print the best settings."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("key", help="the study, as karir1999")
    parser.add_argument("--workers", type=int, help="simulations at a time; all cores by default")
    parser.add_argument("--best", type=int, default=10, help="settings to print")
    arguments = parser.parse_args()
    search, path = search_of(arguments.key)
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task(arguments.key, total=len(search.settings))
        rows = search.search(workers=arguments.workers, on_row=lambda _: progress.advance(task))
    search.write(rows, path)
    for row in search.best(rows)[: arguments.best]:
        print(_description(search, row))
    most = max(row.within for row in rows)
    best = sum(row.within == most for row in rows)
    print(f"{best} of {len(rows)} settings give {most} of {len(search.published)} values: {path}")


def _description(search: OpenSettings[Any], row: Row) -> str:
    """Return a setting and its judged numbers; a number outside its tolerance is in brackets."""
    parts = []
    for published in search.published.values():
        met = published.met(row.measured)
        for name in published.columns:
            part = f"{name} {row.measured[name]:.4g}"
            parts.append(part if met else f"({part})")
    setting = ", ".join(f"{name} {value}" for name, value in row.setting.items())
    return f"{row.within} within tolerance: {setting}\n    {', '.join(parts)}"


if __name__ == "__main__":
    main()
