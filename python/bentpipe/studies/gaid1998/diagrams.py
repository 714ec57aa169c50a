"""Diagrams of the paper: figures 1 to 3, 6 to 8 and 12, as bentpipe implements them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from bentpipe.plot.style import COLOURS, new_axes
from bentpipe.studies.columns import Columns, add, empty
from bentpipe.studies.gaid1998.cells import FITTED, Download, first_segments
from bentpipe.studies.study import Figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

    from bentpipe.studies.gaid1998.evidence import Evidence

_GREY: Final = "#555555"


@dataclass(frozen=True, kw_only=True)
class _Edge:
    """An arrow between two boxes; `bend` curves it, and `shift` moves its label."""

    start: str
    end: str
    label: str = ""
    bend: float = 0.0
    shift: tuple[float, float] = (0.0, 0.0)


def _diagram(
    *,
    id_: str,
    title: str,
    caption: str,
    boxes: Mapping[str, tuple[float, float]],
    edges: Sequence[_Edge],
    height: float,
) -> Figure:
    """Return a diagram of boxes and arrows; its data are the arrows."""
    columns: Columns = {
        "from": [edge.start for edge in edges],
        "to": [edge.end for edge in edges],
        "event": [edge.label.replace("\n", " ") for edge in edges],
    }

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.axis("off")
        axes.set_xlim(-0.5, 4.5)
        lowest = min(y for _, y in boxes.values())
        axes.set_ylim(lowest - 0.5, max(y for _, y in boxes.values()) + 0.5)
        patches = {
            name: axes.text(
                x,
                y,
                name,
                ha="center",
                va="center",
                fontsize=8.5,
                zorder=3,
                bbox={"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": COLOURS[6]},
            )
            for name, (x, y) in boxes.items()
        }
        for edge in edges:
            start, end = boxes[edge.start], boxes[edge.end]
            axes.annotate(
                "",
                xy=end,
                xytext=start,
                arrowprops={
                    "arrowstyle": "->",
                    "color": COLOURS[0],
                    "patchA": patches[edge.start].get_bbox_patch(),
                    "patchB": patches[edge.end].get_bbox_patch(),
                    "connectionstyle": f"arc3,rad={edge.bend}",
                },
            )
            axes.text(
                (start[0] + end[0]) / 2 + edge.shift[0],
                (start[1] + end[1]) / 2 + edge.shift[1],
                edge.label,
                ha="center",
                va="center",
                fontsize=7.5,
                color=_GREY,
                zorder=4,
                bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.8},
            )

    return Figure(id=id_, title=title, caption=caption, columns=columns, draw=draw, height=height)


def diagrams_before_table_1() -> list[Figure]:
    """Return figures 1 to 3."""
    return [_state_machine(), _manager(), _connection()]


def diagrams_after_table_1(evidence: Evidence) -> list[Figure]:
    """Return figures 6 to 8 and 12."""
    return [_policies(evidence), _from_server(), _handshake(), _network()]


def _state_machine() -> Figure:
    return _diagram(
        id_="1",
        title="TCP Finite State Machine",
        caption="The states of RFC 9293 (figure 5 there) and the events that change them, as the "
        "simulated hosts implement them.",
        boxes={
            "CLOSED": (2.0, 4.0),
            "LISTEN": (0.6, 3.2),
            "SYN-SENT": (3.4, 3.2),
            "SYN-RECEIVED": (0.6, 2.2),
            "ESTABLISHED": (3.4, 2.2),
            "FIN-WAIT-1": (1.3, 1.2),
            "CLOSE-WAIT": (3.6, 1.2),
            "FIN-WAIT-2": (0.3, 0.1),
            "CLOSING": (1.55, 0.1),
            "TIME-WAIT": (2.6, 0.1),
            "LAST-ACK": (3.8, 0.1),
            "CLOSED (end)": (3.2, -0.8),
        },
        edges=(
            _Edge(start="CLOSED", end="LISTEN", label="passive open", shift=(-0.15, 0.1)),
            _Edge(start="CLOSED", end="SYN-SENT", label="open: send SYN", shift=(0.15, 0.1)),
            _Edge(start="LISTEN", end="SYN-RECEIVED", label="SYN: send SYN, ACK"),
            _Edge(start="SYN-SENT", end="SYN-RECEIVED", label="SYN: send SYN, ACK"),
            _Edge(start="SYN-SENT", end="ESTABLISHED", label="SYN, ACK: send ACK"),
            _Edge(start="SYN-RECEIVED", end="ESTABLISHED", label="ACK of SYN"),
            _Edge(start="ESTABLISHED", end="FIN-WAIT-1", label="close: send FIN"),
            _Edge(start="ESTABLISHED", end="CLOSE-WAIT", label="FIN: send ACK"),
            _Edge(start="FIN-WAIT-1", end="FIN-WAIT-2", label="ACK of FIN", shift=(-0.15, 0.05)),
            _Edge(start="FIN-WAIT-1", end="CLOSING", label="FIN: send ACK", shift=(0.1, -0.1)),
            _Edge(start="FIN-WAIT-1", end="TIME-WAIT", label="FIN, ACK", shift=(0.2, 0.15)),
            _Edge(
                start="FIN-WAIT-2",
                end="TIME-WAIT",
                label="FIN: send ACK",
                bend=0.25,
                shift=(0.0, -0.42),
            ),
            _Edge(start="CLOSING", end="TIME-WAIT", label="ACK", shift=(0.0, 0.1)),
            _Edge(start="CLOSE-WAIT", end="LAST-ACK", label="close: send FIN"),
            _Edge(start="LAST-ACK", end="CLOSED (end)", label="ACK of FIN", shift=(0.1, 0.0)),
            _Edge(start="TIME-WAIT", end="CLOSED (end)", label="timeout", shift=(-0.05, 0.0)),
        ),
        height=5.8,
    )


def _manager() -> Figure:
    return _diagram(
        id_="2",
        title="TCP manager process",
        caption="One process of a host receives all packets and all calls of applications. It "
        "finds the connection by addresses and ports, and opens one for a SYN to a listening port.",
        boxes={
            "host": (2.0, 2.0),
            "lookup by\naddresses, ports": (2.0, 1.0),
            "connection 1": (0.3, 0.0),
            "connection 2": (1.6, 0.0),
            "new connection": (2.9, 0.0),
            "RST to the sender": (4.0, 1.0),
        },
        edges=(
            _Edge(start="host", end="lookup by\naddresses, ports", label="packet or call"),
            _Edge(start="lookup by\naddresses, ports", end="connection 1", label="known"),
            _Edge(start="lookup by\naddresses, ports", end="connection 2", label="known"),
            _Edge(
                start="lookup by\naddresses, ports",
                end="new connection",
                label="open, or SYN\nto a listening port",
                shift=(0.25, 0.0),
            ),
            _Edge(
                start="lookup by\naddresses, ports",
                end="RST to the sender",
                label="unknown",
                shift=(-0.05, 0.0),
            ),
        ),
        height=3.0,
    )


def _connection() -> Figure:
    return _diagram(
        id_="3",
        title="TCP connection process",
        caption="A connection is idle until a segment arrives, a timer expires or the application "
        "calls. After each event it sends what its windows allow.",
        boxes={
            "wait": (2.0, 2.0),
            "process\nthe segment": (0.4, 1.0),
            "retransmission\ntimeout": (2.0, 1.0),
            "write, read\nor close": (3.6, 1.0),
            "send what the windows allow, set timers": (2.0, 0.0),
        },
        edges=(
            _Edge(start="wait", end="process\nthe segment", label="segment"),
            _Edge(start="wait", end="retransmission\ntimeout", label="timer"),
            _Edge(start="wait", end="write, read\nor close", label="application"),
            _Edge(start="process\nthe segment", end="send what the windows allow, set timers"),
            _Edge(start="retransmission\ntimeout", end="send what the windows allow, set timers"),
            _Edge(start="write, read\nor close", end="send what the windows allow, set timers"),
        ),
        height=3.0,
    )


_FIRST_S: Final = 1.6


def _policies(evidence: Evidence) -> Figure:
    """Return figure 6: the first segments of two runs, between server, gateway and host."""
    columns = empty("policy", "what", "from", "to", "sent_s", "received_s")
    arrows: dict[str, list[tuple[str, float, float, float, float]]] = {}
    for policy, cell in (
        ("standard TCP/IP", first_segments(gateway=False)),
        ("Asymmetric TCP/IP", first_segments(gateway=True)),
    ):
        arrows[policy] = _arrows(evidence, cell)
        for what, start, end, sent_s, received_s in arrows[policy]:
            add(
                columns,
                policy,
                what,
                _NODES[start],
                _NODES[end],
                sent_s,
                received_s,
            )

    def draw(canvas: Canvas) -> None:
        for axes, (policy, lines) in zip(new_axes(canvas, columns=2), arrows.items(), strict=True):
            for what, start, end, sent_s, received_s in lines:
                axes.annotate(
                    "",
                    xy=(end, received_s),
                    xytext=(start, sent_s),
                    arrowprops={
                        "arrowstyle": "->",
                        "color": COLOURS[0] if what == "data" else COLOURS[1],
                        "linestyle": "-" if what == "data" else "--",
                        "linewidth": 0.9,
                        "shrinkA": 0,
                        "shrinkB": 0,
                    },
                )
            for x in _NODES:
                axes.axvline(x, color=COLOURS[6], linewidth=0.8)
            axes.plot([], [], "-", color=COLOURS[0], label="data")
            axes.plot([], [], "--", color=COLOURS[1], label="acknowledgment")
            axes.set_xticks(list(_NODES), list(_NODES.values()))
            axes.xaxis.tick_top()
            axes.set(xlim=(-0.15, 2.15), ylim=(_FIRST_S, 0.0), xlabel=policy)
            axes.grid(visible=False, axis="x")
        canvas.axes[0].set_ylabel("time (s)")
        handles, labels = canvas.axes[0].get_legend_handles_labels()
        canvas.legend(handles, labels, loc="outside lower center", ncols=2)

    return Figure(
        id="6",
        title="Asymmetric TCP/IP versus standard TCP/IP for acknowledgment policy",
        caption="The start of set 1, with a plain router and with the hybrid gateway, as run. "
        "Left, the server sends a window of 4096 bytes for each round trip by satellite and modem. "
        "Right, the gateway acknowledges, and the server sends on. An ACK of the host is drawn "
        "from when the modem begins to send it.",
        columns=columns,
        draw=draw,
        height=6.0,
    )


_NODES: Final = {0.0: "server", 1.0: "gateway", 2.0: "host"}


def _arrows(evidence: Evidence, cell: Download) -> list[tuple[str, float, float, float, float]]:
    """Return data and ACKs of a run: what, from, to (as places), time sent, time received."""
    lan_s = 1e-3 * cell.open.delay_ms
    sent = evidence.curve(cell, "download.sent_segment").known()
    received = evidence.curve(cell, "download.received_segment").known()
    acknowledged = evidence.curve(cell, "download.acknowledged").known()
    arrival = dict(zip(received.values[::-1], received.times_s[::-1], strict=True))
    lines = []
    for time_s, offset in zip(sent.times_s, sent.values, strict=True):
        lines.append(("data", 0.0, 1.0, float(time_s), float(time_s) + lan_s))
        if offset in arrival:
            there = float(arrival[offset])
            lines.append(("data", 1.0, 2.0, there - cell.satellite_s, there))
    news = np.flatnonzero(np.diff(acknowledged.values) > 0.0) + 1
    lines += [
        ("ACK", 1.0, 0.0, time_s - lan_s, time_s) for time_s in acknowledged.times_s[news].tolist()
    ]
    if cell.gateway:
        at_gateway = evidence.curve(cell, "hub.acknowledged").known()
        times = at_gateway.times_s[np.flatnonzero(np.diff(at_gateway.values) > 0.0) + 1]
    else:
        times = acknowledged.times_s[news] - lan_s
    lines += [("ACK", 2.0, 1.0, time_s - cell.modem_s, time_s) for time_s in times.tolist()]
    return [line for line in lines if line[3] >= 0.0 and line[4] <= _FIRST_S]


def _from_server() -> Figure:
    return _diagram(
        id_="7",
        title="Processing of segments arriving from the server",
        caption="As the hybrid gateway implements section 4.1. Data beyond the window is cut, and "
        "segments out of order are kept.",
        boxes={
            "segment from the server": (0.6, 4.0),
            "forward unchanged": (3.6, 4.0),
            "note window, timestamp and\nACK number of the server": (0.6, 3.0),
            "cut to the window": (3.6, 3.0),
            "store": (0.6, 2.0),
            "keep, acknowledge\nwith SACK": (3.6, 2.0),
            "send to the host": (0.6, 1.0),
            "hold until a window opens": (3.6, 1.0),
            "start timers: ACK to the server,\nretransmission to the host": (0.6, 0.0),
        },
        edges=(
            _Edge(
                start="segment from the server",
                end="forward unchanged",
                label="no such connection,\nor not established",
            ),
            _Edge(
                start="segment from the server",
                end="note window, timestamp and\nACK number of the server",
                label="connection known",
            ),
            _Edge(
                start="note window, timestamp and\nACK number of the server",
                end="cut to the window",
                label="beyond",
                shift=(0.3, 0.0),
            ),
            _Edge(
                start="note window, timestamp and\nACK number of the server",
                end="store",
                label="within the window",
            ),
            _Edge(start="cut to the window", end="store", label="the rest"),
            _Edge(start="store", end="keep, acknowledge\nwith SACK", label="out of order"),
            _Edge(start="store", end="send to the host", label="in order"),
            _Edge(
                start="store",
                end="hold until a window opens",
                label="zero window",
                shift=(0.5, 0.0),
            ),
            _Edge(
                start="send to the host",
                end="start timers: ACK to the server,\nretransmission to the host",
            ),
        ),
        height=5.2,
    )


def _handshake() -> Figure:
    steps = (
        ("host", "server", "SYN", "SYN received from the host"),
        ("server", "host", "SYN, ACK", "SYN received from the server, established at the server"),
        ("host", "server", "ACK", "established at the host: the gateway begins"),
        ("server", "gateway", "data", "stored"),
        ("gateway", "server", "ACK", "on behalf of the host"),
        ("gateway", "host", "data", ""),
    )
    places = {name: x for x, name in _NODES.items()}
    columns: Columns = {
        "from": [start for start, _, _, _ in steps],
        "to": [end for _, end, _, _ in steps],
        "segment": [what for _, _, what, _ in steps],
        "at the gateway": [noted for _, _, _, noted in steps],
    }

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.axis("off")
        for name, x in places.items():
            axes.axvline(x, color=COLOURS[6], linewidth=0.8, ymax=0.93)
            axes.text(x, 0.35, name, ha="center", va="center")
        for row, (start, end, what, noted) in enumerate(steps):
            y = -0.3 - row
            axes.annotate(
                "",
                xy=(places[end], y - 0.55),
                xytext=(places[start], y),
                arrowprops={"arrowstyle": "->", "color": COLOURS[0], "shrinkA": 0, "shrinkB": 0},
            )
            middle = (places[start] + places[end]) / 2
            away = 0.4 if abs(places[start] - places[end]) > 1 else 0.0
            share = abs(middle - away - places[start]) / abs(places[end] - places[start])
            axes.text(
                middle - away,
                y - 0.55 * share + 0.16,
                what,
                ha="center",
                fontsize=8.5,
            )
            axes.text(2.12, y - 0.3, noted, ha="left", va="center", fontsize=8, color=_GREY)
        axes.set(xlim=(-0.2, 4.0), ylim=(-0.6 - len(steps), 0.7))

    return Figure(
        id="8",
        title="Three hand-shake protocol",
        caption="The gateway forwards the three segments and notes the state of both ends "
        "(section 4.3). It acknowledges data once both are established, and neither a SYN nor a "
        "FIN.",
        columns=columns,
        draw=draw,
        height=4.2,
    )


_BOXES: Final = (("server", 0.0), ("hybrid\ngateway", 1.0), ("hybrid\nhost", 2.2))


def _network() -> Figure:
    rows: Sequence[tuple[str, str, str, str]] = (
        ("LAN", "both", "10 Mbit/s", f"open; {FITTED.delay_ms} ms"),
        ("satellite", "gateway to host", "10 Mbit/s", "250 ms"),
        ("modem", "host to gateway, in a tunnel", "9.6 or 29.9 kbit/s", "1 ms"),
    )
    columns: Columns = {
        name: [row[index] for row in rows]
        for index, name in enumerate(("link", "way", "rate", "delay"))
    }

    def draw(canvas: Canvas) -> None:
        (axes,) = new_axes(canvas)
        axes.axis("off")
        axes.set(xlim=(-0.4, 2.6), ylim=(-0.7, 0.8))
        for name, x in _BOXES:
            axes.text(
                x,
                0.0,
                name,
                ha="center",
                va="center",
                bbox={"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": COLOURS[6]},
            )
        _arrow(axes, (0.22, 0.0), (0.74, 0.0), "<->", "Ethernet,\n10 Mbit/s", 0.16, 0.0)
        _arrow(axes, (1.2, 0.12), (2.0, 0.12), "->", "satellite: 10 Mbit/s, 250 ms", 0.42, -0.35)
        _arrow(
            axes,
            (2.0, -0.12),
            (1.2, -0.12),
            "->",
            "modem: 9.6 or 29.9 kbit/s, tunnel",
            -0.42,
            -0.35,
        )

    return Figure(
        id="12",
        title="Hybrid network",
        caption="The server, the hybrid gateway and the hybrid host, as simulated (figures 9 to 15 "
        "of the paper are OPNET's views of it).",
        columns=columns,
        draw=draw,
        height=2.6,
    )


def _arrow(
    axes: Axes,
    start: tuple[float, float],
    end: tuple[float, float],
    style: str,
    label: str,
    above: float,
    bend: float,
) -> None:
    axes.annotate(
        "",
        xy=end,
        xytext=start,
        arrowprops={
            "arrowstyle": style,
            "color": COLOURS[0],
            "connectionstyle": f"arc3,rad={bend}",
        },
    )
    axes.text((start[0] + end[0]) / 2, start[1] + above, label, ha="center", va="center")
