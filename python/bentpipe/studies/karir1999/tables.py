"""Tables of the study, which are not in the paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bentpipe.studies.columns import Columns, add, empty
from bentpipe.studies.karir1999 import cells, open_settings
from bentpipe.studies.karir1999.cells import (
    ERROR_RATES,
    HOSTS,
    NAMES,
    NETWORKS,
    OPEN,
    RATES_BPS,
    REMEDIES,
    REMEDY_NAMES,
    Remedy,
    opened,
    paper,
)
from bentpipe.studies.karir1999.evidence import jain
from bentpipe.studies.open_settings import committed
from bentpipe.studies.study import Table

if TYPE_CHECKING:
    from bentpipe.studies.karir1999.evidence import Evidence
    from bentpipe.studies.open_settings import Published


def open_parameters(evidence: Evidence) -> Table:
    """Return what else the paper leaves open, one setting at a time."""
    columns = empty("setting", "network", "throughput (kbit/s)", "mean RTT (ms)", "download (s)")
    for variant in OPEN:
        for network in NETWORKS:
            cell = opened(network, variant)
            add(
                columns,
                variant,
                NAMES[network],
                round(evidence.link_bps(cell) / 1e3, 1),
                round(evidence.rtt_ms(cell), 1),
                round(evidence.download_s(cell), 1),
            )
    return Table(
        id="A1",
        title="What else the paper leaves open, one at a time",
        caption="Throughput of the satellite link, mean round trip at the server, download time; "
        "otherwise as stated. The paper has 500 kbit/s without gateways and 800 to 900 kbit/s with "
        "large windows.",
        columns=columns,
    )


def remedies(evidence: Evidence, size: int, number: str) -> Table:
    """Return what each remedy buys for a size of file."""
    rates = [rate for rate in RATES_BPS if evidence.has(_remedy("none", "today", rate, 0.0, size))]
    large = size == cells.SIZES[0]
    heads = [
        f"{rate / 1e6:g} Mbit/s, {_errors(errors)}" for rate in rates for errors in ERROR_RATES
    ]
    columns = empty("hosts", "remedy", *heads)
    for hosts in HOSTS:
        for remedy in REMEDIES:
            flows = [
                evidence.flow(_remedy(remedy, hosts, rate, errors, size))
                for rate in rates
                for errors in ERROR_RATES
            ]
            values = [
                _mbps(each.goodput_bps) if large else _rounded(each.finish_s) for each in flows
            ]
            add(columns, hosts, REMEDY_NAMES[remedy], *values)
    what = (
        "50 Mbyte: goodput, Mbit/s" if large else "200 kbyte, as a page: seconds to the last byte"
    )
    return Table(
        id=number,
        title=f"Which remedy buys what. {what}",
        caption="GEO, 250 ms each way, the server 10 ms behind the hub. Hosts of 1999: Reno, 64 "
        "Kbyte, no SACK; today's: CUBIC, SACK, 6 MiB. Not in the paper.",
        columns=columns,
    )


def _errors(rate: float) -> str:
    return "no errors" if rate == 0.0 else f"BER {rate:.0e}"


def _mbps(bps: float) -> float:
    return float(f"{bps / 1e6:.3g}")


def _rounded(value: float | None, digits: int = 1) -> float | None:
    return None if value is None else round(value, digits)


def pages(evidence: Evidence) -> Table:
    """Return what each remedy buys for web pages."""
    measures = ("median (s)", "nine of ten (s)")
    heads = [f"{_errors(errors)}: {each}" for errors in ERROR_RATES for each in measures]
    columns = empty("hosts", "remedy", *heads)
    for hosts, remedy in dict.fromkeys((cell.hosts, cell.remedy) for cell in cells.PAGES):
        found = [cell for cell in cells.PAGES if (cell.hosts, cell.remedy) == (hosts, remedy)]
        times = [_rounded(time, 2) for cell in found for time in evidence.page_s(cell)]
        add(columns, hosts, REMEDY_NAMES[remedy], *times)
    return Table(
        id="A5",
        title="Which remedy buys what. Twenty web pages, one after the other: seconds",
        caption="The median of the pages, and nine of ten, over GEO at 10 Mbit/s: 3GPP's model of "
        "a page, 1 s of reading, HTTP/2. Not in the paper.",
        columns=columns,
    )


def handovers(evidence: Evidence) -> Table:
    """Return what each remedy buys over a LEO link with handovers."""
    columns = empty("hosts", "remedy", "goodput (Mbit/s)", "download (s)", "timeouts")
    for cell in cells.HANDOVERS:
        flow = evidence.flow(cell)
        add(
            columns,
            cell.hosts,
            REMEDY_NAMES[cell.remedy],
            _mbps(flow.goodput_bps),
            _rounded(flow.finish_s),
            evidence.count(cell, "facing", "timeouts") + flow.timeouts,
        )
    return Table(
        id="A6",
        title="Which remedy buys what. LEO with a handover every 15 s, 500 Mbyte",
        caption="The link of the scenario leo-handover: 150 Mbit/s, 15 to 25 ms each way, 20 ms "
        "more and 50 ms without a link at each handover, 0.01% lost in between; the server 10 ms "
        "behind the hub. Not in the paper.",
        columns=columns,
    )


def fleet(evidence: Evidence) -> Table:
    """Return fairness and memory of twenty downloads."""
    columns = empty(
        "remedy",
        "gateways' memory (MiB)",
        "Jain's index",
        "first done (s)",
        "last done (s)",
        "promised at most (MiB)",
        "held at most (MiB)",
    )
    for cell in (*cells.FLEET, cells.SMALL_MEMORY):
        flows = evidence.flows(cell)
        ends = [flow.finish_s for flow in flows if flow.finish_s is not None]
        default = cells.DEFAULT_MEMORY_MIB if evidence.gateways(cell) else None
        add(
            columns,
            REMEDY_NAMES[cell.remedy],
            cell.memory_mib or default,
            round(jain([flow.goodput_bps for flow in flows]), 3),
            _rounded(min(ends, default=None)),
            _rounded(evidence.end_s(cell)),
            _rounded(evidence.most(cell, "bytes_promised", "max") / 2**20),
            _rounded(evidence.most(cell, "bytes_held", "max") / 2**20),
        )
    return Table(
        id="A7",
        title="Twenty downloads of 5 Mbyte over 10 Mbit/s, and the gateway's memory",
        caption="GEO, no errors, today's hosts. Promised: the windows offered less what the other "
        "side has confirmed, with what is set aside for persistent connections; of a hybrid "
        "gateway, only what it holds is counted. Not in the paper.",
        columns=columns,
    )


def ten_numbers(evidence: Evidence) -> Table:
    """Return the ten numbers of the paper beside those of this run."""
    columns = empty("number", "paper", "windows as stated", "windows as found", "holds")
    stated = open_settings.measure_stated(evidence).measured
    found = open_settings.measure_found(evidence).measured
    for of in open_settings.SEARCH.published.values():
        for name in of.columns:
            add(
                columns,
                _NUMBERS[name],
                _expected(of),
                float(f"{stated[name]:.4g}"),
                float(f"{found[name]:.4g}"),
                _held(of.met(stated), of.met(found)),
            )
    return Table(
        id="A8",
        title="The ten numbers of the paper, with the windows as stated and as found",
        caption="As stated: 64 Kbyte, and 195 Kbyte as large windows. As found: "
        f"{open_settings.found_words()}; 195 Kbyte between the gateways. In both, "
        f"{open_settings.best().setting['lan_delay_ms']:g} ms between server and gateway, which "
        "the paper doesn't give. A number holds with the tolerance of its claim; the round trips "
        "without gateways, with and without large windows, are one number.",
        columns=columns,
    )


_NUMBERS = {
    "terrestrial_share": "throughput, terrestrial (of the link)",
    "satellite_kbps": "throughput, no gateways (kbit/s)",
    "large_kbps": "throughput, large windows (kbit/s)",
    "gateways_share": "throughput, gateways (of the link)",
    "gateways_over_terrestrial": "download time, gateways / terrestrial",
    "rtt_terrestrial_ms": "server's RTT, terrestrial (ms)",
    "rtt_satellite_ms": "server's RTT, no gateways (ms)",
    "rtt_large_ms": "server's RTT, large windows (ms)",
    "rtt_gateways_ms": "server's RTT, gateways (ms)",
    "faster_than_satellite": "download time, no gateways / gateways",
    "faster_than_large": "download time, large windows / gateways",
}


def _expected(of: Published) -> str:
    expect, tolerance = of.expect, f" ± {of.tolerance:.0%}" if of.tolerance else ""
    if expect.value is not None:
        return f"{expect.value:g}{tolerance}"
    if expect.at_most is None:
        return f"at least {expect.at_least:g}{tolerance}"
    return f"{expect.at_least:g} to {expect.at_most:g}{tolerance}"


def _held(stated: bool, found: bool) -> str:
    if stated == found:
        return "both" if stated else "neither"
    return "as stated" if stated else "as found"


def search() -> Table:
    """Return the settings that give the paper's numbers."""
    search = open_settings.SEARCH
    most = len(search.published)
    rows = [row for row in search.best(committed("karir1999")) if row.within >= most - 1]
    settings = {
        "LAN delay (ms)": "lan_delay_ms",
        "window (B)": "window",
        "large window, hosts (B)": "large_window",
        "large window, gateways (B)": "middle_window",
    }
    numbers = {
        "no gateways (kbit/s)": "satellite_kbps",
        "large windows (kbit/s)": "large_kbps",
        "RTT, terrestrial (ms)": "rtt_terrestrial_ms",
        "RTT, no gateways (ms)": "rtt_satellite_ms",
        "RTT, large windows (ms)": "rtt_large_ms",
        "RTT, gateways (ms)": "rtt_gateways_ms",
        "no gateways / gateways": "faster_than_satellite",
        "large windows / gateways": "faster_than_large",
    }
    columns: Columns = {"within": [row.within for row in rows]}
    columns |= {head: [row.setting[name] for row in rows] for head, name in settings.items()}
    for head, name in numbers.items():
        columns[head] = [float(f"{row.measured[name]:.4g}") for row in rows]
    return Table(
        id="A9",
        title="Settings that give the paper's numbers",
        caption=f"Of {len(search.settings)} settings, those with at least {most - 1} of the "
        f"{most} numbers within the tolerance of their claims. All have 1 ms between gateway and "
        "client, a queue of 100 packets and no losses; terrestrial and gateways are above 0.9 of "
        "the link. Not in the paper.",
        columns=columns,
    )


def load(evidence: Evidence) -> Table:
    """Return the load of the router, and round trips at both ends."""
    columns = empty(
        "network",
        "packets that arrive at the hub (1/s)",
        "passes of its IP layer (1/s)",
        "server's mean RTT (ms)",
        "client's mean RTT (ms)",
    )
    uploads = {cell.network: cell for cell in cells.CLIENT_RTT}
    for network in NETWORKS:
        cell = paper(network)
        client = evidence.flows(uploads[network])[1].rtt_ms.mean if network in uploads else None
        add(
            columns,
            NAMES[network],
            _rounded(evidence.hub_arrivals(cell) / evidence.end_s(cell)),
            _rounded(evidence.router_passes_per_s(cell)),
            _rounded(evidence.rtt_ms(cell)),
            _rounded(client),
        )
    return Table(
        id="A10",
        title="Load of the router at the hub, and round trips at both ends",
        caption="Windows as stated. A router passes a packet once; a gateway that splits "
        "connections takes it up to TCP and another one down from it. The client's round trips are "
        "those of 1 MB that it sends during the download.",
        columns=columns,
    )


def _remedy(remedy: str, hosts: str, rate: int, errors: float, size: int) -> Remedy:
    return Remedy(remedy=remedy, hosts=hosts, rate_bps=rate, bit_error_rate=errors, size_bytes=size)
