"""Figures 3 to 7 of the paper, and additional ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.patches import FancyBboxPatch, Rectangle

from bentpipe.plot.style import COLOURS, MARKERS, legend_below, new_axes
from bentpipe.studies.karir1999 import cells
from bentpipe.studies.karir1999.cells import (
    ERROR_RATES,
    HOSTS,
    NAMES,
    NETWORKS,
    OPEN,
    RATES_BPS,
    REMEDIES,
    REMEDY_NAMES,
    Download,
    Remedy,
    opened,
    paper,
)
from bentpipe.studies.karir1999.evidence import jain
from bentpipe.studies.study import Figure, Value

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.evidence import Floats
    from bentpipe.studies.karir1999.evidence import Evidence

Columns = dict[str, list[Value]]
STYLES = ("-", "--", "-.", ":")


def figures(evidence: Evidence) -> list[Figure]:
    """Return every figure, numbered as the paper numbers them."""
    sizes = {cells.SIZES[0]: "A3", cells.SIZES[1]: "A4"}
    return [
        _figure_3(),
        _figure_4(evidence),
        _figure_5(evidence),
        _figure_6(evidence),
        _figure_7(evidence),
        _open_parameters(evidence),
        _windows(evidence),
        *(_table(evidence, size, number) for size, number in sizes.items()),
        _pages(evidence),
        _handovers(evidence),
        _fleet(evidence),
    ]


def _figure_3() -> Figure:
    nodes = ["server", "gateway\n(hub)", "gateway\n(terminal)", "client"]
    links = ["LAN\n10 Mbit/s, 1 ms", "T1: 1.536 Mbit/s\n0 or 250 ms", "LAN\n10 Mbit/s, 1 ms"]

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
        axes.set_xlim(-0.2, 10.6)
        axes.set_ylim(-0.9, 1.3)

    return Figure(
        id="3",
        title="The network",
        caption="A connection, and with enhanced gateways the three that it is split into. The "
        "paper doesn't give the LANs' rate and delay.",
        columns={"node": [name.replace("\n", " ") for name in nodes]},
        draw=draw,
        height=2.4,
    )


def _curves(
    of: Callable[[Download], tuple[Floats, Floats]], scale: float
) -> tuple[Columns, dict[str, tuple[Floats, Floats]]]:
    columns: Columns = {"network": [], "time_s": [], "value": []}
    found = {}
    for network in NETWORKS:
        times, values = of(paper(network))
        found[network] = (times, values * scale)
        columns["network"] += [network] * len(times)
        columns["time_s"] += times.tolist()
        columns["value"] += (values * scale).tolist()
    return columns, found


def _draw(axes: Axes, curves: dict[str, tuple[Floats, Floats]]) -> None:
    for index, (network, (times, values)) in enumerate(curves.items()):
        axes.plot(times, values, STYLES[index], color=COLOURS[index], label=NAMES[network])
    axes.set_xlabel("time (s)")
    axes.set_xlim(0.0, 450.0)
    axes.set_ylim(bottom=0.0)


def _smooth(times: Floats, values: Floats) -> tuple[Floats, Floats]:
    """Return means over ten samples."""
    count = len(values) // 10 * 10
    return times[:count].reshape(-1, 10)[:, -1], values[:count].reshape(-1, 10).mean(axis=1)


def _figure_4(evidence: Evidence) -> Figure:
    columns, curves = _curves(lambda cell: _smooth(*evidence.throughput(cell)), 1e-3)

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        _draw(axes, curves)
        for level, text in ((500.0, "paper: satellite"), (850.0, "paper: large windows")):
            axes.axhline(level, color="grey", linestyle=":", linewidth=1.0)
            axes.text(445.0, level + 15.0, text, ha="right", fontsize=8, color="grey")
        axes.set_ylabel("throughput (kbit/s)")
        legend_below(canvas, axes, columns=2)

    return Figure(
        id="4",
        title="Throughput of the link between the gateways",
        caption="Means over 10 s, headers included. Windows as the paper states them.",
        columns=columns,
        draw=draw,
    )


def _figure_5(evidence: Evidence) -> Figure:
    def busy(cell: Download) -> tuple[Floats, Floats]:
        times, sent = evidence.curve(cell, "download.sent")
        return times, sent / cells.FILE_BYTES

    columns, curves = _curves(busy, 100.0)

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        _draw(axes, curves)
        axes.set_ylabel("sent by the server (% of the file)")
        legend_below(canvas, axes, columns=2)

    return Figure(
        id="5",
        title="How long the server is busy with the file",
        caption="The server is utilised until its curve reaches the top.",
        columns=columns,
        draw=draw,
    )


def _figure_6(evidence: Evidence) -> Figure:
    columns, curves = _curves(lambda cell: evidence.curve(cell, "download.smoothed_rtt"), 1e3)

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        _draw(axes, curves)
        for level in (75.0, 150.0, 500.0):
            axes.axhline(level, color="grey", linestyle=":", linewidth=1.0)
        axes.set_ylabel("smoothed round-trip time (ms)")
        legend_below(canvas, axes, columns=2)

    return Figure(
        id="6",
        title="The round trip that the server measures",
        caption="Dotted: the paper's 75, 150 and 500 ms.",
        columns=columns,
        draw=draw,
    )


def _figure_7(evidence: Evidence) -> Figure:
    times = [evidence.download_s(paper(network)) for network in NETWORKS]

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.grid(visible=False, axis="y")
        for index, time in enumerate(times):
            axes.barh(index, time, color=COLOURS[index], height=0.6)
            axes.text(time + 4.0, index, f"{time:.0f} s", va="center")
        axes.set_yticks(range(len(NETWORKS)), labels=[NAMES[network] for network in NETWORKS])
        axes.invert_yaxis()
        axes.set_xlabel("download time (s)")
        axes.set_xlim(0.0, 1.15 * max(times))

    return Figure(
        id="7",
        title="The time of the download",
        caption="50 Mbyte, windows as the paper states them.",
        columns={"network": list(NETWORKS), "download_s": list(times)},
        draw=draw,
        height=2.8,
    )


def _grid(axes: Axes, texts: Sequence[Sequence[str]], shades: Sequence[Sequence[float]]) -> None:
    axes.grid(visible=False)
    for row, line in enumerate(texts):
        for column, text in enumerate(line):
            shade = shades[row][column]
            axes.add_patch(
                Rectangle(
                    (column - 0.48, row - 0.46), 0.96, 0.92, facecolor=COLOURS[5], alpha=shade
                )
            )
            axes.text(column, row, text, ha="center", va="center", fontsize=8)
    axes.set_xlim(-0.5, len(texts[0]) - 0.5)
    axes.set_ylim(len(texts) - 0.5, -0.5)
    axes.tick_params(length=0, labelsize=8)
    axes.xaxis.tick_top()
    for spine in axes.spines.values():
        spine.set_visible(False)


def _open_parameters(evidence: Evidence) -> Figure:
    columns: Columns = {
        "variant": [],
        "network": [],
        "link_bps": [],
        "rtt_ms": [],
        "download_s": [],
    }
    texts, shades = [], []
    for variant in OPEN:
        line, shade = [], []
        for network in NETWORKS:
            cell = opened(network, variant)
            bps, rtt = evidence.link_bps(cell), evidence.rtt_ms(cell)
            time = evidence.download_s(cell)
            line.append(f"{bps / 1e3:.0f} kbit/s\nRTT {rtt:.0f} ms, {time:.0f} s")
            shade.append(0.7 * bps / cells.LINK_BPS)
            for name, value in zip(columns, (variant, network, bps, rtt, time), strict=True):
                columns[name].append(value)
        texts.append(line)
        shades.append(shade)

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        _grid(axes, texts, shades)
        names = [NAMES[network].replace(", ", ",\n") for network in NETWORKS]
        axes.set_xticks(range(len(NETWORKS)), labels=names)
        axes.set_yticks(range(len(OPEN)), labels=list(OPEN))

    return Figure(
        id="A1",
        title="What the paper leaves open",
        caption="Throughput of the satellite link, mean round trip at the server, download time. "
        "The paper has 500 and 800 to 900 kbit/s for the second and the third.",
        columns=columns,
        draw=draw,
        width=8.6,
        height=4.6,
    )


def _windows(evidence: Evidence) -> Figure:
    sweep = {
        cells.TERRESTRIAL: cells.WINDOWS,
        cells.SATELLITE: cells.WINDOWS,
        cells.LARGE_WINDOWS: cells.LARGE_SWEEP,
    }
    columns: Columns = {"network": [], "window_bytes": [], "link_bps": [], "rtt_ms": []}
    for network, windows in sweep.items():
        for window in windows:
            cell = Download(network=network, window=window)
            columns["network"].append(network)
            columns["window_bytes"].append(window)
            columns["link_bps"].append(evidence.link_bps(cell))
            columns["rtt_ms"].append(evidence.rtt_ms(cell))

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
        left.axhspan(800.0, 900.0, color="grey", alpha=0.25, linewidth=0.0)
        left.axhline(500.0, color="grey", linestyle=":")
        right.axhline(150.0, color="grey", linestyle=":")
        right.axhline(500.0, color="grey", linestyle=":")
        left.set_ylabel("throughput (kbit/s)")
        right.set_ylabel("round trip at the server (ms)")
        for axes in (left, right):
            axes.set_xlabel("effective window (KiB)")
            axes.set_xlim(0.0, 200.0)
            axes.set_ylim(bottom=0.0)
        legend_below(canvas, left, columns=3)

    return Figure(
        id="A2",
        title="Which window gives the paper's numbers",
        caption="Grey: the paper's 500 and 800 to 900 kbit/s; 150 and 500 ms.",
        columns=columns,
        draw=draw,
        width=8.6,
    )


def _table(evidence: Evidence, size: int, number: str) -> Figure:
    rates = [rate for rate in RATES_BPS if evidence.has(_remedy("none", "today", rate, 0.0, size))]
    columns: Columns = {
        name: []
        for name in ("hosts", "remedy", "rate_bps", "bit_error_rate", "goodput_bps", "finish_s")
    }
    texts, shades, rows = [], [], []
    for hosts in HOSTS:
        for remedy in REMEDIES:
            line, shade = [], []
            for rate in rates:
                for errors in ERROR_RATES:
                    flow = evidence.flow(_remedy(remedy, hosts, rate, errors, size))
                    best = max(
                        evidence.flow(_remedy(each, other, rate, errors, size)).goodput_bps
                        for each in REMEDIES
                        for other in HOSTS
                    )
                    values = (hosts, remedy, rate, errors, flow.goodput_bps, flow.finish_s)
                    for name, value in zip(columns, values, strict=True):
                        columns[name].append(value)
                    if size == cells.SIZES[0]:
                        line.append(f"{flow.goodput_bps / 1e6:.3g}")
                    else:
                        line.append("-" if flow.finish_s is None else f"{flow.finish_s:.1f}")
                    shade.append(0.8 * flow.goodput_bps / best)
            texts.append(line)
            shades.append(shade)
            rows.append(f"{hosts}: {REMEDY_NAMES[remedy]}")
    heads = [
        f"{rate / 1e6:g} Mbit/s\n{'no errors' if errors == 0.0 else f'BER {errors:.0e}'}"
        for rate in rates
        for errors in ERROR_RATES
    ]

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        _grid(axes, texts, shades)
        axes.set_xticks(range(len(heads)), labels=heads)
        axes.set_yticks(range(len(rows)), labels=rows)

    large = size == cells.SIZES[0]
    what = (
        "50 Mbyte: goodput, Mbit/s" if large else "200 kbyte, as a page: seconds to the last byte"
    )
    return Figure(
        id=number,
        title=f"Which remedy buys what. {what}",
        caption="GEO, 250 ms each way, the server 10 ms behind the hub. Hosts of 1999: Reno, 64 "
        "Kbyte, no SACK; today's: CUBIC, SACK, 6 MiB. The darker, the closer to the best of its "
        "column. Not in the paper.",
        columns=columns,
        draw=draw,
        width=10.0,
        height=5.2,
    )


def _pages(evidence: Evidence) -> Figure:
    rows = list(dict.fromkeys((cell.hosts, cell.remedy) for cell in cells.PAGES))
    columns: Columns = {
        name: [] for name in ("hosts", "remedy", "bit_error_rate", "median_s", "nine_of_ten_s")
    }
    took = {cell: evidence.page_s(cell) for cell in cells.PAGES}
    best = {
        errors: min(took[cell][0] for cell in cells.PAGES if cell.bit_error_rate == errors)
        for errors in ERROR_RATES
    }
    lines: dict[tuple[str, str], list[str]] = {row: [] for row in rows}
    shades: dict[tuple[str, str], list[float]] = {row: [] for row in rows}
    for cell, (median, most) in took.items():
        columns["hosts"].append(cell.hosts)
        columns["remedy"].append(cell.remedy)
        columns["bit_error_rate"].append(cell.bit_error_rate)
        columns["median_s"].append(median)
        columns["nine_of_ten_s"].append(most)
        lines[cell.hosts, cell.remedy].append(f"{median:.2f}, {most:.2f}")
        shades[cell.hosts, cell.remedy].append(0.8 * best[cell.bit_error_rate] / median)
    heads = ["no errors" if each == 0.0 else f"BER {each:.0e}" for each in ERROR_RATES]
    return _grid_figure(
        "A5",
        "Which remedy buys what. Twenty web pages, one after the other: seconds",
        "The median of the pages, and nine of ten, over GEO at 10 Mbit/s: 3GPP's model of a page, "
        "1 s of reading, HTTP/2. Not in the paper.",
        columns,
        (heads, [f"{hosts}: {REMEDY_NAMES[remedy]}" for hosts, remedy in rows]),
        ([lines[row] for row in rows], [shades[row] for row in rows]),
    )


def _handovers(evidence: Evidence) -> Figure:
    columns: Columns = {
        name: [] for name in ("hosts", "remedy", "goodput_bps", "finish_s", "timeouts")
    }
    for cell in cells.HANDOVERS:
        flow = evidence.flow(cell)
        timeouts = evidence.count(cell, "facing", "timeouts") + flow.timeouts
        values = (cell.hosts, cell.remedy, flow.goodput_bps, flow.finish_s, timeouts)
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    best = max(evidence.flow(cell).goodput_bps for cell in cells.HANDOVERS)
    rows = list(dict.fromkeys(cell.remedy for cell in cells.HANDOVERS))
    lines, shades = [], []
    for remedy in rows:
        of = [cell for cell in cells.HANDOVERS if cell.remedy == remedy]
        rates = [evidence.flow(cell).goodput_bps for cell in of]
        lines.append([f"{rate / 1e6:.3g}" for rate in rates])
        shades.append([0.8 * rate / best for rate in rates])
    return _grid_figure(
        "A6",
        "Which remedy buys what. LEO with a handover every 15 s, 500 Mbyte: goodput, Mbit/s",
        "The link of the scenario leo-handover: 150 Mbit/s, 15 to 25 ms each way, 20 ms more and "
        "50 ms without a link at each handover, 0.01% lost in between; the server 10 ms behind the "
        "hub. Not in the paper.",
        columns,
        ([f"hosts: {hosts}" for hosts in HOSTS], [REMEDY_NAMES[remedy] for remedy in rows]),
        (lines, shades),
    )


def _fleet(evidence: Evidence) -> Figure:
    columns: Columns = {
        name: [] for name in ("remedy", "jain", "first_s", "last_s", "promised_bytes", "held_bytes")
    }
    for cell in cells.FLEET:
        flows = evidence.flows(cell)
        ends = [flow.finish_s for flow in flows if flow.finish_s is not None]
        values = (
            cell.remedy,
            jain([flow.goodput_bps for flow in flows]),
            min(ends) if ends else None,
            evidence.end_s(cell),
            evidence.most(cell, "bytes_promised", "max"),
            evidence.most(cell, "bytes_held", "max"),
        )
        for name, value in zip(columns, values, strict=True):
            columns[name].append(value)
    lines, shades = [], []
    for index in range(len(cells.FLEET)):
        fairness, first, last, promised, held = (
            columns[name][index]
            for name in ("jain", "first_s", "last_s", "promised_bytes", "held_bytes")
        )
        mib = [f"{int(each or 0) / 2**20:.1f}" for each in (promised, held)]
        lines.append([f"{fairness:.3f}", f"{first or 0.0:.0f} to {last:.0f}", *mib])
        shades.append([0.8 * float(fairness or 0.0), 0.0, 0.0, 0.0])
    heads = ["Jain's index", "done after, s", "promised at most, MiB", "held at most, MiB"]
    return _grid_figure(
        "A7",
        "Twenty downloads of 5 Mbyte over 10 Mbit/s, and the gateway's memory",
        "GEO, no errors, today's hosts. Promised: the windows offered less what the other side has "
        "confirmed, with what is set aside for persistent connections; of a hybrid gateway, only "
        "what it holds is counted. Not in the paper.",
        columns,
        (heads, [REMEDY_NAMES[cell.remedy] for cell in cells.FLEET]),
        (lines, shades),
    )


def _grid_figure(
    number: str,
    title: str,
    caption: str,
    columns: Columns,
    names: tuple[list[str], list[str]],
    values: tuple[list[list[str]], list[list[float]]],
) -> Figure:
    """Return a table as a figure: headings and rows, texts and shades."""
    (heads, rows), (texts, shades) = names, values

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        _grid(axes, texts, shades)
        axes.set_xticks(range(len(heads)), labels=heads)
        axes.set_yticks(range(len(rows)), labels=rows)

    return Figure(
        id=number,
        title=title,
        caption=caption,
        columns=columns,
        draw=draw,
        width=10.0,
        height=1.4 + 0.32 * len(rows),
    )


def _remedy(remedy: str, hosts: str, rate: int, errors: float, size: int) -> Remedy:
    return Remedy(remedy=remedy, hosts=hosts, rate_bps=rate, bit_error_rate=errors, size_bytes=size)
