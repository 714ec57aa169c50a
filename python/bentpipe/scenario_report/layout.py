"""Layers and rows of a network's nodes for a diagram, and a lane for each link.

Nodes stand in layers on both sides of the link with the longest delay: that of the satellite, if
there is one. A link that passes several layers has a place in each of them. In the gap between two
layers each link has a lane of its own, so that no label covers another.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

# Passes over the layers in which nodes are moved towards their neighbours.
_PASSES: Final = 4


@dataclass(frozen=True, kw_only=True)
class Edge:
    """A link between two nodes of the diagram."""

    name: str
    one: str
    other: str
    delay_s: float


@dataclass(frozen=True, kw_only=True)
class Lane:
    """The part of an edge between two neighbouring layers, `before` the gap and `after` it."""

    edge: int
    layer: int
    before: str
    after: str
    position: float
    has_label: bool


@dataclass(kw_only=True)
class Layout:
    """Layers of nodes with positions along them, in units of a lane's width.

    A place of an edge that passes a layer has a name that no node has.
    """

    layers: list[list[str]] = field(default_factory=list)
    position: dict[str, float] = field(default_factory=dict)
    lanes: list[Lane] = field(default_factory=list)
    nodes: frozenset[str] = frozenset()

    @property
    def extent(self) -> tuple[float, float]:
        """The least and the greatest position."""
        places = [*self.position.values(), *(lane.position for lane in self.lanes)]
        return (min(places), max(places)) if places else (0.0, 0.0)


def lay_out(nodes: Sequence[str], edges: Sequence[Edge], *, first: str) -> Layout:
    """Place nodes and edges; the side of the node `first` begins."""
    layer = _layers(nodes, edges, first)
    found = Layout(nodes=frozenset(nodes))
    lowest, highest = min(layer.values()), max(layer.values())
    found.layers = [[] for _ in range(highest - lowest + 1)]
    for name in nodes:
        found.layers[layer[name] - lowest].append(name)
    # Each edge as a chain of places, one in each layer that it passes.
    chains = []
    for number, edge in enumerate(edges):
        before, after = sorted((edge.one, edge.other), key=lambda name: layer[name])
        chain = [before]
        for between in range(layer[before] + 1, layer[after]):
            place = f"\0{number}:{between}"
            found.layers[between - lowest].append(place)
            chain.append(place)
        chains.append([*chain, after])
    neighbours: dict[str, list[str]] = {}
    for chain in chains:
        for one, other in itertools.pairwise(chain):
            neighbours.setdefault(one, []).append(other)
            neighbours.setdefault(other, []).append(one)
    _order(found, neighbours)
    for _ in range(_PASSES):
        found.lanes = []
        _lanes(found, chains, {name: layer[name] - lowest for name in nodes})
        _towards_lanes(found)
    return found


def _layers(nodes: Sequence[str], edges: Sequence[Edge], first: str) -> dict[str, int]:
    """Return the layer of each node: its distance from the longest link, on its side."""
    near: dict[str, set[str]] = {name: set() for name in nodes}
    for edge in edges:
        near[edge.one].add(edge.other)
        near[edge.other].add(edge.one)
    longest = max(edges, key=lambda edge: edge.delay_s, default=None)
    if longest is None:
        return {name: place for place, name in enumerate(nodes)}
    far = len(nodes)
    to_left, to_right = _sides(edges, near, longest, first)
    layer = {}
    for name in nodes:
        before, after = to_left.get(name, far), to_right.get(name, far)
        layer[name] = -before if before <= after else 1 + after
    # Neighbours in one layer: the one with fewer links moves outwards.
    for _ in nodes:
        moved = False
        for edge in edges:
            if layer[edge.one] == layer[edge.other]:
                outer = min(edge.one, edge.other, key=lambda name: (len(near[name]), name != first))
                layer[outer] += 1 if layer[outer] > 0 else -1
                moved = True
        if not moved:
            break
    return layer


def _sides(
    edges: Sequence[Edge], near: Mapping[str, set[str]], longest: Edge, first: str
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the distances from the ends of the long links: on the side of `first`, and beyond."""
    long_ones = [edge for edge in edges if 2.0 * edge.delay_s >= longest.delay_s]
    cut = _without(near, long_ones)
    here = _distances(cut, [first])
    left = {end for edge in long_ones for end in (edge.one, edge.other) if end in here}
    right = {end for edge in long_ones for end in (edge.one, edge.other)} - left
    if left and right:
        return _distances(cut, left), _distances(cut, right)
    # Another way leads around the long links: only the longest one separates the sides.
    cut = _without(near, [longest])
    one, other = _distances(cut, [longest.one]), _distances(cut, [longest.other])
    far = len(near)
    return (other, one) if one.get(first, far) > other.get(first, far) else (one, other)


def _without(near: Mapping[str, set[str]], edges: Sequence[Edge]) -> dict[str, set[str]]:
    """Return the neighbours of each node without those at the other ends of these edges."""
    cut = {name: set(others) for name, others in near.items()}
    for edge in edges:
        cut[edge.one].discard(edge.other)
        cut[edge.other].discard(edge.one)
    return cut


def _distances(near: Mapping[str, Iterable[str]], starts: Iterable[str]) -> dict[str, int]:
    found = dict.fromkeys(sorted(starts), 0)
    waiting = deque(found)
    while waiting:
        name = waiting.popleft()
        for other in sorted(near[name]):
            if other not in found:
                found[other] = found[name] + 1
                waiting.append(other)
    return found


def _order(layout: Layout, neighbours: Mapping[str, Sequence[str]]) -> None:
    """Order each layer by the mean position of its places' neighbours, and centre it."""
    for layer in layout.layers:
        for place, name in enumerate(layer):
            layout.position[name] = place - (len(layer) - 1) / 2.0
    for number in range(_PASSES):
        for layer in layout.layers if number % 2 == 0 else reversed(layout.layers):
            wanted = {
                name: _mean([layout.position[each] for each in neighbours.get(name, [])])
                for name in layer
            }
            layer.sort(key=lambda name: wanted[name])
            spread = _apart([wanted[name] for name in layer])
            layout.position.update(zip(layer, spread, strict=True))


def _lanes(layout: Layout, chains: Sequence[Sequence[str]], layer: Mapping[str, int]) -> None:
    gaps: dict[int, list[tuple[int, int, str, str]]] = {}
    for number, chain in enumerate(chains):
        start = layer[chain[0]]
        for step, (before, after) in enumerate(itertools.pairwise(chain)):
            gaps.setdefault(start + step, []).append((number, step, before, after))
    for gap, parts in gaps.items():
        position = layout.position
        parts.sort(key=lambda part: position[part[2]] + position[part[3]])
        wanted = [(position[before] + position[after]) / 2.0 for _, _, before, after in parts]
        for part, at in zip(parts, _apart(wanted), strict=True):
            number, step, before, after = part
            middle = (len(chains[number]) - 1) // 2
            layout.lanes.append(
                Lane(
                    edge=number,
                    layer=gap,
                    before=before,
                    after=after,
                    position=at,
                    has_label=step == middle,
                )
            )


def _towards_lanes(layout: Layout) -> None:
    """Move the places of each layer towards the lanes that lead to them."""
    at: dict[str, list[float]] = {}
    for lane in layout.lanes:
        at.setdefault(lane.before, []).append(lane.position)
        at.setdefault(lane.after, []).append(lane.position)
    for layer in layout.layers:
        wanted = [_mean(at[name]) if name in at else layout.position[name] for name in layer]
        layout.position.update(zip(layer, _apart(wanted), strict=True))


def _apart(wanted: Sequence[float]) -> list[float]:
    """Return ascending positions at least 1 apart, near those that are wanted."""
    blocks: list[list[float]] = []
    for value in wanted:
        blocks.append([value])
        # Blocks that overlap become one, centred on what its members want.
        while len(blocks) > 1 and _end(blocks[-2]) + 1.0 > _start(blocks[-1]):
            last = blocks.pop()
            blocks[-1] += last
    return [_start(block) + place for block in blocks for place in range(len(block))]


def _start(block: Sequence[float]) -> float:
    return _mean(block) - (len(block) - 1) / 2.0


def _end(block: Sequence[float]) -> float:
    return _mean(block) + (len(block) - 1) / 2.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
