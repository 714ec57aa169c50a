"""Measurements of the claims: one function for each claim, named by its id."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from bentpipe.studies.gaid1998.cells import (
    DURATION_S,
    FITTED,
    LOSS_RATE,
    LOSS_SEEDS,
    RECEIVED,
    SATELLITE_DELAY_S,
    SELECTIVE,
    SETS,
    STANDARD_SENT_MB,
    STANDARD_WINDOW_BYTES,
    TIMER,
    TRANSFER_BYTES,
    Download,
    adaptive,
    bulk,
    freed_at_once,
    lossy,
    plain,
    standard,
    transfer,
)
from bentpipe.studies.gaid1998.evidence import Evidence
from bentpipe.studies.judging import ratio, steps
from bentpipe.studies.study import Claim, Measurement, measuring

Measure = Callable[[Evidence, Claim], Measurement]


def _kbyte_s(evidence: Evidence, cell: Download) -> float:
    return evidence.throughput_bps(cell) / 8e3


def _window_over_t(evidence: Evidence, _: Claim) -> Measurement:
    measured = _kbyte_s(evidence, plain())
    bound = STANDARD_WINDOW_BYTES / SATELLITE_DELAY_S / 1e3
    return Measurement(
        measured=f"{measured:.1f} kbyte/s through a plain router, of {bound:.1f} at most",
        values={"kbyte_s": [measured]},
    )


def _window_over_t1(evidence: Evidence, _: Claim) -> Measurement:
    download = standard(1)
    round_trip_s = 2e-3 * FITTED.delay_ms + download.ack_timeout_s
    predicted = download.window_bytes / round_trip_s / 1e3
    measured = evidence.sent_mb(download) * 1e3 / DURATION_S
    unbounded = evidence.sent_mb(freed_at_once()) * 1e3 / DURATION_S
    return Measurement(
        measured=f"{measured:.0f} kbyte/s, where window / T1 is {predicted:.0f}; "
        f"{unbounded:.0f} if what the host hasn't acknowledged doesn't count",
        values={"measured_over_computed": [measured / predicted]},
    )


def _window_over_measured_t1(evidence: Evidence, _: Claim) -> Measurement:
    download = freed_at_once()
    half = DURATION_S / 2
    round_trip = evidence.curve(download, "download.measured_rtt").known()
    t1_s = float(np.mean(round_trip.between(half, DURATION_S)))
    received = evidence.curve(download, RECEIVED).known()
    rate = float(received.values[-1] - received.at(half)) / half / 1e3
    predicted = download.window_bytes / t1_s / 1e3
    return Measurement(
        measured=f"{rate:.0f} kbyte/s in the last {half:.0f} s, where T1 is {1e3 * t1_s:.0f} ms "
        f"and "
        f"window / T1 {predicted:.0f}",
        values={"measured_over_computed": [rate / predicted]},
    )


def _standard_seven(evidence: Evidence, _: Claim) -> Measurement:
    best, sent = evidence.nearest(STANDARD_SENT_MB)
    return Measurement(
        measured=f"{sent:.2f} Mbyte in 100 s with {best}; "
        f"{len(evidence.simulated_parameters())} combinations tried",
        # The parameters used for all other claims must be the nearest ones.
        values={"sent_mbyte": [sent], "is_the_one_that_is_used": [float(best == FITTED)]},
    )


def _standard_faster(evidence: Evidence, _: Claim) -> Measurement:
    with_it, without = (_kbyte_s(evidence, cell) for cell in (standard(1), plain()))
    return Measurement(
        measured=f"{with_it:.1f} kbyte/s through the gateway, {without:.1f} through a plain router",
        values={"with_over_without": [ratio(with_it, without)]},
    )


def _standard_not_satellite(evidence: Evidence, _: Claim) -> Measurement:
    used = evidence.curve(standard(1), "satellite.forward.utilization")
    seconds = (used.times_s * (1 - 1e-12)).astype(int)
    shares = [float(used.values[seconds == each].mean()) for each in np.unique(seconds)]
    return Measurement(
        measured=f"at most {max(shares):.2f} in a second", values={"utilization": shares}
    )


def _larger_windows(evidence: Evidence, _: Claim) -> Measurement:
    rates = [evidence.throughput_bps(standard(number)) / 1e3 for number in (1, 2, 3, 4)]
    return Measurement(
        measured=", ".join(f"set {n} {rate:.0f}" for n, rate in enumerate(rates, 1)) + " kbit/s",
        values={"step_to_the_next_set": steps(rates)},
    )


def _forty_times(evidence: Evidence, _: Claim) -> Measurement:
    measured = evidence.throughput_bps(standard(2)) / 1e3
    return Measurement(
        measured=f"{measured:.0f} kbit/s, {measured / 9.6:.0f} times 9,600 bit/s",
        values={"kbps": [measured]},
    )


def _ack_timeout(evidence: Evidence, _: Claim) -> Measurement:
    host = [evidence.received_bytes(standard(number)) for number in (4, 5)]
    gateway = [evidence.sent_mb(standard(number)) for number in (4, 5)]
    more = [evidence.received_bytes(bulk(number)) / 1e6 for number in (4, 5)]
    return Measurement(
        measured=f"at the host {host[0] / 1e6:.2f} Mbyte with 200 ms, {host[1] / 1e6:.2f} with 10 "
        f"ms, which is the load; from the server {gateway[0]:.2f} and {gateway[1]:.2f}; with as "
        f"much to send as goes {more[0]:.1f} and {more[1]:.1f} at the host",
        values={"set_5_over_set_4": [ratio(host[1], host[0]), ratio(gateway[1], gateway[0])]},
    )


def _slow_start(evidence: Evidence, _: Claim) -> Measurement:
    download = standard(1)
    held = evidence.curve(download, "hub.eligible").known()
    full = np.flatnonzero(held.values >= download.window_bytes - 4 * download.open.mss_bytes)
    end_s = float(held.times_s[full[0]]) + SATELLITE_DELAY_S
    received = evidence.curve(download, "download.delivered").known()
    first = float(received.times_s[np.flatnonzero(received.values > 0)[0]])
    times = np.linspace(first, end_s, 5)
    steps = np.diff(received.at(times))
    halves = float(steps[2:].sum()) / max(float(steps[:2].sum()), 1.0)
    return Measurement(
        measured=f"until {end_s:.1f} s; the second half brings {halves:.1f} times the first",
        values={"second_half_over_first": [halves]},
    )


def _duplicates(evidence: Evidence, _: Claim) -> Measurement:
    download = standard(3)
    again = evidence.counted(download, "to_host", "retransmissions")
    lost = evidence.dropped(download)
    return Measurement(
        measured=f"{again} segments sent to the host twice, {lost} lost or dropped on the way",
        values={"segments_twice": [again], "packets_lost": [lost]},
    )


def _duplicates_why(evidence: Evidence, _: Claim) -> Measurement:
    again = evidence.counted(adaptive(), "to_host", "retransmissions")
    return Measurement(
        measured=f"{again} with an adaptive timeout", values={"segments_twice": [again]}
    )


def _zero_window(evidence: Evidence, _: Claim) -> Measurement:
    beyond = evidence.counted(standard(1), "to_host", "beyond_window")
    return Measurement(
        measured=f"{beyond} segments beyond the window", values={"segments_beyond": [beyond]}
    )


def _acknowledged_ahead(evidence: Evidence, _: Claim) -> Measurement:
    told = evidence.curve(standard(1), "hub.acknowledged_to_server").known()
    host = evidence.curve(standard(1), "hub.acknowledged").known()
    ahead = told.values - host.values
    return Measurement(
        measured=f"{ahead.min() / 1e3:.1f} to {ahead.max() / 1e3:.1f} kbyte ahead in "
        f"{len(ahead)} samples",
        # The minimum bounds all samples.
        values={"bytes_ahead": [float(ahead.min())]},
    )


def _merely_the_same(evidence: Evidence, _: Claim) -> Measurement:
    ratios = {}
    half = DURATION_S / 2
    for number in SETS[1:]:
        host = evidence.curve(standard(number), "download.delivered").known()
        hub = evidence.curve(standard(number), "hub.received").known()
        grown = [float(c.values[-1] - c.at(half)) for c in (host, hub)]
        ratios[number] = grown[0] / grown[1]
    return Measurement(
        measured=", ".join(f"set {n} {share:.3f}" for n, share in ratios.items()),
        values={"host_over_gateway": list(ratios.values())},
    )


def _host_window(evidence: Evidence, _: Claim) -> Measurement:
    windows = {}
    for number in (1, 2, 3, 4):
        window = evidence.curve(standard(number), "hub.host_window").known()
        windows[number] = float(np.median(window.values))
    buffers = {number: standard(number).host_window_bytes for number in windows}
    segment = FITTED.mss_bytes
    return Measurement(
        measured=", ".join(f"set {n} {w:.0f} B of {buffers[n]}" for n, w in windows.items()),
        values={
            "segments_less": [(buffers[n] - w) / segment for n, w in windows.items()],
        },
    )


def _rtt_apart(evidence: Evidence, _: Claim) -> Measurement:
    median = float(np.median(evidence.curve(standard(1), "download.measured_rtt").known().values))
    return Measurement(measured=f"{1e3 * median:.0f} ms", values={"median_s": [median]})


def _everything(evidence: Evidence, _: Claim) -> Measurement:
    runs = [transfer(number, loss) for number in SETS for loss in (0.0, LOSS_RATE)]
    shares = [evidence.received_bytes(run) / TRANSFER_BYTES for run in runs]
    unfinished = sum(evidence.flow(run).finish_s is None for run in runs)
    return Measurement(
        measured=f"{len(runs) - unfinished} of {len(runs)} transfers",
        values={"received_over_written": shares, "unfinished": [unfinished]},
    )


def _bounded(evidence: Evidence, _: Claim) -> Measurement:
    fullest = 0.0
    for cell in evidence.outcomes:
        if isinstance(cell, Download) and cell.gateway:
            held = evidence.hub(cell).bytes_held["max"]
            fullest = max(fullest, held / cell.store_bytes)
    return Measurement(
        measured=f"at most {fullest:.3f} of it", values={"share_of_window": [fullest]}
    )


def _fast_retransmit(evidence: Evidence, _: Claim) -> Measurement:
    rates = [
        [evidence.throughput_bps(lossy(recovery, seed)) / 1e3 for seed in LOSS_SEEDS]
        for recovery in (TIMER, SELECTIVE)
    ]
    timer, selective = rates
    return Measurement(
        measured=f"timer {min(timer):.0f} to {max(timer):.0f} kbit/s, selective "
        f"{min(selective):.0f} to {max(selective):.0f}",
        values={
            "selective_over_timer": [
                ratio(other, one) for one, other in zip(timer, selective, strict=True)
            ]
        },
    )


_MEASURES: Final[dict[str, Measure]] = {
    "window-over-t": _window_over_t,
    "window-over-t1": _window_over_t1,
    "window-over-measured-t1": _window_over_measured_t1,
    "standard-seven": _standard_seven,
    "standard-faster": _standard_faster,
    "standard-not-satellite": _standard_not_satellite,
    "larger-windows": _larger_windows,
    "forty-times": _forty_times,
    "ack-timeout": _ack_timeout,
    "slow-start": _slow_start,
    "duplicates": _duplicates,
    "duplicates-why": _duplicates_why,
    "zero-window": _zero_window,
    "acknowledged-ahead": _acknowledged_ahead,
    "merely-the-same": _merely_the_same,
    "host-window": _host_window,
    "rtt-apart": _rtt_apart,
    "everything": _everything,
    "bounded": _bounded,
    "fast-retransmit": _fast_retransmit,
}

measure: Final = measuring(Path(__file__).parent, _MEASURES)
