"""Measurements of the claims: one function for each claim, named by its id."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np

from bentpipe.studies.judging import ratio, steps
from bentpipe.studies.obata2000 import cells
from bentpipe.studies.obata2000.cells import ASYMMETRIC, FIGURE_5, FIGURE_6, SYMMETRIC, Transfer
from bentpipe.studies.obata2000.evidence import (
    EXISTING_READINGS,
    Comparison,
    Evidence,
    Floats,
    existing_bps,
    formula_bps,
)
from bentpipe.studies.study import Claim, Measurement, measuring

Measure = Callable[[Evidence, Claim], Measurement]


def _consistent(evidence: Evidence, claim: Claim) -> Measurement:
    found = evidence.figures_5_and_6_of(cells.KBYTES[0])
    both = evidence.figures_5_and_6
    limit = claim.expect["error_over_axis"].at_most or 0.0
    inside, total = (int(np.sum(np.abs(each.axis_error) <= limit)) for each in (found, both))
    worst = int(np.argmax(np.abs(found.axis_error)))
    return Measurement(
        measured=f"{inside} of {len(found.transfers)} cells within {limit:.0%} of the axis, "
        f"largest {found.axis_error[worst]:+.2%} ({_place(found.transfers[worst])}); with "
        f"KByte = 1000 as well, {total} of {len(both.transfers)}",
        values={"error_over_axis": found.axis_error.tolist()},
    )


def _consistent_values(evidence: Evidence, claim: Claim) -> Measurement:
    comparison = evidence.figures_5_and_6
    return _within(comparison, comparison.formula_error, claim)


def _corrected_figures(evidence: Evidence, claim: Claim) -> Measurement:
    comparison = evidence.figures_5_and_6
    return _within(comparison, comparison.corrected_error, claim)


def _corrected_random(evidence: Evidence, claim: Claim) -> Measurement:
    comparison = evidence.random
    return _within(comparison, comparison.corrected_error, claim)


def _within(comparison: Comparison, errors: Floats, claim: Claim) -> Measurement:
    """Measure how many errors are within the claim's tolerance, and state the largest."""
    sizes = np.abs(errors)
    inside = int(np.sum(sizes <= claim.tolerance))
    worst = int(np.argmax(sizes))
    where = _place(comparison.transfers[worst])
    measured = (
        f"{inside} of {len(sizes)} cells within {claim.tolerance:.0%}; "
        f"median error {np.median(sizes):.2%}, largest {errors[worst]:+.2%} ({where})"
    )
    return Measurement(
        measured=measured, values={"formula_over_simulation": (1.0 + errors).tolist()}
    )


def _place(transfer: Transfer) -> str:
    network = transfer.network
    return (
        f"window of {transfer.window_segments} segments, "
        f"{network.uplink_bps / 1e3:g} kbit/s and {network.uplink_delay_s * 1e3:g} ms up"
    )


def _delay_order(evidence: Evidence, _: Claim) -> Measurement:
    return _ordered_curves(evidence, ["250 ms", "125 ms", "30 ms", "25 ms"], FIGURE_5)


def _narrow_uplink(evidence: Evidence, _: Claim) -> Measurement:
    against = [
        _ordered_curves(evidence, ["4 kbit/s", other], FIGURE_6)
        for other in ("16 kbit/s", "64 kbit/s")
    ]
    return Measurement(
        measured="; ".join(each.measured for each in against),
        values={
            "other_over_4_kbps": [
                one for each in against for one in each.values["step_to_the_next_curve"]
            ]
        },
    )


def _bandwidth_order(evidence: Evidence, _: Claim) -> Measurement:
    return _ordered_curves(evidence, ["4 kbit/s", "16 kbit/s", "64 kbit/s"], FIGURE_6)


def _ordered_curves(
    evidence: Evidence, names: Sequence[str], networks: Mapping[str, cells.Network]
) -> Measurement:
    """Measure how much the curves rise in this order, at each of the paper's windows."""
    ascents: list[float] = []
    right: list[int] = []
    wrong: list[int] = []
    shown = ""
    for kbytes in cells.WINDOWS_KBYTES:
        rates = [
            evidence.simulated_bps(
                Transfer(
                    network=networks[name],
                    window_segments=cells.window_segments(kbytes),
                    file_bytes=cells.FILE_KBYTES * 1024,
                )
            )
            for name in names
        ]
        ascents += steps(rates)
        in_order = all(low < high for low, high in pairwise(rates))
        (right if in_order else wrong).append(kbytes)
        # State a window that is out of order, or else the largest.
        if not in_order or not wrong:
            shown = f"at {kbytes} KByte: {_kbits(rates)} kbit/s"
    measured = f"in order at {len(right)} of {len(right) + len(wrong)} windows; {shown}"
    return Measurement(
        measured=f"{', '.join(names)}: {measured}",
        values={"step_to_the_next_curve": ascents},
    )


def _saturates(evidence: Evidence, _: Claim) -> Measurement:
    changes = {}
    for name, network in FIGURE_5.items():
        before, after = (
            evidence.simulated_bps(
                Transfer(
                    network=network,
                    window_segments=cells.window_segments(kbytes),
                    file_bytes=cells.FILE_KBYTES * 1024,
                )
            )
            for kbytes in (128, 192)
        )
        changes[name] = after / before - 1.0
    return Measurement.of_changes("from 128 to 192 KByte", "after_over_before", changes, digits=2)


def _delay_saturation(evidence: Evidence, _: Claim) -> Measurement:
    names = [f"{round(delay_s * 1e3)} ms" for delay_s in sorted(cells.SATURATION_DELAYS_S)]
    windows = [evidence.saturation_windows[name] for name in names]
    # None means that it does not saturate, which is no order.
    found = [float("nan") if window is None else window for window in windows]
    return Measurement(
        measured=_windows(evidence, names), values={"step_to_the_next_window": steps(found)}
    )


def _saturation_window(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    shares = []
    for name, network in cells.saturation_networks().items():
        expected = network.saturation_window()
        found = evidence.saturation_windows[name]
        shares.append(float("nan") if found is None else found / expected)
        parts.append(f"{'none' if found is None else found} for {expected:.1f} ({name})")
    measured = "simulated for computed, in segments: " + ", ".join(parts)
    return Measurement(measured=measured, values={"simulated_over_computed": shares})


def _proportional_delay(evidence: Evidence, _: Claim) -> Measurement:
    measurement = _ratio(evidence, "250 ms", "125 ms")
    added = "; it grows linearly, but from the satellite's own delay on"
    return Measurement(measured=measurement.measured + added, values=measurement.values)


def _inverse_bandwidth(evidence: Evidence, _: Claim) -> Measurement:
    measurement = _ratio(evidence, "64 kbit/s", "128 kbit/s")
    added = "; the ACK's transmission is the only term that the bandwidth is in, and a small one"
    return Measurement(measured=measurement.measured + added, values=measurement.values)


def _ratio(evidence: Evidence, upper: str, lower: str) -> Measurement:
    first, second = (evidence.saturation_windows[name] for name in (upper, lower))
    if first is None or second is None:
        return Measurement(
            measured=_windows(evidence, [upper, lower]),
            values={"ratio_of_windows": [float("nan")]},
        )
    computed = (
        cells.saturation_networks()[upper].saturation_window()
        / cells.saturation_networks()[lower].saturation_window()
    )
    found = first / second
    return Measurement(
        measured=f"{first} / {second} segments = {found:.2f}; equation 13 gives {computed:.2f}",
        values={"ratio_of_windows": [found]},
    )


def _windows(evidence: Evidence, names: Iterable[str]) -> str:
    return ", ".join(
        f"{evidence.saturation_windows[name] or 'none found'} segments ({name})" for name in names
    )


def _small_windows(evidence: Evidence, _: Claim) -> Measurement:
    return _asymmetric_above(evidence, (2, 4, 6))


def _asymmetric_raises(evidence: Evidence, _: Claim) -> Measurement:
    return _asymmetric_above(evidence, cells.VSAT_WINDOWS_KBYTES)


def _asymmetric_above(evidence: Evidence, windows_kbytes: Sequence[int]) -> Measurement:
    gains = {}
    for kbytes in windows_kbytes:
        asymmetric, symmetric = (
            evidence.simulated_bps(
                Transfer(
                    network=network,
                    window_segments=cells.window_segments(kbytes),
                    file_bytes=cells.FILE_KBYTES * 1024,
                )
            )
            for network in (ASYMMETRIC, SYMMETRIC)
        )
        gains[f"{kbytes} KByte"] = asymmetric / symmetric - 1.0
    return Measurement.of_changes(
        "asymmetric against symmetric", "asymmetric_over_symmetric", gains
    )


def _existing_overestimates(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    shares = []
    for reading, meaning in EXISTING_READINGS.items():
        above = total = 0
        for network in (SYMMETRIC, ASYMMETRIC):
            comparison = evidence.vsat(network)
            existing = existing_bps(comparison.transfers, reading=reading)
            above += int(np.sum(existing > comparison.simulated_bps))
            total += len(existing)
        shares.append(above / total)
        parts.append(f"above the simulation in {above} of {total} cells with {meaning}")
    return Measurement(measured="; ".join(parts), values={"share_of_cells_above": shares})


def _more_precise(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    shares: list[float] = []
    for figure, network in (("7", SYMMETRIC), ("8, 10", ASYMMETRIC)):
        comparison = evidence.vsat(network)
        proposed = float(np.mean(np.abs(comparison.formula_error)))
        existing = {
            meaning: _mean_error(comparison, existing_bps(comparison.transfers, reading=reading))
            for reading, meaning in EXISTING_READINGS.items()
        }
        shares += [ratio(proposed, error) for error in existing.values()]
        others = ", ".join(f"{error:.1%} ({meaning})" for meaning, error in existing.items())
        parts.append(f"figure {figure}: proposed {proposed:.1%}, existing {others}")
    return Measurement(
        measured="mean errors: " + "; ".join(parts),
        values={"proposed_over_existing_error": shares},
    )


def _small_data(evidence: Evidence, _: Claim) -> Measurement:
    ratios = []
    parts = []
    for name, (small, large) in cells.short_and_long_cells().items():
        advantages = _advantages(evidence.compare([*small, large]))
        ratios += [ratio(each, advantages[-1]) for each in advantages[:-1]]
        parts.append(
            f"{name}: {min(advantages[:-1]):.3g} to {max(advantages[:-1]):.3g}, "
            f"at {cells.FILE_KBYTES} KByte {advantages[-1]:.3g}"
        )
    sizes = f"{cells.SHORT_FILES_KBYTES[0]} to {cells.SHORT_FILES_KBYTES[-1]} KByte"
    return Measurement(
        measured=f"error of the existing over that of the proposed formula, {sizes}: "
        + "; ".join(parts),
        values={"small_over_large_ratio": ratios},
    )


def _advantages(comparison: Comparison) -> list[float]:
    """Return the error of the existing formula over that of the proposed one, by transfer."""
    published = existing_bps(comparison.transfers, reading="published")
    existing = np.abs(published / comparison.simulated_bps - 1.0)
    return [
        ratio(float(theirs), float(ours))
        for theirs, ours in zip(existing, np.abs(comparison.formula_error), strict=True)
    ]


def _mean_error(comparison: Comparison, existing: Floats) -> float:
    return float(np.mean(np.abs(existing / comparison.simulated_bps - 1.0)))


def _deteriorates_32(evidence: Evidence, _: Claim) -> Measurement:
    reference_bps = evidence.simulated_bps(
        Transfer(
            network=ASYMMETRIC,
            window_segments=cells.window_segments(24),
            file_bytes=None,
            duration_s=cells.CONNECTION_S,
        )
    )
    lossy = {gap: evidence.simulated_bps(cell) for gap, cell in cells.lossy_cells().items()}
    lower = sum(rate < reference_bps for rate in lossy.values())
    rates = list(lossy.values())
    return Measurement(
        measured=f"{_kbits([min(rates)])} to {_kbits([max(rates)])} kbit/s with losses, "
        f"{_kbits([reference_bps])} kbit/s at 24 KByte without; lower for {lower} of "
        f"{len(lossy)} gaps",
        values={"with_losses_over_without": [ratio(rate, reference_bps) for rate in rates]},
    )


def _two_losses(evidence: Evidence, _: Claim) -> Measurement:
    flows = {gap: evidence.outcomes[cell].flow() for gap, cell in cells.lossy_cells().items()}
    shown_gap = cells.FIGURE_9_GAPS[0]
    shown = flows[shown_gap]
    series = evidence.outcomes[cells.lossy_cells()[shown_gap]].series
    window = series[f"{cells.FLOW}.congestion_window"].values
    # The connection begins with one segment: take the smallest window after the largest.
    smallest = float(window[int(np.argmax(window)) :].min()) / cells.SEGMENT_BYTES
    others = sum(flow.timeouts > 0 for flow in flows.values())
    return Measurement(
        measured=f"{shown.segments_retransmitted} segments retransmitted, {shown.timeouts} "
        f"timeouts, then a window of {smallest:.2g} segments; a timeout for {others} of "
        f"{len(flows)} gaps between the losses",
        values={
            "retransmitted": [shown.segments_retransmitted],
            "timeouts": [shown.timeouts],
            "window_segments": [smallest],
        },
    )


def _large_windows(evidence: Evidence, claim: Claim) -> Measurement:
    transfers = [
        Transfer(
            network=ASYMMETRIC,
            window_segments=cells.window_segments(kbytes),
            file_bytes=cells.FILE_KBYTES * 1024,
        )
        for kbytes in (16, 24, 32)
    ]
    comparison = evidence.compare(transfers)
    measurement = _within(comparison, comparison.formula_error, claim)
    bare = [
        replace(each, network=replace(each.network, redundancy=Fraction(1))) for each in transfers
    ]
    control = formula_bps(bare) / comparison.simulated_bps
    return Measurement(
        measured=f"{measurement.measured}; without redundancy {control.min() - 1.0:+.1%} "
        f"to {control.max() - 1.0:+.1%}",
        values={**measurement.values, "without_redundancy_over_simulation": control.tolist()},
    )


def _kbits(rates_bps: Iterable[float]) -> str:
    return ", ".join(f"{rate / 1e3:.4g}" for rate in rates_bps)


_MEASURES: Final[Mapping[str, Measure]] = {
    "consistent": _consistent,
    "consistent-values": _consistent_values,
    "delay-order": _delay_order,
    "delay-saturation": _delay_saturation,
    "narrow-uplink": _narrow_uplink,
    "bandwidth-order": _bandwidth_order,
    "saturates": _saturates,
    "saturation-window": _saturation_window,
    "proportional-delay": _proportional_delay,
    "inverse-bandwidth": _inverse_bandwidth,
    "small-windows": _small_windows,
    "asymmetric-raises": _asymmetric_raises,
    "existing-overestimates": _existing_overestimates,
    "more-precise": _more_precise,
    "small-data": _small_data,
    "deteriorates-32": _deteriorates_32,
    "two-losses": _two_losses,
    "large-windows": _large_windows,
    "corrected-figures": _corrected_figures,
    "corrected-random": _corrected_random,
}

measure: Final = measuring(Path(__file__).parent, _MEASURES)
