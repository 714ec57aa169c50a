"""Paragraphs of the report on vanzara2014, with the numbers of a run."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bentpipe.studies.open_settings import committed
from bentpipe.studies.vanzara2014 import cells
from bentpipe.studies.vanzara2014.cells import (
    BOTH_DIRECTIONS,
    NAMES,
    PAYLOAD_BYTES,
    Transfer,
    with_capacity_share,
)
from bentpipe.studies.vanzara2014.evidence import SECONDS
from bentpipe.studies.vanzara2014.figures import bound_bps, exponent
from bentpipe.studies.vanzara2014.judgement import FACTORS, contests
from bentpipe.studies.vanzara2014.open_settings import SEARCH, departures

if TYPE_CHECKING:
    from bentpipe.studies.vanzara2014.evidence import Evidence

# Goodputs of ns-2's TCP-Linux, of benches/witness/vanzara2014.json.
WITNESS = Path(__file__).with_name("witness.csv")


def remarks(evidence: Evidence) -> tuple[str, ...]:
    """Return the report's paragraphs with the numbers of this run."""
    return (
        _remark_capacity(evidence),
        _remark_possible(evidence),
        _remark_settings(),
        _remark_fixed_point(evidence),
        _remark_westwood(evidence),
        _remark_witness(),
        _remark_judgement(evidence),
    )


def witness_mbps(rule: str, rate: float) -> tuple[float, float, float]:
    """Return the mean and the range of ns-2's TCP-Linux, in Mbit/s.

    The initial threshold is one bandwidth-delay product.
    """
    with WITNESS.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if (
                row["congestion_control"] == rule
                and float(row["bit_error_rate"]) == rate
                and int(row["initial_slow_start_threshold"]) == cells.PIPE_PACKETS
            ):
                mean, low, high = (
                    float(row[f"{each}_mbps"]) for each in ("mean", "lowest", "highest")
                )
                return mean, low, high
    raise KeyError(f"{WITNESS.name} has no {rule} at {rate:g}")


def _enhanced(rate: float, *, both: bool) -> Transfer:
    setting = BOTH_DIRECTIONS if both else cells.MAIN
    return Transfer(rule="enhanced-hybla", bit_error_rate=rate, setting=setting)


def _remark_capacity(evidence: Evidence) -> str:
    rates = (1e-8, 1e-7, 1e-6, 1e-5)

    def listed(both: bool) -> str:
        values = [evidence.median_bps(_enhanced(rate, both=both)) / 1e6 for rate in rates]
        return ", ".join(f"{value:.1f}" for value in values)

    return (
        "Two readings of CC. The paper calls CC the “bottleneck link capacity” and configures a "
        "“100 Mbps link of uplink and downlink”. With CC of 100 Mbit/s, Enhanced Hybla has "
        f"{listed(False)} Mbit/s at {', '.join(map(exponent, rates))}. With 200 Mbit/s, both "
        f"directions together, it has {listed(True)}. Only the second reading gives the paper's "
        "goodputs; its claims have the prefix “both”."
    )


def _remark_possible(evidence: Evidence) -> str:
    return (
        "Is 90 Mbit/s at a BER of 1e-5 possible? A packet of 1500 B then survives with probability "
        f"(1 - 1e-5)^12000 = {(1 - 1e-5) ** 12000:.3f}. The link carries "
        f"{cells.CAPACITY_BPS / 1e6:.1f} Mbit/s of payload, so that at most "
        f"{bound_bps(1e-5) / 1e6:.1f} Mbit/s of it arrive on average, whatever TCP does: “around "
        "90” holds only as far as 5% around it. Counted as packets of 1500 B, headers included, "
        f"the bound is {bound_bps(1e-5) / cells.CAPACITY_BPS * 100:.1f} Mbit/s. We measure "
        f"{evidence.median_bps(_enhanced(1e-5, both=False)) / 1e6:.3g} Mbit/s with CC of 100 "
        f"Mbit/s and {evidence.median_bps(_enhanced(1e-5, both=True)) / 1e6:.3g} with 200."
    )


def _remark_settings() -> str:
    rows = committed("vanzara2014")
    best = SEARCH.best(rows)
    most = best[0].within
    plain = next(row for row in rows if not departures(row.setting))
    of = len(SEARCH.published)
    never = [
        name
        for name, each in SEARCH.published.items()
        if not any(each.met(row.measured) for row in rows)
    ]
    ties = [row for row in best if row.within == most]
    # The one with the fewest departures.
    simplest = min(ties, key=lambda row: len(departures(row.setting)))
    return (
        "The paper leaves open loss recovery, the queue, delayed ACKs, the initial threshold, the "
        f"variant of Westwood and what CC is fed. We tried {len(rows)} settings (table A1). Our "
        f"main setting reproduces {plain.within} of {of} values of the text. {len(ties)} settings "
        f"reproduce {most}; the one closest to the main setting has "
        f"{'; '.join(departures(simplest.setting))}. Values that no setting reproduces (Mbit/s): "
        f"{'; '.join(never) or 'none'}."
    )


def _remark_fixed_point(evidence: Evidence) -> str:
    first = Transfer(rule="enhanced-hybla", bit_error_rate=1e-6)
    window = evidence.window_packets(first)
    top = int(window.argmax())
    half = cells.LINK_BPS / 2.0 * cells.ROUND_TRIP_MS / 8e3 / PAYLOAD_BYTES
    late = float(np.median(window[len(window) // 2 :]))
    # The first second at which the window is within 5% of its later median.
    settled = int(np.flatnonzero(window[top:] <= 1.05 * late)[0]) + top
    fall = (window[top] - window[settled]) / (SECONDS[settled] - SECONDS[top])
    return (
        "Half of CC is a fixed point of the algorithm as printed. At a BER of 1e-6, of "
        f"{cells.PIPE_PACKETS} packets in flight "
        f"{cells.PIPE_PACKETS * (1 - (1 - 1e-6) ** 12000):.0f} are lost, so that one recovery "
        "follows the other, and no window grows in recovery. Each begins with the window that its "
        "bandwidth fills, less what was lost; below half of CC, with the rest of CC. The window's "
        f"trace (seed 1) falls from {window[top]:.0f} segments at {SECONDS[top]:.0f} s by "
        f"{fall:.0f} a second and stays near {late:.0f} from {SECONDS[settled]:.0f} s on; half of "
        f"CC is {half:.0f} segments. Over 600 s that is "
        f"{evidence.median_bps(first) / 1e6:.3g} Mbit/s (median of the seeds)."
    )


def _remark_westwood(evidence: Evidence) -> str:
    rates = (1e-8, 1e-7, 1e-6)

    def ours(rule: str) -> str:
        transfers = [Transfer(rule=rule, bit_error_rate=rate) for rate in rates]
        return ", ".join(f"{evidence.median_bps(each) / 1e6:.3g}" for each in transfers)

    tool = []
    for rate in rates:
        mean, low, high = witness_mbps("westwood", rate)
        tool.append(f"{mean:.3g} ({low:.3g} to {high:.3g})")
    return (
        "Three Westwoods. The paper cites the rule of 2001, whose estimate has a sample per "
        "acknowledgment. Its tool, ns-2's TCP-Linux, has Westwood+, and never informs its module "
        "that a recovery has ended, so that a loss leaves half of the flight at least; our main "
        "setting does the same. In the papers on Westwood+, and in Linux today, a loss leaves what "
        "the path was seen to deliver, however little. In Mbit/s at "
        f"{', '.join(map(exponent, rates))}: the rule of 2001 {ours('westwood-2001')}; Westwood+ "
        f"as in the tool {ours('westwood')}; the tool itself {', '.join(tool)} (mean and range "
        "over five seeds). The paper has less than 50, 17 and less than 0.5."
    )


def _remark_witness() -> str:
    parts = []
    for rate in (1e-8, 1e-7, 1e-6, 1e-5):
        mean, low, high = witness_mbps("hybla", rate)
        parts.append(f"{mean:.3g} ({low:.3g} to {high:.3g}) at {exponent(rate)}")
    return (
        "The witness. The paper ran ns-2's TCP-Linux; benches/witness has its runs of Hybla, "
        "Westwood, Reno and CUBIC on this network. Its Hybla has, in Mbit/s, "
        f"{'; '.join(parts)}. tests/python/test_witness_linux_tcp.py compares these runs with ours "
        "and names the cells outside of ns-2's range; benches/witness/linux_tcp.md explains each. "
        "Enhanced Hybla is not in ns-2: its only witness is the paper."
    )


def _remark_judgement(evidence: Evidence) -> str:
    shares_of_capacity = {
        f: evidence.median_bps(with_capacity_share(f, 1e-6)) / 1e6 for f in FACTORS
    }
    listed = ", ".join(f"{mbps:.3g} ({factor:.0%})" for factor, mbps in shares_of_capacity.items())
    shares = []
    for (subject, rival), found in contests(evidence).items():
        if subject != "enhanced-hybla":
            continue
        flows, sharing = next(iter(found.items()))
        shares.append(
            f"of {flows} flows, {NAMES[rival]}'s gets {sharing.rival_bps / 1e6:.3g} and Enhanced "
            f"Hybla's {sharing.subject_bps / 1e6:.3g} Mbit/s, with "
            f"{1e3 * sharing.queueing_delay_s:.0f} ms of queueing delay"
        )
    rules = ("enhanced-hybla", *cells.OTHER_RULES)

    def goodputs(rate: float) -> str:
        transfers = {rule: Transfer(rule=rule, bit_error_rate=rate) for rule in rules}
        return ", ".join(
            f"{NAMES[rule]} {evidence.median_bps(each) / 1e6:.3g}"
            for rule, each in transfers.items()
        )

    beside = "; ".join(f"{exponent(rate)}: {goodputs(rate)}" for rate in cells.RATES)
    return (
        f"Our judgement. Beside others, in Mbit/s by BER: {beside}. BBR needs no capacity and "
        "comes near; BBR 3 takes more than 2% of losses for congestion, whatever they are. "
        "Enhanced Hybla is as good as the capacity that it is told: at a BER of 1e-6 it has "
        f"{listed} Mbit/s with that share of it. It takes no account of other flows: "
        f"{'; '.join(shares)}. Figure A4 has rivals of the same kind as controls. The subject "
        "always starts first, and there is one run of each."
    )
