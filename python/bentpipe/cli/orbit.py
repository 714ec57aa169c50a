"""`bentpipe orbit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bentpipe.cli.output import WriteErrors, made_folder, print_json
from bentpipe.cli.source import find_scenario, told_apart
from bentpipe.cli.tables import Table, print_prose
from bentpipe.errors import RequestError
from bentpipe.orbits import Orbit
from bentpipe.orbits import orbit as compute
from bentpipe.units import format_seconds

# Elements older than this are mentioned: SGP4's error grows by kilometres a day.
_OLD_DAYS = 14.0


def orbit(
    *, file: str, settings: Sequence[str], at: float | None, out: Path | None, as_json: bool
) -> None:
    """Compute the geometry, and print or write it."""
    scenario = find_scenario(file, settings)
    at_s = 0.0 if at is None else at
    if at_s < 0.0:
        raise RequestError(f"--at {at_s:g}: expected 0 or more")
    errors = WriteErrors()
    files: list[Path] = []
    with made_folder(out) as folder:
        with told_apart(scenario, command="orbit"):
            found = compute(scenario, at_s=at_s)
        if not found.summary["constellations"]:
            raise RequestError(
                f"{scenario.path}: no orbits: expected [constellations.NAME], [sites.NAME] and a "
                "link with a path"
            )
        if folder is not None:
            with errors.kept(folder):
                files = _write(found, folder)
    if as_json:
        print_json(dict(found.summary))
    else:
        _print(found)
        for path in files:
            print(f"wrote {path}")
    errors.raise_first()


def _write(found: Orbit, folder: Path) -> list[Path]:
    from bentpipe.plot.orbit_plots import write_orbit_plots

    files = found.write(folder)
    return files + write_orbit_plots(found, folder)


def _print(found: Orbit) -> None:
    summary = found.summary
    for each in summary["constellations"]:
        print_prose(_constellation(each), indent="  ")
    print()
    _print_sites(summary["sites"])
    if summary["paths"]:
        print()
        _print_paths(summary["paths"])


def _constellation(each: Mapping[str, Any]) -> str:
    origin = "" if each["origin"] is None else f" from {each['origin']}"
    text = f"{each['name']}: {each['satellites']:,} satellites{origin}"
    if each["start"] is not None:
        text += f", start {each['start']}"
    if each["ages_days"] is not None:
        least, most = each["ages_days"]
        text += f", elements {least:.1f} to {most:.1f} days old"
        if max(abs(least), abs(most)) > _OLD_DAYS:
            text += ": positions of old elements are wrong by kilometres a day"
    decayed = each["decayed"]
    if decayed:
        names = ", ".join(decayed[:5]) + (", ..." if len(decayed) > 5 else "")
        text += f"; {len(decayed):,} decayed by the start ({names})"
    return text


def _print_sites(sites: Sequence[Mapping[str, Any]]) -> None:
    table = Table(
        headings=(
            "site",
            "constellation",
            "passes",
            "median pass",
            "in sight: least",
            ": mean",
            ": most",
            "covered",
            "worst gap",
        ),
        left=frozenset({1}),
    )
    for site in sites:
        length = site["pass_s"]
        sight = site["in_sight"]
        table.add(
            site["site"],
            site["constellation"],
            f"{site['passes']:,}",
            "–" if length is None else format_seconds(length["median"]),
            str(sight["min"]),
            f"{sight['mean']:.1f}",
            str(sight["max"]),
            f"{site['covered']:.2%}",
            format_seconds(site["worst_gap_s"]) if site["worst_gap_s"] > 0.0 else "none",
        )
    table.print()


def _print_paths(paths: Sequence[Mapping[str, Any]]) -> None:
    table = Table(
        headings=(
            "path",
            "RTT: least",
            ": median",
            ": 95%",
            ": most",
            "elevation",
            "satellites",
            "handovers",
            "available",
            "worst gap",
        ),
    )
    for path in paths:
        delay = path["delay_s"]
        hops = path["satellites"]
        least, most = int(hops["min"]), int(hops["max"])
        table.add(
            path["link"],
            *(format_seconds(2.0 * delay[key]) for key in ("min", "median", "p95", "max")),
            f"{path['elevation_deg']['median']:.0f} deg",
            str(least) if least == most else f"{least}–{most}",
            f"{path['handovers']:,}",
            f"{path['available']:.2%}",
            format_seconds(path["worst_gap_s"]) if path["worst_gap_s"] > 0.0 else "none",
        )
    table.print()
