"""Fits a scenario to measurements of a real network.

| file | what it tells |
|---|---|
| capture (pcap, pcapng) of a transfer | rates, queue, losses, round trips, host settings |
| output of ping | round trips, losses |
| JSON of iperf3 | rates, round trips, host settings |
| flent's data | rates, round trips |
| JSON of IRTT | one-way delays, losses of each direction |

`fit` reads files and combines what they tell. Each estimate has a 95% confidence interval; what the
files do not determine is listed with the assumption in its place.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from bentpipe.errors import RequestError

if TYPE_CHECKING:
    from bentpipe.fit.combination import Path as FittedPath
    from bentpipe.fit.estimate import Estimate, Undetermined
    from bentpipe.fit.measurement import Measurement
    from bentpipe.results import RunResult
    from bentpipe.scenario import Scenario

_MOST_FILES: Final = 100
NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
FitProgress = Callable[[Path, int, int], None]
# Samples of the simulated series in a figure.
_SAMPLES: Final = 500


@dataclass(frozen=True, kw_only=True)
class Fit:
    """A scenario that was fitted to measurements.

    `estimates` are the quantities that were estimated or read, by key, such as "forward.rate".
    `undetermined` are those that the measurements do not determine. `toml` is the scenario file.
    """

    name: str
    measurements: tuple[Measurement, ...]
    path: FittedPath
    toml: str

    @property
    def estimates(self) -> dict[str, Estimate]:
        """The estimates, by key."""
        return self.path.estimates

    @property
    def undetermined(self) -> tuple[Undetermined, ...]:
        """The quantities that the measurements do not determine."""
        return self.path.undetermined

    @property
    def scenario(self) -> Scenario:
        """The fitted scenario."""
        from bentpipe.scenario import Scenario

        return Scenario(Path(f"{self.name}.toml"), text=self.toml)

    @property
    def progress_series(self) -> str:
        """The series of a flow that shows progress as the measurement does."""
        transfer = self.path.transfer
        return "acknowledged" if transfer is not None and transfer.at_sender else "delivered"

    def simulate(self) -> RunResult:
        """Run the fitted scenario with the series that a figure beside the measurement needs."""
        from bentpipe.results import run

        resolved = self.scenario.resolved()
        flow = resolved["flows"][0]["name"]
        seconds = float(resolved["duration_s"])
        probes = {
            "series": [f"{flow}.{self.progress_series}", f"{flow}.measured_rtt"],
            "interval": f"{max(1.0, seconds * 1e3 / _SAMPLES):.0f} ms",
        }
        return run(self.scenario.with_settings({"probes": probes}))

    @property
    def measured_goodput_bps(self) -> float | None:
        """Goodput of the measured transfer, or None if none was measured."""
        transfer = self.path.transfer
        if transfer is None or transfer.duration_s <= 0 or not len(transfer.delivered_bytes):
            return None
        return float(8 * transfer.delivered_bytes[-1] / transfer.duration_s)

    def rows(self) -> Iterator[tuple[str, str, str, str, str]]:
        """Yield quantity, estimate, interval, source and method of each estimate, as text."""
        from bentpipe.fit.scenario_text import format_estimate, format_interval

        for each in self.estimates.values():
            if not each.key.endswith(".least"):
                value, interval = format_estimate(each), format_interval(each)
                yield each.key, value, interval, each.source, each.method

    def to_data(self, simulated: RunResult | None = None) -> dict[str, Any]:
        """Return the fit as plain data, with the goodput of its simulation if there is one."""
        goodput = None
        if simulated is not None:
            goodput = sum(flow.goodput_bps for flow in simulated.summary.flows)
        return {
            "scenario": self.name,
            "files": [
                {
                    "path": str(each.path),
                    "kind": each.kind,
                    "summary": each.summary,
                    "notes": list(each.notes),
                }
                for each in self.measurements
            ],
            "estimates": [each.to_data() for each in self.estimates.values()],
            "undetermined": [each.to_data() for each in self.undetermined],
            "goodput_bps": {"measured": self.measured_goodput_bps, "simulated": goodput},
            "toml": self.toml,
        }


def fit(
    *files: str | os.PathLike[str],
    name: str = "fitted",
    progress: FitProgress | None = None,
) -> Fit:
    """Fit a scenario to measurements of a network.

    Parameters
    ----------
    files
        Captures of a transfer, output of ping, JSON of iperf3 or IRTT, flent's data. The kind is
        recognised by the content.
    name
        Name of the scenario.
    progress
        Called with a file, the bytes of it that were read, and its size.

    Raises
    ------
    RequestError
        A file is none of these, or holds too little; or the name is none.
    """
    from bentpipe.fit.combination import combine
    from bentpipe.fit.recognition import read_measurement
    from bentpipe.fit.scenario_text import scenario_text

    if not files:
        raise RequestError("expected at least one measurement")
    if len(files) > _MOST_FILES:
        raise RequestError(f"expected at most {_MOST_FILES} measurements, got {len(files)}")
    if not NAME.fullmatch(name):
        raise RequestError(f'expected a name of letters, digits, "-" and "_", got {name!r}')
    measurements = []
    for file in files:
        path = Path(file)
        told = None if progress is None else _bound(progress, path)
        measurements.append(read_measurement(path, told))
    # The first capture provides the flow, or else the first transfer.
    measurements.sort(key=lambda each: each.kind != "capture")
    combined = combine(measurements)
    return Fit(
        name=name,
        measurements=tuple(measurements),
        path=combined,
        toml=scenario_text(combined, measurements, name=name),
    )


def _bound(progress: FitProgress, path: Path) -> Callable[[int, int], None]:
    return lambda read, whole: progress(path, read, whole)
