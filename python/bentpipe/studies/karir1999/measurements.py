"""Measurements of the claims: one function for each claim, named by its id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from bentpipe.studies.judging import ratio, steps
from bentpipe.studies.karir1999 import cells, open_settings
from bentpipe.studies.karir1999.cells import (
    GATEWAYS,
    LARGE_WINDOWS,
    LINK_BPS,
    NAMES,
    NETWORKS,
    SATELLITE,
    TERRESTRIAL,
    paper,
)
from bentpipe.studies.karir1999.evidence import Evidence, jain
from bentpipe.studies.open_settings import Number, Setting, committed
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
    control = [evidence.link_bps(each) for each in cells.WITHOUT_DELAY]
    with_delay, without = (
        ", ".join(f"{bps / 1e3:.0f}" for bps in each) for each in (found, control)
    )
    return Measurement(
        measured=f"{with_delay} kbit/s; without the satellite's delay {without} kbit/s",
        values={
            "step_to_the_next_network": steps(found),
            "step_without_delay": steps(control),
        },
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
    of_found = {network: evidence.busy_s(open_settings.found(network)) for network in NETWORKS}
    with_found = ", ".join(f"{time:.0f} s" for time in of_found.values())
    return Measurement(
        measured=f"{listed}; with the windows that were found {with_found}",
        values={"longest_over_others_shortest": [ratio(longest, shortest)]},
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


def _one_window(_: Evidence, __: Claim) -> Measurement:
    large, capacity = (open_settings.SEARCH.published[each] for each in _BOTH)
    rows = committed("karir1999")
    same = [row for row in rows if row.setting["large_window"] == row.setting["middle_window"]]
    both = [row for row in same if large.met(row.measured) and capacity.met(row.measured)]
    apart = [row for row in rows if large.met(row.measured) and capacity.met(row.measured)]
    lossless = [row for row in same if row.setting["loss"] == 0.0]
    ranges = [
        "{} to {} B".format(
            *_range(row.setting[name] for row in lossless if each.met(row.measured))
        )
        for each, name in ((large, "large_window"), (capacity, "middle_window"))
    ]
    return Measurement(
        measured=f"of {len(same)} settings with one large window {len(both)} give both; "
        f"without losses, the first needs {ranges[0]} between the hosts, the second {ranges[1]} "
        f"between the gateways; with two windows {len(apart)} of "
        f"{len(rows) - len(same)} settings give both",
        values={"settings_with_both": [len(both)]},
    )


# The claims that state the throughput with large windows end to end, and between the gateways.
_BOTH: Final = ("large-windows-850", "gateways-capacity")


def _range(values: Iterable[Number]) -> tuple[int, int]:
    found = sorted(int(each) for each in values)
    return found[0], found[-1]


def _ten_numbers(evidence: Evidence, _: Claim) -> Measurement:
    row = open_settings.measure_found(evidence)
    stated = [each for each in committed("karir1999") if _is_as_stated(each.setting)]
    setting = row.setting
    return Measurement(
        measured=f"{row.within} of {len(open_settings.SEARCH.published)} with a LAN delay of "
        f"{setting['lan_delay_ms']:g} ms, windows of {setting['window']} B and large windows of "
        f"{setting['large_window']} B between the hosts; with the windows as stated, at most "
        f"{max(each.within for each in stated)} at any of the delays",
        values={
            "numbers_within_tolerance": [row.within],
            "numbers_with_stated_windows": [max(each.within for each in stated)],
        },
    )


def _is_as_stated(setting: Setting) -> bool:
    windows = [setting[each] for each in ("window", "large_window", "middle_window")]
    return windows == [cells.STATED_WINDOW, cells.LARGE_WINDOW, cells.LARGE_WINDOW]


def _client_rtt(evidence: Evidence, _: Claim) -> Measurement:
    found = [evidence.flows(cell)[1].rtt_ms.mean or float("nan") for cell in cells.CLIENT_RTT]
    listed = ", ".join(
        f"{NAMES[cell.network]} {rtt:.0f} ms"
        for cell, rtt in zip(cells.CLIENT_RTT, found, strict=True)
    )
    return Measurement(
        measured=listed, values={"with_gateways_ms": found[:1], "without_ms": found[1:]}
    )


def _router_load(evidence: Evidence, _: Claim) -> Measurement:
    split, plain = (evidence.router_passes_per_s(paper(each)) for each in (GATEWAYS, TERRESTRIAL))
    return Measurement(
        measured=f"{split:.0f} and {plain:.0f} passes of the hub's IP layer per second: "
        f"{split / plain:.2f}",
        values={"gateways_over_router": [split / plain]},
    )


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
    warm = [evidence.flows(cell)[1] for cell in cells.WARM_ANSWERS]
    took = [(each.finish_s or float("nan")) - each.start_s for each in warm]
    return Measurement(
        measured=f"1 kB is there after {none:.3f} s without gateways, {whole:.3f} s with an "
        f"end-to-end set-up, {early:.3f} s with an early answer: {saved * 1e3:.0f} ms saved; over "
        f"persistent connections that are open, {took[0]:.3f} s and {took[1]:.3f} s: "
        f"{(took[0] - took[1]) * 1e3:.0f} ms saved",
        values={"saved_round_trips": [saved / cells.ROUND_TRIP_S]},
    )


def _memory(evidence: Evidence, _: Claim) -> Measurement:
    bound = cells.SMALL_MEMORY.memory_mib << 20
    unbound = replace(cells.SMALL_MEMORY, memory_mib=0)
    most, without = (
        evidence.most(cell, "bytes_held", "max") for cell in (cells.SMALL_MEMORY, unbound)
    )
    finished = sum(flow.finish_s is not None for flow in evidence.flows(cells.SMALL_MEMORY))
    return Measurement(
        measured=f"{cells.SMALL_MEMORY.flows} downloads: at most {most / 2**20:.2f} of "
        f"{bound / 2**20:.0f} MiB held, {finished} completed; with the default memory "
        f"{without / 2**20:.1f} MiB",
        values={
            "share_of_memory": [most / bound],
            "share_without_the_bound": [without / bound],
            "downloads_completed": [finished],
        },
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
    "client-rtt": _client_rtt,
    "router-load": _router_load,
    "one-window": _one_window,
    "ten-numbers": _ten_numbers,
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
