"""Figures beyond the paper: settings, other rules, wrong capacities, shared links."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from matplotlib.patches import Rectangle

from bentpipe.plot.style import COLOURS, MARKERS, legend_below, new_axes
from bentpipe.studies.study import Figure
from bentpipe.studies.vanzara2014 import cells
from bentpipe.studies.vanzara2014.cells import CONTESTS, FLOW_COUNTS, NAMES, Contest, Transfer
from bentpipe.studies.vanzara2014.figures import (
    Columns,
    append,
    bound_bps,
    draw_spreads,
    exponent,
    spread_rows,
)
from bentpipe.studies.vanzara2014.settings import PUBLISHED, Sweep

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.vanzara2014.evidence import Evidence, Sharing, Spread


def judgement_figures(evidence: Evidence, sweep: Sweep) -> Iterator[Figure]:
    """Yield every figure that is not in the paper, in the order of `every_cell`."""
    yield _settings(sweep)
    yield _beside_others(evidence)
    yield _wrong_capacities(evidence)
    yield _sharing(evidence)


def _settings(sweep: Sweep) -> Figure:
    columns: Columns = {}
    for name in sweep.names:
        for each in PUBLISHED:
            measured = sweep.measured[name, each.label]
            append(
                columns,
                setting=[name],
                published=[each.label],
                published_mbps=[each.mbps],
                relation=[each.relation],
                measured_mbps=[measured],
                reproduced=[each.holds(measured)],
            )

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.grid(visible=False)
        for column, name in enumerate(sweep.names):
            for row, each in enumerate(PUBLISHED):
                mbps = sweep.measured[name, each.label]
                held = each.holds(mbps)
                axes.add_patch(_square(column, row, COLOURS[5] if held else "#FFFFFF"))
                axes.text(
                    column,
                    row,
                    f"{mbps:.3g}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    weight="bold" if held else "normal",
                    color="#000000" if held else "#555555",
                )
        totals = [f"{name}\n{sweep.reproduced(name)}" for name in sweep.names]
        axes.set_xticks(range(len(totals)), labels=[each.replace(" ", "\n") for each in totals])
        axes.set_yticks(range(len(PUBLISHED)), labels=[each.label for each in PUBLISHED])
        axes.tick_params(length=0, labelsize=8)
        axes.set_xlim(-0.5, len(totals) - 0.5)
        axes.set_ylim(len(PUBLISHED) - 0.5, -0.5)
        axes.xaxis.tick_top()

    return Figure(
        id="A1",
        title="Published values by what the paper leaves open",
        caption="Goodputs in Mbit/s. Rows: what the paper's text says; columns: one departure each "
        "from our main setting (queue of 20,000 packets, every segment acknowledged, initial "
        "threshold of one bandwidth-delay product, a cut to a quarter, SACK with RACK, CC of 100 "
        "Mbit/s, the last bandwidth sample). Filled: reproduced, within "
        "20% (5% from 90 on) or on the right side. Below a column's name: how many of the "
        f"{len(PUBLISHED)}. The first seed of each.",
        columns=columns,
        draw=draw,
        width=13.0,
        height=6.0,
    )


def _square(column: int, row: int, colour: str) -> Rectangle:
    return Rectangle(
        (column - 0.5, row - 0.5), 1.0, 1.0, facecolor=colour, edgecolor="#DDDDDD", alpha=0.8
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
        axes.set_xscale("log")
        axes.set_yscale("log")
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


def with_capacity_share(factor: float, rate: float) -> Transfer:
    """Return ten minutes of Enhanced Hybla with this share of the capacity as its parameter."""
    setting = cells.MAIN if factor == 1.0 else cells.wrong_capacity(factor)
    return Transfer(rule="enhanced-hybla", bit_error_rate=rate, setting=setting)


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
            delay.plot(percent, delays[rate], MARKERS[index] + "-", color=COLOURS[index])
        for axes in (goodput, delay):
            axes.set_xlabel("what Enhanced Hybla is told\n(% of the link's 100 Mbit/s)")
            axes.set_xticks(percent, labels=[f"{each:.0f}" for each in percent])
        goodput.set_ylim(bottom=0.0)
        goodput.set_ylabel("goodput over 600 s (Mbit/s)")
        delay.set_ylabel("mean queueing delay (ms)")
        delay.set_ylim(bottom=0.0)
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
            marker = MARKERS[index] + "-"
            jain.plot(list(found), [each.jain for each in found.values()], marker, **style)
            waits = [1e3 * each.queueing_delay_s for each in found.values()]
            delay.plot(list(found), waits, marker, **style)
        jain.axhline(0.5, color="grey", linestyle=":")
        jain.set_ylim(0.0, 1.05)
        jain.set_ylabel("Jain's index")
        delay.set_ylim(bottom=0.0)
        delay.set_ylabel("mean queueing delay (ms)")
        for axes in (jain, delay):
            axes.set_xlabel("flows, half of each kind")
            axes.set_xticks(list(FLOW_COUNTS))
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
