"""The network of a scenario as a diagram shows it: groups of nodes, links and flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from bentpipe.groups import groups
from bentpipe.prediction.data_direction import data_direction
from bentpipe.scenario_report.measures import joined_range
from bentpipe.units import format_bytes, format_rate, format_seconds

if TYPE_CHECKING:
    from bentpipe.advice.network import Network
    from bentpipe.results import DirectionResult, Summary

_KINDS: Final = {"host": "host", "router": "router"}


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node of the diagram: one node, or all that a `count` makes."""

    name: str
    kind: str
    count: int
    is_host: bool

    @property
    def words(self) -> str:
        """The kind of node, and how many there are."""
        return f"{self.count:,} {self.kind}s" if self.count > 1 else self.kind


@dataclass(frozen=True, kw_only=True)
class Way:
    """One direction of a link: from the node `start` to the node `end`."""

    name: str
    start: str
    end: str
    rate: str
    delay: str
    losses: str
    queue: str
    extras: tuple[str, ...]
    used: float
    delivered: int
    lost: int
    dropped: int
    queue_max_packets: int
    queue_max_bytes: int
    queue_time_s: float | None


@dataclass(frozen=True, kw_only=True)
class LinkGroup:
    """A link of the diagram: one link, or all that a `count` makes."""

    name: str
    count: int
    ends: tuple[str, str]
    delay_s: float
    ways: tuple[Way, ...]


@dataclass(frozen=True, kw_only=True)
class FlowGroup:
    """The flows of one table, in the direction of their data."""

    name: str
    count: int
    start: str
    end: str
    two_way: bool
    words: str


@dataclass(frozen=True, kw_only=True)
class Topology:
    """Nodes, links and flows of a diagram."""

    nodes: tuple[Node, ...]
    links: tuple[LinkGroup, ...]
    flows: tuple[FlowGroup, ...]


def topology(network: Network, summary: Summary) -> Topology:
    """Return the network of a scenario, with the use of its links in a run."""
    nodes = {node["name"]: node for node in network.resolved["nodes"]}
    group_of: dict[str, str] = {}
    shown = []
    for name, places in groups(list(nodes)).items():
        members = [list(nodes)[place] for place in places]
        group_of.update(dict.fromkeys(members, name))
        kind = nodes[members[0]]["kind"]
        words = _KINDS.get(kind, f"{kind} gateway")
        shown.append(Node(name=name, kind=words, count=len(members), is_host=kind == "host"))
    return Topology(
        nodes=tuple(shown),
        links=tuple(_links(network, summary, group_of)),
        flows=tuple(_flows(network, group_of)),
    )


def _links(network: Network, summary: Summary, group_of: Mapping[str, str]) -> list[LinkGroup]:
    links = {link["name"]: link for link in network.resolved["links"]}
    results = {each.name: each for each in summary.links}
    ended_s = float(summary.extra.get("ended_s", summary.duration_s))
    found = []
    for name, places in groups(list(links)).items():
        members = [list(links)[place] for place in places]
        link = links[members[0]]
        one, *others = link["far_ends"] or link["between"][1:]
        for other in dict.fromkeys(group_of[each] for each in (one, *others)):
            ends = (group_of[link["between"][0]], other)
            ways = []
            for direction, (start, end) in (("forward", ends), ("return", ends[::-1])):
                settings = link[direction]
                if settings is None:
                    continue
                own = [results[f"{each}.{direction}"] for each in members]
                ways.append(_way(f"{name}.{direction}", start, end, settings, own, ended_s))
            delays = [link[each]["delay_s"] for each in ("forward", "return") if link[each]]
            found.append(
                LinkGroup(
                    name=name,
                    count=len(members),
                    ends=ends,
                    delay_s=max(delays),
                    ways=tuple(ways),
                )
            )
    return found


def _way(
    name: str,
    start: str,
    end: str,
    settings: Mapping[str, Any],
    results: Sequence[DirectionResult],
    ended_s: float,
) -> Way:
    busiest = max(results, key=lambda each: each.utilization)
    fullest = max(results, key=lambda each: each.queue_max_bytes)
    changes = settings["changes"] or {}
    rate_bps = settings["rate_bps"]
    sent_bytes = fullest.bytes_delivered
    # The mean rate while it sends, as it was in this run: with the framing, and with changes.
    busy_s = fullest.utilization * ended_s
    mean_bps = 8.0 * sent_bytes / busy_s if busy_s > 0.0 else 0.0
    return Way(
        name=name,
        start=start,
        end=end,
        rate=_rate(rate_bps, changes),
        delay=_delay(settings["delay_s"], changes),
        losses=_losses(settings["errors"], changes),
        queue=_queue(settings["queue"]),
        extras=tuple(_extras(settings, changes)),
        used=busiest.utilization,
        delivered=sum(each.packets_delivered for each in results),
        lost=sum(each.packets_lost for each in results),
        dropped=sum(each.packets_dropped for each in results),
        queue_max_packets=fullest.queue_max_packets,
        queue_max_bytes=fullest.queue_max_bytes,
        queue_time_s=8.0 * fullest.queue_max_bytes / mean_bps if mean_bps > 0.0 else None,
    )


def _rate(rate_bps: float, changes: Mapping[str, Any]) -> str:
    course = changes.get("rate")
    if not course:
        return format_rate(rate_bps)
    return _between(course, "bps", format_rate) or f"{format_rate(rate_bps)} (changes)"


def _delay(delay_s: float, changes: Mapping[str, Any]) -> str:
    course = changes.get("delay")
    if not course:
        return format_seconds(delay_s)
    return _between(course, "s", format_seconds) or f"{format_seconds(delay_s)} (changes)"


def _between(course: Mapping[str, Any], unit: str, write: Any) -> str:
    least, most = course.get(f"least_{unit}"), course.get(f"most_{unit}")
    if least is None or most is None:
        return ""
    return joined_range(write(least), write(most))


def _losses(errors: Mapping[str, Any], changes: Mapping[str, Any]) -> str:
    told = []
    if errors["bit_error_rate"]:
        told.append(f"bit errors {errors['bit_error_rate']:.3g}")
    if errors["packet_loss_rate"]:
        bursts = " in bursts" if errors["mean_burst_packets"] else ""
        told.append(f"loses {100.0 * errors['packet_loss_rate']:.3g}%{bursts}")
    if errors["lost_packets"]:
        number = len(errors["lost_packets"])
        told.append(f"loses {number:,} listed packet{'s' if number > 1 else ''}")
    if changes.get("losses"):
        told.append("losses change")
    return ", ".join(told)


def _queue(queue: Mapping[str, Any]) -> str:
    if queue["limit_packets"] is not None:
        return f"{queue['kind']}, {queue['limit_packets']:,} packets"
    if queue["limit_bytes"] is not None:
        return f"{queue['kind']}, {format_bytes(queue['limit_bytes'])}"
    return str(queue["kind"])


def _extras(settings: Mapping[str, Any], changes: Mapping[str, Any]) -> list[str]:
    told = []
    if settings["access"] is not None:
        told.append("capacity on demand")
    if settings["acks"]["kind"] != "none":
        told.append(f"ACK {settings['acks']['kind']}")
    if settings["compression"] != "none":
        told.append(f"compression {settings['compression']}")
    if settings["tunnel"]:
        told.append("tunnel")
    if changes.get("outages"):
        told.append("outages")
    if changes.get("fading"):
        told.append("fading")
    return told


def _flows(network: Network, group_of: Mapping[str, str]) -> list[FlowGroup]:
    tables: dict[str, list[Mapping[str, Any]]] = {}
    for flow in network.resolved["flows"]:
        tables.setdefault(flow["table"], []).append(flow)
    found = []
    for table, flows in tables.items():
        app = flows[0]["app"]
        data = data_direction(app)
        for ends in dict.fromkeys(
            (_end(group_of, each["from"]), _end(group_of, each["to"])) for each in flows
        ):
            start, end = reversed(ends) if data.from_server and not data.two_way else ends
            if data.from_server and data.two_way:
                start, end = reversed(ends)
            found.append(
                FlowGroup(
                    name=table,
                    count=len(flows),
                    start=start,
                    end=end,
                    two_way=data.two_way,
                    words=application_in_words(app),
                )
            )
    return found


def _end(group_of: Mapping[str, str], name: str) -> str:
    # A flow to a group leads to the group's name, which is no node.
    return group_of.get(name, name)


def application_in_words(app: Mapping[str, Any]) -> str:
    """Return what an application does, in words: "a transfer of 10 MB"."""
    kind = app["kind"]
    size = app.get("size_bytes")
    match kind:
        case "bulk":
            both = " both ways" if app.get("direction") == "both" else ""
            if size is None:
                return f"bulk transfer{both} until the end"
            return f"bulk transfer{both} of {format_bytes(size)}"
        case "web":
            return f"web pages ({app['page']})" if isinstance(app.get("page"), str) else "web pages"
        case "voice":
            return f"calls ({app['codec']})" if "codec" in app else "calls"
        case "video-call":
            return "video calls"
        case "request-response":
            return "requests and responses"
        case "ftp":
            return "files by FTP"
        case "ping":
            return "echo requests"
        case "mix":
            parts = [value for value in app.values() if isinstance(value, list)]
            kinds = [str(each["kind"]) for each in parts[0] if "kind" in each] if parts else []
            return f"users of {', '.join(dict.fromkeys(kinds))}" if kinds else "users of a mix"
        case _:
            return str(kind)
