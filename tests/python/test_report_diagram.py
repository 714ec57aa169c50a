"""The diagram of a report: each node, link and flow is there, and no label covers another."""

from __future__ import annotations

import re
from itertools import combinations, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bentpipe import Scenario, _native, ready_made, run
from bentpipe.advice.remedies import Network
from bentpipe.scenario_report.diagram import diagrams
from bentpipe.scenario_report.layout import Edge, Layout, lay_out
from bentpipe.scenario_report.topology import Topology, topology

# Durations where flows start later than in the first two seconds.
LATE = {"geo-pep": "12 s", "hybrid-noc": "12 s"}


def read(name: str) -> Topology:
    duration = LATE.get(name, "2 s")
    scenario = Scenario.find(name).with_settings({"duration": duration})
    network = Network.of(scenario, _native.lists())
    return topology(network, run(scenario, no_probes=True).summary)


@pytest.mark.parametrize("name", ready_made())
def test_every_node_link_and_flow_is_drawn(name: str) -> None:
    told = read(name)
    svg = diagrams(told, first=told.flows[0].start)
    level = svg.split("</svg>")[0]
    texts = re.findall(r"<text [^>]*>([^<]*)</text>", level)
    for node in told.nodes:
        assert texts.count(node.name) >= 1, node.name
        assert node.words in texts
    for link in told.links:
        label = f"{link.name}, {link.count:,} links" if link.count > 1 else link.name
        assert label in texts
    for flow in told.flows:
        assert any(text.startswith(f"{flow.name}: ") for text in texts)


def test_counted_nodes_and_links_are_one_group() -> None:
    told = read("vsat-office")
    assert [(node.name, node.count) for node in told.nodes] == [
        *(("internet", 1), ("users", 20), ("phones", 4), ("hub", 1), ("terminal", 1)),
    ]
    links = {link.name: link for link in told.links}
    assert {name: link.count for name, link in links.items()} == {
        "backbone": 1,
        "satellite": 1,
        "desks": 20,
        "phone-lan": 4,
    }
    satellite = links["satellite"].ways
    assert [(way.rate, way.delay, way.losses) for way in satellite] == [
        ("20 Mbit/s", "270 ms", ""),
        ("4 Mbit/s", "270 ms", ""),
    ]
    flows = {flow.name: flow for flow in told.flows}
    # Pages come from the server, mails go to it, calls go both ways.
    assert (flows["pages"].start, flows["pages"].end) == ("internet", "users")
    assert (flows["mail"].start, flows["mail"].end) == ("users", "internet")
    assert flows["calls"].two_way


def test_terminals_of_a_broadcast_channel_are_on_one_side() -> None:
    told = read("rcs2-terminals")
    edges = [
        Edge(name=link.name, one=link.ends[0], other=link.ends[1], delay_s=link.delay_s)
        for link in told.links
    ]
    layout = lay_out([node.name for node in told.nodes], edges, first="internet")
    assert [set(layer) for layer in layout.layers] == [
        {"internet"},
        {"hub"},
        {"home", "office", "desk"},
    ]


@st.composite
def networks(draw: st.DrawFn) -> tuple[list[str], list[Edge]]:
    """Draw a connected network of 2 to 15 nodes: a tree, and a few more links."""
    names = [f"node{number}" for number in range(draw(st.integers(2, 15)))]
    pairs = [(draw(st.sampled_from(names[:place])), names[place]) for place in range(1, len(names))]
    every = st.sampled_from(list(combinations(names, 2)))
    pairs += draw(st.lists(every, max_size=5))
    delays = st.sampled_from([0.0, 0.001, 0.02, 0.25])
    edges = [
        Edge(name=f"link{place}", one=one, other=other, delay_s=draw(delays))
        for place, (one, other) in enumerate(pairs)
    ]
    return names, edges


def places_of(layout: Layout) -> list[list[float]]:
    """Return the positions of nodes in each layer, and of lanes in each gap."""
    nodes = [[layout.position[name] for name in layer] for layer in layout.layers]
    lanes: list[list[float]] = [[] for _ in layout.layers]
    for lane in layout.lanes:
        lanes[lane.layer].append(lane.position)
    return nodes + lanes


@given(networks())
def test_labels_and_nodes_are_apart_in_any_network(drawn: tuple[list[str], list[Edge]]) -> None:
    names, edges = drawn
    layout = lay_out(names, edges, first=names[0])
    assert sorted(name for layer in layout.layers for name in layer if name in names) == sorted(
        names
    )
    for column in places_of(layout):
        assert all(after - before > 0.999 for before, after in pairwise(sorted(column)))
    # Each link has one label, and leads from one of its ends to the other.
    assert sorted(lane.edge for lane in layout.lanes if lane.has_label) == list(range(len(edges)))
    for number, edge in enumerate(edges):
        lanes = sorted(
            (lane for lane in layout.lanes if lane.edge == number), key=lambda lane: lane.layer
        )
        assert {lanes[0].before, lanes[-1].after} == {edge.one, edge.other}
        for one, other in pairwise(lanes):
            assert one.after == other.before
