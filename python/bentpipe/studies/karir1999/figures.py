"""Figures 3 to 7 of the paper, and additional ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from matplotlib.patches import FancyBboxPatch

from bentpipe.plot import published
from bentpipe.plot.style import COLOURS, MARKERS, legend_below, new_axes
from bentpipe.studies.columns import Columns, add, append, empty
from bentpipe.studies.karir1999 import cells, open_settings, tables
from bentpipe.studies.karir1999.cells import (
    GATEWAYS,
    LARGE_WINDOWS,
    NAMES,
    NETWORKS,
    SATELLITE,
    TERRESTRIAL,
    Download,
    paper,
)
from bentpipe.studies.study import Figure, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.evidence import Floats
    from bentpipe.studies.karir1999.evidence import Evidence

STYLES = ("-", "--", "-.", ":")


def figures(evidence: Evidence) -> list[Figure | Table]:
    """Return every figure and table, numbered as the paper numbers them."""
    sizes = {cells.SIZES[0]: "A3", cells.SIZES[1]: "A4"}
    return [
        _figure_3(),
        _figure_4(evidence),
        _figure_5(evidence),
        _figure_6(evidence),
        _figure_7(evidence),
        tables.open_parameters(evidence),
        _windows(evidence),
        *(tables.remedies(evidence, size, number) for size, number in sizes.items()),
        tables.pages(evidence),
        tables.handovers(evidence),
        tables.fleet(evidence),
        tables.ten_numbers(evidence),
        tables.search(),
        tables.load(evidence),
    ]


def _figure_3() -> Figure:
    nodes = ["server", "gateway\n(hub)", "gateway\n(terminal)", "client"]
    links = [
        f"LAN\n10 Mbit/s, {cells.LAN_DELAY_MS:g} ms",
        "T1: 1.536 Mbit/s\n0 or 250 ms",
        "LAN\n10 Mbit/s, 1 ms",
    ]

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.set_axis_off()
        axes.grid(visible=False)
        for index, name in enumerate(nodes):
            gateway = index in (1, 2)
            axes.add_patch(
                FancyBboxPatch(
                    (3.0 * index, 0.0),
                    1.4,
                    0.8,
                    boxstyle="round,pad=0.05",
                    facecolor="#FBE3D6" if gateway else "#DCE9F5",
                    edgecolor=COLOURS[1] if gateway else COLOURS[0],
                )
            )
            axes.text(3.0 * index + 0.7, 0.4, name, ha="center", va="center")
        for index, text in enumerate(links):
            start = 3.0 * index + 1.45
            axes.plot(
                [start, start + 1.5], [0.4, 0.4], color="black", lw=2.0 if index == 1 else 1.0
            )
            axes.text(start + 0.75, 0.5, text, ha="center", va="bottom", fontsize=8)
        legs = ["host-gateway", "gateway-gateway", "gateway-host"]
        for index, text in enumerate(legs):
            x = 3.0 * index + 0.7
            axes.annotate(
                "", xy=(x + 2.9, -0.35), xytext=(x + 0.1, -0.35), arrowprops={"arrowstyle": "<->"}
            )
            axes.text(x + 1.5, -0.45, text, ha="center", va="top", fontsize=8)
        axes.set(xlim=(-0.2, 10.6), ylim=(-0.9, 1.3))

    return Figure(
        id="3",
        title="The network",
        caption="A connection, and with enhanced gateways the three that it is split into. The "
        "paper doesn't give the LANs' rate and delay; the server's delay is the one that the "
        "search finds (table A9).",
        columns={"node": [name.replace("\n", " ") for name in nodes]},
        draw=draw,
        height=2.4,
    )


Curves = dict[str, tuple["Floats", "Floats"]]
Panels = dict[str, Curves]

# The two settings that the figures show side by side.
_SETTINGS: dict[str, Callable[[str], Download]] = {
    "as stated": paper,
    "found": open_settings.found,
}
_TITLES = {"as stated": "windows as stated", "found": "windows as found"}


def _panels(
    of: Callable[[Download], tuple[Floats, Floats]], scale: float, value: str
) -> tuple[Columns, Panels]:
    columns: Columns = {}
    panels: Panels = {}
    for setting, cell in _SETTINGS.items():
        panels[setting] = {}
        for network in NETWORKS:
            times, values = of(cell(network))
            panels[setting][network] = (times, values * scale)
            append(
                columns,
                setting=[setting] * len(times),
                network=[network] * len(times),
                time_s=times.tolist(),
                **{value: (values * scale).tolist()},
            )
    return columns, panels


def _draw(
    canvas: Canvas, panels: Panels, label: str, *, until_s: float, top: float
) -> Sequence[Axes]:
    """Draw the networks' curves for both settings, in panels side by side."""
    both = new_axes(canvas, columns=2)
    for axes, (setting, curves) in zip(both, panels.items(), strict=True):
        for index, (network, (times, values)) in enumerate(curves.items()):
            # Curves coincide: terrestrial is wide and light, and each has markers of its own.
            wide = network == TERRESTRIAL
            axes.plot(
                times,
                values,
                "-" if wide else STYLES[index],
                color=COLOURS[index],
                linewidth=4.0 if wide else 1.4,
                alpha=0.5 if wide else 1.0,
                marker=MARKERS[index],
                markersize=5.0,
                markevery=_marked(times, index, until_s),
                label=NAMES[network],
            )
        axes.set(title=_TITLES[setting], xlabel="time (s)", xlim=(0.0, until_s), ylim=(0.0, top))
    both[0].set_ylabel(label)
    return both


def _marked(times: Floats, index: int, until_s: float) -> list[int]:
    """Return the samples with a marker: eight over the axis, at other times for each curve."""
    step = until_s / 8.0
    at = np.arange((index + 0.5) * step / len(NETWORKS), times[-1], step)
    return [int(each) for each in np.searchsorted(times, at)]


def _smooth(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return means over ten samples."""
    count = len(values) // 10 * 10
    return times[:count].reshape(-1, 10)[:, -1], values[:count].reshape(-1, 10).mean(axis=1)


def _longest_s(evidence: Evidence) -> float:
    return max(evidence.end_s(of(network)) for of in _SETTINGS.values() for network in NETWORKS)


def _figure_4(evidence: Evidence) -> Figure:
    columns, panels = _panels(lambda cell: _smooth(*evidence.throughput(cell)), 1e-3, "kbps")
    until_s = 1.02 * _longest_s(evidence)

    def draw(canvas: Canvas) -> None:
        both = _draw(canvas, panels, "throughput (kbit/s)", until_s=until_s, top=1700.0)
        for axes in both:
            published.band(axes, *cells.PAPER_KBPS[SATELLITE], label="paper: no gateways")
            published.band(axes, *cells.PAPER_KBPS[LARGE_WINDOWS], label="paper: large windows")
        legend_below(canvas, both[0], columns=3)

    return Figure(
        id="4",
        title="Throughput of the link between the gateways",
        caption="Means over 10 s, headers included, until the end of each download. Left with the "
        f"windows that the paper states, right {open_settings.found_words()}. The paper has "
        "terrestrial and gateways close to the capacity of 1536 kbit/s.",
        columns=columns,
        draw=draw,
        width=9.0,
    )


def _figure_5(evidence: Evidence) -> Figure:
    until_s = round(1.5 * _longest_s(evidence))
    columns, panels = _panels(lambda cell: evidence.utilisation(cell, until_s), 100.0, "percent")

    def draw(canvas: Canvas) -> None:
        label = "time with 100% utilisation (%)"
        both = _draw(canvas, panels, label, until_s=until_s, top=105.0)
        legend_below(canvas, both[0], columns=2)

    return Figure(
        id="5",
        title="Utilisation of the server",
        caption="As the paper defines it: the share of the time so far in which the server is "
        "fully utilised, that is, has data of the file to send. A curve falls from the end of its "
        "transfer on; the sooner, the more the server can do for others. Windows as in figure 4.",
        columns=columns,
        draw=draw,
        width=9.0,
    )


def _figure_6(evidence: Evidence) -> Figure:
    columns, panels = _panels(
        lambda cell: evidence.curve(cell, "download.smoothed_rtt"), 1e3, "smoothed_rtt_ms"
    )
    until_s = 1.02 * _longest_s(evidence)
    top = 1.1 * max(
        float(np.nanmax(values)) for curves in panels.values() for _, values in curves.values()
    )

    def draw(canvas: Canvas) -> None:
        both = _draw(canvas, panels, "smoothed round-trip time (ms)", until_s=until_s, top=top)
        for axes in both:
            for network, label in (
                (SATELLITE, "paper: no gateways"),
                (TERRESTRIAL, "paper: terrestrial (150), gateways (75)"),
                (GATEWAYS, None),
            ):
                published.band(axes, *cells.PAPER_RTT_MS[network], label=label)
        legend_below(canvas, both[0], columns=3)

    return Figure(
        id="6",
        title="The round trip that the server measures",
        caption="Published: 75 ms with gateways, 150 ms in the terrestrial network, slightly more "
        "than 500 ms without gateways. Windows as in figure 4.",
        columns=columns,
        draw=draw,
        width=9.0,
    )


def _figure_7(evidence: Evidence) -> Figure:
    times = {
        setting: [evidence.download_s(cell(network)) for network in NETWORKS]
        for setting, cell in _SETTINGS.items()
    }
    longest = max(time for each in times.values() for time in each)
    gateways = times["found"][NETWORKS.index(GATEWAYS)]

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.grid(visible=False, axis="y")
        for offset, (setting, of) in enumerate(times.items()):
            y = [index + 0.34 * offset - 0.27 for index in range(len(NETWORKS))]
            axes.barh(y, of, color=COLOURS[offset], height=0.32, label=_TITLES[setting])
            for at, time in zip(y, of, strict=True):
                axes.text(time + 8.0, at, f"{time:.0f} s", va="center", fontsize=8)
        for network, faster in cells.PAPER_FASTER.items():
            y = [NETWORKS.index(network) + 0.36] * 2
            ends = [each * gateways for each in faster]
            axes.plot(ends, y, color="black", linewidth=1.0)
            label = "paper, as multiples of the gateways' time" if network == SATELLITE else None
            published.mark(axes, ends, y, label=label)
        axes.set_yticks(range(len(NETWORKS)), labels=[NAMES[network] for network in NETWORKS])
        axes.invert_yaxis()
        axes.set(xlabel="download time (s)", xlim=(0.0, 1.15 * max(longest, 4.0 * gateways)))
        legend_below(canvas, axes, columns=2)

    return Figure(
        id="7",
        title="The time of the download",
        caption="50 Mbyte. The paper gives ratios: with gateways 3 to 4 times faster than without, "
        "and 2 to 3 times faster than with large windows; drawn from the time with gateways.",
        columns={
            "setting": [setting for setting in times for _ in NETWORKS],
            "network": [network for _ in times for network in NETWORKS],
            "download_s": [time for of in times.values() for time in of],
        },
        draw=draw,
        height=4.0,
    )


def _windows(evidence: Evidence) -> Figure:
    sweep = {
        cells.TERRESTRIAL: cells.WINDOWS,
        cells.SATELLITE: cells.WINDOWS,
        cells.LARGE_WINDOWS: cells.LARGE_SWEEP,
    }
    columns = empty("network", "window_bytes", "link_bps", "rtt_ms")
    for network, windows in sweep.items():
        for window in windows:
            cell = Download(network=network, window=window)
            add(columns, network, window, evidence.link_bps(cell), evidence.rtt_ms(cell))

    def draw(canvas: Canvas) -> None:
        left, right = new_axes(canvas, columns=2)
        for index, network in enumerate(sweep):
            rows = [n for n, name in enumerate(columns["network"]) if name == network]
            windows = [float(columns["window_bytes"][n] or 0) / 1024 for n in rows]
            for axes, name, scale in ((left, "link_bps", 1e-3), (right, "rtt_ms", 1.0)):
                values = [scale * float(columns[name][n] or 0) for n in rows]
                axes.plot(
                    windows,
                    values,
                    MARKERS[index] + "-",
                    color=COLOURS[index],
                    label=NAMES[network],
                )
        for network in (SATELLITE, LARGE_WINDOWS):
            published.band(left, *cells.PAPER_KBPS[network], label=None)
        for network in (TERRESTRIAL, SATELLITE):
            published.band(right, *cells.PAPER_RTT_MS[network], label=None)
        left.set_ylabel("throughput (kbit/s)")
        right.set_ylabel("round trip at the server (ms)")
        for axes in (left, right):
            axes.set(xlabel="window between the hosts (KiB)", xlim=(0.0, 200.0), ylim=(0.0, None))
        legend_below(canvas, left, columns=3)

    return Figure(
        id="A2",
        title="Which window gives the paper's numbers",
        caption="Black: the paper's 500 and 800 to 900 kbit/s; 150 and 500 to 600 ms. Each "
        "network by itself; table A9 has all four together.",
        columns=columns,
        draw=draw,
        width=8.6,
    )
