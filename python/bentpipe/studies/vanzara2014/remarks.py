"""Paragraphs of the report on vanzara2014, with the numbers of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.vanzara2014 import cells
from bentpipe.studies.vanzara2014.cells import ESTIMATE, NAMES, Transfer
from bentpipe.studies.vanzara2014.figures import bound_bps, exponent
from bentpipe.studies.vanzara2014.judgement import FACTORS, contests, with_capacity_share
from bentpipe.studies.vanzara2014.settings import PUBLISHED, Sweep

if TYPE_CHECKING:
    from bentpipe.studies.vanzara2014.evidence import Evidence


def remarks(evidence: Evidence, sweep: Sweep) -> tuple[str, ...]:
    """Return the report's paragraphs with the numbers of this run."""
    return (
        _remark_possible(evidence),
        _remark_settings(sweep),
        _remark_tried(evidence, sweep),
        _remark_westwood(sweep),
        _remark_witness(),
        _remark_judgement(evidence),
    )


def _remark_possible(evidence: Evidence) -> str:
    transfer = Transfer(rule="enhanced-hybla", bit_error_rate=1e-5)
    return (
        "Is 90 Mbit/s at a BER of 1e-5 possible? A packet of 1500 B then survives with probability "
        f"(1 - 1e-5)^12000 = {(1 - 1e-5) ** 12000:.3f}. The link carries "
        f"{cells.CAPACITY_BPS / 1e6:.1f} Mbit/s of payload, so that at most "
        f"{bound_bps(1e-5) / 1e6:.1f} Mbit/s of it arrive, whatever TCP does: the paper's 90 "
        "exceeds it. Counted as packets of 1500 B, headers included, the bound is still "
        f"{bound_bps(1e-5) / cells.CAPACITY_BPS * 100:.1f} Mbit/s. We measure "
        f"{evidence.median_bps(transfer) / 1e6:.3g} Mbit/s."
    )


def _remark_settings(sweep: Sweep) -> str:
    best = " and ".join(f"“{name}”" for name in sweep.best)
    most = sweep.reproduced(sweep.best[0])
    never = "; ".join(sweep.never) or "none"
    return (
        "The paper leaves open the queue, delayed ACKs, SACK, the initial threshold, and what CC "
        f"is fed. Figure A1 has one departure at a time, {len(sweep.names)} settings in all. "
        f"{best} fits best: {most} of {len(PUBLISHED)} published values. Values that no setting "
        f"reproduces (Mbit/s): {never}."
    )


def _remark_tried(evidence: Evidence, sweep: Sweep) -> str:
    enhanced = Transfer(rule="enhanced-hybla", bit_error_rate=1e-6)
    text = (
        "What doesn't hold, and why. Westwood: nothing in figure A1 comes near 17 Mbit/s at a BER "
        "of 1e-7, nor 50 at 1e-8: between two losses it grows by one segment a round trip, 600 ms, "
        "and the paper's own simulator, ns-2's TCP-Linux, gives 4 and 22 Mbit/s. Enhanced Hybla "
        "at 1e-6 and more: of 5000 packets in flight 60 are lost, so that one recovery follows "
        "the other, and no window grows in recovery. Each begins with the window that its "
        "bandwidth fills, less what was lost; below half of CC, with the rest of CC. So half of "
        "CC is a fixed point of the algorithm as printed. Seen in the window's trace (1e-6, "
        "seed 1): from 5180 segments at 3 s down by about 30 a second, and from 75 s on 2600 "
        f"segments, 52 Mbit/s; over 600 s {evidence.median_bps(enhanced) / 1e6:.3g}."
    )
    for name, meaning in (
        ("CC times 2", "twice the capacity (up and down together)"),
        ("CC times 8", "eight times (bits for bytes)"),
    ):
        if name in sweep.names:
            listed = " and ".join(
                f"{sweep.measured[name, each.label]:.3g}"
                for each in PUBLISHED
                if each.rule == "enhanced-hybla" and each.bit_error_rate >= 1e-6
            )
            text += f" Told {meaning}, it has {listed} Mbit/s at 1e-6 and 1e-5."
    return text


def _remark_westwood(sweep: Sweep) -> str:
    text = (
        "Two Westwoods. ns-2's TCP-Linux, which the paper ran, never tells Westwood's module that "
        "a recovery has ended, so that a loss leaves half of the flight at least; our settings do "
        "the same. In the papers on Westwood+, and in Linux today, it leaves what the path was "
        "seen to deliver, however little"
    )
    if ESTIMATE not in sweep.names:
        return text + "."
    listed = "; ".join(
        f"{each.label}: {sweep.measured['main', each.label]:.3g} and "
        f"{sweep.measured[ESTIMATE, each.label]:.3g}"
        for each in PUBLISHED
        if each.rule == "westwood"
    )
    return f"{text}: figure A1's “{ESTIMATE}”. In Mbit/s, the tool's and the papers': {listed}."


def _remark_witness() -> str:
    return (
        "The witness. The paper ran ns-2's TCP-Linux; benches/witness has its runs of Hybla, "
        "Westwood, Reno and CUBIC on this network, and tests/python/test_witness_linux_tcp.py"
        " compares them with ours, says what lies outside, and prints the table when it is "
        "run as a script. Hybla's mean is within 15% up to a BER of 1e-6, and 50% above at "
        "1e-5: TCP-Linux forgets at the end of a recovery what has arrived, sends it again, and "
        "its timeouts take 2 to 6 s. Westwood, Reno and CUBIC lie outside in several cells; with "
        "one line of each made as the module has it, all but Westwood at 1e-6 and what timeouts "
        "decide, 1e-5, lie within ns-2's range (benches/witness/linux_tcp.md). Enhanced Hybla is "
        "not in ns-2: its only witness is the paper."
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
        f"Our judgement. Beside others, in Mbit/s by BER: {beside}. BBR is told nothing and comes "
        "near; BBR 3 takes more than 2% of losses for congestion, whatever they are. Enhanced "
        "Hybla is as good as the capacity that it is told: at a BER of 1e-6 it has "
        f"{listed} Mbit/s with that share of it. It does not ask who else uses the link: "
        f"{'; '.join(shares)}. Jain's index says little here: CUBIC beside Reno, our control, is "
        "nearly as low (figure A4); the rivals' rates tell them apart. The subject always starts "
        "first, and there is one run of each."
    )
