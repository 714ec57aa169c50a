"""Measurements of the claims: one function for each claim, named by its id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from bentpipe.studies.judging import ratio, steps
from bentpipe.studies.karir1999 import cells
from bentpipe.studies.karir1999.cells import (
    GATEWAYS,
    LARGE_WINDOWS,
    LINK_BPS,
    NAMES,
    NETWORKS,
    SATELLITE,
    TERRESTRIAL,
    Download,
    paper,
)
from bentpipe.studies.karir1999.evidence import Evidence, jain
from bentpipe.studies.study import Claim, Measurement, measuring

Measure = Callable[[Evidence, Claim], Measurement]


def _capacity(network: str) -> Measure:
    def measured(evidence: Evidence, _: Claim) -> Measurement:
        bps = evidence.link_bps(paper(network))
        return Measurement(
            measured=f"{bps / 1e3:.0f} kbit/s, {bps / LINK_BPS:.1%} of the link",
            values={"share_of_link": [bps / LINK_BPS]},
        )

    return measured


def _throughput(network: str) -> Measure:
    def measured(evidence: Evidence, _: Claim) -> Measurement:
        kbps = evidence.link_bps(paper(network)) / 1e3
        return Measurement(measured=f"{kbps:.0f} kbit/s", values={"kbps": [kbps]})

    return measured


def _order(evidence: Evidence, _: Claim) -> Measurement:
    found = [evidence.link_bps(paper(each)) for each in (SATELLITE, LARGE_WINDOWS, GATEWAYS)]
    listed = ", ".join(f"{bps / 1e3:.0f}" for bps in found)
    return Measurement(
        measured=f"{listed} kbit/s", values={"step_to_the_next_network": steps(found)}
    )


def _busy_like_terrestrial(evidence: Evidence, _: Claim) -> Measurement:
    ours, theirs = (evidence.busy_s(paper(each)) for each in (GATEWAYS, TERRESTRIAL))
    return Measurement(
        measured=f"{ours:.0f} s and {theirs:.0f} s: {ours / theirs:.3f}",
        values={"gateways_over_terrestrial": [ours / theirs]},
    )


def _busy_shortest(evidence: Evidence, _: Claim) -> Measurement:
    busy = {network: evidence.busy_s(paper(network)) for network in NETWORKS}
    listed = ", ".join(f"{NAMES[network]} {time:.0f} s" for network, time in busy.items())
    longest = max(busy[TERRESTRIAL], busy[GATEWAYS])
    shortest = min(busy[SATELLITE], busy[LARGE_WINDOWS])
    return Measurement(
        measured=listed, values={"longest_over_others_shortest": [ratio(longest, shortest)]}
    )


def _rtt(network: str) -> Measure:
    def measured(evidence: Evidence, _: Claim) -> Measurement:
        rtt = evidence.rtt_ms(paper(network))
        return Measurement(measured=f"{rtt:.0f} ms", values={"mean_ms": [rtt]})

    return measured


def _rtt_satellite(evidence: Evidence, _: Claim) -> Measurement:
    found = [evidence.rtt_ms(paper(each)) for each in (SATELLITE, LARGE_WINDOWS)]
    return Measurement(
        measured=f"{found[0]:.0f} ms, with large windows {found[1]:.0f} ms",
        values={"mean_ms": found},
    )


def _rtt_order(evidence: Evidence, _: Claim) -> Measurement:
    found = [evidence.rtt_ms(paper(each)) for each in (GATEWAYS, TERRESTRIAL, SATELLITE)]
    listed = ", ".join(f"{each:.0f}" for each in found)
    return Measurement(measured=f"{listed} ms", values={"step_to_the_next_network": steps(found)})


def _faster(than: str) -> Measure:
    def measured(evidence: Evidence, _: Claim) -> Measurement:
        times = [evidence.download_s(paper(each)) for each in (than, GATEWAYS)]
        faster = times[0] / times[1]
        return Measurement(
            measured=f"{times[0]:.0f} s and {times[1]:.0f} s: {faster:.2f}",
            values={"times_faster": [faster]},
        )

    return measured


def _one_window(evidence: Evidence, claim: Claim) -> Measurement:
    parts = []
    found = []
    for window in cells.WINDOWS:
        kbps = evidence.link_bps(Download(network=SATELLITE, window=window)) / 1e3
        rtt = evidence.rtt_ms(Download(network=TERRESTRIAL, window=window))
        shares = [kbps / _ONE_WINDOW_KBPS, rtt / _ONE_WINDOW_MS]
        found.append(shares)
        if _furthest(shares) <= claim.tolerance:
            parts.append(f"{window / 1024:.0f} KiB: {kbps:.0f} kbit/s and {rtt:.0f} ms")
    # If any window fits, the nearest one does.
    return Measurement(
        measured="; ".join(parts) or "none of the sweep",
        values={"measured_over_published": min(found, key=_furthest)},
    )


# The paper's throughput in both networks, which one window must give in both.
_ONE_WINDOW_KBPS: Final = 500.0
_ONE_WINDOW_MS: Final = 150.0


def _furthest(shares: Sequence[float]) -> float:
    return max(abs(each - 1.0) for each in shares)


def _independent(evidence: Evidence, _: Claim) -> Measurement:
    plain, enhanced = (evidence.flow(cell).goodput_bps for cell in cells.INDEPENDENT)
    return Measurement(
        measured=f"{enhanced / 1e3:.0f} and {plain / 1e3:.0f} kbit/s: {enhanced / plain:.3f}",
        values={"enhanced_over_plain": [enhanced / plain]},
    )


def _recovery(evidence: Evidence, _: Claim) -> Measurement:
    ours, theirs = (evidence.flow(cell).goodput_bps for cell in cells.LAN_LOSS)
    return Measurement(
        measured=f"{ours / 1e3:.0f} and {theirs / 1e3:.0f} kbit/s: {ours / theirs:.2f}",
        values={"with_over_without": [ours / theirs]},
    )


def _processing(evidence: Evidence, _: Claim) -> Measurement:
    slow = evidence.flow(cells.SLOW).goodput_bps
    fast = evidence.flow(paper(GATEWAYS)).goodput_bps
    dropped = evidence.count(cells.SLOW, "packets", "dropped")
    return Measurement(
        measured=f"{slow / fast:.2f} of the goodput, {dropped} packets dropped by the gateway",
        values={"slow_over_fast": [slow / fast], "packets_dropped": [dropped]},
    )


def _back_pressure(evidence: Evidence, _: Claim) -> Measurement:
    cell = paper(GATEWAYS)
    held = evidence.most(cell, "bytes_held", "max")
    dropped = evidence.count(cell, "packets", "dropped")
    room = cells.STATED_WINDOW + cells.LARGE_WINDOW
    missing = cells.FILE_BYTES - evidence.flow(cell).bytes_delivered
    return Measurement(
        measured=f"at most {held / 1e3:.0f} kB held of {room / 1e3:.0f} kB, {dropped} dropped",
        values={
            "share_of_buffers": [held / room],
            "packets_dropped": [dropped],
            "bytes_missing": [missing],
        },
    )


def _background(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    indices = []
    for cell in cells.CROWD:
        index = jain([flow.goodput_bps for flow in evidence.flows(cell)])
        share = evidence.link_bps(cell) / LINK_BPS
        indices.append((index, share))
        parts.append(f"{NAMES[cell.network]}: Jain's index {index:.3f}, link {share:.0%}")
    return Measurement(
        measured="; ".join(parts),
        # With gateways; the values without them are for comparison.
        values={"jain_index": [indices[0][0]], "share_of_link": [indices[0][1]]},
    )


def _same_rule(evidence: Evidence, _: Claim) -> Measurement:
    plain, split = (evidence.flow(cell).goodput_bps for cell in cells.SAME_RULE)
    return Measurement(
        measured=f"{split / 1e6:.2f} and {plain / 1e6:.2f} Mbit/s: {split / plain:.3f}",
        values={"split_over_end_to_end": [split / plain]},
    )


def _early_answer(evidence: Evidence, _: Claim) -> Measurement:
    none, whole, early = (evidence.flow(cell).finish_s or float("nan") for cell in cells.ANSWERS)
    saved = whole - early
    return Measurement(
        measured=f"1 kB is there after {none:.3f} s without gateways, {whole:.3f} s with an "
        f"end-to-end set-up, {early:.3f} s with an early answer: {saved * 1e3:.0f} ms saved",
        values={"saved_round_trips": [saved / cells.ROUND_TRIP_S]},
    )


def _memory(evidence: Evidence, _: Claim) -> Measurement:
    # All runs of the study use the default memory.
    most, runs = 0, 0
    for cell in evidence.outcomes:
        if evidence.gateways(cell):
            runs += 1
            most = max(most, evidence.most(cell, "bytes_promised", "max"))
    memory = 256 << 20
    return Measurement(
        measured=f"{runs} runs: at most {most / 2**20:.1f} of {memory / 2**20:.0f} MiB promised",
        values={"share_of_memory": [most / memory]},
    )


_MEASURES: Final[Mapping[str, Measure]] = {
    "terrestrial-capacity": _capacity(TERRESTRIAL),
    "satellite-500": _throughput(SATELLITE),
    "large-windows-850": _throughput(LARGE_WINDOWS),
    "gateways-capacity": _capacity(GATEWAYS),
    "order": _order,
    "utilisation-like-terrestrial": _busy_like_terrestrial,
    "utilisation-shortest": _busy_shortest,
    "rtt-terrestrial": _rtt(TERRESTRIAL),
    "rtt-satellite": _rtt_satellite,
    "rtt-gateways": _rtt(GATEWAYS),
    "rtt-order": _rtt_order,
    "download-gateways": _faster(SATELLITE),
    "download-large-windows": _faster(LARGE_WINDOWS),
    "one-window": _one_window,
    "independent-of-hosts": _independent,
    "faster-recovery": _recovery,
    "processing-cost": _processing,
    "back-pressure": _back_pressure,
    "background": _background,
    "same-rule-gains-nothing": _same_rule,
    "early-answer": _early_answer,
    "memory-bounded": _memory,
}

measure: Final = measuring(Path(__file__).parent, _MEASURES)
