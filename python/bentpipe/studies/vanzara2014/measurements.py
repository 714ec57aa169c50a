"""Measurements of the claims: one function for each claim, named by its id."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from bentpipe.studies.judging import ratio, steps
from bentpipe.studies.study import Claim, Measurement, measuring
from bentpipe.studies.vanzara2014 import cells
from bentpipe.studies.vanzara2014.cells import (
    FLOW_COUNTS,
    RULES,
    Contest,
    Transfer,
    with_capacity_share,
)
from bentpipe.studies.vanzara2014.evidence import TIMES_S, Evidence
from bentpipe.studies.vanzara2014.figures import bound_bps, exponent

Measure = Callable[[Evidence, Claim], Measurement]
SHORT: Final = {"hybla": "Hybla", "westwood": "Westwood", "enhanced-hybla": "Enhanced"}


def _shown(evidence: Evidence, transfer: Transfer) -> str:
    spread = evidence.spread(transfer)
    text = f"{spread.median / 1e6:.3g}"
    if spread.runs == 1:
        return text
    return f"{text} ({spread.lower_quartile / 1e6:.3g} to {spread.upper_quartile / 1e6:.3g})"


def _over(rule: str, rate: float) -> Transfer:
    return Transfer(rule=rule, bit_error_rate=rate)


def _goodput(rule: str, rate: float) -> Measure:
    """Measure a goodput over ten minutes: the median of the seeds."""

    def measured(evidence: Evidence, _: Claim) -> Measurement:
        return Measurement(
            measured=f"{_shown(evidence, _over(rule, rate))} Mbit/s",
            values={"goodput_mbps": [evidence.median_bps(_over(rule, rate)) / 1e6]},
        )

    return measured


def _within_100_s(evidence: Evidence, _: Claim) -> Measurement:
    at_100_s = int((TIMES_S == 100).argmax())
    parts = []
    rates = []
    for rule in ("hybla", "enhanced-hybla"):
        rate = float(np.median(evidence.rates_bps(_over(rule, 0.0))[:, at_100_s])) / 1e6
        average = float(np.median(evidence.curves_bps(_over(rule, 0.0))[:, at_100_s])) / 1e6
        rates.append(rate)
        parts.append(f"{SHORT[rule]} {rate:.1f} Mbit/s ({average:.1f} on average from the start)")
    return Measurement(measured=", ".join(parts), values={"goodput_mbps": rates})


def _westwood_later(evidence: Evidence, _: Claim) -> Measurement:
    peak = 0.95 * cells.CAPACITY_BPS
    reached = {rule: evidence.reached_s(_over(rule, 0.0), peak) for rule in RULES}
    listed = ", ".join(f"{SHORT[rule]} {time_s:g} s" for rule, time_s in reached.items())
    others = max(reached["hybla"], reached["enhanced-hybla"])
    return Measurement(
        measured=f"reached by {listed}",
        values={"westwood_over_later_of_others": [ratio(reached["westwood"], others)]},
    )


def _westwood_stays_below(evidence: Evidence, _: Claim) -> Measurement:
    curve = np.median(evidence.curves_bps(_over("westwood", 1e-8)), axis=0) / 1e6
    where = int(curve.argmax())
    control = (
        float(np.median(evidence.curves_bps(_over("westwood-2001", 1e-8)), axis=0).max()) / 1e6
    )
    return Measurement(
        measured=f"highest median {curve[where]:.1f} Mbit/s, at {TIMES_S[where]:g} s; at 600 s "
        f"{_shown(evidence, _over('westwood', 1e-8))} Mbit/s; control: Westwood of 2001 "
        f"{control:.1f} Mbit/s",
        values={"highest_mbps": [float(curve.max())], "highest_of_2001_mbps": [control]},
    )


def _as_without_loss(evidence: Evidence, _: Claim) -> Measurement:
    with_loss, without = (evidence.median_bps(_over("enhanced-hybla", r)) for r in (1e-8, 0.0))
    return Measurement(
        measured=f"{_shown(evidence, _over('enhanced-hybla', 1e-8))} with and "
        f"{without / 1e6:.4g} Mbit/s without losses: {with_loss / without - 1.0:+.1%}",
        values={"with_errors_over_without": [with_loss / without]},
    )


def _westwood_ahead(evidence: Evidence, _: Claim) -> Measurement:
    westwood, hybla = (_over(rule, 1e-7) for rule in ("westwood", "hybla"))
    return Measurement(
        measured=f"Westwood {_shown(evidence, westwood)}, Hybla {_shown(evidence, hybla)} Mbit/s",
        values={
            "westwood_over_hybla": [
                ratio(evidence.median_bps(westwood), evidence.median_bps(hybla))
            ]
        },
    )


def _peak_time(evidence: Evidence, claim: Claim) -> Measurement:
    return _time_of_peak(evidence, claim, _over("enhanced-hybla", 1e-6))


def _time_of_peak(evidence: Evidence, claim: Claim, transfer: Transfer) -> Measurement:
    curve = np.median(evidence.curves_bps(transfer), axis=0) / 1e6
    then = float(curve[int((TIMES_S == 240).argmax())])
    first = TIMES_S[np.flatnonzero(curve >= (1.0 - claim.tolerance) * curve.max())[0]]
    return Measurement(
        measured=f"{then:.1f} of {curve.max():.1f} Mbit/s at 240 s; within 5% of the highest "
        f"from {first:g} s on",
        values={"share_of_highest": [then / float(curve.max())]},
    )


def _after_200_s(evidence: Evidence, _: Claim) -> Measurement:
    return _from_200_s(evidence, _over("enhanced-hybla", 1e-5))


def _from_200_s(evidence: Evidence, transfer: Transfer) -> Measurement:
    rates = evidence.rates_bps(transfer)[:, TIMES_S > 200].mean(axis=1) / 1e6
    low, middle, high = np.percentile(rates, (25, 50, 75))
    bound = bound_bps(1e-5) / 1e6
    return Measurement(
        measured=f"{middle:.3g} ({low:.3g} to {high:.3g}) Mbit/s; the bound is {bound:.1f}",
        values={"goodput_mbps": [float(middle)]},
    )


def _round_trips(evidence: Evidence, rule: str) -> dict[int, float]:
    found = {}
    for round_trip_ms in cells.FIGURE_7_ROUND_TRIPS_MS:
        transfer = Transfer(
            rule=rule, bit_error_rate=cells.FIGURE_7_RATE, round_trip_ms=round_trip_ms
        )
        if evidence.has(transfer):
            found[round_trip_ms] = evidence.median_bps(transfer) / 1e6
    return found


def _listed(values: Mapping[int, float]) -> str:
    return ", ".join(f"{mbps:.3g} ({trip} ms)" for trip, mbps in values.items()) + " Mbit/s"


def _enhanced_flat(evidence: Evidence, _: Claim) -> Measurement:
    values = _round_trips(evidence, "enhanced-hybla")
    apart = max(values.values()) / min(values.values())
    return Measurement(
        measured=f"{_listed(values)}: {apart - 1.0:.1%} apart",
        values={"largest_over_smallest": [apart]},
    )


def _hybla_at_each(evidence: Evidence, _: Claim) -> Measurement:
    values = _round_trips(evidence, "hybla")
    return Measurement(measured=_listed(values), values={"goodput_mbps": list(values.values())})


def _westwood_falls(evidence: Evidence, _: Claim) -> Measurement:
    values = _round_trips(evidence, "westwood")
    return Measurement(
        measured=_listed(values), values={"step_to_the_next": steps(list(values.values()))}
    )


def _equal(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    shares = []
    for rate in (0.0, 1e-11, 1e-10):
        if not evidence.has(_over("hybla", rate)):
            continue
        hybla, enhanced = (evidence.median_bps(_over(r, rate)) for r in ("hybla", "enhanced-hybla"))
        shares.append(enhanced / hybla)
        parts.append(f"{hybla / 1e6:.4g} and {enhanced / 1e6:.4g} ({exponent(rate)})")
    return Measurement(
        measured=", ".join(parts) + " Mbit/s", values={"enhanced_over_hybla": shares}
    )


def _degrade(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    falls: list[float] = []
    for rule in ("hybla", "westwood"):
        transfers = [_over(rule, rate) for rate in cells.FIGURE_8_RATES if rate >= 1e-10]
        values = [evidence.median_bps(each) / 1e6 for each in transfers if evidence.has(each)]
        falls += steps(values)
        parts.append(f"{SHORT[rule]} " + ", ".join(f"{each:.3g}" for each in values))
    return Measurement(measured="; ".join(parts) + " Mbit/s", values={"step_to_the_next": falls})


def _file(evidence: Evidence, rule: str, rate: float, size: int) -> float | None:
    transfer = Transfer(rule=rule, bit_error_rate=rate, file_bytes=size)
    return evidence.median_bps(transfer) / 1e6 if evidence.has(transfer) else None


def _files(
    evidence: Evidence, rule: str, rate: float, sizes: Sequence[int]
) -> tuple[list[float], str]:
    found = {size: _file(evidence, rule, rate, size) for size in sizes}
    values = {size: each for size, each in found.items() if each is not None}
    missing = len(sizes) - len(values)
    listed = ", ".join(f"{each:.3g} ({_size(size)})" for size, each in values.items())
    note = f"; {missing} of the sizes not simulated in a quick run" if missing else ""
    return list(values.values()), f"{SHORT[rule]} {listed} Mbit/s{note}"


def _size(size: int) -> str:
    for unit, factor in (("GB", 10**9), ("MB", 10**6)):
        if size >= factor:
            return f"{size // factor} {unit}"
    return f"{size // 1000} kB"


def _grows(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    growth: list[float] = []
    for rule in RULES:
        values, text = _files(evidence, rule, 0.0, cells.FILE_BYTES)
        growth += steps(values)
        parts.append(text)
    return Measurement(measured="; ".join(parts), values={"step_to_the_next": growth})


def _file_goodput(rules: Sequence[str], rate: float, sizes: Sequence[int]) -> Measure:
    """Measure the goodput of each of these files."""

    def measured(evidence: Evidence, _: Claim) -> Measurement:
        parts = []
        found: list[float] = []
        for rule in rules:
            values, text = _files(evidence, rule, rate, sizes)
            parts.append(text)
            # A rule without sizes in a quick run must not pass.
            found += values or [float("nan")]
        return Measurement(measured="; ".join(parts), values={"goodput_mbps": found})

    return measured


_LARGE: Final = (500_000_000, 1_000_000_000, 2_000_000_000)


def _westwood_achieves(evidence: Evidence, _: Claim) -> Measurement:
    values, text = _files(evidence, "westwood", 1e-8, _LARGE)
    return Measurement(measured=text, values={"goodput_mbps": [max(values, default=float("nan"))]})


def _files_as_without(evidence: Evidence, _: Claim) -> Measurement:
    changes = {}
    for size in cells.FILE_BYTES:
        with_loss = _file(evidence, "enhanced-hybla", 1e-8, size)
        without = _file(evidence, "enhanced-hybla", 0.0, size)
        if with_loss is not None and without is not None:
            changes[_size(size)] = with_loss / without - 1.0
    return Measurement.of_changes(
        "with errors against without", "with_errors_over_without", changes
    )


def _erasure_bound(evidence: Evidence, _: Claim) -> Measurement:
    shares = {
        cell: evidence.goodput_bps(cell) / bound_bps(cell.bit_error_rate)
        for cell in evidence.outcomes
        if isinstance(cell, Transfer) and cell.file_bytes is None
    }
    highest = max(shares, key=lambda cell: shares[cell])
    return Measurement(
        measured=f"{len(shares)} runs; the highest has {shares[highest]:.1%} of the bound "
        f"({cells.NAMES[highest.rule]}, BER {exponent(highest.bit_error_rate)}); at 1e-5 it is "
        f"{bound_bps(1e-5) / 1e6:.1f} Mbit/s",
        values={"highest_share_of_bound": [shares[highest]]},
    )


def _both(rate: float, file_bytes: int | None = None) -> Transfer:
    """Return Enhanced Hybla with CC of both directions."""
    return Transfer(
        rule="enhanced-hybla",
        bit_error_rate=rate,
        file_bytes=file_bytes,
        setting=cells.BOTH_DIRECTIONS,
    )


def _both_over_time(*rates: float) -> Measure:
    """Measure goodputs over ten minutes with CC of both directions."""

    def measured(evidence: Evidence, _: Claim) -> Measurement:
        found = {rate: _both(rate) for rate in rates}
        listed = ", ".join(f"{_shown(evidence, each)} ({exponent(r)})" for r, each in found.items())
        values = [evidence.median_bps(each) / 1e6 for each in found.values()]
        return Measurement(measured=f"{listed} Mbit/s", values={"goodput_mbps": values})

    return measured


def _both_after_200_s(evidence: Evidence, _: Claim) -> Measurement:
    return _from_200_s(evidence, _both(1e-5))


def _both_peak_time(evidence: Evidence, claim: Claim) -> Measurement:
    return _time_of_peak(evidence, claim, _both(1e-6))


def _both_files(rate: float) -> Measure:
    """Measure files of 500 MB and more with CC of both directions."""

    def measured(evidence: Evidence, _: Claim) -> Measurement:
        found = {size: _both(rate, size) for size in cells.LARGE_FILE_BYTES}
        simulated = {size: each for size, each in found.items() if evidence.has(each)}
        listed = ", ".join(
            f"{_shown(evidence, each)} ({_size(size)})" for size, each in simulated.items()
        )
        values = [evidence.median_bps(each) / 1e6 for each in simulated.values()]
        return Measurement(measured=f"{listed} Mbit/s", values={"goodput_mbps": values})

    return measured


def _estimated_capacity(evidence: Evidence, _: Claim) -> Measurement:
    shares = {}
    for rate in cells.RATES:
        estimated = Transfer(rule="enhanced-hybla", bit_error_rate=rate, setting=cells.ESTIMATED)
        shares[rate] = ratio(
            evidence.median_bps(estimated), evidence.median_bps(_over("enhanced-hybla", rate))
        )
    listed = ", ".join(f"{share:.3f} ({exponent(rate)})" for rate, share in shares.items())
    return Measurement(
        measured=f"of the goodput with a configured capacity: {listed}",
        values={"share_of_configured": list(shares.values())},
    )


def _half_is_fixed(evidence: Evidence, _: Claim) -> Measurement:
    """Measure goodput over half of CC, where losses are continuous and where they are rare."""

    def share(factor: float, rate: float) -> float:
        rates = evidence.rates_bps(with_capacity_share(factor, rate))[:, TIMES_S > 300]
        return float(np.median(rates.mean(axis=1))) / (factor * cells.LINK_BPS / 2.0)

    shares = {factor: share(factor, 1e-6) for factor in (0.5, 0.8, 1.0)}
    control = share(1.0, 1e-8)
    listed = ", ".join(f"{each:.3f} ({factor:.0%})" for factor, each in shares.items())
    return Measurement(
        measured=f"{listed} of half of CC at 1e-6; control: {control:.2f} at 1e-8",
        values={"share_of_half": list(shares.values()), "share_at_1e_8": [control]},
    )


def _starves(evidence: Evidence, _: Claim) -> Measurement:
    parts = []
    shares: list[float] = []
    controls: list[float] = []
    for rival in ("reno", "cubic"):
        found = {}
        for flows in FLOW_COUNTS:
            own = evidence.sharing(Contest(subject=rival, rival=rival, flows=flows))
            beside = evidence.sharing(Contest(subject="enhanced-hybla", rival=rival, flows=flows))
            if own is None or beside is None:
                continue
            # The later half in both contests, so that the head start is the same.
            found[flows] = beside.rival_bps / own.rival_bps
            controls.append(own.rival_bps * flows / cells.CAPACITY_BPS)
        shares += found.values()
        listed = ", ".join(f"{share:.1%} ({flows} flows)" for flows, share in found.items())
        parts.append(f"{cells.NAMES[rival]} {listed}")
    return Measurement(
        measured="of the goodput beside its own kind: "
        + "; ".join(parts)
        + f"; control: beside its own kind, a later flow has {min(controls):.0%} to "
        f"{max(controls):.0%} of an equal share",
        values={"share_of_control": shares, "control_share": controls},
    )


_MEASURES: Final[Mapping[str, Measure]] = {
    "ber0-within-100-s": _within_100_s,
    "ber0-westwood-later": _westwood_later,
    "ber1e-8-westwood": _westwood_stays_below,
    "ber1e-8-hybla": _goodput("hybla", 1e-8),
    "ber1e-8-enhanced": _as_without_loss,
    "ber1e-7-westwood": _goodput("westwood", 1e-7),
    "ber1e-7-hybla": _goodput("hybla", 1e-7),
    "ber1e-7-order": _westwood_ahead,
    "ber1e-7-enhanced": _goodput("enhanced-hybla", 1e-7),
    "ber1e-6-westwood": _goodput("westwood", 1e-6),
    "ber1e-6-enhanced-peak": _goodput("enhanced-hybla", 1e-6),
    "ber1e-6-enhanced-time": _peak_time,
    "ber1e-5-westwood": _goodput("westwood", 1e-5),
    "ber1e-5-hybla": _goodput("hybla", 1e-5),
    "ber1e-5-enhanced": _after_200_s,
    "rtt-enhanced-flat": _enhanced_flat,
    "rtt-hybla": _hybla_at_each,
    "rtt-westwood": _westwood_falls,
    "ber-equal": _equal,
    "ber-degrade": _degrade,
    "files-ber0-grow": _grows,
    "files-ber0-westwood": _file_goodput(("westwood",), 0.0, _LARGE[2:]),
    "files-ber0-hyblas": _file_goodput(("hybla", "enhanced-hybla"), 0.0, _LARGE[:1]),
    "files-1e-8-westwood": _westwood_achieves,
    "files-1e-8-hybla-100MB": _file_goodput(("hybla",), 1e-8, (100_000_000,)),
    "files-1e-8-hybla-500MB": _file_goodput(("hybla",), 1e-8, _LARGE[:1]),
    "files-1e-8-hybla-2GB": _file_goodput(("hybla",), 1e-8, _LARGE[1:]),
    "files-1e-8-enhanced": _files_as_without,
    "files-1e-7-westwood": _file_goodput(("westwood",), 1e-7, _LARGE[2:]),
    "files-1e-7-hybla": _file_goodput(("hybla",), 1e-7, (100_000_000, *_LARGE)),
    "files-1e-7-enhanced": _file_goodput(("enhanced-hybla",), 1e-7, _LARGE),
    "erasure-bound": _erasure_bound,
    "both-ber": _both_over_time(1e-8, 1e-7, 1e-6),
    "both-ber1e-6-time": _both_peak_time,
    "both-ber1e-5": _both_after_200_s,
    "both-files-1e-8": _both_files(1e-8),
    "both-files-1e-7": _both_files(1e-7),
    "wrong-capacity": _half_is_fixed,
    "estimated-capacity": _estimated_capacity,
    "starves-rivals": _starves,
}

measure: Final = measuring(Path(__file__).parent, _MEASURES)
