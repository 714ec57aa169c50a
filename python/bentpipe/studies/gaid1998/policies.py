"""Policies of the gateway: ACK timeouts, recovery from losses, and their cost (section 7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.plot.style import COLOURS, MARKERS, legend_below, new_axes
from bentpipe.studies.columns import Columns, add, append, empty
from bentpipe.studies.gaid1998.cells import (
    ACK_TIMEOUTS_MS,
    ADAPTIVE,
    DURATION_S,
    FITTED,
    LOSS_SEEDS,
    RECOVERIES,
    SELECTIVE,
    SETS,
    SMALL_SEGMENTS,
    TIMER,
    UNLIMITED,
    Download,
    acknowledging,
    lossy,
    routed,
    traced,
)
from bentpipe.studies.gaid1998.figures import thinned
from bentpipe.studies.gaid1998.stalls import TIMEOUT_S, timer_stalls
from bentpipe.studies.study import Figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.gaid1998.evidence import Evidence

_POLICIES: Final[Mapping[str, str]] = {
    TIMER: "timer of 200 ms (the paper's)",
    ADAPTIVE: "adaptive timer",
    SELECTIVE: "SACK and congestion window",
    UNLIMITED: "SACK, no congestion window",
}
_ROUTER: Final = "no gateway"
# Price of a minute of the modem's line, in prices of 1 Mbyte on the satellite.
_LINE_PRICES: Final = tuple(float(price) for price in np.logspace(-2.0, 2.0, 81))


def policy_figures(evidence: Evidence) -> list[Figure]:
    """Return the figures of policies."""
    return [_ack_timeouts(evidence), _stalls(evidence), _recoveries(evidence), _costs(evidence)]


def _ack_timeouts(evidence: Evidence) -> Figure:
    sets = SETS[:4]
    received = {
        number: [
            evidence.received_bytes(acknowledging(number, timeout)) / 1e6
            for timeout in ACK_TIMEOUTS_MS
        ]
        for number in sets
    }
    columns: Columns = {}
    for number, amounts in received.items():
        append(
            columns,
            set=[number] * len(amounts),
            ack_timeout_ms=ACK_TIMEOUTS_MS,
            received_mbyte=amounts,
        )
    usual = ACK_TIMEOUTS_MS.index(200)
    gains = [amounts[0] / amounts[usual] - 1.0 for amounts in received.values()]

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for index, (number, amounts) in enumerate(received.items()):
            axes.plot(
                ACK_TIMEOUTS_MS,
                [100.0 * (amount / amounts[usual] - 1.0) for amount in amounts],
                marker=MARKERS[index],
                color=COLOURS[index],
                label=f"set {number}: {amounts[usual]:.1f} Mbyte with 200 ms",
            )
        axes.set_xscale("log")
        axes.set_xticks(ACK_TIMEOUTS_MS, [f"{timeout}" for timeout in ACK_TIMEOUTS_MS])
        axes.minorticks_off()
        axes.set(xlabel="ACK timeout of the gateway (ms)", ylabel="received, against 200 ms (%)")
        legend_below(canvas, axes, columns=2)

    return Figure(
        id="A10",
        title="The ACK timeout in every set",
        caption="What the host receives in 100 s, against the same set with 200 ms. Section 6.3.5 "
        "does not say which set its 10 ms belong to; set 5 is set 4 with 10 ms. With 10 ms the "
        f"sets bring {min(gains):+.1%} to {max(gains):+.1%}, most where slow start takes long.",
        columns=columns,
        draw=draw,
    )


_EXCERPT_S: Final = (30.0, 36.0)


def _stalls(evidence: Evidence) -> Figure:
    cells = {
        name: traced(bulk=endless)
        for name, endless in (("endless data", True), ("the paper's load", False))
    }
    curves = {
        name: evidence.curve(cell, "hub.acknowledged").known() for name, cell in cells.items()
    }
    found = {name: timer_stalls(evidence, cell) for name, cell in cells.items()}
    columns: Columns = {}
    for name, curve in curves.items():
        append(
            columns,
            load=[name] * len(curve.times_s),
            time_s=curve.times_s.tolist(),
            acknowledged_bytes=curve.values.tolist(),
        )

    def draw(canvas: Canvas) -> None:
        whole, excerpt = new_axes(canvas, rows=2)
        for index, (name, curve) in enumerate(curves.items()):
            drawn = thinned(curve, DURATION_S)
            whole.plot(
                drawn.times_s,
                drawn.values / 1e6,
                color=COLOURS[index],
                drawstyle="steps-post",
                label=name,
            )
            first = float(curve.at(_EXCERPT_S[0]))
            shown = (curve.times_s >= _EXCERPT_S[0] - 1.0) & (curve.times_s <= _EXCERPT_S[1])
            excerpt.plot(
                curve.times_s[shown],
                (curve.values[shown] - first) / 1e3,
                color=COLOURS[index],
                drawstyle="steps-post",
            )
        window = next(iter(found.values())).window_bytes / 1e3
        most = max(
            float(curve.at(_EXCERPT_S[1]) - curve.at(_EXCERPT_S[0])) for curve in curves.values()
        )
        excerpt.set_yticks(np.arange(0.0, most / 1e3 + window, 2 * window))
        whole.set(xlim=(0.0, DURATION_S), ylim=(0.0, None), ylabel="acknowledged (Mbyte)")
        excerpt.set(
            xlim=_EXCERPT_S,
            ylim=(0.0, 1.05 * most / 1e3),
            ylabel="since 30 s (kbyte)",
            xlabel="time (s)",
        )
        legend_below(canvas, whole, columns=2)

    return Figure(
        id="A11",
        title="Why the timer alone recovers slowly",
        caption="ACK number at the gateway in set 2 with 1% of the packets lost on the satellite "
        f"and the timer of {1e3 * TIMEOUT_S:g} ms; one seed. Below, an excerpt, with a line for "
        "every second window of the host. After a loss the gateway goes on beyond the host's "
        "window, and the host drops what arrives there. Once the gap is filled, the ACK number "
        "jumps to the window's edge, where the next gap begins. "
        + "; ".join(f"{name}: {each}" for name, each in found.items())
        + ".",
        columns=columns,
        draw=draw,
        height=5.6,
    )


def _seeds(evidence: Evidence, cell: Download) -> list[Download]:
    """Return the cell with every seed that was simulated."""
    seeded = (replace(cell, seed=seed) for seed in LOSS_SEEDS)
    return [each for each in seeded if evidence.has(each)]


def _recoveries(evidence: Evidence) -> Figure:
    groups = {
        f"{open_.mss_bytes} B,\n{name}": (open_, endless)
        for open_ in (FITTED, SMALL_SEGMENTS)
        for name, endless in (("paper's load", False), ("endless data", True))
    }
    rates = {
        recovery: [
            [
                evidence.throughput_bps(cell) / 1e3
                for cell in _seeds(
                    evidence, lossy(recovery, LOSS_SEEDS[0], open_=open_, bulk=endless)
                )
            ]
            for open_, endless in groups.values()
        ]
        for recovery in RECOVERIES
    }
    columns = empty("recovery", "segment_bytes", "endless_data", "seed", "kbps")
    for recovery, by_group in rates.items():
        for (open_, endless), kbps in zip(groups.values(), by_group, strict=True):
            for seed, rate in zip(LOSS_SEEDS, kbps, strict=False):
                add(columns, recovery, open_.mss_bytes, endless, seed, rate)

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        places = np.arange(len(groups), dtype=float)
        for index, (recovery, by_group) in enumerate(rates.items()):
            shift = (index - (len(rates) - 1) / 2) * 0.18
            axes.errorbar(
                places + shift,
                [float(np.median(kbps)) for kbps in by_group],
                yerr=[
                    [float(np.median(kbps)) - min(kbps) for kbps in by_group],
                    [max(kbps) - float(np.median(kbps)) for kbps in by_group],
                ],
                fmt=MARKERS[index],
                capsize=3,
                color=COLOURS[index],
                label=_POLICIES[recovery],
            )
        axes.set_ylim(bottom=0.0)
        axes.set_xticks(places, list(groups))
        axes.set_ylabel("received by the host (kbit/s)")
        legend_below(canvas, axes, columns=2)

    return Figure(
        id="A12",
        title="Recovery at the gateway, by segment size and load",
        caption="Set 2 with 1% of the packets lost on the satellite: median and range of the "
        "seeds. Selective acknowledgments help by themselves. With a congestion window, the rate "
        "is in proportion to the segment; with small segments it is below that of the timer.",
        columns=columns,
        draw=draw,
    )


def _costs(evidence: Evidence) -> Figure:
    """Return the cost of a delivered Mbyte by policy, for all ratios of the two prices."""
    runs = {_ROUTER: _seeds(evidence, routed(LOSS_SEEDS[0]))}
    for recovery, name in _POLICIES.items():
        runs[name] = _seeds(evidence, lossy(recovery, LOSS_SEEDS[0]))
    columns = empty(
        "policy",
        "satellite_mbyte_per_mbyte",
        "line_minutes_per_mbyte",
        "line_price",
        "cost_per_mbyte",
    )
    costs = {}
    for name, cells in runs.items():
        delivered = sum(evidence.received_bytes(cell) for cell in cells) / 1e6
        sent = sum(evidence.satellite_bytes(cell) for cell in cells) / 1e6 / delivered
        minutes = len(cells) * DURATION_S / 60.0 / delivered
        costs[name] = [sent + price * minutes for price in _LINE_PRICES]
        for price, cost in zip(_LINE_PRICES, costs[name], strict=True):
            add(columns, name, sent, minutes, price, cost)
    best = [min(costs, key=lambda name: costs[name][index]) for index in range(len(_LINE_PRICES))]
    cheapest = ", then ".join(dict.fromkeys(best))

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        for index, (name, cost) in enumerate(costs.items()):
            axes.plot(
                _LINE_PRICES,
                cost,
                "--" if name == _ROUTER else "-",
                color=COLOURS[index],
                marker=MARKERS[index],
                markevery=10,
                label=name,
            )
        axes.set(
            xscale="log",
            yscale="log",
            xlabel="price of a minute of the modem's line (1 = 1 Mbyte on the satellite)",
            ylabel="cost of 1 Mbyte received\n(1 = 1 Mbyte on the satellite)",
        )
        legend_below(canvas, axes, columns=2)

    return Figure(
        id="A13",
        title="Cost of a Mbyte by policy",
        caption="Set 2 with 1% of the packets lost on the satellite, the paper's load, all seeds. "
        "Two things are paid for: bytes on the satellite, retransmissions included, and minutes "
        "of the modem's line. Only the ratio of their prices matters. Where the line is cheap, "
        "the policy counts that retransmits little; where it is expensive, the faster one. "
        f"Cheapest, from left to right: {cheapest}.",
        columns=columns,
        draw=draw,
    )
