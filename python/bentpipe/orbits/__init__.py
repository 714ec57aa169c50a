"""The geometry of a scenario: its constellations, sites and paths over satellites, without traffic.

`orbit` computes it. `Orbit.summary` has the figures, and `Orbit.tables` the paths over time, their
outages, the passes, and the satellites at an instant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe import _native
from bentpipe.congestion import registered
from bentpipe.scenario import Scenario

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

# The tables in the order in which they are written.
TABLES: Final = ("paths", "outages", "passes", "satellites", "tracks", "routes")

Table = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Orbit:
    """The geometry of a scenario over its run.

    `summary`: `constellations`, `sites` (passes, satellites in sight, coverage, worst gap) and
    `paths` (delay, elevation, satellites, handovers, gaps), with units in the names. `tables`: name
    -> column -> numpy array, or list of text. The tables "satellites", "tracks" and
    "routes" are those at `at_s`.
    """

    summary: Mapping[str, Any]
    tables: Mapping[str, Table] = field(repr=False)
    at_s: float = 0.0

    def frame(self, table: str) -> pd.DataFrame:
        """Return one of the tables as a pandas frame."""
        import pandas as pd

        return pd.DataFrame(dict(self.tables[table]))

    def arrow(self, table: str) -> pa.Table:
        """Return one of the tables as a pyarrow table."""
        import pyarrow as pa

        return pa.table(dict(self.tables[table]))

    def path(self, link: str) -> Table:
        """Return the summary of a link's path.

        Raises
        ------
        KeyError
            The link has no path over satellites.
        """
        for path in self.summary["paths"]:
            if path["link"] == link:
                return dict(path)
        raise KeyError(link)

    def write(self, folder: Path) -> list[Path]:
        """Write the summary as JSON and each table as Parquet; return the files."""
        import pyarrow.parquet as pq

        from bentpipe.files import atomic_write

        folder.mkdir(parents=True, exist_ok=True)
        files = [folder / "orbit.json"]
        with atomic_write(files[0]) as part:
            part.write_text(json.dumps(self.summary, indent=2) + "\n", encoding="utf-8")
        for name in TABLES:
            file = folder / f"{name}.parquet"
            with atomic_write(file) as part:
                pq.write_table(self.arrow(name), part)
            files.append(file)
        return files


def orbit(
    scenario: Scenario | str | Path | Mapping[str, Any],
    *,
    settings: Mapping[str, object] | None = None,
    at_s: float = 0.0,
) -> Orbit:
    """Compute the geometry of a scenario; see the module.

    Parameters
    ----------
    scenario
        A scenario, a file, the name of a ready-made scenario, or a dict with the contents of a
        file.
    settings
        Keys to change, as `--set` does.
    at_s
        The instant of the tables "satellites", "tracks" and "routes", in seconds since the
        start.

    Raises
    ------
    ScenarioError
        The scenario is not valid.
    """
    found = Scenario.of(scenario).with_settings(settings or {})
    summary, tables = _native.orbit(
        found.path,
        text=found.text,
        overrides=list(found.settings),
        controls=registered(),
        at_s=at_s,
    )
    return Orbit(summary=json.loads(summary), tables=tables, at_s=at_s)
