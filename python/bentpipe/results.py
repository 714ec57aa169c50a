"""Results of a run: a typed summary, and the probes as columns.

The summary's fields are those of `bentpipe run --json`. Fields that a later version adds are kept
in `extra`, so that nothing in the simulator's output is lost.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Protocol, TypeVar

from bentpipe.scenario import Scenario, captures, checked_seed
from bentpipe.series import Series as Series

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import polars as pl
    import pyarrow as pa
    import xarray as xr
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    from bentpipe._native import RunOutput
    from bentpipe.frames import Table
    from bentpipe.probe_file import FiledSeries

_Record = TypeVar("_Record")


@dataclass(frozen=True, kw_only=True)
class RoundTrip:
    """Round-trip times that a sender measured, in milliseconds."""

    min: float | None
    mean: float | None
    p95: float | None
    max: float | None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FlowResult:
    """One flow. Times are seconds since the run began, rates bits per second.

    `outcome` is the state at the end, and `ended_s` the time when it was reached:

    - "finished": every byte was delivered
    - "running": the run ended first
    - "gave up": an end received nothing for too long
    - "refused" or "reset"

    `limited_s` is the time in seconds for which each limit kept the sender from sending more:
    "slow_start", "congestion_window", "receive_window", "send_buffer", "application", "pacing" or
    "recovery". `path_mtu` counts events of path MTU discovery: "icmp_errors", "reductions" of the
    segment size, and "probes" with longer segments. Application metrics (`pages`, `page_load_ms`,
    `responses`, `calls`, `call_mos`, `messages`, ...) are in `extra`, by the names of
    docs/results.md: `flow.extra["page_load_ms"]["mean"]`.
    """

    name: str
    outcome: str
    bytes_delivered: int
    start_s: float
    finish_s: float | None
    goodput_bps: float
    segments_sent: int
    segments_retransmitted: int
    timeouts: int
    fast_recoveries: int
    rtt_ms: RoundTrip
    first_data_s: float | None = None
    ended_s: float | None = None
    limited_s: Mapping[str, float] = field(default_factory=dict)
    path_mtu: Mapping[str, int] = field(default_factory=dict)
    # Of the timeouts, those of a SYN or FIN alone; None for a kernel's TCP.
    control_timeouts: int | None = None
    # Counts that a kernel's TCP does not report: they are 0 above.
    unknown: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def transfer_time_s(self) -> float | None:
        """Time from the first data segment sent to the last byte delivered, in seconds.

        None while unfinished. The handshake is not included, as in ns-2 and the closed forms.
        """
        if self.finish_s is None or self.first_data_s is None:
            return None
        return self.finish_s - self.first_data_s

    @property
    def limits(self) -> dict[str, float]:
        """Limits of the sender, as shares of the time in which it had data to send.

        The largest comes first; limits that never applied are left out.
        """
        return limit_shares(self.limited_s)


def limit_shares(spent_s: Mapping[str, float]) -> dict[str, float]:
    """Return the times of limits as shares of their sum, the largest first."""
    busy_s = sum(spent_s.values())
    most_first = sorted(spent_s.items(), key=lambda each: -each[1])
    return {name: float(spent / busy_s) for name, spent in most_first if spent > 0.0}


@dataclass(frozen=True, kw_only=True)
class CountersResult:
    """Counters of a direction's parts: packets dropped, acknowledgments removed or restored.

    Names are such as "acks_removed", "kept_duplicate", "refused_high_mark", "dropped_early".
    """

    total: Mapping[str, int]
    flows: Mapping[str, Mapping[str, int]]

    def of(self, name: str, *, flow: str | None = None) -> int:
        """Return a counter, of one flow or of all together; zero if there is no such counter."""
        counted = self.total if flow is None else self.flows.get(flow, {})
        return counted.get(name, 0)


@dataclass(frozen=True, kw_only=True)
class WaitResult:
    """Waiting time of packets in the queue, in milliseconds; None before the first packet."""

    mean: float | None
    p95: float | None
    max: float | None
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ClassResult:
    """Counts of one class of a queue; "others" is the traffic that belongs to no class."""

    name: str
    packets_sent: int
    bytes_sent: int
    packets_dropped: int
    queue_max_packets: int
    wait_ms: WaitResult
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class AccessResult:
    """Capacity on demand of one direction: requested, granted and used.

    `wait_ms` is the time between a packet's arrival at an idle terminal and its first usable grant.
    `unused_share` is the unused share of the granted capacity; None if nothing was granted.
    `faded_bytes` are of grants in a mode that the path no longer allowed. `granted_air_bytes` is
    the granted capacity without the free one, and `used_air_bytes` the capacity used for sending.
    Both are time on the carrier, expressed as the bytes that fit into it in clear sky. These three
    are None where the rate does not change. `carrier` is the shared carrier; None for a private
    carrier.
    """

    requests: int
    asked_rate_based_bytes: int
    asked_volume_based_bytes: int
    granted_bytes: int
    granted_constant_bytes: int
    granted_rate_based_bytes: int
    granted_volume_based_bytes: int
    granted_free_bytes: int
    used_bytes: int
    unused_share: float | None
    wait_ms: WaitResult
    faded_bytes: int | None = None
    granted_air_bytes: int | None = None
    used_air_bytes: int | None = None
    carrier: str | None = None
    carrier_rate_bps: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def promised_bytes(self) -> int:
        """Carrier capacity reserved for this terminal, used or not, in bytes in clear sky."""
        if self.granted_air_bytes is not None:
            return self.granted_air_bytes
        return (
            self.granted_constant_bytes
            + self.granted_rate_based_bytes
            + self.granted_volume_based_bytes
        )

    @property
    def occupied_bytes(self) -> int:
        """Carrier capacity in which this terminal has sent, in bytes in clear sky."""
        return self.used_bytes if self.used_air_bytes is None else self.used_air_bytes


@dataclass(frozen=True, kw_only=True)
class DirectionResult:
    """One direction of a link; `name` is such as "satellite.forward".

    Every packet is accounted for. The sum of offered, duplicated and copied packets
    (`extra["packets_copied"]`, of a broadcast link) equals the sum of those delivered, lost,
    dropped, removed, undecodable and in flight. In flight means queued or in transit when the run
    ended.

    `counters` is there only where a direction has parts that count. `bytes_delivered` are bytes as
    transmitted on the link, with compressed headers and tunnel headers. `classes` are those of a
    queue of kind "priority" or "weighted". `access` is there only with capacity on demand.
    """

    name: str
    utilization: float
    packets_delivered: int
    packets_lost: int
    packets_dropped: int
    queue_max_packets: int
    queue_max_bytes: int
    bytes_delivered: int = 0
    packets_offered: int = 0
    packets_duplicated: int = 0
    packets_removed: int = 0
    packets_undecodable: int = 0
    packets_in_flight: int = 0
    counters: CountersResult | None = None
    classes: tuple[ClassResult, ...] = ()
    access: AccessResult | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    def count(self, name: str, *, flow: str | None = None) -> int:
        """Return one of `counters`, such as "acks_removed"; zero if there is no such counter."""
        return 0 if self.counters is None else self.counters.of(name, flow=flow)


@dataclass(frozen=True, kw_only=True)
class GatewayResult:
    """A gateway; its counters depend on its kind.

    `connections` has such as "split", "passed" and "refused"; `bytes_held` has "now" and "max".
    Further counters of its kind are in `extra`.
    """

    name: str
    kind: str = "router"
    connections: Mapping[str, int] = field(default_factory=dict)
    bytes_held: Mapping[str, int] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class GroupResult:
    """The flows of one table together. `outcomes` counts the flows by outcome.

    Application metrics are in `extra`, as in that of a flow; distributions have `percentiles`, from
    0 to 100.
    """

    name: str
    flows: int
    outcomes: Mapping[str, int]
    bytes_delivered: int
    goodput_bps: float
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Summary:
    """A run as a whole. `wall_s` is the only field that differs between equal runs."""

    results_version: int
    scenario: str
    seed: int
    duration_s: float
    wall_s: float
    packet_hops: int
    flows: tuple[FlowResult, ...]
    links: tuple[DirectionResult, ...]
    gateways: tuple[GatewayResult, ...]
    groups: tuple[GroupResult, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def from_json(cls, text: str) -> Summary:
        """Read the object that `bentpipe run --json` prints."""
        data = dict(json.loads(text))
        data["flows"] = tuple(_flow(item) for item in data["flows"])
        data["links"] = tuple(_direction(item) for item in data["links"])
        data["groups"] = tuple(_record(GroupResult, item) for item in data.get("groups", ()))
        data["gateways"] = tuple(_record(GatewayResult, item) for item in data["gateways"])
        return _record(cls, data)


class Output(Protocol):
    """Output of the simulator: the summary, and the probes that are not in a file."""

    @property
    def summary_json(self) -> str:
        """The summary as one JSON object."""
        ...

    @property
    def series(self) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64], str]]:
        """Times in seconds, values and unit by probe."""
        ...


class RunResult:
    """A finished run: `summary`, `series`, and methods that write them to files."""

    def __init__(
        self,
        output: Output,
        *,
        filed: FiledSeries | None = None,
        cores: int = 1,
        undivided: str | None = None,
    ) -> None:
        self._output = output
        self._filed = filed
        self._cores = cores
        self._undivided = undivided

    def __repr__(self) -> str:
        from bentpipe.notebook import text_of

        return text_of(self)

    def _repr_html_(self) -> str:
        from bentpipe.notebook import html_of

        return html_of(self)

    def plot(self) -> Figure:
        """Return the run in one figure: goodput of all flows or groups, queues, losses.

        Notebooks show the matplotlib figure, and `savefig` writes it.

        Raises
        ------
        ValueError
            The run recorded none of these.
        """
        from bentpipe.notebook import figure_of

        return figure_of(self)

    def to_pandas(self, table: Table = "flows") -> pd.DataFrame:
        """Return a table as a pandas DataFrame: one row for each flow, link direction, or sample.

        `table` is one of:

        - "flows"
        - "groups": the flows of one table of the scenario together
        - "links"
        - "gateways"
        - "series"

        Nested values of a summary have columns of joined names: `rtt_ms_mean`, `page_load_ms_p95`.

        Raises
        ------
        ValueError
            There is no such table.
        """
        from bentpipe.frames import to_pandas

        return to_pandas(self, table)

    def to_polars(self, table: Table = "flows") -> pl.DataFrame:
        """Return a table as a polars DataFrame, as `to_pandas` does.

        Raises
        ------
        ValueError
            There is no such table.
        ImportError
            polars is not installed: it is an optional dependency.
        """
        from bentpipe.frames import to_polars

        return to_polars(self, table)

    def to_xarray(self) -> xr.Dataset:
        """Return the probes as an xarray Dataset: one variable each, over `time_s`.

        NaN where a probe has no sample. Probes of events, such as retransmissions, have their own
        time coordinate.
        """
        from bentpipe.frames import to_xarray

        return to_xarray(self.series)

    @property
    def summary_json(self) -> str:
        """The summary as the simulator wrote it: one JSON object."""
        return self._output.summary_json

    @cached_property
    def summary(self) -> Summary:
        """The summary, typed."""
        return Summary.from_json(self.summary_json)

    @property
    def cores(self) -> int:
        """The number of cores that the run used."""
        return self._cores

    @property
    def undivided(self) -> str | None:
        """Why the run used one core although more were requested."""
        return self._undivided

    @property
    def units(self) -> Mapping[str, str]:
        """The units of the probes, by name; samples in a file are not read."""
        if self._filed is not None:
            return self._filed.units
        return {name: unit for name, (_, _, unit) in self._output.series.items()}

    @cached_property
    def series(self) -> Mapping[str, Series]:
        """The probes, by name such as "download.congestion_window".

        A run that wrote its probes to a file reads each of them from the file on access.
        """
        if self._filed is not None:
            return self._filed
        return {
            name: Series(times_s=times, values=values, unit=unit)
            for name, (times, values, unit) in self._output.series.items()
        }

    def outlines(self) -> Mapping[str, Series]:
        """Return the probes for a plot; those in a file are reduced to the points it can show."""
        from bentpipe.series import outline

        return {name: outline(self.series, name) for name in self.series}

    def flow(self, name: str | None = None) -> FlowResult:
        """Return the flow of that name, or the only one.

        Raises
        ------
        KeyError
            There is no such flow, or no name was given and there are several flows.
        """
        flows = self.summary.flows
        if name is None and len(flows) == 1:
            return flows[0]
        for flow in flows:
            if flow.name == name:
                return flow
        raise KeyError(f"no flow {name!r}; there are: {', '.join(flow.name for flow in flows)}")

    def link(self, name: str) -> DirectionResult:
        """Return the direction of a link of that name, such as "satellite.forward".

        Raises
        ------
        KeyError
            There is no such direction.
        """
        links = self.summary.links
        for link in links:
            if link.name == name:
                return link
        raise KeyError(f"no link {name!r}; there are: {', '.join(link.name for link in links)}")

    def write_parquet(self, path: Path | IO[bytes]) -> None:
        """Write the probes in tidy form: columns series, time_s, value, unit."""
        import pyarrow.parquet as pq

        pq.write_table(tidy(self.series), path)


class ProbesNotWrittenError(OSError):
    """The run ended, but its probes could not be written; `result` is the rest of the result."""

    def __init__(self, cause: OSError, result: RunResult) -> None:
        super().__init__(cause.errno, cause.strerror, cause.filename)
        self.result = result


def run(
    scenario: Scenario | str | Path | Mapping[str, Any],
    *,
    seed: int | None = None,
    settings: Mapping[str, object] | None = None,
    pcap: Iterable[tuple[str, Path]] = (),
    snap: int | None = None,
    default_probes: bool = True,
    progress: Callable[[float, float], None] | None = None,
    probes_to: Path | IO[bytes] | None = None,
    no_probes: bool = False,
    cores: int | None = None,
) -> RunResult:
    """Simulate a scenario.

    Parameters
    ----------
    scenario
        A scenario, a file, the name of a ready-made scenario, or a dict with the contents of a
        file.
    seed
        The seed to use instead of the file's.
    settings
        Keys to change, such as `{"hosts.server.tcp.congestion_control": "reno"}`.
    pcap
        Links to capture, each with the pcapng file to write.
    snap
        The most bytes that captures keep of each packet; all by default.
    default_probes
        Whether a scenario that names no probes gets those that the plots need. Each has two to four
        thousand samples where the run takes two seconds or more, however soon it ends. A scenario
        that names the probe of a queue gets the longest queue between two samples, too.
    progress
        Called some ten times a second with the simulated time so far and the duration, in seconds.
    probes_to
        A Parquet file to which the probes are written during the run, in tidy form. They are not
        kept in memory, and the limit on their number is fifty times as high.
    no_probes
        Whether nothing is recorded, whatever the scenario names.
    cores
        The most cores to use. A network is divided at links with a constant delay; the results are
        the same. `RunResult.cores` is the number used, and `RunResult.undivided` why it is one. By
        default all cores for a network of a thousand flows or more, and one for others.

    Raises
    ------
    RequestError, ScenarioError
        There is no such scenario, or it is wrong.
    RunError
        The run failed. If a congestion control of your own failed, its exception is the cause.
    ProbesNotWrittenError
        `probes_to` could not be written; its `result` has everything else.
    """
    from bentpipe import _native, congestion

    scenario = Scenario.of(scenario).with_settings(settings or {})
    seed, captured = checked_seed(seed), captures(pcap)

    def simulate(take: Callable[[Any], None] | None) -> RunOutput:
        return _native.run(
            scenario.path,
            text=scenario.text,
            seed=seed,
            overrides=list(scenario.settings),
            pcap=captured,
            snap_length=snap,
            default_probes=default_probes,
            controls=congestion.registered(),
            progress=progress,
            no_series=no_probes,
            take_records=take,
            cores=cores,
        )

    if probes_to is None or no_probes:
        output = simulate(None)
        return RunResult(output, cores=output.cores, undivided=output.undivided)
    from bentpipe.probe_file import ProbeWriter

    with ProbeWriter(probes_to) as writer:
        output = simulate(writer.take)
    if writer.error is not None:
        raise ProbesNotWrittenError(writer.error, RunResult(output))
    return RunResult(output, filed=writer.filed(), undivided=output.undivided)


def tidy(series: Mapping[str, Series]) -> pa.Table:
    """Return the probes in one table: series, time_s, value, unit."""
    from bentpipe.probe_file import tidy

    return tidy(series)


def _flow(data: Mapping[str, Any]) -> FlowResult:
    unknown = tuple(name for name in _COUNTS if data[name] is None)
    counts = dict.fromkeys(unknown, 0)
    typed = {"rtt_ms": _record(RoundTrip, data["rtt_ms"]), "unknown": unknown}
    return _record(FlowResult, {**data, **counts, **typed})


_COUNTS = ("segments_sent", "segments_retransmitted", "timeouts", "fast_recoveries")


def _direction(data: Mapping[str, Any]) -> DirectionResult:
    counters = data.get("counters")
    typed = None if counters is None else CountersResult(**counters)
    classes = tuple(_class(item) for item in data.get("classes", ()))
    access = data.get("access")
    asked = None if access is None else _waiting(AccessResult, access)
    parts = {"counters": typed, "classes": classes, "access": asked}
    return _record(DirectionResult, {**data, **parts})


def _class(data: Mapping[str, Any]) -> ClassResult:
    return _waiting(ClassResult, data)


def _waiting(kind: type[_Record], data: Mapping[str, Any]) -> _Record:
    return _record(kind, {**data, "wait_ms": _record(WaitResult, data["wait_ms"])})


def _record(kind: type[_Record], data: Mapping[str, Any]) -> _Record:
    """Build a record; fields that it does not declare go into `extra`."""
    build: Callable[..., _Record] = kind
    names = {each.name for each in fields(kind)}  # type: ignore[arg-type]
    known = {key: value for key, value in data.items() if key in names}
    extra = {key: value for key, value in data.items() if key not in names}
    return build(**known, extra=extra)
