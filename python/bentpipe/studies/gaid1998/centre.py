"""A network operations centre that gives classes of traffic priorities (section 7 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.plot.style import COLOURS, MARKERS, legend_below, new_axes
from bentpipe.scenario import Scenario
from bentpipe.studies.study import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from bentpipe.results import RunResult
    from bentpipe.studies.columns import Columns
    from bentpipe.studies.gaid1998.evidence import Evidence

_LIMIT: Final = {"limit": "500 kB"}
QUEUES: Final[Mapping[str, Mapping[str, object]]] = {
    "drop-tail": {"kind": "drop-tail", **_LIMIT},
    "fair": {"kind": "fair", **_LIMIT},
    "by weight": {
        "kind": "weighted",
        "weights": {"calls": 2, "questions": 2, "pages": 4, "others": 1},
        **_LIMIT,
    },
    "by priority": {"kind": "priority", "classes": ["calls", "questions", "pages"], **_LIMIT},
}


@dataclass(frozen=True, kw_only=True)
class Centre:
    """Forty homes whose traffic shares the uplink under one queue discipline."""

    queue: str

    def scenario(self) -> Scenario:
        """Return the ready-made network with this queue."""
        settings: dict[str, object] = {
            "links.satellite.forward.queue": dict(QUEUES[self.queue]),
            "probes.series": [],
        }
        return Scenario.find("hybrid-noc").with_settings(settings)


def centre_cells() -> list[Centre]:
    """Return every run of the figure."""
    return [Centre(queue=queue) for queue in QUEUES]


# The times that users of a class wait for: the class's flows, and the path of the metric.
_WAITS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "mouth to ear": ("calls", ("mouth_to_ear_ms",)),
    "answer to a question": ("questions", ("responses", "time_ms")),
    "page load": ("pages", ("page_load_ms",)),
}


def _p95_s(result: RunResult, table: str, path: tuple[str, ...]) -> float:
    """Return the 95th percentile of a group's times, in seconds."""
    told = next(group for group in result.summary.groups if group.name == table).extra
    for key in path:
        told = told[key]
    return float(told["p95"]) / 1e3


def centre_figure(evidence: Evidence) -> Figure:
    """Return the figure of the waiting times with each order."""
    results = {cell.queue: evidence.result(cell) for cell in centre_cells()}
    waits = {
        what: [_p95_s(result, *where) for result in results.values()]
        for what, where in _WAITS.items()
    }
    files = [
        next(group for group in result.summary.groups if group.name == "files").goodput_bps
        for result in results.values()
    ]
    columns: Columns = {"queue": list(results)}
    for what, seconds in waits.items():
        columns[f"{what} (s)"] = list(seconds)
    columns["files_bps"] = list(files)

    def draw(canvas: Canvas) -> None:
        above, below = new_axes(canvas, rows=2)
        width = 0.8 / len(waits)
        places = np.arange(len(results), dtype=float)
        for index, (what, seconds) in enumerate(waits.items()):
            shift = (index - (len(waits) - 1) / 2) * width
            above.plot(places + shift, seconds, MARKERS[index], color=COLOURS[index], label=what)
        above.set(yscale="log", xlim=(-0.5, len(results) - 0.5), ylabel="95% within (s)")
        below.set_xlim(-0.5, len(results) - 0.5)
        below.bar(places, [bps / 1e6 for bps in files], 0.5, color=COLOURS[3])
        below.set_ylabel("files, together\n(Mbit/s)")
        for axes in (above, below):
            axes.set_xticks(places, list(results))
        legend_below(canvas, above, columns=3)

    return Figure(
        id="A3",
        title="An operations centre that gives classes of traffic priorities",
        caption="Forty hybrid homes share 4 Mbit/s of satellite: ten talk, ten ask questions, ten "
        "read pages, ten collect files (the ready-made network hybrid-noc, 120 s, one seed). "
        "Above: what 95 of 100 wait no longer than; below: what is left for the files. By weight, "
        "calls and questions have 2, pages 4, files 1.",
        columns=columns,
        draw=draw,
        height=5.2,
    )
