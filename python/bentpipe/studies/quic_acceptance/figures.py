"""Tables of the transfers."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from bentpipe.studies.columns import Columns, add, empty
from bentpipe.studies.quic_acceptance.cells import ACCESSES, LARGE, SMALL, acknowledged
from bentpipe.studies.quic_acceptance.remedies import LOADS, NETWORKS, REMEDIES, Remedied
from bentpipe.studies.study import Table

if TYPE_CHECKING:
    from bentpipe.studies.quic_acceptance.cells import Access, Cell, Transfer
    from bentpipe.studies.quic_acceptance.evidence import Evidence


def figures(evidence: Evidence) -> list[Table]:
    """Return the times of transfers, those by the frequency of ACKs, and those by remedy."""
    return [_times(evidence), _acknowledgments(evidence), _remedies(evidence)]


def _times(evidence: Evidence) -> Table:
    settings: dict[str, None] = {}
    cells: dict[tuple[str, Access], Transfer] = {}
    for access in ACCESSES:
        for cell in evidence.over(access):
            settings[cell.name] = None
            cells[cell.name, access] = cell
    columns: Columns = {"setting": list(settings)}
    marked: dict[str, list[bool]] = {}
    for access in ACCESSES:
        bounds = ", ".join(f"{rule} {bound:g}" for rule, bound in access.bounds_s)
        head = f"{access.name} ({bounds} s)" if bounds else access.name
        of_access = [cells.get((name, access)) for name in settings]
        columns[head] = [None if each is None else _time(evidence, each) for each in of_access]
        least = max((bound for _, bound in access.bounds_s), default=0.0)
        marked[head] = [each is not None and evidence.time_s(each) <= least for each in of_access]
    return Table(
        id="1",
        title="Seconds for 100 MB (10 MiB on 20/2 Mbit/s)",
        caption="In parentheses: picoquic's bounds. Marked: not above the largest of them. No "
        "value: the connection failed, or the transfer took more than ten minutes.",
        columns=columns,
        marked=marked,
    )


def _acknowledgments(evidence: Evidence) -> Table:
    columns = empty("access", "setting", "seconds", "ACK frames", "ACK frames received")
    for access in (LARGE, SMALL):
        for cell in acknowledged(access):
            quic = evidence.quic(cell)
            add(
                columns,
                access.name,
                cell.name,
                _time(evidence, cell),
                quic["server"]["acks_sent"],
                quic["opener"]["acks_received"],
            )
    return Table(
        id="2",
        title="Fewer acknowledgments, and a saved path",
        caption="The sender asks for an acknowledgment after more packets than this number "
        "(draft-ietf-quic-ack-frequency); without a request, quinn sends one for two packets. "
        "A saved path is the window that path and queue hold, of an earlier connection (RFC 9959).",
        columns=columns,
    )


def _remedies(evidence: Evidence) -> Table:
    columns = empty("network", "load", "remedy", "over TCP, s", "over QUIC, s")
    for network in NETWORKS:
        for load in LOADS:
            for remedy in REMEDIES:
                cells = {
                    transport: Remedied(
                        network=network, load=load, transport=transport, remedy=remedy
                    )
                    for transport in remedy.transports
                }
                if all(evidence.has(cell) for cell in cells.values()):
                    times = {name: _time(evidence, cell) for name, cell in cells.items()}
                    row = (network.name, load, remedy.name, times.get("tcp"), times.get("quic"))
                    add(columns, *row)
    return Table(
        id="3",
        title="Files and pages over TCP and QUIC, by remedy",
        caption="Rates are in Mbit/s. With gateways and ACK methods, QUIC has the times that it "
        "has without them. The remedies from the windows on are settings of QUIC, each with those "
        "above it; the saved path has the window that the path holds, of an earlier connection.",
        columns=columns,
    )


def _time(evidence: Evidence, cell: Cell) -> float | None:
    time_s = evidence.time_s(cell)
    return time_s if isfinite(time_s) else None
