"""Figures beyond the paper: settings, other rules, wrong capacities, shared links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from bentpipe.plot import published
from bentpipe.plot.style import COLOURS, legend_below, new_axes
from bentpipe.studies.columns import Columns, append
from bentpipe.studies.open_settings import Row, committed
from bentpipe.studies.study import Figure, Table
from bentpipe.studies.vanzara2014 import cells
from bentpipe.studies.vanzara2014.cells import (
    CONTESTS,
    FLOW_COUNTS,
    NAMES,
    Contest,
    Transfer,
    with_capacity_share,
)
from bentpipe.studies.vanzara2014.evidence import SECONDS
from bentpipe.studies.vanzara2014.figures import (
    SYMBOLS,
    bound_bps,
    draw_spreads,
    exponent,
    spread_rows,
)
from bentpipe.studies.vanzara2014.open_settings import SEARCH, departures
from bentpipe.studies.vanzara2014.settings import MARKS

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas
    from numpy.typing import NDArray

    from bentpipe.studies.vanzara2014.evidence import Evidence, Sharing, Spread


def judgement_figures(evidence: Evidence) -> Iterator[Figure | Table]:
    """Yield every figure and table that is not in the paper, in the order of `every_cell`."""
    yield _settings()
    yield _beside_others(evidence)
    yield _wrong_capacities(evidence)
    yield _sharing(evidence)
    yield _start(evidence)


# Of the paper's rules, only Enhanced Hybla has goodputs from here on.
_ENHANCED_MBPS: Final = 90
# Joint departures shown beside those of one and of two factors.
_BEST_SHOWN: Final = 10


def shown_rows() -> list[Row]:
    """Return the settings of table A1: departures of one factor or of two, and the best of all."""
    rows = committed("vanzara2014")
    few = [row for row in rows if len(departures(row.setting)) <= 2]
    best = SEARCH.best(rows)[:_BEST_SHOWN]
    few.sort(key=lambda row: (len(departures(row.setting)), -row.within))
    return [*best, *(row for row in few if row not in best)]


def _settings() -> Table:
    columns: Columns = {}
    for row in shown_rows():
        append(
            columns,
            departures=["; ".join(departures(row.setting)) or "none"],
            reproduced=[row.within],
            **{name: [float(f"{row.measured[name]:.3g}")] for name in row.measured},
        )
    return Table(
        id="A1",
        title="Published goodputs by what the paper leaves open",
        caption="Goodputs in Mbit/s; each column's head is the paper's value. Rows are departures "
        "from our main setting (SACK with RACK, an initial threshold of one bandwidth-delay "
        "product, a cut to a quarter, Westwood+ with at least half, CC of 100 Mbit/s, a queue of "
        "20,000 packets, every segment acknowledged): first the best of all combinations, then one "
        "factor, then two. Reproduced: how many of the "
        f"{len(SEARCH.published)} values lie within 20% (5% from 90 on) or on the right side. The "
        "first seed of each; open_settings.csv has every combination.",
        columns=columns,
    )


def _beside_others(evidence: Evidence) -> Figure:
    rules = ("enhanced-hybla", *cells.OTHER_RULES)
    # 0 has no place on a logarithmic axis.
    rates = [rate for rate in cells.RATES if rate]
    spreads = {
        rule: [evidence.spread(Transfer(rule=rule, bit_error_rate=rate)) for rate in cells.RATES]
        for rule in rules
    }
    columns: Columns = {}
    for rule, found in spreads.items():
        spread_rows(columns, found, congestion_control=rule, bit_error_rate=list(cells.RATES))

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for index, (rule, found) in enumerate(spreads.items()):
            draw_spreads(axes, rates, found[1:], index=index, label=NAMES[rule])
        bounds = [bound_bps(rate) / 1e6 for rate in rates]
        axes.plot(rates, bounds, color="grey", linestyle=":", label="bound: what errors leave")
        enhanced = [point for point in MARKS["8"] if point[1] >= _ENHANCED_MBPS]
        published.mark(axes, *zip(*enhanced, strict=True), label="paper: Enhanced Hybla")
        axes.set(xscale="log", yscale="log")
        axes.set(xlabel="bit error rate", ylabel="goodput over 600 s (Mbit/s)")
        legend_below(canvas, axes, columns=4)

    return Figure(
        id="A2",
        title="Enhanced Hybla beside others",
        caption="Figure 8's network. Lines are medians over seeds, bands reach from quartile to "
        "quartile. Not in the paper.",
        columns=columns,
        draw=draw,
    )


FACTORS = (0.5, 0.8, 1.0, 1.2, 2.0)


def _wrong_capacities(evidence: Evidence) -> Figure:
    columns: Columns = {}
    spreads: dict[float, list[Spread]] = {}
    delays: dict[float, list[float]] = {}
    rates = [rate for rate in cells.RATES if evidence.has(with_capacity_share(FACTORS[0], rate))]
    for rate in rates:
        transfers = [with_capacity_share(factor, rate) for factor in FACTORS]
        spreads[rate] = [evidence.spread(each) for each in transfers]
        delays[rate] = [_queueing_ms(evidence, each) for each in transfers]
        spread_rows(
            columns,
            spreads[rate],
            told_share_of_capacity=list(FACTORS),
            bit_error_rate=rate,
            queueing_delay_ms=list(delays[rate]),
        )

    def draw(canvas: Canvas) -> None:
        goodput, delay = new_axes(canvas, columns=2)
        percent = [100.0 * factor for factor in FACTORS]
        for index, rate in enumerate(rates):
            draw_spreads(
                goodput, percent, spreads[rate], index=index, label=f"BER {exponent(rate)}"
            )
            delay.plot(percent, delays[rate], SYMBOLS[index] + "-", color=COLOURS[index])
        for axes in (goodput, delay):
            axes.set_xlabel("what Enhanced Hybla is told\n(% of the link's 100 Mbit/s)")
            axes.set_xticks(percent, labels=[f"{each:.0f}" for each in percent])
        goodput.set(ylim=(0.0, None), ylabel="goodput over 600 s (Mbit/s)")
        delay.set(ylabel="mean queueing delay (ms)", ylim=(0.0, None))
        legend_below(canvas, goodput, columns=5)

    return Figure(
        id="A3",
        title="What a wrong capacity costs Enhanced Hybla",
        caption="The queue holds 20,000 packets, 2.4 s. Lines are medians over seeds, bands reach "
        "from quartile to quartile. Not in the paper.",
        columns=columns,
        draw=draw,
        width=9.0,
    )


def _queueing_ms(evidence: Evidence, transfer: Transfer) -> float:
    return evidence.median_of(
        transfer, lambda flow: (flow.rtt_ms.mean or 0.0) - (flow.rtt_ms.min or 0.0)
    )


def contests(evidence: Evidence) -> dict[tuple[str, str], dict[int, Sharing]]:
    """Return the shares of links, by subject and rival, then by the number of flows."""
    found: dict[tuple[str, str], dict[int, Sharing]] = {}
    for subject, rival in CONTESTS:
        for flows in FLOW_COUNTS:
            sharing = evidence.sharing(Contest(subject=subject, rival=rival, flows=flows))
            if sharing is not None:
                found.setdefault((subject, rival), {})[flows] = sharing
    return found


def _sharing(evidence: Evidence) -> Figure:
    found_contests = contests(evidence)
    columns: Columns = {}
    for (subject, rival), found in found_contests.items():
        append(
            columns,
            subject=[subject] * len(found),
            rival=[rival] * len(found),
            flows=list(found),
            jain_index=[each.jain for each in found.values()],
            subject_goodput_bps=[each.subject_bps for each in found.values()],
            rival_goodput_bps=[each.rival_bps for each in found.values()],
            queueing_delay_s=[each.queueing_delay_s for each in found.values()],
        )

    def draw(canvas: Canvas) -> None:
        jain, delay = new_axes(canvas, columns=2)
        for index, ((subject, rival), found) in enumerate(found_contests.items()):
            style: dict[str, Any] = {
                "color": COLOURS[index],
                "label": f"{NAMES[subject]} and {NAMES[rival]}",
            }
            marker = SYMBOLS[index] + "-"
            jain.plot(list(found), [each.jain for each in found.values()], marker, **style)
            waits = [1e3 * each.queueing_delay_s for each in found.values()]
            delay.plot(list(found), waits, marker, **style)
        jain.axhline(0.5, color="grey", linestyle=":")
        jain.set(ylim=(0.0, 1.05), ylabel="Jain's index")
        delay.set(ylim=(0.0, None), ylabel="mean queueing delay (ms)")
        for axes in (jain, delay):
            axes.set(xlabel="flows, half of each kind", xticks=list(FLOW_COUNTS))
        legend_below(canvas, jain, columns=2)

    return Figure(
        id="A4",
        title="Sharing the link",
        caption="Ten minutes, no errors, a queue of one bandwidth-delay product (5000 packets, "
        "600 ms). Dotted: one kind of flow has everything. Not in the paper.",
        columns=columns,
        draw=draw,
        width=9.0,
    )


# Seconds from the start in figure A5.
_START_S: Final = 60
_STARTS: Final = {
    "configured": (cells.MAIN, "-"),
    "estimated": (cells.ESTIMATED, "--"),
}


def _start(evidence: Evidence) -> Figure:
    times_s = SECONDS[:_START_S]
    columns: Columns = {}
    curves: dict[tuple[str, float], NDArray[np.float64]] = {}
    for name, (setting, _) in _STARTS.items():
        for rate in cells.RATES:
            transfer = Transfer(rule="enhanced-hybla", bit_error_rate=rate, setting=setting)
            if not evidence.has(transfer):
                continue
            rows = [evidence.received_bits(each, times_s) for each in evidence.transfers(transfer)]
            curves[name, rate] = np.median(rows, axis=0) / times_s
            append(
                columns,
                capacity=[name] * _START_S,
                bit_error_rate=[rate] * _START_S,
                time_s=times_s.tolist(),
                goodput_median_bps=curves[name, rate].tolist(),
                runs=[len(rows)] * _START_S,
            )

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for (name, rate), bps in curves.items():
            index = cells.RATES.index(rate)
            axes.plot(
                times_s,
                bps / 1e6,
                SYMBOLS[index],
                linestyle=_STARTS[name][1],
                markevery=(5 * index % 10, 10),
                color=COLOURS[index],
                label=f"BER {exponent(rate)}, CC {name}",
            )
        axes.set(xlim=(0.0, float(_START_S)), ylim=(0.0, 102.0))
        axes.set(xlabel="time (s)", ylabel="cumulative goodput (Mbit/s)")
        legend_below(canvas, axes, columns=2)

    return Figure(
        id="A5",
        title="Start of Enhanced Hybla without a known capacity",
        caption="Estimated: CC is the median rate of the first 31 pairs of acknowledgments, and "
        "the initial threshold is Hoe's estimate. Configured: 100 Mbit/s, and a threshold of one "
        "bandwidth-delay product. Medians over seeds. The paper leaves the start to future work.",
        columns=columns,
        draw=draw,
    )
