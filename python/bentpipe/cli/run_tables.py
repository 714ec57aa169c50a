"""Results of a run as tables, with one row per flow, link direction or group of alike ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeVar

from bentpipe import groups
from bentpipe.cli.application_tables import application_tables
from bentpipe.cli.tables import Table, print_prose
from bentpipe.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from bentpipe.advice import FlowLimits
    from bentpipe.results import AccessResult, DirectionResult, FlowResult, Summary

_Record = TypeVar("_Record", "FlowResult", "DirectionResult", "FlowLimits")

# In a longer table, the members of a group that `count` made share a row.
MOST_ROWS: Final = 12

# Reasons for which nodes discarded packets: the key in the results, and words.
_DISCARDED: Final = {
    "no_route": "without a route",
    "no_connection": "for which there was no connection",
    "table_full": "for which a table of connections had no room",
    "malformed": "whose headers contradict one another",
    "hop_limit": "that went too many hops",
    "processor_busy": "for which a processor's queue had no room",
    "too_long": "too long for the next link",
    "wrong_checksum": "with a wrong checksum",
    "node_down": "at a node that was down",
    "no_link_address": "for want of a neighbour's link address",
    "over_rate": "above the rate of their class",
}


def print_summary(summary: Summary, *, everyone: bool = False, did: str = "simulated") -> None:
    """Print the tables. With `everyone`, every flow has a row; else numbered flows share one."""
    ended_s = summary.extra.get("ended_s", summary.duration_s)
    print(
        f"{summary.scenario}: {format_seconds(ended_s)} {did} in "
        f"{format_seconds(summary.wall_s)}, {summary.packet_hops:,} packet-hops, "
        f"seed {summary.seed}"
    )
    flows, crowds = apart(summary.flows, everyone=everyone)
    links, bundles = apart(summary.links, everyone=everyone)
    tables = [
        _flow_table(flows) if flows else None,
        _crowd_table(crowds, ended_s) if crowds else None,
        *application_tables(
            flows,
            [each for each in summary.groups if each.name in crowds],
            members=crowds,
        ),
        _link_table(links) if links else None,
        _bundle_table(bundles) if bundles else None,
        _access_table(links, bundles, ended_s),
        _class_table(links),
    ]
    for table in tables:
        if table is not None:
            print()
            table.print()
    discards = summary.extra.get("discards", {})
    if discards:
        told = ", ".join(f"{count:,} {_DISCARDED.get(why, why)}" for why, count in discards.items())
        print()
        print_prose(f"discarded at nodes: {told}")
    for gateway in summary.gateways:
        for note in gateway.extra.get("notes", ()):
            print()
            print_prose(f"note: {note}")
    if crowds or bundles:
        print("\n--all shows every one")


def apart(
    records: Sequence[_Record], *, everyone: bool
) -> tuple[list[_Record], dict[str, list[_Record]]]:
    """Return the records with a row each, and the groups that share one."""
    return groups.apart(records, most=len(records) if everyone else MOST_ROWS)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the value that `share` of all do not exceed, between two by interpolation."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _flow_table(flows: Sequence[FlowResult]) -> Table:
    rows = [_flow_cells(flow) for flow in flows]
    if not any(flow.start_s for flow in flows):
        for row in rows:
            del row["start"]
    table = Table(headings=("flow", *rows[0]))
    for flow, row in zip(flows, rows, strict=True):
        table.add(flow.name, *row.values())
    return table


def _flow_cells(flow: FlowResult) -> dict[str, str]:
    rtt = flow.rtt_ms
    round_trips = [None if each is None else each / 1e3 for each in (rtt.min, rtt.mean, rtt.p95)]
    shortest, mean, p95 = (format_seconds(each) for each in round_trips)
    return {
        "goodput": format_rate(flow.goodput_bps),
        "delivered": format_bytes(flow.bytes_delivered),
        "start": format_seconds(flow.start_s),
        "outcome": flow.outcome,
        "ended": format_seconds(flow.ended_s),
        "segments": f"{flow.segments_sent:,}",
        "retransmitted": f"{flow.segments_retransmitted:,}",
        "timeouts": _timeouts(flow),
        "recoveries": _known(flow, "fast_recoveries"),
        "RTT: least": shortest,
        ": mean": mean,
        ": 95%": p95,
        "limited by": format_limit(flow),
    }


def _known(flow: FlowResult, name: str) -> str:
    return "–" if name in flow.unknown else f"{getattr(flow, name):,}"


def _timeouts(flow: FlowResult) -> str:
    """Write the number of timeouts and, if there are any, how many of them were of SYN or FIN."""
    written = _known(flow, "timeouts")
    return f"{written} (SYN, FIN: {flow.control_timeouts:,})" if flow.control_timeouts else written


def format_limit(flow: FlowResult) -> str:
    """Write what limited the sender most, and how much of its time: "receive window 98%"."""
    return format_shares(flow.limits)


def format_shares(limits: Mapping[str, float]) -> str:
    """Write the first of the limits, of which each has a share of the time."""
    for name, share in limits.items():
        return f"{name.replace('_', ' ')} {share:.0%}"
    return "–"


def _crowd_table(crowds: Mapping[str, Sequence[FlowResult]], ended_s: float) -> Table:
    headings = ("flows", "number", "together", "goodput: 5%", ": median", ": 95%", "delivered")
    more = ("outcome", "time: median", ": 95%", "retransmitted", "timeouts", "mean RTT")
    table = Table(headings=(*headings, *more))
    for name, flows in crowds.items():
        goodputs = [flow.goodput_bps for flow in flows]
        times = [flow.finish_s - flow.start_s for flow in flows if flow.finish_s is not None]
        delivered = sum(flow.bytes_delivered for flow in flows)
        last_s = max(ended_s if flow.ended_s is None else flow.ended_s for flow in flows)
        busy_s = last_s - min(flow.start_s for flow in flows)
        segments = sum(flow.segments_sent for flow in flows)
        again = sum(flow.segments_retransmitted for flow in flows)
        means = [flow.rtt_ms.mean for flow in flows if flow.rtt_ms.mean is not None]
        table.add(
            name,
            f"{len(flows):,}",
            format_rate(8 * delivered / busy_s if busy_s > 0 else 0.0),
            *(format_rate(quantile(goodputs, share)) for share in (0.05, 0.5, 0.95)),
            format_bytes(delivered),
            _outcomes(flows),
            *(format_seconds(quantile(times, share) if times else None) for share in (0.5, 0.95)),
            f"{again / segments:.2%}" if segments else "–",
            f"{sum(flow.timeouts for flow in flows):,}",
            format_seconds(sum(means) / len(means) / 1e3 if means else None),
        )
    return table


def _outcomes(flows: Sequence[FlowResult]) -> str:
    """Write "97 finished, 3 gave up"."""
    counts = Counter(flow.outcome for flow in flows)
    return ", ".join(f"{number:,} {outcome}" for outcome, number in counts.most_common())


def _link_table(links: Sequence[DirectionResult]) -> Table:
    marks = any(link.count("marked") for link in links)
    headings = ("link", "used", "delivered", "lost", "dropped", *(("marked",) if marks else ()))
    table = Table(headings=(*headings, "longest queue"))
    for link in links:
        table.add(
            link.name,
            f"{link.utilization:.1%}",
            f"{link.packets_delivered:,}",
            f"{link.packets_lost:,}",
            f"{link.packets_dropped:,}",
            *((f"{link.count('marked'):,}",) if marks else ()),
            _queue(link),
        )
    return table


def _bundle_table(bundles: Mapping[str, Sequence[DirectionResult]]) -> Table:
    headings = ("links", "number", "used: median", ": most", "delivered", "lost", "dropped")
    table = Table(headings=(*headings, "longest queue"))
    for name, links in bundles.items():
        used = [link.utilization for link in links]
        table.add(
            name,
            f"{len(links):,}",
            f"{quantile(used, 0.5):.1%}",
            f"{max(used):.1%}",
            f"{sum(link.packets_delivered for link in links):,}",
            f"{sum(link.packets_lost for link in links):,}",
            f"{sum(link.packets_dropped for link in links):,}",
            _queue(max(links, key=lambda link: link.queue_max_packets)),
        )
    return table


def _access_table(
    links: Sequence[DirectionResult],
    bundles: Mapping[str, Sequence[DirectionResult]],
    ended_s: float,
) -> Table | None:
    """Return the capacity on demand of directions, of groups of alike ones, and of carriers."""
    headings = (
        "capacity on demand",
        "requested",
        "granted",
        "used",
        "unused",
        "carrier utilisation",
    )
    table = Table(headings=(*headings, "wait: mean", ": longest"))
    asking = {
        name: found
        for name, members in [(link.name, [link]) for link in links] + list(bundles.items())
        if (found := [each.access for each in members if each.access is not None])
    }
    for name, members in asking.items():
        _add_access(table, name, members, ended_s)
    carriers: dict[str, list[AccessResult]] = {}
    for members in asking.values():
        for each in members:
            if each.carrier is not None:
                carriers.setdefault(each.carrier, []).append(each)
    for name, members in carriers.items():
        # One row has said it all.
        if members not in asking.values():
            _add_access(table, f"carrier {name}", members, ended_s)
    return table if table.rows else None


def _add_access(table: Table, name: str, members: Sequence[AccessResult], ended_s: float) -> None:
    granted, used = (
        sum(getattr(each, what) for each in members) for what in ("granted_bytes", "used_bytes")
    )
    asked = sum(each.asked_rate_based_bytes + each.asked_volume_based_bytes for each in members)
    means = [each.wait_ms.mean for each in members if each.wait_ms.mean is not None]
    longest = [each.wait_ms.max for each in members if each.wait_ms.max is not None]
    # Where each has a carrier of its own, that of all together.
    carriers = {each.carrier or place: each.carrier_rate_bps for place, each in enumerate(members)}
    carried = sum(carriers.values()) * ended_s
    # A carrier is time on the air, of which a byte in a fade takes more.
    occupied = sum(each.occupied_bytes for each in members)
    table.add(
        name,
        format_bytes(asked),
        format_bytes(granted),
        format_bytes(used),
        f"{max(granted - used, 0) / granted:.1%}" if granted else "–",
        f"{8 * occupied / carried:.1%}" if carried > 0.0 else "–",
        format_seconds(sum(means) / len(means) / 1e3 if means else None),
        format_seconds(max(longest) / 1e3 if longest else None),
    )


def _class_table(links: Sequence[DirectionResult]) -> Table | None:
    headings = ("queue", "class", "sent", "dropped", "longest queue")
    table = Table(headings=(*headings, "wait: mean", ": 95%", ": longest"), left=frozenset({1}))
    for link in links:
        for each in link.classes:
            waits = (each.wait_ms.mean, each.wait_ms.p95, each.wait_ms.max)
            table.add(
                link.name,
                each.name,
                format_bytes(each.bytes_sent),
                f"{each.packets_dropped:,}",
                packets(each.queue_max_packets),
                *(format_seconds(None if wait is None else wait / 1e3) for wait in waits),
            )
    return table if table.rows else None


def _queue(link: DirectionResult) -> str:
    waited = packets(link.queue_max_packets)
    return f"{waited}, {format_bytes(link.queue_max_bytes)}" if link.queue_max_packets else waited


def packets(number: int | None) -> str:
    """Write how many packets waited: "none", "1 packet", "12 packets"; "–" if unknown."""
    if number is None:
        return "–"
    if not number:
        return "none"
    return "1 packet" if number == 1 else f"{number:,} packets"
