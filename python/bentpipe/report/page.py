"""The report page: inline figures, claims as a table, the most important numbers first."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bentpipe import _native
from bentpipe.files import atomic_write

if TYPE_CHECKING:
    from bentpipe.studies.runner import Reproduced

_FOLDER = Path(__file__).parent


def write_report(reproduced: Sequence[Reproduced], path: Path, *, quick: bool = False) -> None:
    """Write the report; the only files that it refers to are the figures' numbers."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["data_uri"] = _data_uri
    page = environment.get_template("report.html").render(
        reproduced=reproduced,
        quick=quick,
        version=_native.__version__,
        folder=path.parent,
    )
    with atomic_write(path) as part:
        part.write_text(page, encoding="utf-8")


def _data_uri(svg: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(svg.read_bytes()).decode("ascii")
