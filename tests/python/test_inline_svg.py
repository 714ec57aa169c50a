"""Figures in the report: the same picture, with text, in less space."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from bentpipe.plot import new_axes, write_svg
from bentpipe.report.inline_svg import _path, inline_svg

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(figure: Figure) -> None:
    (axes,) = new_axes(figure)
    x = np.linspace(0.0, 10.0, 200)
    axes.plot(x, np.sin(x), label="efficiency & <office>")
    axes.plot([1.0, 9.0], [0.5, 0.6], "o", label="unmodified")
    axes.set_yscale("symlog")
    axes.set_xlabel("time (s)")
    axes.legend()


@pytest.fixture
def svg(tmp_path: Path) -> str:
    path = tmp_path / "a.svg"
    write_svg(draw, path)
    return path.read_text(encoding="utf-8")


def test_text_is_text_in_the_same_place(svg: str) -> None:
    element = ET.fromstring(inline_svg(svg, name="a", title="Waves & more"))
    texts = {each.text: each for each in element.iter("text")}
    # With the ligature of the outlines, too.
    assert {"time (s)", "efficiency & <office>", "unmodified", "10"} <= texts.keys()
    assert element.get("aria-label") == "Waves & more"
    number = texts["time (s)"]
    comment = svg[svg.index("<!-- time (s) -->") :]
    place = re.search(r"translate\(([\d.]+) ([\d.]+)\)", comment)
    assert place is not None
    expected = [float(each) for each in place.groups()]
    found = re.findall(r"[\d.]+", number.get("transform", ""))
    assert [float(each) for each in found] == pytest.approx(expected, abs=0.005)
    # DejaVu Sans's widths of t, i, m, e, space, parentheses and s in thousandths of an em.
    widths = (392, 278, 974, 615, 318, 390, 521, 390)
    assert number.get("font-size") == "10"
    expected_length = sum(widths) / 1000 * 10
    assert float(number.get("textLength", "0")) == pytest.approx(expected_length, abs=0.02)
    # Exponents are formulas, and keep their outlines.
    assert any("scale" in each.get("transform", "") for each in element.iter("use"))


def test_identifiers_are_of_the_figure_and_all_links_lead_somewhere(svg: str) -> None:
    pages = [inline_svg(svg, name=name, title="") for name in ("a", "b")]
    identifiers = [re.findall(r' id="([^"]+)"', page) for page in pages]
    assert not set(identifiers[0]) & set(identifiers[1])
    for page, known in zip(pages, identifiers, strict=True):
        links = re.findall(r'href="#([^"]+)"', page) + re.findall(r"url\(#([^)]+)\)", page)
        assert links
        assert set(links) == set(known)
        assert len(known) == len(set(known))
        assert "xlink" not in page
        assert "<script" not in page
        assert len(page) < 0.4 * len(svg)


@pytest.mark.parametrize(
    ("written", "short"),
    [
        ("M 10 20 \nL 30.123456 19.5 \nL 31 18 \nz", "M10 20l20.12-.5 .88-1.5z"),
        ("M 0 0 \nQ 1 1 2 0 \nC 3 0 4 0.5 5 1 \n", "M0 0q1 1 2 0c1 0 2 .5 3 1"),
        # A section without a length is left out; a dot is one.
        ("M 1 1 \nL 2 2 \nL 2.001 2.001 \nL 3 2 \n", "M1 1l1 1 1 0"),
        ("M 1 1 \nL 1 1 \n", "M1 1l0 0"),
        ("M 1 1 \nL 2 2 \nz\nM 5 5 \nL 6 5 \n", "M1 1l1 1zM5 5l1 0"),
    ],
)
def test_paths_are_relative_and_rounded(written: str, short: str) -> None:
    assert _path(written) == short


def test_rounding_does_not_add_up() -> None:
    points = [(0.004 * step, 0.0) for step in range(1000)]
    data = " ".join(f"{'L' if step else 'M'} {x} {y}" for step, (x, y) in enumerate(points))
    steps = [float(each) for each in re.findall(r"(?<=[l ])[\d.]+(?= 0)", _path(data)[4:])]
    assert sum(steps) == pytest.approx(points[-1][0], abs=0.01)
