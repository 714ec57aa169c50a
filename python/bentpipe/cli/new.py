"""`bentpipe new`: a scenario to begin with, every line of it explained."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from bentpipe.cli.output import NO_ROOM
from bentpipe.errors import RequestError, WorkError, reason
from bentpipe.scenario import ready_made

DEFAULT_TEMPLATE: Final = "ship"
_TEMPLATES: Final = Path(__file__).resolve().parents[1] / "templates"
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def template_files() -> dict[str, Path]:
    """Return the templates, by name."""
    return {file.stem: file for file in sorted(_TEMPLATES.glob("*.toml"))}


@contextmanager
def _removed_if_it_fails(path: Path) -> Iterator[None]:
    """Leave no empty file behind where the disk is full."""
    try:
        yield
    except BaseException:
        with suppress(OSError):
            path.unlink()
        raise


def new(*, file: Path | None, template: str) -> None:
    """Write a template under a new name and say what to do with it.

    Raises
    ------
    RequestError
        There is no such template, the file is there already, its name is none, or no file can be
        made there.
    WorkError
        There is no room for it.
    """
    templates = template_files()
    files = {**ready_made(), **templates}
    if template not in files:
        raise RequestError(
            f"no template is {template!r}; there are: {', '.join(templates)}"
            " (and the ready-made scenarios: bentpipe list scenarios)"
        )
    path = file if file is not None else Path(f"{template}.toml")
    if path.name in ("", ".."):
        raise RequestError(f"{path} is a folder; expected a file in it")
    if not path.parent.is_dir():
        raise RequestError(f"{path}: there is no folder {path.parent}")
    if path.suffix != ".toml":
        path = path.with_name(f"{path.name}.toml")
    if not _NAME.fullmatch(path.stem):
        raise RequestError(
            f'{path}: expected a name of letters, digits, "-" and "_" (at most 64) before .toml'
        )
    text = files[template].read_text(encoding="utf-8")
    # The scenario is called as its file is.
    text = text.replace(f'name = "{template}"', f'name = "{path.stem}"', 1)
    text = text.replace("FILE.toml", str(path))
    try:
        with path.open("x", encoding="utf-8") as written, _removed_if_it_fails(path):
            written.write(text)
            written.flush()
    except FileExistsError:
        raise RequestError(f"{path} is there already; choose another name") from None
    except OSError as error:
        said = f"{path}: {reason(error)}"
        raise (WorkError(said) if error.errno in NO_ROOM else RequestError(said)) from None
    print(f"wrote {path}; try: bentpipe run {path}")
