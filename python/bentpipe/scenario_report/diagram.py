"""The network as an inline SVG: nodes, links with what they give, flows.

Layers are columns on wide pages and rows on narrow ones. Colours are those of the page.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from bentpipe.scenario_report.layout import Edge, Layout, lay_out

if TYPE_CHECKING:
    from bentpipe.scenario_report.topology import LinkGroup, Node, Topology

# Pixels: letters of the labels and of the names of nodes, lines, and margins.
_LETTER: Final = 6.4
_NAME_LETTER: Final = 7.6
_LINE: Final = 15.0
_PAD: Final = 10.0
_MARGIN: Final = 8.0
_NODE_HEIGHT: Final = 46.0
# Of a gap between layers: the slanted parts of its links, on both sides.
_SLANT: Final = 22.0
_FLOW_LANE: Final = 24.0
_LONGEST: Final = 36


@dataclass(frozen=True, kw_only=True)
class _Label:
    """Lines of a label, the first one bold."""

    lines: tuple[str, ...]

    @property
    def width(self) -> float:
        return _LETTER * max(len(line) for line in self.lines)

    @property
    def height(self) -> float:
        return _LINE * len(self.lines)


def diagrams(topology: Topology, *, first: str) -> str:
    """Return the diagram for wide pages and, if it is narrower, an upright one for narrow pages.

    The side of the node `first` is on the left, or above.
    """
    edges = [
        Edge(name=link.name, one=link.ends[0], other=link.ends[1], delay_s=link.delay_s)
        for link in topology.links
    ]
    names = [node.name for node in topology.nodes]
    layout = lay_out(names, edges, first=first if first in names else names[0])
    level, upright = _Level(topology, layout), _Upright(topology, layout)
    drawn = level.svg(), upright.svg()
    if upright.width < level.width:
        return "".join(drawn)
    return drawn[0].replace('class="diagram level"', 'class="diagram"', 1)


class _Drawing(ABC):
    """A diagram. `along` runs from layer to layer, `across` within a layer."""

    def __init__(self, topology: Topology, layout: Layout) -> None:
        self.topology = topology
        self.layout = layout
        self.nodes = {node.name: node for node in topology.nodes}
        self.layer_of = {
            name: number for number, layer in enumerate(layout.layers) for name in layer
        }
        self.labels = {number: self._label(link) for number, link in enumerate(topology.links)}
        self.parts: list[str] = []
        self.width = 0.0

    def _label(self, link: LinkGroup) -> _Label:
        name = f"{link.name}, {link.count:,} links" if link.count > 1 else link.name
        lines = [name]
        delays = dict.fromkeys(way.delay for way in link.ways)
        for way in link.ways:
            arrow = self.arrow(self.layer_of[way.start] < self.layer_of[way.end])
            delay = f"{way.delay}, " if len(delays) > 1 else ""
            lines.append(f"{arrow} {way.rate}, {delay}{way.used:.0%} used")
        if len(delays) == 1:
            lines.append(next(iter(delays)) + (" each way" if len(link.ways) == 2 else ""))
        lines += dict.fromkeys(way.losses for way in link.ways if way.losses)
        lines += dict.fromkeys(extra for way in link.ways for extra in way.extras)
        return _Label(lines=tuple(_short(line) for line in lines))

    @abstractmethod
    def arrow(self, onwards: bool) -> str: ...

    def text(self, x: float, y: float, text: str, *, kind: str, anchor: str = "middle") -> None:
        self.parts.append(
            f'<text x="{x:.0f}" y="{y:.0f}" class="{kind}" text-anchor="{anchor}">'
            f"{escape(text)}</text>"
        )

    def node(self, node: Node, x: float, y: float, width: float) -> None:
        kind = "host" if node.is_host else "gateway"
        if node.count > 1:
            # A second card behind the first one: there are several.
            self.parts.append(
                f'<rect x="{x - width / 2 + 4:.0f}" y="{y - _NODE_HEIGHT / 2 + 4:.0f}" '
                f'width="{width:.0f}" height="{_NODE_HEIGHT:.0f}" rx="6" class="node {kind}"/>'
            )
        self.parts.append(
            f'<rect x="{x - width / 2:.0f}" y="{y - _NODE_HEIGHT / 2:.0f}" width="{width:.0f}" '
            f'height="{_NODE_HEIGHT:.0f}" rx="6" class="node {kind}"/>'
        )
        self.text(x, y - 3, _short(node.name), kind="name")
        self.text(x, y + 13, node.words, kind="label")

    def label(self, label: _Label, x: float, y: float) -> None:
        """Write a label's lines, centred at a point."""
        width, height = label.width + 6, label.height + 4
        self.parts.append(
            f'<rect x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" class="behind"/>'
        )
        top = y - label.height / 2 + 11
        for place, line in enumerate(label.lines):
            self.text(x, top + place * _LINE, line, kind="bold" if place == 0 else "label")

    def wrapped(self, width: float, height: float, kind: str) -> str:
        self.width = width
        told = ", ".join(node.name for node in self.topology.nodes)
        return (
            f'<svg class="diagram {kind}" viewBox="0 0 {width:.0f} {height:.0f}" '
            f'style="--width:{width:.0f}px" role="img" '
            f'aria-label="{escape(f"The network: {told}")}">{"".join(self.parts)}</svg>'
        )

    def node_width(self, name: str) -> float:
        node = self.nodes.get(name)
        if node is None:
            return 0.0
        name_width = _NAME_LETTER * len(_short(node.name))
        return max(name_width, _LETTER * len(node.words)) + 2 * _PAD

    def is_bottleneck(self, number: int) -> bool:
        """Whether a direction of a link is fully used."""
        return any(way.used >= 0.95 for way in self.topology.links[number].ways)

    def line(self, number: int, points: Sequence[tuple[float, float]]) -> None:
        kind = "link full" if self.is_bottleneck(number) else "link"
        told = " ".join(f"{x:.0f},{y:.0f}" for x, y in points)
        self.parts.append(f'<polyline points="{told}" class="{kind}"/>')

    @abstractmethod
    def svg(self) -> str: ...


class _Level(_Drawing):
    """Layers are columns; the flows are arrows below."""

    def arrow(self, onwards: bool) -> str:
        return "→" if onwards else "←"

    def svg(self) -> str:
        layout = self.layout
        widths = [max(map(self.node_width, layer), default=0.0) for layer in layout.layers]
        gaps = [0.0] * max(len(layout.layers) - 1, 0)
        tallest = _NODE_HEIGHT
        for lane in layout.lanes:
            label = self.labels[lane.edge]
            width = label.width + 12 if lane.has_label else 0.0
            gaps[lane.layer] = max(gaps[lane.layer], width + 2 * _SLANT)
            tallest = max(tallest, label.height)
        pitch = tallest + 14.0
        least, most = layout.extent
        centres: list[float] = []
        x = _MARGIN
        for number, width in enumerate(widths):
            centres.append(x + width / 2)
            x += width + (gaps[number] if number < len(gaps) else 0.0)
        width = x + _MARGIN + 4

        def y_of(position: float) -> float:
            return _MARGIN + tallest / 2 + pitch * (position - least)

        labels = []
        for lane in layout.lanes:
            start = centres[lane.layer] + widths[lane.layer] / 2
            end = centres[lane.layer + 1] - widths[lane.layer + 1] / 2
            before, after = layout.position[lane.before], layout.position[lane.after]
            y = y_of(lane.position)
            own_start = start - (widths[lane.layer] - self.node_width(lane.before)) / 2
            own_end = end + (widths[lane.layer + 1] - self.node_width(lane.after)) / 2
            points = [(own_start, y_of(before)), (start, y_of(before)), (start + _SLANT, y)]
            points += [(end - _SLANT, y), (end, y_of(after)), (own_end, y_of(after))]
            self.line(lane.edge, points)
            if lane.has_label:
                labels.append((self.labels[lane.edge], (start + end) / 2, y))
        for label, x, y in labels:
            self.label(label, x, y)
        for name, node in self.nodes.items():
            at = centres[self.layer_of[name]], y_of(layout.position[name])
            self.node(node, *at, self.node_width(name))
        bottom = y_of(most) + tallest / 2 + _MARGIN
        return self.wrapped(width, self._flows(centres, bottom, width), "level")

    def _flows(self, centres: Sequence[float], top: float, width: float) -> float:
        """Draw an arrow for each table of flows; return where the diagram ends."""
        y = top + 6
        for place, flow in enumerate(self.topology.flows):
            start = centres[self.layer_of.get(flow.start, 0)]
            end = centres[self.layer_of.get(flow.end, len(centres) - 1)]
            y += _FLOW_LANE
            colour = f"c{place % 6}"
            if start == end:
                # Both ends are in one column.
                start, end = start - 20, end + 20
            self.parts.append(
                f'<line x1="{start:.0f}" y1="{y:.0f}" x2="{end:.0f}" y2="{y:.0f}" '
                f'class="flow {colour}"/>'
            )
            self._head(end, y, 1 if end > start else -1, colour)
            if flow.two_way:
                self._head(start, y, 1 if start > end else -1, colour)
            number = f"{flow.count:,} × " if flow.count > 1 else ""
            told = f"{flow.name}: {number}{flow.words}"
            room = int((width - 2 * _MARGIN) / _LETTER)
            if len(told) > room:
                told = f"{told[: room - 1]}…"
            half = _LETTER * len(told) / 2
            x = min(max((start + end) / 2, half + _MARGIN), width - half - _MARGIN)
            self.text(x, y - 5, told, kind="label")
        return y + _MARGIN + 4

    def _head(self, x: float, y: float, way: int, colour: str) -> None:
        self.parts.append(f'<path d="M{x:.0f} {y:.0f}l{-9 * way} -5v10z" class="head {colour}"/>')


class _Upright(_Drawing):
    """Layers are rows, for narrow pages."""

    def arrow(self, onwards: bool) -> str:
        return "↓" if onwards else "↑"

    def svg(self) -> str:
        layout = self.layout
        widest = max(map(self.node_width, self.nodes))
        gaps = [0.0] * max(len(layout.layers) - 1, 0)
        for lane in layout.lanes:
            label = self.labels[lane.edge]
            height = label.height + 6 if lane.has_label else 0.0
            gaps[lane.layer] = max(gaps[lane.layer], height + 2 * _SLANT)
            if lane.has_label:
                widest = max(widest, label.width + 6)
        pitch = widest + 10.0
        least, most = layout.extent
        centres: list[float] = []
        y = _MARGIN
        for number in range(len(layout.layers)):
            centres.append(y + _NODE_HEIGHT / 2)
            y += _NODE_HEIGHT + (gaps[number] if number < len(gaps) else 0.0)

        def x_of(position: float) -> float:
            return _MARGIN + widest / 2 + pitch * (position - least)

        bottom = y
        labels = []
        for lane in layout.lanes:
            start = centres[lane.layer] + _NODE_HEIGHT / 2
            end = centres[lane.layer + 1] - _NODE_HEIGHT / 2
            before, after = layout.position[lane.before], layout.position[lane.after]
            x = x_of(lane.position)
            # A place that an edge passes has no node to end at.
            top = start if lane.before in self.nodes else start - _NODE_HEIGHT
            foot = end if lane.after in self.nodes else end + _NODE_HEIGHT
            points = [(x_of(before), top), (x_of(before), start), (x, start + _SLANT)]
            points += [(x, end - _SLANT), (x_of(after), end), (x_of(after), foot)]
            self.line(lane.edge, points)
            if lane.has_label:
                labels.append((self.labels[lane.edge], x, (start + end) / 2))
        for label, x, y in labels:
            self.label(label, x, y)
        for name, node in self.nodes.items():
            at = x_of(layout.position[name]), centres[self.layer_of[name]]
            self.node(node, *at, self.node_width(name))
        width = x_of(most) + widest / 2 + _MARGIN
        told = [
            f"{flow.name}: {flow.start} {'↔' if flow.two_way else '→'} {flow.end}"
            for flow in self.topology.flows
        ]
        width = max([width, *(_LETTER * len(line) + 2 * _MARGIN for line in told)])
        for place, line in enumerate(told, start=1):
            self.text(_MARGIN, bottom + 12 + place * _LINE, line, kind="label", anchor="start")
        return self.wrapped(width, bottom + 16 + len(told) * _LINE + _MARGIN, "upright")


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
