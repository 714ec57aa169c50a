"""Figures inside an HTML page: matplotlib's SVG with real text, in a third of its size.

Three changes, none of which is visible at a figure's size:

* Text is text (`<text>`) and not outlines. Its length is that of the outlines, whatever the font.
* Coordinates have two decimals, of a point, and are relative.
* Identifiers are unique in the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from html import escape, unescape
from typing import Any, Final
from xml.etree import ElementTree as ET

from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font

_SVG: Final = "{http://www.w3.org/2000/svg}"
_HREF: Final = "{http://www.w3.org/1999/xlink}href"
_NUMBER: Final = re.compile(r"-?\d+\.?\d*(?:e-?\d+)?")
# Outlines of text: the font, and the index of the glyph in it.
_GLYPH: Final = re.compile(r"#(DejaVuSans(?:-Bold)?)-([0-9a-f]+)$")
_SCALE: Final = re.compile(r"\s*scale\(([\d.]+) -[\d.]+\)$")
_SHIFT: Final = re.compile(r"translate\(([-\d.]+) 0\)$")
_LINK: Final = re.compile(r"url\(#([^)]+)\)")
# Hundredths of an em in which glyphs are placed.
_EM: Final = 100.0
_DECIMALS: Final = 2
_FAMILY: Final = "DejaVu Sans,Verdana,sans-serif"
# Elements without a meaning in the page.
_DROPPED: Final = frozenset({"metadata", "style"})
# Attributes of the coordinates of elements.
_COORDINATES: Final = frozenset({"x", "y", "width", "height"})


def inline_svg(text: str, *, name: str, title: str) -> str:
    """Return a matplotlib SVG as an element of a page.

    `name` begins all identifiers: no other figure of the page may have the same. `title` describes
    the figure to readers who do not see it.
    """
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    root = ET.fromstring(text, parser)
    glyphs: dict[str, ET.Element] = {}
    _take_glyphs(root, glyphs)
    _replace_outlines(root)
    # Formulas keep their outlines.
    referenced = _referenced(root)
    outlines = ET.Element(f"{_SVG}defs")
    outlines.extend(glyphs[each] for each in sorted(referenced & glyphs.keys()))
    root.insert(0, outlines)
    names = _Names(name, referenced)
    inner = "".join(_element(child, names) for child in root)
    return (
        f'<svg viewBox="{root.get("viewBox", "")}" role="img" aria-label="{escape(title)}" '
        f'font-family="{_FAMILY}" stroke-linejoin="round">{inner}</svg>'
    )


class _Names:
    """Identifiers in the page, by those in the file."""

    def __init__(self, name: str, referenced: set[str]) -> None:
        self._new = {old: f"{name}-{count}" for count, old in enumerate(sorted(referenced))}

    def of(self, old: str) -> str | None:
        """Return the new identifier; None if nothing refers to the old one."""
        return self._new.get(old)

    def in_links(self, value: str) -> str:
        """Return an attribute's value with the new identifiers in its links."""
        return _LINK.sub(lambda found: f"url(#{self._new[found[1]]})", value)


def _referenced(root: ET.Element) -> set[str]:
    found = set()
    for element in root.iter():
        for key, value in element.attrib.items():
            if key == _HREF:
                found.add(value.removeprefix("#"))
            found |= set(_LINK.findall(value))
    return found


def _take_glyphs(element: ET.Element, glyphs: dict[str, ET.Element]) -> None:
    """Move the outlines of glyphs out of an element: the first text that needs one has it."""
    for child in list(element):
        if child.tag == f"{_SVG}path" and _GLYPH.match(f"#{child.get('id', '')}"):
            glyphs[child.get("id", "")] = child
            element.remove(child)
        else:
            _take_glyphs(child, glyphs)


def _replace_outlines(parent: ET.Element) -> None:
    """Replace outlines of text, which follow a comment with the text."""
    label: str | None = None
    for place, child in enumerate(list(parent)):
        if _is_comment(child):
            label = unescape((child.text or "")[1:-1])
            continue
        text = None if label is None else _text(child, label)
        label = None
        if text is None:
            _replace_outlines(child)
        else:
            parent[place] = text
    for child in [each for each in parent if _is_comment(each)]:
        parent.remove(child)


def _is_comment(element: ET.Element) -> bool:
    return not isinstance(element.tag, str)


def _text(group: ET.Element, label: str) -> ET.Element | None:
    """Return outlines as text; None if they are more than a line of one font, as in formulas."""
    uses = [child for child in group if child.tag == f"{_SVG}use"]
    glyphs = [_GLYPH.match(use.get(_HREF, "")) for use in uses]
    shifts = [_SHIFT.match(use.get("transform", "translate(0 0)")) for use in uses]
    scale = _SCALE.search(group.get("transform", ""))
    if "$" in label or scale is None or not all(shifts):
        return None
    if len({None if glyph is None else glyph[1] for glyph in glyphs}) != 1:
        return None
    last, shift = glyphs[-1], shifts[-1]
    if last is None or shift is None:
        return None
    length = (float(shift[1]) + _advance(last[1], int(last[2], 16))) * float(scale[1])
    attributes = {
        "transform": _SCALE.sub("", group.get("transform", "")),
        "font-size": _short(float(scale[1]) * _EM),
    }
    if "Bold" in last[1]:
        attributes["font-weight"] = "bold"
    if len(uses) > 1:
        attributes["textLength"] = _short(length)
    if "style" in group.attrib:
        attributes["style"] = group.attrib["style"]
    text = ET.Element(f"{_SVG}text", attributes)
    text.text = label
    return text


@cache
def _advance(font: str, glyph: int) -> float:
    """Return a glyph's width in hundredths of an em."""
    outlines = _font(font)
    outlines.set_size(_EM, 72)
    return float(outlines.load_glyph(glyph).linearHoriAdvance) / 65536.0


@cache
def _font(font: str) -> Any:
    weight = "bold" if font.endswith("Bold") else "normal"
    # (In its type hints, the index of a glyph has a type of its own.)
    return FT2Font(findfont(FontProperties(family="DejaVu Sans", weight=weight)))


def _element(element: ET.Element, names: _Names) -> str:
    tag = element.tag.removeprefix(_SVG)
    if tag in _DROPPED:
        return ""
    inner = "".join(_element(child, names) for child in element)
    if tag == "text":
        inner = escape(element.text or "", quote=False)
    attributes = {}
    for key, value in element.attrib.items():
        if key == "id":
            name = names.of(value)
            if name is not None:
                attributes["id"] = name
        elif key == _HREF:
            attributes["href"] = f"#{names.of(value.removeprefix('#'))}"
        else:
            attributes[key] = _value(key, value, names)
    if tag in {"g", "defs"} and not inner:
        return ""
    if tag == "g" and not attributes:
        return inner
    if not inner:
        return f"<{tag}{_attributes(attributes)}/>"
    return f"<{tag}{_attributes(attributes)}>{inner}</{tag}>"


def _value(key: str, value: str, names: _Names) -> str:
    if key == "d":
        return _path(value)
    if key == "style":
        return names.in_links(_style(value))
    if key == "transform":
        return _rounded(value)
    if key in _COORDINATES:
        return _short(float(value))
    return names.in_links(value)


def _attributes(attributes: dict[str, str]) -> str:
    return "".join(f' {key}="{escape(value)}"' for key, value in attributes.items())


def _style(style: str) -> str:
    return style.replace(": ", ":").replace("; ", ";")


def _rounded(text: str) -> str:
    # A scale such as 0.015625 needs all its digits.
    if "scale" in text:
        return text
    return _NUMBER.sub(lambda found: _short(float(found[0])), text)


def _short(value: float) -> str:
    text = f"{value:.{_DECIMALS}f}".rstrip("0").rstrip(".")
    return "0" if text in {"-0", ""} else text.replace("0.", ".", 1) if _is_fraction(text) else text


def _is_fraction(text: str) -> bool:
    return text.startswith(("0.", "-0."))


# Commands of paths as matplotlib writes them, by their number of coordinates.
_COMMAND: Final = re.compile(r"([MLQCHVz])([^MLQCHVz]*)")
_UNIT: Final = 10**_DECIMALS


def _path(data: str) -> str:
    """Return a path with relative coordinates, without sections of no length."""
    written: list[str] = []
    place = start = (0, 0)
    previous = ""
    for command, numbers in _COMMAND.findall(data):
        if command == "z":
            written.append("z")
            place, previous = start, "z"
            continue
        values = [round(float(each) * _UNIT) for each in numbers.split()]
        points = list(zip(values[::2], values[1::2], strict=True))
        if command == "M":
            (point,) = points
            written.append(f"M{_pair(point)}")
            place = start = point
        else:
            if command == "L" and points == [place] and previous != "M":
                continue
            relative = _joined(value for point in points for value in _minus(point, place))
            # A command that repeats the one before needs no letter.
            letter = "" if command == previous else command.lower()
            separator = " " if not letter and not relative.startswith("-") else ""
            written.append(f"{letter}{separator}{relative}")
            place = points[-1]
        previous = command
    return "".join(written)


def _minus(point: tuple[int, int], place: tuple[int, int]) -> tuple[int, int]:
    return point[0] - place[0], point[1] - place[1]


def _pair(point: tuple[int, int]) -> str:
    return _joined(point)


def _joined(values: Iterable[int]) -> str:
    text = ""
    for value in values:
        number = _short(value / _UNIT)
        text += number if not text or number.startswith("-") else f" {number}"
    return text
