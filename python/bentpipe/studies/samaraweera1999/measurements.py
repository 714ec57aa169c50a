"""Measurements of the claims: one function for each claim, named by its id."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.studies.judging import ratio
from bentpipe.studies.samaraweera1999 import cells, open_settings
from bentpipe.studies.samaraweera1999.cells import (
    COMPACTION,
    COMPRESSION,
    METHODS,
    NAMES,
    PAPERS,
    QUEUE_NAMES,
    QUEUES,
    SPACING,
    SUPPRESSION,
    UNMODIFIED,
    Download,
    shared,
    single,
    today,
)
from bentpipe.studies.samaraweera1999.evidence import SETTLED_S, Evidence, jain
from bentpipe.studies.study import Claim, Measurement, measuring

if TYPE_CHECKING:
    from numpy.typing import NDArray

Measure = Callable[[Evidence, Claim], Measurement]
_HARMLESS: Final = (SUPPRESSION, COMPACTION, SPACING)


def _listed(values: Mapping[str, float], unit: str) -> str:
    listed = ", ".join(f"{name} {value:.3g}" for name, value in values.items())
    return f"{listed} {unit}"


def _unmodified_times_out(evidence: Evidence, _: Claim) -> Measurement:
    download = single(UNMODIFIED)
    timeouts = evidence.timeouts(download)
    forward = evidence.direction(download, "forward")
    back = evidence.direction(download, "return")
    lost = sum(each.packets_lost + each.packets_dropped for each in (forward, back))
    return Measurement(
        measured=f"{timeouts} timeouts, {lost} packets lost or dropped; "
        f"{evidence.retransmitted(download)} segments sent again, return queue up to "
        f"{back.queue_max_packets} ACKs",
        values={"timeouts": [timeouts], "packets_lost": [lost]},
    )


def _compression_times_out(evidence: Evidence, _: Claim) -> Measurement:
    timeouts = evidence.timeouts(single(COMPRESSION))
    return Measurement(measured=f"{timeouts} timeouts", values={"timeouts": [timeouts]})


def _compression_helps_little(evidence: Evidence, _: Claim) -> Measurement:
    sent = {
        NAMES[method]: evidence.sent_mb(single(method))
        for method in (UNMODIFIED, COMPRESSION, COMPACTION)
    }
    plain, compressed = (sent[NAMES[each]] for each in (UNMODIFIED, COMPRESSION))
    factor = ratio(compressed, plain)
    return Measurement(
        measured=f"{_listed(sent, 'MB in 60 s')}: {factor:.2f} times as much",
        values={"compression_over_unmodified": [factor]},
    )


def _compression_reduces(evidence: Evidence, _: Claim) -> Measurement:
    compressed = replace(cells.FAST, method=COMPRESSION)
    reduction = evidence.reduction(compressed, cells.FAST)
    return Measurement(
        measured=f"from {evidence.ack_bytes(cells.FAST):.1f} to "
        f"{evidence.ack_bytes(compressed):.1f} bytes: {reduction:.0%} less",
        values={"reduction": [reduction]},
    )


def _compression_sizes(evidence: Evidence, _: Claim) -> Measurement:
    # Without the framing that the link adds: the paper gives the size of the headers.
    download = replace(cells.FAST, method=COMPRESSION)
    size = evidence.ack_bytes(download) - download.left_open.framing_bytes
    return Measurement(measured=f"{size:.2f} bytes", values={"bytes_per_ack": [size]})


def _suppression_grows(evidence: Evidence, _: Claim) -> Measurement:
    download = single(SUPPRESSION)
    window = evidence.window(download).values
    falls = int((np.diff(window) < 0).sum())
    control = int((np.diff(evidence.window(single(UNMODIFIED)).values) < 0).sum())
    timeouts = evidence.timeouts(download)
    return Measurement(
        measured=f"{timeouts} timeouts; the window falls {falls} times, and reaches "
        f"{window.max() / 1e3:.0f} kB; unmodified it falls {control} times",
        values={
            "timeouts": [timeouts],
            "falls_of_the_window": [falls],
            "falls_unmodified": [control],
        },
    )


def _or_behind(method: str, time_s: float, crossing: str) -> str:
    return f"{method} stays behind for 60 s" if np.isnan(time_s) else crossing


def _suppression_crosses(evidence: Evidence, _: Claim) -> Measurement:
    time_s, sent_mb = evidence.crossing(single(SUPPRESSION), single(COMPRESSION))
    return Measurement(
        measured=_or_behind(SUPPRESSION, time_s, f"at {sent_mb:.2f} MB, after {time_s:.1f} s"),
        values={"crossing_mb": [sent_mb]},
    )


def _compaction_slow_start(evidence: Evidence, _: Claim) -> Measurement:
    time_s, sent_mb = evidence.crossing(single(COMPACTION), single(COMPRESSION))
    return Measurement(
        measured=_or_behind(COMPACTION, time_s, f"after {time_s:.1f} s, at {sent_mb:.2f} MB"),
        values={"crossing_s": [time_s]},
    )


def _compaction_passes_all(evidence: Evidence, _: Claim) -> Measurement:
    sent = {NAMES[method]: evidence.sent_mb(single(method)) for method in PAPERS}
    others = [value for name, value in sent.items() if name != NAMES[COMPACTION]]
    return Measurement(
        measured=_listed(sent, "MB in 60 s"),
        values={
            "compaction_over_other": [ratio(sent[NAMES[COMPACTION]], other) for other in others]
        },
    )


def _compaction_no_timeout(evidence: Evidence, _: Claim) -> Measurement:
    timeouts = {each: evidence.timeouts(single(each)) for each in (COMPACTION, UNMODIFIED)}
    rtts_s = {each: evidence.mean_rtt_s(single(each)) for each in timeouts}
    parts = [
        f"{NAMES[each]}: {timeouts[each]} timeouts, mean round trip {rtts_s[each]:.2f} s"
        for each in timeouts
    ]
    return Measurement(
        measured="; ".join(parts),
        values={
            "timeouts": [timeouts[COMPACTION]],
            "rtt_s": [rtts_s[COMPACTION]],
            "timeouts_unmodified": [timeouts[UNMODIFIED]],
            "rtt_unmodified_s": [rtts_s[UNMODIFIED]],
        },
    )


def _spacing(of: Callable[[str], Download]) -> Measure:
    def measured(evidence: Evidence, _: Claim) -> Measurement:
        whole = [evidence.largest_burst(of(m)) for m in (COMPACTION, SPACING)]
        settled = [evidence.largest_burst(of(m), SETTLED_S) for m in (COMPACTION, SPACING)]
        return Measurement(
            measured=f"{settled[0]:.0f} packets without and {settled[1]:.0f} with spacing; over "
            f"the whole run, slow start included, {whole[0]:.0f} and {whole[1]:.0f}",
            values={"with_over_without": [ratio(settled[1], settled[0])]},
        )

    return measured


def _slow_start_queue(evidence: Evidence, _: Claim) -> Measurement:
    share = evidence.queue_of_pipe(cells.FAST)
    return Measurement(measured=f"{share:.2f} of 600 kB", values={"share_of_product": [share]})


def _shares(rates: NDArray[np.float64]) -> str:
    return ", ".join(f"{rate / 1e6:.2f}" for rate in rates.mean(axis=0))


def _drop_tail_unfair(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    shares: list[float] = []
    for rate in cells.STAGGERED_RATES_BPS:
        rates = evidence.shares_bps(cells.DROP_TAIL, rate)
        means = rates.mean(axis=0)
        shares += [ratio(means[0], other) for other in means[1:]]
        least = int((rates[:, 0] < rates[:, 1:].min(axis=1)).sum())
        parts.append(
            f"{rate / 1e3:g} kbit/s back: sessions 1 to 3 have {_shares(rates)} Mbit/s, the first "
            f"the least in {least} of {len(rates)} runs"
        )
    return Measurement(measured="; ".join(parts), values={"first_over_other": shares})


def _fair_queues(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    gains: list[float] = []
    for rate in cells.STAGGERED_RATES_BPS:
        rates = {queue: evidence.shares_bps(queue, rate) for queue in QUEUES}
        indices = {queue: jain(each) for queue, each in rates.items()}
        gains += [
            ratio(index, indices[cells.DROP_TAIL])
            for queue, index in indices.items()
            if queue != cells.DROP_TAIL
        ]
        listed = [
            f"{QUEUE_NAMES[queue]} {index:.3f} ({_shares(rates[queue])} Mbit/s)"
            for queue, index in indices.items()
        ]
        parts.append(f"{rate / 1e3:g} kbit/s back: {', '.join(listed)}")
    return Measurement(measured="; ".join(parts), values={"index_over_drop_tails": gains})


def _queue_unmodified(evidence: Evidence, _: Claim) -> Measurement:
    download = shared(UNMODIFIED, cells.FIGURE_12_BPS)
    timeouts = evidence.timeouts(download)
    queue = evidence.queue(download, "return").between(SETTLED_S, cells.DURATION_S)
    empties = evidence.times_empty(download)
    return Measurement(
        measured=f"{timeouts} timeouts; from 10 s on the queue empties {empties} times, and is up "
        f"to {queue.max():.0f} ACKs long",
        values={"timeouts": [timeouts], "times_empty": [empties]},
    )


def _queue_compression(evidence: Evidence, _: Claim) -> Measurement:
    download = shared(COMPRESSION, cells.FIGURE_12_BPS)
    timeouts = evidence.timeouts(download)
    queue = evidence.queue(download, "return").between(SETTLED_S, cells.DURATION_S)
    return Measurement(
        measured=f"{timeouts} timeouts; median queue {np.median(queue):.0f}, longest "
        f"{queue.max():.0f} ACKs",
        values={"timeouts": [timeouts], "median_queue_acks": [float(np.median(queue))]},
    )


def _queue_none(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    longest = []
    for method in (SUPPRESSION, COMPACTION):
        download = shared(method, cells.FIGURE_12_BPS)
        most = evidence.direction(download, "return").queue_max_packets
        usual = np.median(evidence.queue(download, "return").between(SETTLED_S, cells.DURATION_S))
        longest.append(most)
        parts.append(f"{NAMES[method]}: {most} ACKs at most, median {usual:.0f}")
    return Measurement(measured="; ".join(parts), values={"largest_queue_acks": longest})


def _rates(evidence: Evidence) -> list[int]:
    return [rate for rate in cells.RETURN_RATES_BPS if evidence.has(shared(UNMODIFIED, rate))]


def _rates_highest(evidence: Evidence, claim: Claim) -> Measurement:
    parts = []
    shares = []
    for rate in _rates(evidence):
        goodputs = {method: evidence.goodput_bps(shared(method, rate)) / 1e6 for method in METHODS}
        compacted = max(goodputs[COMPACTION], goodputs[SPACING])
        best = max(goodputs, key=lambda method: goodputs[method])
        shares.append(ratio(compacted, goodputs[best]))
        if shares[-1] < 1.0 - claim.tolerance:
            parts.append(
                f"{rate / 1e3:g} kbit/s: {compacted:.2f}, {NAMES[best]} {goodputs[best]:.2f}"
            )
    measured = "; ".join(parts) + " Mbit/s" if parts else "at every rate"
    return Measurement(measured=measured, values={"compaction_over_best": shares})


def _rates_independent(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    shares = []
    for method in (COMPACTION, SPACING):
        slow, fast = (
            evidence.goodput_bps(shared(method, rate)) / 1e6
            for rate in (cells.SLOW_BPS, cells.FAST_BPS)
        )
        shares.append(slow / fast)
        parts.append(f"{NAMES[method]} {slow:.2f} and {fast:.2f} Mbit/s ({slow / fast:.0%})")
    # Spacing avoids bursts, too, and is shown for comparison.
    return Measurement(measured="; ".join(parts), values={"slow_over_fast": shares[:1]})


def _never_beyond(evidence: Evidence, _: Claim) -> Measurement:
    removed = regenerated = runs = 0
    beyond = []
    for download in evidence.outcomes:
        if download.method not in (COMPACTION, SPACING):
            continue
        back = evidence.direction(download, "return")
        runs += 1
        removed += back.count("acks_removed")
        regenerated += back.count("acks_regenerated")
        beyond.append(back.count("acks_regenerated") - back.count("acks_removed"))
    return Measurement(
        measured=f"{runs} runs: {removed} removed, {regenerated} regenerated",
        values={"regenerated_beyond_removed": beyond, "regenerated_in_all": [regenerated]},
    )


def _todays(evidence: Evidence) -> list[tuple[str, list[Download], list[Download]]]:
    """Return the methods that must do no harm: name, runs, and the unmodified runs."""
    found = []
    for rule in cells.TODAYS_RULES:
        for disturbance in cells.DISTURBANCES:
            plain = cells.undisturbed_return(UNMODIFIED, rule, disturbance)
            if not all(map(evidence.has, plain)):
                continue
            for method in _HARMLESS:
                name = f"{cells.RULE_NAMES[rule]}, {disturbance}, {NAMES[method]}"
                modified = cells.undisturbed_return(method, rule, disturbance)
                found.append((name, modified, plain))
    return found


def _harmless_goodput(evidence: Evidence, claim: Claim) -> Measurement:
    ratios = {
        name: sum(map(evidence.goodput_bps, modified)) / sum(map(evidence.goodput_bps, plain))
        for name, modified, plain in _todays(evidence)
    }
    worst = min(ratios, key=lambda name: ratios[name])
    harmed = [
        f"{name} {ratio:.1%}" for name, ratio in ratios.items() if ratio < 1.0 - claim.tolerance
    ]
    measured = f"{len(ratios)} comparisons; lowest {ratios[worst]:.1%} ({worst})"
    if harmed:
        measured += f"; below: {'; '.join(harmed)}"
    return Measurement(
        measured=measured, values={"modified_over_unmodified": list(ratios.values())}
    )


def _harmless_retransmissions(evidence: Evidence, _: Claim) -> Measurement:
    more = []
    beyond = []
    compared = _todays(evidence)
    dropped = 0
    for name, modified, plain in compared:
        ours, theirs = (
            sum(map(evidence.needless_retransmissions, each)) for each in (modified, plain)
        )
        dropped += sum(evidence.direction(each, "return").packets_dropped for each in plain)
        beyond.append(ours - max(theirs, 0))
        if beyond[-1] > 0:
            more.append(f"{name}: {ours}, unmodified {theirs}")
    return Measurement(
        measured=f"{len(compared)} comparisons ({dropped} ACKs dropped unmodified); more: "
        f"{'; '.join(more) or 'none'}",
        values={"more_than_unmodified": beyond},
    )


def _today_gains(evidence: Evidence, _: Claim) -> Measurement:
    goodputs = {
        NAMES[method]: evidence.goodput_bps(today(method, cells.SLOW_BPS, "cubic")) / 1e6
        for method in METHODS
    }
    return Measurement(
        measured=_listed(goodputs, "Mbit/s"),
        values={
            "spacing_over_other": [
                ratio(goodputs[NAMES[SPACING]], other) for other in goodputs.values()
            ]
        },
    )


def _one_setting(evidence: Evidence, _: Claim) -> Measurement:
    row = open_settings.measure_ours(evidence)
    missed = [
        name for name, of in open_settings.SEARCH.published.items() if not of.met(row.measured)
    ]
    return Measurement(
        measured=f"{row.within} of {len(open_settings.SEARCH.published)}; not: "
        f"{', '.join(missed) or 'none'}",
        values={"values_met": [row.within]},
    )


def _pacing(evidence: Evidence, _: Claim) -> Measurement:
    paced, at_once = (evidence.burst_peak(each) for each in (cells.FAST_PACED, cells.FAST))
    return Measurement(
        measured=f"{paced:.0f} of {at_once:.0f} packets in the longest queue that empties within "
        "two round trips",
        values={"paced_over_unpaced": [paced / at_once]},
    )


def _fewer_acks(evidence: Evidence, _: Claim) -> Measurement:
    changes = cells.tcp_changes()
    names = ("an ACK for 64", "an ACK for 64, bytes counted")
    goodputs = {name: evidence.goodput_bps(changes[name]) / 1e6 for name in names}
    acks, counted = goodputs.values()
    return Measurement(
        measured=_listed(goodputs, "Mbit/s"), values={"bytes_over_acks": [ratio(counted, acks)]}
    )


_MEASURES: Final[Mapping[str, Measure]] = {
    "unmodified-times-out": _unmodified_times_out,
    "compression-times-out": _compression_times_out,
    "compression-helps-little": _compression_helps_little,
    "compression-reduces": _compression_reduces,
    "compression-sizes": _compression_sizes,
    "suppression-grows": _suppression_grows,
    "suppression-crosses": _suppression_crosses,
    "compaction-slow-start": _compaction_slow_start,
    "compaction-passes-all": _compaction_passes_all,
    "compaction-no-timeout": _compaction_no_timeout,
    "spacing-one": _spacing(single),
    "spacing-three": _spacing(lambda method: shared(method, cells.SLOW_BPS)),
    "slow-start-queue": _slow_start_queue,
    "drop-tail-unfair": _drop_tail_unfair,
    "fair-queues": _fair_queues,
    "queue-unmodified": _queue_unmodified,
    "queue-compression": _queue_compression,
    "queue-none": _queue_none,
    "rates-highest": _rates_highest,
    "rates-independent": _rates_independent,
    "never-beyond": _never_beyond,
    "harmless-goodput": _harmless_goodput,
    "harmless-retransmissions": _harmless_retransmissions,
    "today-gains": _today_gains,
    "one-setting": _one_setting,
    "pacing-halves-slow-start": _pacing,
    "fewer-acks-need-bytes": _fewer_acks,
}

measure: Final = measuring(Path(__file__).parent, _MEASURES)
