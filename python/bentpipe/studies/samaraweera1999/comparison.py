"""The table of every method, return rate and window rule, which is not in the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.patches import Rectangle

from bentpipe.plot.style import COLOURS, new_axes
from bentpipe.studies.samaraweera1999 import cells
from bentpipe.studies.samaraweera1999.cells import (
    METHODS,
    NAMES,
    RULE_NAMES,
    TABLE_RATES_BPS,
    today,
)
from bentpipe.studies.samaraweera1999.figures import Columns, append
from bentpipe.studies.study import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.samaraweera1999.cells import Download
    from bentpipe.studies.samaraweera1999.evidence import Evidence


def comparison_figures(evidence: Evidence) -> list[Figure]:
    """Return the figures that are not in the paper."""
    rules = [
        rule
        for rule in ("reno", *cells.TODAYS_RULES)
        if evidence.has(today(cells.UNMODIFIED, cells.SLOW_BPS, rule))
    ]
    tables = [_table(evidence, rule, number=f"A{n}") for n, rule in enumerate(rules, start=2)]
    return [_timers(evidence), *tables]


def _expected(download: Download) -> bool:
    """Return whether the paper states timeouts for this run."""
    if download.sessions == 1:
        return download.method in (cells.UNMODIFIED, cells.COMPRESSION)
    return download.method == cells.UNMODIFIED


def _timers(evidence: Evidence) -> Figure:
    downloads = cells.timer_downloads()
    timers = [
        timer
        for timer in cells.TIMERS
        if all(evidence.has(cells.timed(download, timer)) for download in downloads)
    ]
    columns: Columns = {}
    counts: dict[tuple[int, int], int] = {}
    for row, download in enumerate(downloads):
        for column, timer in enumerate(timers):
            count = evidence.timeouts(cells.timed(download, timer))
            counts[row, column] = count
            append(
                columns,
                method=[download.method],
                sessions=[download.sessions],
                return_bps=[download.return_bps],
                counted_from=[timer.counted_from],
                minimum_s=[timer.minimum_s],
                timeouts=[count],
                paper_has_timeouts=[_expected(download)],
            )

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.grid(visible=False)
        for (row, column), count in counts.items():
            right = (count > 0) == _expected(downloads[row])
            _cell(axes, row, column, str(count), 1.0 if right else 0.0)
        counted = {"acknowledgment": "every ACK\nrestarts it", "oldest-segment": "each\nsegment"}
        axes.set_xticks(
            range(len(timers)),
            labels=[f"{counted[each.counted_from]}\n{each.minimum_s:g} s" for each in timers],
        )
        axes.set_yticks(
            range(len(downloads)),
            labels=[
                f"{each.sessions} session{'s' if each.sessions > 1 else ''}, "
                f"{each.return_bps / 1e3:g} kbit/s: {NAMES[each.method]}"
                for each in downloads
            ],
        )
        axes.tick_params(length=0, labelsize=9)
        axes.set_xlim(-0.5, len(timers) - 0.5)
        axes.set_ylim(len(downloads) - 0.5, -0.5)
        axes.xaxis.tick_top()

    return Figure(
        id="A1",
        title="Timeouts in 60 s, by the retransmission timer",
        caption="Columns: what a timeout is counted from, and its floor. Filled: as the paper says "
        "(some, or none). The study has the third. Not in the paper.",
        columns=columns,
        draw=draw,
        width=8.6,
        height=4.6,
    )


def _table(evidence: Evidence, rule: str, *, number: str) -> Figure:
    columns: Columns = {}
    texts: dict[tuple[int, int], str] = {}
    goodputs: dict[tuple[int, int], float] = {}
    for row, method in enumerate(METHODS):
        for column, rate in enumerate(TABLE_RATES_BPS):
            download = today(method, rate, rule)
            flow = evidence.flow(download)
            back = evidence.direction(download, "return")
            goodput = evidence.goodput_bps(download)
            goodputs[row, column] = goodput
            texts[row, column] = (
                f"{goodput / 1e6:.2f} Mbit/s\n{flow.timeouts} timeouts, "
                f"{flow.segments_retransmitted} again\nqueue {back.queue_max_packets}, "
                f"{back.bytes_delivered / 1e3:.0f} kB back"
            )
            append(
                columns,
                congestion_control=[rule],
                method=[method],
                return_bps=[rate],
                goodput_bps=[goodput],
                timeouts=[flow.timeouts],
                segments_retransmitted=[flow.segments_retransmitted],
                return_queue_max_packets=[back.queue_max_packets],
                return_bytes=[back.bytes_delivered],
                acks_removed=[back.count("acks_removed")],
                acks_regenerated=[back.count("acks_regenerated")],
            )

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.grid(visible=False)
        for (row, column), text in texts.items():
            share = goodputs[row, column] / max(goodputs.values())
            _cell(axes, row, column, text, share)
        axes.set_xticks(
            range(len(TABLE_RATES_BPS)),
            labels=[f"{rate / 1e3:g} kbit/s back" for rate in TABLE_RATES_BPS],
        )
        axes.set_yticks(range(len(METHODS)), labels=[NAMES[method] for method in METHODS])
        axes.tick_params(length=0, labelsize=9)
        axes.set_xlim(-0.5, len(TABLE_RATES_BPS) - 0.5)
        axes.set_ylim(len(METHODS) - 0.5, -0.5)
        axes.xaxis.tick_top()

    whose = "the paper's TCP" if rule == "reno" else "SACK, timestamps, delayed ACKs, 1448 bytes"
    return Figure(
        id=number,
        title=f"Methods by return rate: {RULE_NAMES[rule]}",
        caption=f"One download of {cells.DURATION_S} s; {whose}. Goodput; timeouts, and segments "
        "sent again; the longest return queue in packets, and what went back over the modem. The "
        "fuller the colour, the higher the goodput. Not in the paper.",
        columns=columns,
        draw=draw,
        width=9.6,
        height=6.2,
    )


def _cell(axes: Axes, row: int, column: int, text: str, share: float) -> None:
    axes.add_patch(
        Rectangle(
            (column - 0.5, row - 0.5),
            1.0,
            1.0,
            facecolor=COLOURS[5],
            edgecolor="#DDDDDD",
            alpha=0.1 + 0.6 * share,
        )
    )
    axes.text(column, row, text, ha="center", va="center", fontsize=7.5)


def goodput_table(evidence: Evidence, downloads: dict[str, Download]) -> str:
    """Return goodputs as text: "name 1.23, other 4.56"."""
    return ", ".join(
        f"{name} {evidence.goodput_bps(download) / 1e6:.2f}" for name, download in downloads.items()
    )
