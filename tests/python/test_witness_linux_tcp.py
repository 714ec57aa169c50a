"""bentpipe against ns-2's TCP-Linux: Hybla, Westwood+, Reno and CUBIC over the bit error rates.

Compares with the recorded runs of `benches/witness/vanzara2014.json`, and a few short live ones. As
a script, it compares the whole record and prints the table::

    python -m tests.python.test_witness_linux_tcp

With `--traces`, it runs the cells outside of ns-2's range in both programs, and prints what their
packet traces show.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bentpipe.scenario import Scenario
from bentpipe.studies import vanzara2014
from bentpipe.studies.runner import simulate

from .conftest import load_script

SCRIPT = Path(__file__).parents[2] / "benches" / "witness" / "vanzara2014.py"
HYBLA_TOLERANCE = 0.15


witness = load_script(SCRIPT)
traces = load_script(SCRIPT.with_name("vanzara2014_traces.py"))
RECORDED: Mapping[Any, Mapping[int, Any]] = witness.recorded()
# CUBIC 2.1 without a threshold overruns the queue and never recovers: linux_tcp.md.
MEANINGLESS = {
    cell
    for cell in RECORDED
    if cell.congestion_control == "cubic"
    and cell.bit_error_rate == 0.0
    and not cell.initial_slow_start_threshold
}


@dataclass(frozen=True, kw_only=True)
class Twin:
    """A cell of the ns-2 study with a seed, simulated by bentpipe.

    `alike`: loss recovery as similar to TCP-Linux's as possible (linux_tcp.md): FACK, without RACK,
    tail loss probes, limited transmit, F-RTO or undo. Otherwise bentpipe's own: SACK and RACK.
    """

    cell: Any
    seed: int
    alike: bool = False
    profile: str = "rfc"
    traced: bool = False

    def scenario(self) -> Scenario:
        cell = self.cell
        tcp = "hosts.server.tcp"
        settings: dict[str, object] = {
            # ns-2 sends data at 0 s; here the handshake comes first.
            "duration": f"{round((cell.duration_s + cell.round_trip_s) * 1e3)} ms",
            "seed": self.seed,
            f"{tcp}.congestion_control": cell.congestion_control,
            f"{tcp}.recovery": "sack",
            f"{tcp}.initial_window": f"{cell.initial_window} segments",
            f"{tcp}.minimum_rto": f"{round(cell.minimum_rto_s * 1e3)} ms",
            f"{tcp}.mss": f"{cell.mss_bytes} B",
            f"{tcp}.hybla.initial_threshold": "configured",
            f"{tcp}.hybla.after_loss": "half",
            f"{tcp}.hybla.after_timeout": "one-segment",
            "hosts.client.tcp.mss": f"{cell.mss_bytes} B",
            "hosts.client.tcp.delayed_ack": "off",
            "links.satellite.rate": f"{round(cell.rate_bps)} bit/s",
            "links.satellite.delay": f"{round(cell.round_trip_s * 5e5)} us",
            # ns-2 counts the packet being sent.
            "links.satellite.forward.queue.limit": f"{cell.queue_packets - 1} packets",
            "links.satellite.forward.errors.bit_error_rate": cell.bit_error_rate,
        }
        if cell.initial_slow_start_threshold:
            threshold = f"{cell.initial_slow_start_threshold} segments"
            settings[f"{tcp}.initial_slow_start_threshold"] = threshold
        if self.alike:
            settings[f"{tcp}.recovery"] = "fack"
            for feature in ("rack", "tail_loss_probe", "limited_transmit", "f_rto", "undo"):
                settings[f"{tcp}.{feature}"] = False
        settings[f"{tcp}.profile"] = self.profile
        if self.traced:
            series = ("sent_segment", "received_segment")
            settings["probes.series"] = [f"transfer.{each}" for each in series]
        template = Path(vanzara2014.__file__).parent / "satellite.toml"
        return Scenario(path=template).with_settings(settings)


def compared(
    cells: Iterable[Any],
    *,
    alike: bool = False,
    profile: str = "rfc",
    outcomes: Mapping[Any, Mapping[int, Any]] = RECORDED,
) -> dict[Any, Any]:
    """Return the comparison of each cell, our goodputs beside ns-2's."""
    twins = {
        cell: [Twin(cell=cell, seed=seed, alike=alike, profile=profile) for seed in outcomes[cell]]
        for cell in cells
    }
    results = simulate([twin for each in twins.values() for twin in each])
    ours = {
        cell: [8.0 * results[twin].flow().bytes_delivered / cell.duration_s for twin in each]
        for cell, each in twins.items()
    }
    comparisons: dict[Any, Any] = witness.compare(ours, outcomes)
    return comparisons


def agrees(cell: Any, comparison: Any) -> bool:
    """Whether a cell is as it should be: Hybla's mean within 15%, the others' ranges overlap.

    At BER 0 there is one run each, a point and no range: within 15%, too.
    """
    if cell.congestion_control == "hybla" or cell.bit_error_rate == 0.0:
        return bool(abs(comparison.relative_difference) <= HYBLA_TOLERANCE)
    return bool(comparison.overlap)


def line(cell: Any, comparison: Any) -> str:
    """Return a line of the table."""
    return (
        f"{cell.congestion_control:9} threshold {cell.initial_slow_start_threshold or 'none':>5} "
        f"BER {cell.bit_error_rate:5g}: bentpipe {comparison.our_mean_bps / 1e6:7.3f}, "
        f"ns-2 {comparison.witness_mean_bps / 1e6:7.3f} Mbit/s, "
        f"{comparison.relative_difference:+6.1%}, "
        f"{'ranges overlap' if comparison.overlap else 'ranges apart':14} "
        f"{'' if agrees(cell, comparison) else 'OUTSIDE'}".rstrip()
    )


def outside(comparisons: Mapping[Any, Any]) -> dict[tuple[str, float], str]:
    """Return the lines of the cells that are not as they should be, by rule and error rate."""
    return {
        (cell.congestion_control, cell.bit_error_rate): line(cell, comparison)
        for cell, comparison in comparisons.items()
        if not agrees(cell, comparison)
    }


# Cells of `make test`: those with an initial slow-start threshold of one bandwidth-delay product.
# Westwood+ does not go below half of the flight, as in TCP-Linux (the study's satellite.toml). With
# the papers' rule, at BER 0 and without a threshold, bentpipe reached 22 Mbit/s and ns-2 95.7: the
# first slow start overran the queue.
QUICK = [cell for cell in RECORDED if cell.initial_slow_start_threshold]

# Known deviations, with their explanations. `own` came first; `alike` was added when Hybla at
# 1e-6 lay outside, after ten variants of loss recovery had been tried on the cells that did
# (three seeds each: the counts below are theirs). A change here must be explained.
#
# Hybla, 1e-6 and 1e-5, own: TCP-Linux clears its scoreboard when recovery ends and sends again
# what has arrived: 3689 retransmissions for 1923 losses at 1e-6, 9089 for 5531 at 1e-5. bentpipe
# sends 2958 for 2961, and 8744 for 8747.
#
# Hybla, 1e-5, alike, from the window's trace: a single recovery that lasts to the end, since
# without RACK bentpipe finds no lost retransmission, and TCP-Linux does; timeouts backed off to 2
# min, data above the hole delivered in bursts.
#
# Reno, 1e-6, Westwood+ at 1e-6, and CUBIC: made as the modules are (linux_tcp.md has the table),
# all of them lie within ns-2's range, but for Westwood+ (-16%).
#
# Reno and Westwood+, 1e-5: ns-2's retransmission timeout. Its smoothed round trip is 0.9 to 1.4 s
# on a path of 0.6 s, since every duplicate ACK is a sample with an old echo; a timeout takes 2.2 to
# 6 s after the last segment, and ours one second. With 48 of them in 600 s, that is the difference.
_BOTH = {
    ("hybla", 1e-5),
    ("westwood", 1e-6),
    ("westwood", 1e-5),
    ("reno", 1e-6),
    ("reno", 1e-5),
    ("cubic", 1e-8),
    ("cubic", 1e-7),
    ("cubic", 1e-6),
}
OUTSIDE_ALIKE = _BOTH
# Hybla at 1e-6 lay 49% outside before undo and round trips by SACK were mended.
OUTSIDE_OWN = _BOTH


# With the sender of TCP-Linux, Westwood+ and Reno at 1e-6 lie within. Hybla's ranges overlap at
# 1e-5, and its mean is 25% above. CUBIC at 1e-5 is 24% above instead of within (not traced).
OUTSIDE_PROFILE = _BOTH - {("westwood", 1e-6), ("reno", 1e-6)} | {("cubic", 1e-5)}
TCP_LINUX = "ns-2-tcp-linux"


@pytest.mark.parametrize(
    ("alike", "profile", "known"),
    [
        (True, "rfc", OUTSIDE_ALIKE),
        (False, "rfc", OUTSIDE_OWN),
        (False, TCP_LINUX, OUTSIDE_PROFILE),
    ],
    ids=["alike", "own", "profile"],
)
def test_cells_outside_tolerance_are_the_known_ones(
    alike: bool, profile: str, known: set[tuple[str, float]]
) -> None:
    found = outside(compared(QUICK, alike=alike, profile=profile))
    assert set(found) == known, "\n".join(found.values())


@pytest.mark.skipif(not witness.ns2.available(), reason="ns-2 is not installed (no `ns` on PATH)")
@pytest.mark.parametrize("rule", witness.CONGESTION_CONTROLS)
def test_ns2_output_matches_the_record(rule: str) -> None:
    (cell,) = [
        cell
        for cell in QUICK
        if cell.congestion_control == rule and cell.bit_error_rate == witness.BIT_ERROR_RATES[-1]
    ]
    seed = witness.SEEDS[0]
    assert witness.simulate(cell, seed=seed) == RECORDED[cell][seed]


def packets(twin: Twin) -> list[Any]:
    """Return the data packets of a transfer in bentpipe, as the link was offered them."""
    series = simulate([twin])[twin].series
    segments = []
    for name in ("sent_segment", "received_segment"):
        each = series[f"transfer.{name}"]
        sequences = each.values // twin.cell.mss_bytes
        segments.append([(float(t), int(s)) for t, s in zip(each.times_s, sequences, strict=True)])
    found: list[Any] = traces.matched(*segments)
    return found


@pytest.mark.skipif(not witness.ns2.available(), reason="ns-2 is not installed (no `ns` on PATH)")
def test_only_ns2_retransmits_data_that_has_arrived() -> None:
    """Hybla at 1e-5: TCP-Linux clears its scoreboard when recovery ends."""
    (cell,) = [
        cell
        for cell in QUICK
        if (cell.congestion_control, cell.bit_error_rate) == ("hybla", witness.BIT_ERROR_RATES[-1])
    ]
    theirs = traces.summary(traces.in_ns2(cell, seed=1, duration_s=cell.duration_s))
    ours = traces.summary(packets(Twin(cell=cell, seed=1, traced=True)))
    assert theirs.lost == pytest.approx(RECORDED[cell][1].error_drops, abs=5)
    assert theirs.needless > 0.1 * theirs.retransmitted
    assert ours.needless < 0.01 * ours.retransmitted


def print_traces() -> None:
    """Print what the packet traces of both programs show for the cells outside the range."""
    for cell in QUICK:
        if (cell.congestion_control, cell.bit_error_rate) not in OUTSIDE_OWN:
            continue
        print(f"{cell.congestion_control}, {cell.bit_error_rate:g}")
        print(
            " ", traces.summary(traces.in_ns2(cell, seed=1, duration_s=cell.duration_s)), "(ns-2)"
        )
        print(" ", traces.summary(packets(Twin(cell=cell, seed=1, traced=True))), "(bentpipe)")


def main() -> None:
    """Compare the whole record and print the tables."""
    if "--traces" in sys.argv:
        print_traces()
        return
    cells = [cell for cell in RECORDED if cell not in MEANINGLESS]
    for alike in (True, False):
        print("loss recovery like TCP-Linux's" if alike else "bentpipe's own loss recovery")
        for cell, comparison in compared(cells, alike=alike).items():
            print(line(cell, comparison))


if __name__ == "__main__":
    main()
