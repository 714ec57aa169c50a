"""The independent witness of obata2000: the paper's transfers, simulated with ns-2.

As a script, simulates every cell of figures 5 and 6, and the base cells of figures 7, 8 and 10.
Prints the table and writes it::

    python3 benches/witness/obata2000.py [--out benches/witness/obata2000.json]

As a module, provides `simulate` and `compare` for tests of bentpipe. The function `simulate` takes
any `Cell`.

The ns-2 script of the transfer is `obata2000.tcl`.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import ns2

SCRIPT = Path(__file__).with_suffix(".tcl")

# obata2000, table 1.
FILE_KBYTES = 1024
MSS_BYTES = 1448
HEADER_BYTES = 52
ACK_BYTES = 52
# obata2000, section 3.2: "TCP Reno adopts 200msec".
DELAYED_ACK_S = 0.2
# The default of Agent/TCPSink/DelAck, used for the figures that ns-2 drew.
NS2_DELAYED_ACK_S = 0.1

# The paper does not define KByte, so that each cell is run with both readings.
KBYTE_READINGS = (1000, 1024)
# obata2000, section 4.2.
WINDOWS_KBYTES = (4, 8, 16, 32, 64, 128, 192)
# Section 4.1: "varied between 3KByte and 32KByte"; section 4.2.2 names 2, 4 and 6.
VSAT_WINDOWS_KBYTES = (2, 3, 4, 6, 8, 12, 16, 24, 32)
# Figures 7, 8 and 10 show experiments.
NS2_FIGURES = ("5", "6")
# Section 4.2.2: the VSAT sends 16 bits for every 15.
VSAT_REDUNDANCY = 16 / 15


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One transfer over one pair of links; the unit of comparison.

    Rates are in bit/s, delays (propagation, one way) in seconds, sizes in bytes.
    A data packet is `mss_bytes + header_bytes` on the wire, an ACK `ack_bytes`.
    """

    downlink_bps: float
    downlink_delay_s: float
    uplink_bps: float
    uplink_delay_s: float
    window_segments: int
    file_bytes: int
    mss_bytes: int = MSS_BYTES
    header_bytes: int = HEADER_BYTES
    ack_bytes: int = ACK_BYTES
    delayed_ack_s: float = DELAYED_ACK_S
    minimum_rto_s: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Result of a cell in ns-2.

    The time `time_s` runs from the start of sending the first segment to the arrival of the last
    byte at the client, with a resolution of a microsecond.
    """

    time_s: float
    data_packets: int
    retransmissions: int
    timeouts: int
    acknowledgements: int


@dataclass(frozen=True, kw_only=True)
class PaperCell:
    """A cell with its place in the paper.

    The name `window` is the label on the figure's axis: "64 KByte", or "saturation, rounded down"
    and "... up". The number `kbyte_bytes` is the reading of KByte for window and file.
    """

    figure: str
    window: str
    kbyte_bytes: int
    cell: Cell


def simulate(cell: Cell, *, trace: Path | None = None) -> Outcome:
    """Run one transfer in ns-2.

    Parameters
    ----------
    cell
        The network and the transfer.
    trace
        File for ns-2's packet trace of both links; not kept by default.

    Raises
    ------
    RuntimeError
        If ns-2 failed, or the transfer lost a packet.
    """
    with tempfile.TemporaryDirectory() as scratch:
        options: dict[str, object] = {
            "downlink_bps": cell.downlink_bps,
            "downlink_delay_s": cell.downlink_delay_s,
            "uplink_bps": cell.uplink_bps,
            "uplink_delay_s": cell.uplink_delay_s,
            "window_segments": cell.window_segments,
            "file_bytes": cell.file_bytes,
            "mss": cell.mss_bytes,
            "header_bytes": cell.header_bytes,
            "ack_bytes": cell.ack_bytes,
            "delayed_ack_s": cell.delayed_ack_s,
            "min_rto_s": cell.minimum_rto_s,
            "trace": trace or Path(scratch) / "trace",
            "keep_trace": int(trace is not None),
        }
        words = ns2.run(SCRIPT, options).split()
    printed = dict(zip(words[::2], words[1::2], strict=True))
    return Outcome(
        time_s=float(printed["time_s"]),
        data_packets=int(printed["data_packets"]),
        retransmissions=int(printed["retransmissions"]),
        timeouts=int(printed["timeouts"]),
        acknowledgements=int(printed["acknowledgements"]),
    )


def compare(
    ours: Mapping[Cell, float], witness: Mapping[Cell, Outcome] | None = None
) -> dict[Cell, float]:
    """Compare our transfer times with ns-2's.

    Parameters
    ----------
    ours
        Seconds from the first segment sent to the last byte received, by cell.
    witness
        Known outcomes of ns-2; other cells are simulated.

    Returns
    -------
    The relative difference by cell, (ours - ns-2's) / ns-2's.
    """
    known = witness or {}
    differences = {}
    for cell, time_s in ours.items():
        reference_s = (known.get(cell) or simulate(cell)).time_s
        differences[cell] = (time_s - reference_s) / reference_s
    return differences


def saturation_window(cell: Cell) -> float:
    """Return the window in segments for which rtt = a(n), not rounded.

    obata2000, eq. (13), which is w(n) from eqs. (3) and (5).
    """
    packet_bits = 8 * (cell.mss_bytes + cell.header_bytes)
    acknowledgement_s = 8 * cell.ack_bytes / cell.uplink_bps
    round_trip_s = cell.downlink_delay_s + cell.uplink_delay_s + acknowledgement_s
    return cell.downlink_bps * round_trip_s / packet_bits + 2


def paper_cells() -> Iterator[PaperCell]:
    """Yield the cells of figures 5 and 6, then those of figures 7, 8 and 10."""
    # Table 1 has 25 ms, the text of section 4.2.1 has 30 ms.
    for uplink_delay_s in (0.25, 0.125, 0.025, 0.03):
        yield from _curve("5", 2_048_000, 64_000, uplink_delay_s, WINDOWS_KBYTES, saturate=True)
    for uplink_bps in (64_000, 16_000, 4_000):
        yield from _curve("6", 2_048_000, uplink_bps, 0.125, WINDOWS_KBYTES, saturate=True)
    # The VSAT with and without its redundancy. Without losses, figures 8 and 10 have the same
    # network: they differ in the operating systems.
    for downlink_bps in (64_000, round(64_000 / VSAT_REDUNDANCY)):
        yield from _curve("7", downlink_bps, 64_000, 0.25, VSAT_WINDOWS_KBYTES)
        yield from _curve("8, 10", downlink_bps, 737_000, 0.025, VSAT_WINDOWS_KBYTES)


def _curve(
    figure: str,
    downlink_bps: float,
    uplink_bps: float,
    uplink_delay_s: float,
    windows_kbytes: tuple[int, ...],
    *,
    saturate: bool = False,
) -> Iterator[PaperCell]:
    """Yield the cells of one curve, for each reading of KByte."""
    for kbyte_bytes in KBYTE_READINGS:

        def cell(window_segments: int, kbyte_bytes: int = kbyte_bytes) -> Cell:
            return Cell(
                downlink_bps=downlink_bps,
                downlink_delay_s=0.25,
                uplink_bps=uplink_bps,
                uplink_delay_s=uplink_delay_s,
                window_segments=window_segments,
                file_bytes=FILE_KBYTES * kbyte_bytes,
                delayed_ack_s=NS2_DELAYED_ACK_S if figure in NS2_FIGURES else DELAYED_ACK_S,
            )

        windows = {
            f"{kbytes} KByte": kbytes * kbyte_bytes // MSS_BYTES for kbytes in windows_kbytes
        }
        if saturate:
            saturation = saturation_window(cell(1))
            windows["saturation, rounded down"] = math.floor(saturation)
            windows["saturation, rounded up"] = math.ceil(saturation)
        for window, segments in windows.items():
            yield PaperCell(
                figure=figure, window=window, kbyte_bytes=kbyte_bytes, cell=cell(segments)
            )


def _row(place: PaperCell, outcome: Outcome) -> dict[str, object]:
    """Return the recorded form of one cell."""
    labels = {"figure": place.figure, "window": place.window, "kbyte_bytes": place.kbyte_bytes}
    return labels | asdict(place.cell) | asdict(outcome)


def main() -> int:
    """Simulate the paper's cells, print the table, and write it on request."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, help="write the results here, as JSON")
    arguments = parser.parse_args()
    if not ns2.available():
        print("ns-2 is not installed (no `ns` on PATH): nothing to run", file=sys.stderr)
        return 1

    columns = "{:>6} {:>9} {:>6} {:>7} {:>6} {:>7} {:>8} {:>11} {:>7} {:>8}"
    print(
        columns.format(
            *("figure", "down b/s", "KByte", "up b/s", "up ms", "window", "bytes", "time s"),
            *("retrans", "timeouts"),
        )
    )
    outcomes: dict[Cell, Outcome] = {}
    rows = []
    for place in paper_cells():
        cell = place.cell
        # Figures 5 and 6 have a curve in common.
        if cell not in outcomes:
            outcomes[cell] = simulate(cell)
        outcome = outcomes[cell]
        rows.append(_row(place, outcome))
        print(
            columns.format(
                place.figure,
                cell.downlink_bps,
                place.kbyte_bytes,
                cell.uplink_bps,
                round(cell.uplink_delay_s * 1000),
                cell.window_segments,
                cell.file_bytes,
                f"{outcome.time_s:.6f}",
                outcome.retransmissions,
                outcome.timeouts,
            )
        )
    if arguments.out:
        # One cell per line, for readable diffs.
        cells = ",\n".join(json.dumps(row) for row in rows)
        head = f'"witness": "ns-2", "version": {json.dumps(ns2.version())}'
        arguments.out.write_text(f'{{{head}, "cells": [\n{cells}\n]}}\n', encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
