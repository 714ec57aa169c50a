"""Search over what gaid1998 leaves open, for the numbers and orders that the paper states.

The paper does not state the payload of a segment, the modem's queue, the delay between server and
gateway, delayed ACKs of the host, or the load of sets 3 to 5. How far the gateway sends beyond the
host's window, and what frees the gateway's own window, are open as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bentpipe.studies.gaid1998.cells import (
    DURATION_S,
    SETS,
    STANDARD_LOAD_MBYTE_S,
    Download,
    Open,
    with_parameters,
)
from bentpipe.studies.gaid1998.evidence import Evidence
from bentpipe.studies.judging import ratio
from bentpipe.studies.open_settings import OpenSettings, Published, Setting, grid
from bentpipe.studies.study import read_claims

if TYPE_CHECKING:
    from bentpipe.results import RunResult
    from bentpipe.studies.gaid1998.runs import Cell

UNLIMITED: Final = "unlimited"
BY_HOST: Final = "host"
BY_GATEWAY: Final = "gateway"

# The claims that the search judges, and the columns that are judged.
NUMBERS: Final[Mapping[str, Sequence[str]]] = {
    "standard-seven": ("sent_mbyte",),
    "window-over-t1": ("rate_over_window_over_t1",),
    "forty-times": ("set_2_kbps",),
    "larger-windows": ("set_2_over_1", "set_3_over_2", "set_4_over_3"),
    "ack-timeout": ("host_5_over_4", "gateway_5_over_4"),
    "duplicates": ("duplicates",),
}


def _settings() -> Sequence[Setting]:
    """Return the joint grid, and another with a window that the gateway frees itself."""
    joint = grid(
        segment_bytes=(512, 1024, 1460),
        queue_packets=(2, 3, 6, 10, 50),
        delay_ms=(1, 25, 100),
        delayed_ack=(True, False),
        windows_sent=(2.0, 8.0, 16.0, UNLIMITED),
        window_freed_by=(BY_HOST,),
        load_mbyte_s=(STANDARD_LOAD_MBYTE_S, 2.0),
    )
    # The paper's formula has this window. Delays of 350 ms are no LAN's.
    freed = grid(
        segment_bytes=(512, 1460),
        queue_packets=(10,),
        delay_ms=(1, 25, 100, 350, 430),
        delayed_ack=(True, False),
        windows_sent=(UNLIMITED,),
        window_freed_by=(BY_GATEWAY,),
        load_mbyte_s=(STANDARD_LOAD_MBYTE_S,),
    )
    return [*joint, *freed]


def setting_of(open_: Open) -> Setting:
    """Return parameters as a setting of the search."""
    return {
        "segment_bytes": open_.mss_bytes,
        "queue_packets": open_.queue_packets,
        "delay_ms": open_.delay_ms,
        "delayed_ack": open_.delayed_ack,
        "windows_sent": UNLIMITED if open_.factor is None else open_.factor,
        "window_freed_by": BY_HOST if open_.held_by_host else BY_GATEWAY,
        "load_mbyte_s": open_.load_mbyte_s,
    }


def open_of(setting: Setting) -> Open:
    """Return the parameters of a setting."""
    sent = setting["windows_sent"]
    return Open(
        mss_bytes=int(setting["segment_bytes"]),
        queue_packets=int(setting["queue_packets"]),
        delay_ms=int(setting["delay_ms"]),
        delayed_ack=bool(setting["delayed_ack"]),
        factor=None if sent == UNLIMITED else float(sent),
        held_by_host=setting["window_freed_by"] == BY_HOST,
        load_mbyte_s=float(setting["load_mbyte_s"]),
    )


def cells(setting: Setting) -> Sequence[Cell]:
    """Return the five sets with a setting."""
    return [with_parameters(number, open_of(setting)) for number in SETS]


def measure(setting: Setting, outcomes: Mapping[Cell, RunResult]) -> dict[str, float]:
    """Return the judged numbers of a setting."""
    evidence = Evidence(outcomes)
    of = {number: with_parameters(number, open_of(setting)) for number in SETS}
    host = {number: float(evidence.received_bytes(cell)) for number, cell in of.items()}
    gateway = {number: evidence.sent_mb(cell) for number, cell in of.items()}
    return {
        "sent_mbyte": gateway[1],
        "rate_over_window_over_t1": 1e6 * gateway[1] / DURATION_S / window_over_t1(of[1]),
        "set_2_kbps": evidence.throughput_bps(of[2]) / 1e3,
        "set_2_over_1": ratio(host[2], host[1]),
        "set_3_over_2": ratio(host[3], host[2]),
        "set_4_over_3": ratio(host[4], host[3]),
        "host_5_over_4": ratio(host[5], host[4]),
        "gateway_5_over_4": ratio(gateway[5], gateway[4]),
        "duplicates": float(evidence.counted(of[3], "to_host", "retransmissions")),
    }


def window_over_t1(download: Download) -> float:
    """Return the paper's formula, in bytes per second.

    T1 is the round trip between server and gateway, and the ACK timeout.
    """
    return download.window_bytes / (2e-3 * download.open.delay_ms + download.ack_timeout_s)


def _published() -> dict[str, Published]:
    """Return the expectations and tolerances of the judged claims."""
    claims = {claim.id: claim for claim in read_claims(Path(__file__).parent / "claims.toml")}
    expected = {id_: next(iter(claims[id_].expect.values())) for id_ in NUMBERS}
    return {
        id_: Published(columns=columns, expect=expected[id_], tolerance=claims[id_].tolerance)
        for id_, columns in NUMBERS.items()
    }


SEARCH: Final = OpenSettings(
    settings=_settings(), published=_published(), cells=cells, measure=measure
)
