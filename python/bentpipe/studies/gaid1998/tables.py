"""Tables 2 to 6 of the paper: recorded quantities, and the parameters of the sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from bentpipe.studies.gaid1998.cells import standard
from bentpipe.studies.study import Table

if TYPE_CHECKING:
    from bentpipe.studies.columns import Columns

# Table 2: OPNET's macro, and the series that records it here.
_OUTPUTS: Final = (
    ("TCPC_OUTSTAT_DELAY", "End-to-end delay of the received segment", "download.segment_delay"),
    (
        "TCPC_OUTSTAT_RCV_SEG_SEQ",
        "Sequence number of the received segment",
        "download.received_segment",
    ),
    (
        "TCPC_OUTSTAT_RCV_SEG_ACK",
        "ACK sequence number of the segment received",
        "hub.acknowledged, download.acknowledged",
    ),
    (
        "TCPC_OUTSTAT_SND_SEG_SEQ",
        "Sequence number of the segment being sent",
        "download.sent_segment",
    ),
    (
        "TCPC_OUTSTAT_RCV_SEG_ACK",
        "ACK sequence number of the segment being sent",
        "hub.acknowledged_to_server",
    ),
    ("TCPC_OUTSTAT_CWND", "Congestion window", "download.congestion_window"),
    ("TCPC_OUTSTAT_RTT", "Measured round trip time", "download.measured_rtt"),
    (
        "TCPC_OUTSTAT_RTT_MEAN_DEV",
        "Measured mean deviation of round-trip time",
        "download.rtt_deviation",
    ),
    ("added by the paper", "Window advertised by the hybrid host", "hub.host_window"),
    ("added by the paper", "Data that the hybrid gateway can send", "hub.eligible"),
)
_SHOWN: Final = (
    "A7",
    "18, 24, 31, 32",
    "18, 24, 31; A8",
    "A8",
    "A8",
    "A8",
    "A8; 22, 28, 36, 42",
    "A8",
    "19, 25, 33, 39",
    "21, 27, 35, 41",
)
# As printed.
_HOST_WINDOWS: Final = {1: "4096", 2: "45 kbytes", 3: "45 kbytes", 4: "1000 kbytes"}
_GATEWAY_WINDOWS: Final = {1: "64 kbytes", 2: "64 kbytes", 3: "1000 kbytes", 4: "1000 kbytes"}
_MODEMS: Final = {1: "9,600 bits/s", 2: "29,900 bits/s"}
# Numbers and titles of the paper's tables, by set.
TABLES: Final = {
    1: ("3", "Values of the standard parameters"),
    2: ("4", "Values of the standard parameters with a high speed modem"),
    3: ("5", "Values of the hybrid parameters with a large hybrid gateway window"),
    4: ("6", "Values of the large parameters"),
}


def outputs_table() -> Table:
    """Return table 2, with the series that record the same."""
    columns: Columns = {
        "macro": [macro for macro, _, _ in _OUTPUTS],
        "index": [index if index < 8 else None for index in range(len(_OUTPUTS))],
        "parameter": [parameter for _, parameter, _ in _OUTPUTS],
        "series of the run": [series for _, _, series in _OUTPUTS],
        "figures": list(_SHOWN),
    }
    return Table(
        id="2",
        title="Statistical outputs in the TCP process",
        caption="The macro of index 4 is printed as that of index 2. The ACK number sent is that "
        "of the gateway, which replaces the host's.",
        columns=columns,
    )


def parameters_table(number: int) -> Table:
    """Return the parameters of a set: those of the paper's table, and those of its run."""
    id_, title = TABLES[number]
    resolved = standard(number).scenario().resolved()
    nodes = {node["name"]: node for node in resolved["nodes"]}
    satellite = next(link for link in resolved["links"] if link["name"] == "satellite")
    host, gateway = _HOST_WINDOWS[number], _GATEWAY_WINDOWS[number]
    rows: list[tuple[str, str, str]] = [
        (
            "hybrid host RCV_BUFFER",
            host,
            f"{nodes['host']['tcp']['receive_buffer_bytes']:,} B",
        ),
        ("hybrid gateway RCV_BUFFER", gateway, f"{nodes['hub']['receive_buffer_bytes']:,} B"),
        (
            "server RCV_BUFFER",
            "4096 bytes",
            f"{nodes['server']['tcp']['receive_buffer_bytes']:,} B",
        ),
        (
            "hybrid gateway retransmission timeout",
            "200 ms",
            f"{1e3 * nodes['hub']['retransmission_timeout_s']:g} ms",
        ),
        (
            "modem speed",
            _MODEMS.get(number, "–"),
            f"{satellite['return']['rate_bps']:,} bit/s",
        ),
    ]
    columns: Columns = {
        "parameter": [name for name, _, _ in rows],
        "paper": [paper for _, paper, _ in rows],
        "run": [run for _, _, run in rows],
    }
    return Table(
        id=id_,
        title=title,
        caption=f"Set {number}. The run's values are those of its resolved scenario.",
        columns=columns,
    )
