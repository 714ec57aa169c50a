"""Future work of the paper (section 7): users, merged traffic, broadcast, memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.plot.style import COLOURS, legend_below, new_axes
from bentpipe.prediction.multicast import HEADER_BYTES, completion
from bentpipe.prediction.network import directions
from bentpipe.scenario import Scenario
from bentpipe.studies.columns import add, empty
from bentpipe.studies.study import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from bentpipe.results import GroupResult
    from bentpipe.studies.gaid1998.evidence import Evidence

BROADCAST: Final = "broadcast"
_HUNDRED: Final = "hybrid-hundred"
# The gateway's memory with the windows that it offers to servers, as in
# examples/hybrid-memory.toml.
MEMORIES: Final = ("256 KiB", "512 KiB", "1 MiB", "2 MiB", "4 MiB")
WINDOWS: Final = ("8 kB", "16 kB", "64 kB", "256 kB")
_ROUTER: Final = "a router"
_GATEWAYS: Final[Mapping[str, Mapping[str, object]]] = {
    "the hybrid gateway": {},
    _ROUTER: {"gateways.hub": {"kind": "router"}},
}
# Tables of flows whose goodput is shown, by ready-made network, with their labels.
_GOODPUTS: Final[Mapping[str, Mapping[str, str]]] = {
    _HUNDRED: {"download": "100 homes,\ntogether"},
    "hybrid-internet": {"download": "across the\nInternet"},
    "hybrid-mixed": {"home": "a hybrid\nhome", "office": "an office\nby wire"},
    "hybrid-web": {"download": "a download\nbeside pages"},
}
_WAITS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "page load": ("pages", ("page_load_ms",)),
    "first byte": ("pages", ("first_byte_ms",)),
    "answer": ("questions", ("responses", "time_ms")),
}


@dataclass(frozen=True, kw_only=True)
class FutureWork:
    """A ready-made network with this gateway; with `memory`, for a minute."""

    network: str
    hub: str = ""
    memory: str = ""
    window: str = ""

    def scenario(self) -> Scenario:
        """Return the network, without probes."""
        settings = {"probes.series": [], **_GATEWAYS.get(self.hub, {})}
        if self.memory:
            settings["duration"] = "60 s"
            settings["gateways.hub.memory"] = self.memory
            settings["gateways.hub.receive_buffer"] = self.window
        return Scenario.find(self.network).with_settings(settings)


def future_cells() -> list[FutureWork]:
    """Return every run of the figures."""
    cells = [FutureWork(network=network, hub=hub) for network in _GOODPUTS for hub in _GATEWAYS]
    bounded = (_bounded(memory, window) for window in WINDOWS for memory in MEMORIES)
    return [*cells, FutureWork(network=BROADCAST), *bounded]


def _bounded(memory: str, window: str) -> FutureWork:
    return FutureWork(network=_HUNDRED, memory=memory, window=window)


def _group(evidence: Evidence, cell: FutureWork, table: str) -> GroupResult:
    groups = evidence.result(cell).summary.groups
    return next(group for group in groups if group.name == table)


def _wait_s(group: GroupResult, path: tuple[str, ...]) -> float:
    told = group.extra
    for key in path:
        told = told[key]
    return float(told["p95"]) / 1e3


def merged_figure(evidence: Evidence) -> Figure:
    """Return the figure of merged traffic and more users."""
    columns = empty("network", "what", "at the hub", "goodput_bps", "95% within (s)")
    goodputs: dict[str, list[float]] = {hub: [] for hub in _GATEWAYS}
    waits: dict[str, list[float]] = {hub: [] for hub in _GATEWAYS}
    for hub in _GATEWAYS:
        for network, tables in _GOODPUTS.items():
            for table, name in tables.items():
                rate = _group(evidence, FutureWork(network=network, hub=hub), table).goodput_bps
                goodputs[hub].append(rate)
                add(columns, network, name.replace("\n", " "), hub, rate, None)
        web = FutureWork(network="hybrid-web", hub=hub)
        for what, (table, path) in _WAITS.items():
            seconds = _wait_s(_group(evidence, web, table), path)
            waits[hub].append(seconds)
            add(columns, web.network, what, hub, None, seconds)
    names = [name for tables in _GOODPUTS.values() for name in tables.values()]

    def draw(canvas: Canvas) -> None:
        above, below = new_axes(canvas, rows=2)
        width = 0.8 / len(_GATEWAYS)
        for axes, values, labels in ((above, goodputs, names), (below, waits, list(_WAITS))):
            places = np.arange(len(labels), dtype=float)
            for index, (hub, heights) in enumerate(values.items()):
                shift = (index - (len(values) - 1) / 2) * width
                scaled = [each / 1e6 for each in heights] if axes is above else heights
                axes.bar(places + shift, scaled, width, color=COLOURS[index], label=hub)
            axes.set_xticks(places, labels)
        above.set(ylim=(0.0, None), ylabel="goodput (Mbit/s)")
        below.set(ylim=(0.0, None), ylabel="hybrid-web:\n95% within (s)")
        legend_below(canvas, above, columns=2)

    return Figure(
        id="A4",
        title="More users, merged traffic, the web",
        caption="The ready-made networks hybrid-hundred, hybrid-internet, hybrid-mixed and "
        "hybrid-web, each with its hybrid gateway and with a router in its place; one seed. A "
        "hundred homes share 10 Mbit/s of satellite; one host's packets cross the Internet; a "
        "hybrid home and an office by wire share a server's line; pages and questions go beside a "
        "download.",
        columns=columns,
        draw=draw,
        height=5.6,
    )


def broadcast_figure(evidence: Evidence) -> Figure:
    """Return the figure of periodic broadcast."""
    cell = FutureWork(network=BROADCAST)
    resolved = cell.scenario().resolved()
    flow = next(each for each in resolved["flows"] if each["channel"] is not None)
    known = directions(resolved["links"], duration_s=resolved["duration_s"])
    route = [known[name] for name in flow["route"]["forward"]]
    said = completion(flow["app"], route=route, header_bytes=HEADER_BYTES[resolved["ip"]])
    files = _group(evidence, cell, flow["table"]).extra["files"]
    whole = 100.0 * files["count"] / files["begun"]
    times_s = [each / 1e3 for each in files["time_ms"]["percentiles"]]
    shares = [float(share) for share in np.linspace(0.0, whole, len(times_s))]

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.plot(times_s, shares, color=COLOURS[0], label=f"run: {whole:.1f}% become whole")
        axes.plot(
            said.times_s,
            100.0 * said.shares,
            "--",
            color=COLOURS[1],
            label=f"closed form: {100.0 * said.shares[-1]:.1f}%",
        )
        axes.set(
            xlim=(0.0, None),
            ylim=(0.0, 100.0),
            xlabel="time since the file's start (s)",
            ylabel="share of the files that are whole (%)",
        )
        legend_below(canvas, axes, columns=2)

    return Figure(
        id="A5",
        title="Periodic broadcast: one packet on the satellite for a hundred dishes",
        caption="When dishes have a file of 358 datagrams that is sent twice over, each losing 1% "
        "by itself (the ready-made network broadcast, one seed): all files to all dishes, and the "
        "closed form for independent losses.",
        columns={"time_s": list(times_s), "whole_percent": list(shares)},
        draw=draw,
    )


def memory_figure(evidence: Evidence) -> Figure:
    """Return the figure of goodput at a bounded memory."""
    columns = empty("memory", "window", "goodput_bps")
    curves: dict[str, list[float]] = {}
    for window in WINDOWS:
        for memory in MEMORIES:
            rate = _group(evidence, _bounded(memory, window), "download").goodput_bps
            curves.setdefault(window, []).append(rate)
            add(columns, memory, window, rate)

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for (window, rates), colour, marker in zip(curves.items(), COLOURS, "osD^", strict=False):
            scaled = [rate / 1e6 for rate in rates]
            axes.plot(MEMORIES, scaled, marker=marker, color=colour, label=f"{window} offered")
        axes.set(
            ylim=(0.0, None),
            xlabel="the gateway's memory",
            ylabel="goodput of a hundred homes (Mbit/s)",
        )
        legend_below(canvas, axes, columns=4)

    return Figure(
        id="A9",
        title="The most goodput at a bounded memory",
        caption="The ready-made network hybrid-hundred for 60 s, by the gateway's memory and the "
        "window that it offers to each server; one seed. What is offered is promised: a "
        "bandwidth-delay product (610 KiB) is nearly enough for all, and small windows share a "
        "smaller memory best.",
        columns=columns,
        draw=draw,
    )
