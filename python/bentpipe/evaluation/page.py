"""The report of an evaluation as one HTML page."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from bentpipe.evaluation.verdicts import VERDICTS, label, rules
from bentpipe.files import atomic_write
from bentpipe.report.inline_svg import inline_svg
from bentpipe.report.templates import template

if TYPE_CHECKING:
    from bentpipe.evaluation.runner import Evaluation, Section

_FOLDER = Path(__file__).parent


def write_page(evaluation: Evaluation, path: Path) -> None:
    """Write the report; it refers to no other file but the data beside it."""
    filters: dict[str, Callable[..., Any]] = {"figure": _figure, "label": label, "css": _css}
    page = template(_FOLDER / "evaluation.html", filters).render(
        evaluation=evaluation,
        data=rules(),
        provenance=evaluation.provenance,
        verdicts=VERDICTS,
    )
    with atomic_write(path) as part:
        part.write_text(page, encoding="utf-8")


def _figure(section: Section) -> Markup:
    title = f"{section.criterion.title}: measured values by condition and rule"
    return Markup(inline_svg(section.svg, name=section.criterion.id, title=title))


def _css(verdict: str) -> str:
    """Return the class of a verdict in the style sheet."""
    return verdict.replace(" ", "-")
