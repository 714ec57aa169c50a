"""Figures 2 to 11 of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.plot import published
from bentpipe.plot.style import COLOURS, MARKERS, legend_below, new_axes
from bentpipe.studies.columns import Columns, append
from bentpipe.studies.study import Figure, Value
from bentpipe.studies.vanzara2014 import cells
from bentpipe.studies.vanzara2014.cells import (
    BOTH_DIRECTIONS,
    MAIN,
    NAMES,
    RULES,
    Setting,
    Transfer,
)
from bentpipe.studies.vanzara2014.evidence import TIMES_S, Evidence, Spread
from bentpipe.studies.vanzara2014.settings import FIGURE_7_HYBLA_MBPS, MARKS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

# Without the diamond, which marks published values.
SYMBOLS: Final = tuple(each for each in MARKERS if each != "D")
BOTH: Final = "Enhanced Hybla, CC 200 Mbit/s"
# Curves by name: rule, setting and line style. Dashes show a curve that another one covers.
_CURVES: Final[Mapping[str, tuple[str, Setting, str]]] = {
    **{NAMES[rule]: (rule, MAIN, "--" if rule == "enhanced-hybla" else "-") for rule in RULES},
    BOTH: ("enhanced-hybla", BOTH_DIRECTIONS, ":"),
}
_DIAMONDS: Final = "Diamonds: values of the paper's text, bounds at their value."
_BANDS = "Lines are medians over seeds, bands reach from quartile to quartile."


def figures(evidence: Evidence) -> Iterator[Figure]:
    """Yield every figure, numbered as in the paper and in the order of `every_cell`."""
    for number, rate in cells.FIGURES_2_TO_6.items():
        yield _over_time(evidence, number, rate)
    yield _round_trips(evidence)
    yield _error_rates(evidence)
    for number, rate in cells.FILES.items():
        yield _file_sizes(evidence, number, rate)


def exponent(rate: float) -> str:
    """Return a bit error rate as text: 0, 1e-7."""
    return f"{rate:.0e}".replace("e-0", "e-") if rate else "0"


def spread_rows(
    columns: Columns, spreads: Sequence[Spread], **keys: Value | Sequence[Value]
) -> None:
    """Append a row for each spread; a value that is not a list is repeated in all rows."""
    count = len(spreads)
    fixed: dict[str, Sequence[Value]] = {
        name: list(value) if isinstance(value, list | tuple) else [value] * count  # type: ignore[list-item]
        for name, value in keys.items()
    }
    append(
        columns,
        **fixed,
        goodput_median_bps=[each.median for each in spreads],
        goodput_lower_quartile_bps=[each.lower_quartile for each in spreads],
        goodput_upper_quartile_bps=[each.upper_quartile for each in spreads],
        runs=[each.runs for each in spreads],
    )


def draw_spreads(
    axes: Axes,
    x: Sequence[float],
    spreads: Sequence[Spread],
    *,
    index: int,
    label: str,
    style: str = "-",
) -> None:
    """Draw medians as a line with symbols, and quartiles as a band, in Mbit/s."""
    colour = COLOURS[index]
    axes.plot(
        x,
        [each.median / 1e6 for each in spreads],
        SYMBOLS[index],
        linestyle=style,
        color=colour,
        label=label,
    )
    axes.fill_between(
        x,
        [each.lower_quartile / 1e6 for each in spreads],
        [each.upper_quartile / 1e6 for each in spreads],
        color=colour,
        alpha=0.2,
        linewidth=0,
    )


def bound_bps(rate: float) -> float:
    """Return the rate of payload that errors leave of the link's rate."""
    return float(cells.CAPACITY_BPS * (1.0 - rate) ** (8 * cells.PACKET_BYTES))


def _curves(
    evidence: Evidence, rate: float, **fixed: int
) -> Iterator[tuple[str, str, Setting, Transfer]]:
    """Yield name, rule, setting and transfer of each simulated curve."""
    for name, (rule, setting, _) in _CURVES.items():
        transfer = Transfer(rule=rule, bit_error_rate=rate, setting=setting, **fixed)
        if evidence.has(transfer):
            yield name, rule, setting, transfer


def capacity_of(rule: str, setting: Setting) -> int | None:
    """Return the CC of a curve, in bit/s; None if its rule has none."""
    return setting.channel_capacity_bps if rule == "enhanced-hybla" else None


def mark_published(axes: Axes, figure: str) -> None:
    """Mark the values that the text gives for a figure."""
    x, y = zip(*MARKS[figure], strict=True)
    published.mark(axes, x, y)


def _over_time(evidence: Evidence, number: str, rate: float) -> Figure:
    columns: Columns = {}
    quartiles = {}
    for name, rule, setting, transfer in _curves(evidence, rate):
        rows = evidence.curves_bps(transfer)
        low, middle, high = quartiles[name] = np.percentile(rows, (25, 50, 75), axis=0)
        append(
            columns,
            congestion_control=[rule] * len(TIMES_S),
            channel_capacity_bps=[capacity_of(rule, setting)] * len(TIMES_S),
            time_s=TIMES_S.tolist(),
            goodput_median_bps=middle.tolist(),
            goodput_lower_quartile_bps=low.tolist(),
            goodput_upper_quartile_bps=high.tolist(),
            runs=[len(rows)] * len(TIMES_S),
        )

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for index, (name, (low, middle, high)) in enumerate(quartiles.items()):
            axes.plot(
                TIMES_S,
                middle / 1e6,
                SYMBOLS[index],
                linestyle=_CURVES[name][2],
                # Symbols of curves that coincide lie beside each other.
                markevery=(index, 6),
                color=COLOURS[index],
                label=name,
            )
            axes.fill_between(
                TIMES_S, low / 1e6, high / 1e6, color=COLOURS[index], alpha=0.2, linewidth=0
            )
        _bound(axes, bound_bps(rate))
        mark_published(axes, number)
        if rate >= 1e-6:
            axes.set_yscale("log")
        else:
            axes.set_ylim(0.0, 102.0)
        # Room for the marks at the end.
        axes.set_xlim(0.0, 1.02 * float(TIMES_S[-1]))
        axes.set(xlabel="time (s)", ylabel="cumulative goodput (Mbit/s)")
        legend_below(canvas, axes, columns=3)

    scale = " The axis is logarithmic here, not in the paper." if rate >= 1e-6 else ""
    return Figure(
        id=number,
        title=f"Performance for BER = {exponent(rate)}",
        caption="Goodput from the start to each time: 100 Mbit/s, 600 ms. "
        f"{_BANDS if rate else 'Nothing is random here: one run each.'} Dotted: the payload that "
        f"the link carries and errors leave. {_DIAMONDS}{scale}",
        columns=columns,
        draw=draw,
    )


def _bound(axes: Axes, bps: float) -> None:
    axes.axhline(bps / 1e6, color="grey", linestyle=":", label=f"bound: {bps / 1e6:.1f} Mbit/s")


# Outcomes of the seeds, by curve and by place on the x axis.
_Spreads = Mapping[str, Mapping[float, "Spread"]]


def _columns(spreads: _Spreads, x: str) -> Columns:
    """Return the numbers of a figure; `x` is the name of its x axis's column."""
    columns: Columns = {}
    for name, points in spreads.items():
        rule, setting, _ = _CURVES[name]
        spread_rows(
            columns,
            list(points.values()),
            congestion_control=rule,
            channel_capacity_bps=capacity_of(rule, setting),
            **{x: list(points)},
        )
    return columns


def _draw_curves(axes: Axes, spreads: _Spreads, *, unit: float = 1.0) -> None:
    """Draw the curves; `unit` is the unit of the x axis."""
    for index, (name, points) in enumerate(spreads.items()):
        draw_spreads(
            axes,
            [x / unit for x in points],
            list(points.values()),
            index=index,
            label=name,
            style=_CURVES[name][2],
        )


def _round_trips(evidence: Evidence) -> Figure:
    rate = cells.FIGURE_7_RATE
    spreads: dict[str, dict[float, Spread]] = {}
    for round_trip_ms in cells.FIGURE_7_ROUND_TRIPS_MS:
        for name, _, _, transfer in _curves(evidence, rate, round_trip_ms=round_trip_ms):
            spreads.setdefault(name, {})[round_trip_ms] = evidence.spread(transfer)
    columns = _columns(spreads, "round_trip_ms")

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        _draw_curves(axes, spreads)
        published.band(axes, FIGURE_7_HYBLA_MBPS, FIGURE_7_HYBLA_MBPS, label="paper: Hybla")
        axes.set_ylim(0.0, 102.0)
        axes.set(xlabel="round-trip time (ms)", ylabel="goodput over 600 s (Mbit/s)")
        legend_below(canvas, axes, columns=3)

    return Figure(
        id="7",
        title=f"Effect of the round-trip time on goodput, BER = {exponent(rate)}",
        caption=f"Ten minutes each. {_BANDS} The initial threshold is one bandwidth-delay product "
        "of each round-trip time; the queue is the same for all.",
        columns=columns,
        draw=draw,
    )


def _error_rates(evidence: Evidence) -> Figure:
    spreads: dict[str, dict[float, Spread]] = {}
    for rate in cells.FIGURE_8_RATES:
        for name, _, _, transfer in _curves(evidence, rate):
            spreads.setdefault(name, {})[rate] = evidence.spread(transfer)
    columns = _columns(spreads, "bit_error_rate")

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        _draw_curves(axes, spreads)
        rates = np.geomspace(1e-11, 1e-5, 60)
        axes.plot(
            rates,
            [bound_bps(float(each)) / 1e6 for each in rates],
            color="grey",
            linestyle=":",
            label="bound: what errors leave",
        )
        mark_published(axes, "8")
        axes.set(xscale="log", ylim=(0.0, 102.0))
        axes.set(xlabel="bit error rate", ylabel="goodput over 600 s (Mbit/s)")
        legend_below(canvas, axes, columns=3)

    return Figure(
        id="8",
        title="Effect of the BER on goodput, RTT = 600 ms",
        caption=f"Ten minutes each. {_BANDS} {_DIAMONDS}",
        columns=columns,
        draw=draw,
    )


def _seeds_shown(rate: float) -> str:
    if not rate:
        return "Nothing is random here: one run each."
    small = cells.SMALL_FILE_BYTES // 1_000_000
    return f"{_BANDS} Sizes up to {small} MB have {len(cells.SMALL_FILE_SEEDS)} seeds."


def _file_sizes(evidence: Evidence, number: str, rate: float) -> Figure:
    spreads: dict[str, dict[float, Spread]] = {}
    for size in cells.FILE_BYTES:
        for name, _, _, transfer in _curves(evidence, rate, file_bytes=size):
            spreads.setdefault(name, {})[size] = evidence.spread(transfer)
    columns = _columns(spreads, "file_bytes")

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        _draw_curves(axes, spreads, unit=1e6)
        mark_published(axes, number)
        axes.set_xscale("log")
        ticks = {0.05: "50 kB", 0.5: "500 kB", 5: "5 MB", 50: "50 MB", 500: "500 MB", 2000: "2 GB"}
        axes.set_xticks(list(ticks), labels=list(ticks.values()))
        axes.set_xticks([], minor=True)
        axes.set_ylim(0.0, 102.0)
        axes.set(xlabel="file size", ylabel="goodput (Mbit/s)")
        legend_below(canvas, axes, columns=3)

    return Figure(
        id=number,
        title=f"Performance for different file sizes, RTT = 600 ms, BER = {exponent(rate)}",
        caption="File over time from the first data segment to the last byte. "
        f"{_seeds_shown(rate)} {_DIAMONDS}",
        columns=columns,
        draw=draw,
    )
