#!/usr/bin/env python3
"""Draw the figure of docs/broadcast.md from runs of `broadcast` with three turns and other losses.

    tools/broadcast_figure.py docs/images

The argument is the folder of the figure.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import bentpipe
from bentpipe.plot.style import COLOURS, legend_below, new_axes, write_svg
from bentpipe.prediction.multicast import HEADER_BYTES, completion
from bentpipe.prediction.network import directions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOSSES = (0.002, 0.01, 0.05, 0.15)
TURNS = {
    "flows.bulletin.app": """{ kind = "carousel", size = "500 kB", rate = "1 Mbit/s",
turns = 3, interval = "13 s", files = 8 }"""
}


def draw(figure: Figure) -> None:
    """Draw the share of files that dishes have received over time: runs and the closed form."""
    (axes,) = new_axes(figure)
    for colour, loss in zip(COLOURS, LOSSES, strict=False):
        settings = {**TURNS, "links.satellite.errors.packet_loss_rate": loss}
        resolved = bentpipe.Scenario.of("broadcast").with_settings(settings).resolved()
        flow = resolved["flows"][0]
        known = directions(resolved["links"])
        route = [known[name] for name in flow["route"]["forward"]]
        header_bytes = HEADER_BYTES[resolved["ip"]]
        said = completion(flow["app"], route=route, header_bytes=header_bytes)
        axes.plot(said.times_s, 100.0 * said.shares, "--", color="0.3", linewidth=1.0, zorder=3)
        group = bentpipe.run("broadcast", settings=settings).summary.groups[0].extra["files"]
        whole = 100.0 * group["count"] / group["begun"]
        times_s = 1e-3 * np.asarray(group["time_ms"]["percentiles"])
        shares = np.linspace(0.0, whole, len(times_s))
        label = f"{100.0 * loss:g}% lost: {whole:.1f}% whole"
        axes.plot(times_s, shares, color=colour, label=label)
    axes.plot([], [], "--", color="0.3", linewidth=1.0, label="closed form")
    axes.set_xlim(0.0, 12.5)
    axes.set_ylim(0.0, 100.0)
    axes.set_xlabel("time since the file's start (s)")
    axes.set_ylabel("share of the files that are whole (%)")
    axes.set_title("broadcast: 358 datagrams to 100 dishes, sent three times")
    legend_below(figure, axes)


def main() -> None:
    """Write the figure."""
    write_svg(partial(draw), Path(sys.argv[1]) / "broadcast.svg")


if __name__ == "__main__":
    main()
