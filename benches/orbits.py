"""Work of computing a path over satellites by the number of satellites.

    python3 benches/orbits.py [--table FILE] [--figure FILE.svg]

The script counts the instructions of `crates/orbits/examples/growth.rs` (valgrind's callgrind): one
path over 600 s, with a sample per second and a decision every 15 s, over one satellite and over
inter-satellite links. The constellation's set-up is part of it. The figure needs bentpipe's Python
package for its style.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ROOT = Path(__file__).resolve().parent.parent
GROWTH = ROOT / "target" / "release" / "examples" / "growth"
# Planes and satellites in each.
SHELLS = ((20, 20), (36, 22), (72, 22), (72, 44), (100, 60), (150, 80), (200, 100))
ROUTINGS = {
    "bent-pipe": "over one satellite",
    "inter-satellite-links": "over inter-satellite links",
}


def instructions(planes: int, in_plane: int, routing: str) -> int:
    """Return the instructions of one path."""
    words = [str(planes), str(in_plane), "1", "600", routing]
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        tool = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}"]
        ran = subprocess.run(
            [*tool, str(GROWTH), *words],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
    counted = re.search(r"Collected : (\d+)", ran.stderr)
    if ran.returncode != 0 or counted is None:
        sys.exit(f"{' '.join(words)}: {ran.stderr}")
    return int(counted[1])


def table_of(counts: dict[str, dict[int, int]]) -> str:
    """Return the counts in millions as a table in Markdown."""
    lines = [f"| satellites | {' | '.join(ROUTINGS.values())} |", "|---:|---:|---:|"]
    for satellites in next(iter(counts.values())):
        cells = (f"{counts[routing][satellites] / 1e6:,.1f}" for routing in ROUTINGS)
        lines.append(f"| {satellites:,} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def draw(figure: Figure, counts: dict[str, dict[int, int]]) -> None:
    """Draw instructions against satellites, with lines of proportional growth."""
    from bentpipe.plot.style import COLOURS, MARKERS, new_axes

    (axes,) = new_axes(figure)
    for number, (routing, label) in enumerate(ROUTINGS.items()):
        satellites = list(counts[routing])
        millions = [each / 1e6 for each in counts[routing].values()]
        look = {"color": COLOURS[number], "marker": MARKERS[number], "label": label}
        axes.plot(satellites, millions, **look)
        ends = [satellites[0], satellites[-1]]
        proportional = [millions[-1] * each / satellites[-1] for each in ends]
        axes.plot(ends, proportional, color=COLOURS[number], linewidth=0.8, linestyle="--")
    axes.set(xscale="log", yscale="log", xlabel="satellites (dashed: proportional to them)")
    axes.set(title="one path over 600 s", ylabel="million instructions")
    axes.legend()


def main() -> None:
    """Count, and write the table and the figure."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--table", type=Path)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    build = ["cargo", "build", "--quiet", "--release", "--package", "bentpipe-orbits"]
    subprocess.run([*build, "--example", "growth"], cwd=ROOT, check=True)
    counts = {
        routing: {
            planes * in_plane: instructions(planes, in_plane, routing)
            for planes, in_plane in SHELLS
        }
        for routing in ROUTINGS
    }
    table = table_of(counts)
    print(table, end="")
    if arguments.table is not None:
        arguments.table.write_text(table, encoding="utf-8")
    if arguments.figure is not None:
        from bentpipe.plot.style import write_svg

        write_svg(lambda figure: draw(figure, counts), arguments.figure, width=6.4, height=3.8)


if __name__ == "__main__":
    main()
